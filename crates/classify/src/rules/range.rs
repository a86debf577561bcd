//! Ranges of values, and the smallest number of bits that decide whether a value is inside.

use super::rule::ones;
use crate::Field;

/// A range of a field's values, both ends included, that cannot be expressed as a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The field.
    pub field: Field,
    /// The smallest value.
    pub first: u128,
    /// The largest value.
    pub last: u128,
}

impl Range {
    /// Whether the value is in the range.
    #[inline]
    pub fn contains(&self, value: u128) -> bool {
        self.first <= value && value <= self.last
    }

    /// Whether some value in the range agrees with `value` in the bits of `mask`.
    pub fn meets(&self, value: u128, mask: u128) -> bool {
        smallest(self.first, value, mask, ones(self.field)).is_some_and(|at| at <= self.last)
    }

    /// The number of leading bits of the value that decide whether it is in the range: the answer is the same for all
    /// values with these leading bits. The second result is this answer.
    ///
    /// ```text
    /// 1024 to 65535, of 16 bits          8080 = 0001111110010000: four bits, all of 4096 to 8191 is in it
    ///                                    80   = 0000000001010000: six bits, nothing of 0 to 1023 is
    /// ```
    pub fn bits_that_show(&self, value: u128) -> (u32, bool) {
        // Up to where the value parts from another one, and the bit in which they differ.
        let from =
            |other: u128| (value ^ other).leading_zeros() + 1 + self.field.bits() - u128::BITS;
        if value < self.first {
            return (from(self.first), false);
        }
        if value > self.last {
            return (from(self.last), false);
        }
        let below = if self.first == 0 { 0 } else { from(self.first - 1) };
        let above = if self.last == ones(self.field) { 0 } else { from(self.last + 1) };
        (below.max(above), true)
    }
}

/// The smallest number from `from` on that agrees with `value` in the bits of `mask`, up to `max`, which is all ones.
fn smallest(from: u128, value: u128, mask: u128, max: u128) -> Option<u128> {
    let lowest = value & mask;
    let differ = (from ^ lowest) & mask;
    if differ == 0 {
        return Some(from & !mask | lowest);
    }
    let top = 127 - differ.leading_zeros();
    let below = (1u128 << top) - 1;
    if lowest >> top & 1 == 1 {
        // Larger than `from` by this bit: free bits below it are 0.
        return Some(from & !mask & !below & !(1 << top) | lowest);
    }
    // Smaller by this bit: the lowest free bit above it that is 0 becomes 1, free bits below that 0.
    let free = !mask & !from & max & !below & !(1 << top);
    if free == 0 {
        return None;
    }
    let carry = free & free.wrapping_neg();
    Some((from | carry) & !mask & !(carry - 1) | lowest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_is_what_counting_finds() {
        for mask in 0..32u128 {
            for value in (0..32).filter(|value| value & !mask == 0) {
                for from in 0..32 {
                    let counted = (from..32).find(|at| at & mask == value);
                    assert_eq!(smallest(from, value, mask, 31), counted, "{from} {value} {mask}");
                }
            }
        }
    }

    #[test]
    fn bits_show_it_and_one_less_does_not() {
        for first in 0..16 {
            for last in first..16 {
                let range = Range { field: Field::IpVersion, first, last };
                for value in 0..16 {
                    let (len, inside) = range.bits_that_show(value);
                    assert_eq!(inside, (first..=last).contains(&value));
                    let same = |len: u32| {
                        let of = |at: u128| at >> (4 - len);
                        (0..16)
                            .filter(|at| of(*at) == of(value))
                            .all(|at| range.contains(at) == inside)
                    };
                    assert!(same(len), "{range:?} {value}");
                    assert!(len == 0 || !same(len - 1), "{range:?} {value}");
                }
            }
        }
    }
}
