//! Inputs that are held in memory as a whole: rules, VRPs, keys, settings. How long they may be is checked while they
//! are read, before memory is taken.

use std::cell::Cell;
use std::io::{self, Cursor, ErrorKind, Read};
use std::rc::Rc;

use crate::{Compression, container};

/// Maximum number of bytes of an input that is read as a whole, decompressed.
pub const LONGEST_WHOLE: u64 = 1 << 30;
/// Bytes that show whether an input is text.
const HEAD: usize = 512;
/// Bytes to which every archive may unpack, and how many times its own size it may have beyond them.
const UNPACKED_FREE: u64 = 64 << 20;
const UNPACKED: u64 = 256;

/// Whether a content of so many bytes is more than an archive of so many bytes may have: far more than any text
/// shrinks, so that the archive was made to fill memory.
pub(crate) fn unpacks_too_far(content: u64, archive: u64) -> bool {
    content.saturating_sub(UNPACKED_FREE) > archive.saturating_mul(UNPACKED)
}

/// A reader that gives no more than `longest` bytes: one more is an error of the kind [`ErrorKind::FileTooLarge`]. For
/// inputs whose reader keeps all of them.
///
/// ```
/// use std::io::Read;
///
/// let mut text = String::new();
/// assert!(fibula_ingest::bounded(&b"1234"[..], 4).read_to_string(&mut text).is_ok());
/// assert!(fibula_ingest::bounded(std::io::repeat(b'1'), 4).read_to_string(&mut text).is_err());
/// ```
pub fn bounded<R: Read>(input: R, longest: u64) -> impl Read {
    Bounded { input, longest, read: 0, archive: None }
}

/// A reader of an input that will be kept in memory as a whole. It undoes the compression, if there is one.
///
/// It gives at most [`LONGEST_WHOLE`] bytes, and of an archive at most 64 MiB and 256 times the archive's bytes. Beyond
/// these it gives an error of the kind [`ErrorKind::FileTooLarge`].
///
/// # Errors
/// If the first bytes cannot be read, or are those of a [`container`](crate::container). Damage further on becomes an
/// error of the reader.
pub fn open_whole(input: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let read = Rc::new(Cell::new(0));
    let (compression, input) = crate::decompress(Counted { input, read: Rc::clone(&read) })?;
    let archive = (compression != Compression::None).then_some(read);
    let mut input = Bounded { input, longest: LONGEST_WHOLE, read: 0, archive };
    let mut head = Vec::new();
    (&mut input).take(HEAD as u64).read_to_end(&mut head)?;
    match container(&head) {
        Some(what) => Err(io::Error::new(ErrorKind::InvalidData, format!("this is {what}"))),
        None => Ok(Box::new(Cursor::new(head).chain(input))),
    }
}

/// Reads all bytes of [`open_whole`].
///
/// ```
/// assert_eq!(fibula_ingest::read_whole(&b"AS64500"[..])?, b"AS64500");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the input cannot be read or decompressed, or has too many bytes.
pub fn read_whole(input: impl Read + 'static) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_whole(input)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

struct Bounded<R> {
    input: R,
    longest: u64,
    /// Bytes given.
    read: u64,
    /// Bytes read of the archive, if the input is one.
    archive: Option<Rc<Cell<u64>>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        self.read += count as u64;
        let archive = self.archive.as_ref().map(|read| read.get());
        if self.read > self.longest {
            let Self { longest, .. } = self;
            let what =
                format!("it has more than {longest} bytes, which are read into memory at once");
            return Err(io::Error::new(ErrorKind::FileTooLarge, what));
        }
        match archive.is_some_and(|archive| unpacks_too_far(self.read, archive)) {
            true => {
                let what = "it unpacks to more than 64 MiB and 256 times its own size";
                Err(io::Error::new(ErrorKind::FileTooLarge, what))
            }
            false => Ok(count),
        }
    }
}

/// Counts the bytes that are read.
struct Counted<R> {
    input: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    use flate2::{Compression as Level, write::GzEncoder};

    #[test]
    fn as_many_bytes_as_allowed_and_one_more() {
        let mut bytes = Vec::new();
        bounded(&[7; 1000][..], 1000).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [7; 1000]);
        let error = bounded(io::repeat(7), 1000).read_to_end(&mut bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("1000 bytes"), "{error}");
    }

    /// gzip shrinks zeros to a thousandth.
    #[test]
    fn an_archive_made_to_fill_memory() {
        let mut archive = GzEncoder::new(Vec::new(), Level::best());
        let zeros = vec![0; 1 << 20];
        (0..256).for_each(|_| archive.write_all(&zeros).unwrap());
        let archive = archive.finish().unwrap();
        let mut reader = open_whole(Cursor::new(archive)).unwrap();
        let mut read = 0;
        let error = loop {
            match reader.read(&mut vec![0; 1 << 16]) {
                Ok(count) => read += count,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!((64 << 20..200 << 20).contains(&read), "{read}");
    }

    #[test]
    fn archives_of_text_are_read() {
        let text: String =
            (0..100_000).map(|line| format!("10.0.{}.0/24 {line}\n", line % 256)).collect();
        let mut archive = GzEncoder::new(Vec::new(), Level::best());
        archive.write_all(text.as_bytes()).unwrap();
        let archive = Cursor::new(archive.finish().unwrap());
        assert_eq!(read_whole(archive).unwrap(), text.as_bytes());
    }
}
