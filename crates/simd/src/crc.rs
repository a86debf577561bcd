/// Takes the `bytes` low bytes of `data` into a CRC32 with Castagnoli's polynomial, as the machine's
/// instruction does: without the complements before and after. Kernels have the instruction in
/// [`Simd::crc32c`](crate::Simd::crc32c).
#[inline]
pub fn crc32c(crc: u32, data: u64, bytes: u32) -> u32 {
    (0..bytes).fold(crc, |crc, byte| {
        let at = (crc ^ (data >> (8 * byte)) as u32) & 0xff;
        CRC[at as usize] ^ crc >> 8
    })
}

/// The CRC of each byte.
static CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the catalogue of CRCs, and those of RFC 3720, appendix B.4.
    #[test]
    fn crc_as_published() {
        let crc = |bytes: &[u8]| !bytes.iter().fold(!0, |crc, b| crc32c(crc, (*b).into(), 1));
        assert_eq!(crc(b"123456789"), 0xe306_9283);
        assert_eq!(crc(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc(&[0xff; 32]), 0x62a8_ab43);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(crc(&up), 0x46dd_794e);
        let words = up.as_chunks::<8>().0;
        let by_words = words.iter().fold(!0, |crc, w| crc32c(crc, u64::from_le_bytes(*w), 8));
        assert_eq!(!by_words, 0x46dd_794e);
    }
}
