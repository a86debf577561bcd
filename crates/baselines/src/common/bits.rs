use fibula_core::Addr;

/// The `len` bits of an address from bit `at` on, as a number; bits beyond the end of the address are 0.
/// `at` must be less than the number of the address's bits, `len` at most 32.
#[inline(always)]
pub(crate) fn bits<A: Addr>(addr: A, at: u32, len: u32) -> usize {
    let whole = addr.to_u128() << (128 - u32::from(A::BITS));
    // The shift has two steps for the case of 0 bits. 64-bit operations are faster, and suffice for most lookups.
    if at + len <= 64 && at < 64 {
        (((whole >> 64) as u64) << at >> (63 - len) >> 1) as usize
    } else {
        (whole << at >> (127 - len) >> 1) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::bits;

    #[test]
    fn bits_of_both_families() {
        for (at, len, expected) in
            [(0, 0, 0), (0, 8, 10), (8, 8, 1), (0, 32, 0x0a01_4207), (28, 6, 0x1c), (31, 4, 8)]
        {
            assert_eq!(bits(0x0a01_4207u32, at, len), expected, "{at} {len}");
        }
        let addr = 0x2001_0db8_0000_0000_8000_0000_0000_0003u128;
        for (at, len, expected) in
            [(0, 16, 0x2001), (16, 16, 0x0db8), (60, 8, 8), (64, 1, 1), (126, 6, 0x30), (127, 0, 0)]
        {
            assert_eq!(bits(addr, at, len), expected, "{at} {len}");
        }
    }
}
