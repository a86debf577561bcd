//! Big-endian integers at offsets.

/// Two bytes at an offset.
pub(crate) fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// Four bytes at an offset.
pub(crate) fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// An integer of at most eight bytes; `None` if the slice is empty or longer.
pub(crate) fn integer(bytes: &[u8]) -> Option<u64> {
    let known = (1..=8).contains(&bytes.len());
    known.then(|| bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// Reads bytes in order, and remembers how far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) at: usize,
    pub(crate) end: usize,
}

impl<'a> Cursor<'a> {
    /// All of the data from an offset.
    pub(crate) fn new(data: &'a [u8], at: usize) -> Self {
        Self { data, at, end: data.len() }
    }

    pub(crate) fn left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let bytes = self.data.get(self.at..self.at.checked_add(len)?)?;
        if len > self.left() {
            return None;
        }
        self.at += len;
        Some(bytes)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take(2)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
    }

    /// The next bytes as a cursor of their own.
    pub(crate) fn part(&mut self, len: usize) -> Option<Self> {
        let at = self.at;
        self.take(len)?;
        Some(Self { data: self.data, at, end: at + len })
    }
}
