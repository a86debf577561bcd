//! Reads integers from byte slices; `None` beyond the end.

pub(crate) fn u16_at(data: &[u8], at: usize, big: bool) -> Option<u16> {
    let bytes = data.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
}

pub(crate) fn u32_at(data: &[u8], at: usize, big: bool) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
}
