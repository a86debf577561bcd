//! Reads input line by line.

use std::io::{self, BufRead, BufReader, Read};

/// Number of bytes kept of a line, which is more than any address needs.
const KEPT: usize = 4096;

/// Numbered lines of an input. Memory is bounded however long a line is.
pub struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

impl<R: Read> Lines<R> {
    pub fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(64 << 10, input), line: Vec::new(), number: 0 }
    }

    /// Whether a whole line is already in the buffer, so that [`Lines::next`] would not block.
    pub fn is_waiting(&self) -> bool {
        self.input.buffer().contains(&b'\n')
    }

    /// The next line with its number, counted from 1, and cut to 4,096 bytes; `None` at the end of the input.
    pub fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        self.line.clear();
        let mut is_line = false;
        loop {
            let data = match self.input.fill_buf() {
                Ok(data) => data,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = data.iter().position(|&byte| byte == b'\n');
            let part = &data[..end.unwrap_or(data.len())];
            let room = KEPT - self.line.len();
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            let is_end = used == 0 || end.is_some();
            is_line |= used > 0;
            self.input.consume(used);
            if is_end {
                self.number += u64::from(is_line);
                return Ok(is_line.then_some((self.number, &*self.line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns its parts one at a time.
    struct Parts(Vec<&'static [u8]>);

    impl Read for Parts {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let part = self.0.remove(0);
            into[..part.len()].copy_from_slice(part);
            Ok(part.len())
        }
    }

    #[test]
    fn lines_in_parts() {
        let mut lines = Lines::new(Parts(vec![b"a\nb", b"c\n", b"\nlast"]));
        // The buffered bytes were read together with the end of the line before.
        for (expected, is_waiting) in [("a", false), ("bc", false), ("", false), ("last", false)] {
            assert_eq!(lines.is_waiting(), is_waiting, "before {expected:?}");
            let (_, line) = lines.next().unwrap().unwrap();
            assert_eq!(line, expected.as_bytes());
        }
        assert_eq!(lines.number, 4);
        assert!(lines.next().unwrap().is_none());
    }

    #[test]
    fn long_lines_are_cut() {
        let long = [&[b'x'; 10_000][..], b"\nshort\n"].concat();
        let mut lines = Lines::new(&*long);
        assert_eq!(
            lines.next().unwrap().map(|(number, line)| (number, line.len())),
            Some((1, KEPT))
        );
        assert_eq!(lines.next().unwrap(), Some((2, &b"short"[..])));
        assert_eq!(lines.next().unwrap(), None);
    }
}
