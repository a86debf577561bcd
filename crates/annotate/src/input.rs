//! Buffered input that can look as far ahead as a record reaches.

use std::io::{self, ErrorKind, Read};

/// Bytes asked for at once.
const CHUNK: usize = 256 << 10;

/// Below this, a partial record is looked at again after every read, so that rows of a slow pipe come
/// out as they come in; above, only once the data has doubled, so that reading stays linear.
const EAGER: usize = 64 << 10;

/// The most bytes that a record may have; bounds the memory that a hostile input can claim.
pub(crate) const MAX_RECORD: usize = 16 << 20;

/// The byte order mark of UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug)]
pub(crate) struct Input<R> {
    inner: R,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    eof: bool,
    /// Whether the last read gave less than asked for: the writer at the other end may be waiting.
    slow: bool,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, buf: vec![0; CHUNK], start: 0, end: 0, eof: false, slow: false }
    }

    /// What was read and not consumed.
    pub(crate) fn data(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    /// Takes a byte order mark, which is no part of the first name or address; empty without one.
    pub(crate) fn mark(&mut self) -> io::Result<&'static [u8]> {
        while self.data().len() < BOM.len() && BOM.starts_with(self.data()) && !self.at_end() {
            self.more()?;
        }
        if !self.data().starts_with(BOM) {
            return Ok(&[]);
        }
        self.consume(BOM.len());
        Ok(BOM)
    }

    /// Whether [`Input::data`] is all that remains.
    pub(crate) fn at_end(&self) -> bool {
        self.eof
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.slow
    }

    /// Reads on because no record is complete in the data; `false` if a record would become too long.
    pub(crate) fn more(&mut self) -> io::Result<bool> {
        let have = self.end - self.start;
        if have > MAX_RECORD {
            return Ok(false);
        }
        let want = if have < EAGER { have + 1 } else { have * 2 };
        self.buf.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, have);
        // Twice the chunk, so that a read is not left with a sliver of space.
        if self.buf.len() < want + CHUNK {
            self.buf.resize(want + CHUNK, 0);
        }
        while self.end < want && !self.eof {
            let space = self.buf.len() - self.end;
            match self.inner.read(&mut self.buf[self.end..]) {
                Ok(0) => self.eof = true,
                Ok(n) => {
                    self.end += n.min(space);
                    self.slow = n < space;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One byte a read, as a slow pipe may give.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(buf.len()).min(1);
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn reads_on_and_ends() {
        let mut input = Input::new(Drip(b"abc"));
        assert!(input.more().unwrap());
        assert_eq!(input.data(), b"a");
        assert!(input.more().unwrap());
        input.consume(1);
        assert_eq!(input.data(), b"b");
        assert!(input.more().unwrap() && input.more().unwrap());
        assert_eq!(input.data(), b"bc");
        assert!(input.at_end());
    }

    #[test]
    fn an_endless_record_is_refused() {
        let mut input = Input::new(io::repeat(b'x'));
        let mut reads = 0;
        while input.more().unwrap() {
            reads += 1;
            assert!(reads < 100, "reading is not linear");
        }
        assert!(input.data().len() <= 4 * MAX_RECORD);
    }
}
