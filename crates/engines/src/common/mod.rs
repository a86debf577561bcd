//! What two engines need: the elementary intervals as sorted search keys with answers, and the
//! loading of stored tables.

mod intervals;
mod key;
mod long;
mod stored;
mod values;

pub(crate) use intervals::Intervals;
pub use key::{SearchAddr, SearchKey};
pub(crate) use long::Long;
pub(crate) use stored::{optional_table, table};
pub(crate) use values::{Answer, Value, Values, hop};

/// An integer with its digits in groups of three, as people read it: `1,234,567`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.char_indices() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn digits_in_groups_of_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")] {
            assert_eq!(super::grouped(number), text);
        }
    }
}
