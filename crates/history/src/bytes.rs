//! Numbers and texts in bytes. Whatever the bytes are, reading them ends, and takes no more memory than they have.

/// What is wrong with bytes.
pub(crate) type Flaw = &'static str;

/// Appends a number, in 1 to 10 bytes.
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes behind their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes that are read from the front.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn byte(&mut self) -> Result<u8, Flaw> {
        let (&first, rest) = self.0.split_first().ok_or("it ends early")?;
        self.0 = rest;
        Ok(first)
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Flaw> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("it ends early")?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Flaw> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number is too large")
    }

    /// A number of things, each of which takes at least one byte of the rest.
    pub(crate) fn count(&mut self) -> Result<usize, Flaw> {
        let count = self.number()?;
        usize::try_from(count)
            .ok()
            .filter(|&count| count <= self.0.len())
            .ok_or("a count is too large")
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Flaw> {
        let count = self.count()?;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Flaw> {
        std::str::from_utf8(self.bytes()?).map_err(|_| "a text is not UTF-8")
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<(), Flaw> {
        if self.0.is_empty() { Ok(()) } else { Err("bytes are left over") }
    }
}

/// Maps small differences of either sign to small numbers.
pub(crate) fn zigzag(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// Undoes [`zigzag`].
pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::MAX / 2, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, number);
            let mut input = Input(&out);
            assert_eq!((input.number(), input.end()), (Ok(number), Ok(())));
            assert!(Input(&out[..out.len() - 1]).number().is_err());
            let signed = number as i64;
            assert_eq!(unzigzag(zigzag(signed)), signed);
        }
        let large = [[0xff; 9].as_slice(), &[2]].concat();
        assert!(Input(&large).number().is_err());
        assert!(Input(&[5, 1, 2]).bytes().is_err(), "longer than what is left");
    }
}
