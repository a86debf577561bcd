//! The Internet checksum: RFC 1071, and its incremental update: RFC 1624.

/// The one's complement sum of 16-bit big-endian words (RFC 1071, section 1). An odd last byte is
/// the upper half of a word.
#[must_use]
pub fn sum(bytes: &[u8]) -> u16 {
    fold(words(bytes))
}

/// The sum of two parts as if they were one. The first part has an even length.
pub(crate) fn sum_of_two(first: &[u8], second: &[u8]) -> u16 {
    fold(words(first) + words(second))
}

/// The checksum to store in a header whose checksum field is zero.
///
/// ```
/// use fibula_packet::checksum;
///
/// let mut header = *b"\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02";
/// let computed = checksum::compute(&header);
/// header[10..12].copy_from_slice(&computed.to_be_bytes());
/// assert!(checksum::verify(&header));
/// ```
#[must_use]
pub fn compute(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// Whether a header with its checksum field in place sums to all ones (RFC 1071, section 1).
#[must_use]
pub fn verify(bytes: &[u8]) -> bool {
    sum(bytes) == 0xffff
}

/// The checksum after a 16-bit word of the header changed from `old` to `new`: equation 3 of RFC
/// 1624. Equation 4 is shorter but gives 0xffff where the header sums to zero.
#[must_use]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

/// The plain sum of words: 2^48 of them fit.
fn words(bytes: &[u8]) -> u64 {
    let (words, odd) = bytes.as_chunks::<2>();
    let sum: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    sum + odd.first().map_or(0, |last| u64::from(*last) << 8)
}

/// Adds the carries back until none is left.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn example_of_rfc_1071() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[0x01]), 0x0100);
        assert_eq!(sum(&[]), 0);
    }

    /// Section 4: the equation of RFC 1141 gives 0xffff here, which is wrong.
    #[test]
    fn example_of_rfc_1624() {
        assert_eq!(fold(0xcd7a + 0x5555), 0x22d0);
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        /// Updating is computing anew, for every word of a header that is not all zero.
        #[test]
        fn update_is_compute(header in any::<[u8; 20]>(), word in 0usize..9, new: u16) {
            let mut header = header;
            header[0] |= 0x40;
            header[10..12].fill(0);
            let at = if word < 5 { 2 * word } else { 2 * word + 2 };
            let old = u16::from_be_bytes([header[at], header[at + 1]]);
            let before = compute(&header);
            header[at..at + 2].copy_from_slice(&new.to_be_bytes());
            prop_assume!(header.iter().any(|byte| *byte != 0));
            prop_assert_eq!(update(before, old, new), compute(&header));
            header[10..12].copy_from_slice(&update(before, old, new).to_be_bytes());
            prop_assert!(verify(&header));
            // A single changed bit is seen.
            header[at] ^= 1;
            prop_assert!(!verify(&header));
        }

        #[test]
        fn two_parts_are_one(bytes in proptest::collection::vec(any::<u8>(), 0..90), cut in 0usize..40) {
            let (first, second) = bytes.split_at((2 * cut).min(bytes.len() & !1));
            prop_assert_eq!(sum_of_two(first, second), sum(&bytes));
        }
    }
}
