//! The unpacked length of LZ4 frames, without unpacking them.
//!
//! A library reads a frame to its end, whatever length the file declares for it.

/// The first bytes of a frame.
const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();

/// The bits of a frame's flags: each block, and the whole, may have further fields.
const BLOCK_CHECKSUM: u8 = 1 << 4;
const CONTENT_SIZE: u8 = 1 << 3;
const DICTIONARY: u8 = 1;

/// The number of bytes to which a frame is unpacked, from the tokens of its blocks; `None` if it is no frame.
pub(super) fn unpacked_len(frame: &[u8]) -> Option<u64> {
    let rest = frame.strip_prefix(&MAGIC)?;
    let flags = *rest.first()?;
    let has = |flag: u8, bytes: usize| if flags & flag == 0 { 0 } else { bytes };
    // The flags, the size of blocks, and a check of the header.
    let mut rest = rest.get(3 + has(CONTENT_SIZE, 8) + has(DICTIONARY, 4)..)?;
    let mut total = 0;
    loop {
        let (size, tail) = rest.split_first_chunk()?;
        let size = u32::from_le_bytes(*size);
        if size == 0 {
            return Some(total);
        }
        let len = (size & !(1 << 31)) as usize;
        let block = tail.get(..len)?;
        total += if size >> 31 == 1 { len as u64 } else { block_len(block)? };
        rest = tail.get(len + has(BLOCK_CHECKSUM, 4)..)?;
    }
}

/// The unpacked length of a block: pairs of literal bytes and a match, the last one without a match.
fn block_len(mut block: &[u8]) -> Option<u64> {
    let mut total = 0;
    loop {
        let (&token, tail) = block.split_first()?;
        let (literals, tail) = length(token >> 4, tail)?;
        total += literals;
        let tail = tail.get(usize::try_from(literals).ok()?..)?;
        if tail.is_empty() {
            return Some(total);
        }
        // Two bytes say how far back the match is.
        let (matched, tail) = length(token & 15, tail.get(2..)?)?;
        total += matched + 4;
        block = tail;
    }
}

/// A length of four bits, with further bytes if it is 15.
fn length(bits: u8, mut rest: &[u8]) -> Option<(u64, &[u8])> {
    let mut len = u64::from(bits);
    if bits == 15 {
        loop {
            let (&more, tail) = rest.split_first()?;
            (len, rest) = (len + u64::from(more), tail);
            if more < 255 {
                break;
            }
        }
    }
    Some((len, rest))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lengths_are_those_of_the_library() {
        let text = |at: usize| (at * at / 7 % 251) as u8;
        for len in [0, 1, 15, 16, 300, 70_000, 300_000] {
            let bytes: [Vec<u8>; 3] = [
                vec![0; len],
                (0..len).map(text).collect(),
                (0..len).map(|at| (at % 9) as u8).collect(),
            ];
            for bytes in bytes {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder.write_all(&bytes).unwrap();
                let frame = encoder.finish().unwrap();
                assert_eq!(unpacked_len(&frame), Some(len as u64));
                for cut in (0..frame.len()).step_by(97) {
                    assert_eq!(unpacked_len(&frame[..cut]), None, "{cut} of {}", frame.len());
                }
            }
        }
        assert_eq!(unpacked_len(b"no frame"), None);
    }
}
