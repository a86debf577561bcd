//! The ranges of rules. Many rules have the same ranges, so each is stored once, close together.

use std::collections::HashMap;

use crate::rules::Range;
use crate::{Flow, Mask};

/// The number of the list without ranges.
pub(super) const NO_RANGES: u32 = u32::MAX;

/// Lists of ranges by number, and how many rules have each.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    lists: Vec<(Box<[Range]>, u32)>,
    free: Vec<u32>,
    numbers: HashMap<Box<[Range]>, u32>,
}

impl Ranges {
    /// Counts a rule with these ranges, and returns the number of their list.
    pub(super) fn insert(&mut self, ranges: &[Range]) -> u32 {
        if ranges.is_empty() {
            return NO_RANGES;
        }
        if let Some(&number) = self.numbers.get(ranges) {
            self.lists[number as usize].1 += 1;
            return number;
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.lists[number as usize] = (ranges.into(), 1);
                number
            }
            None => {
                self.lists.push((ranges.into(), 1));
                (self.lists.len() - 1) as u32
            }
        };
        self.numbers.insert(ranges.into(), number);
        number
    }

    /// Removes a rule with this list of ranges.
    pub(super) fn remove(&mut self, number: u32) {
        let Some((list, rules)) = self.lists.get_mut(number as usize) else { return };
        *rules -= 1;
        if *rules == 0 {
            self.numbers.remove(list);
            *list = Box::default();
            self.free.push(number);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let of_lists: usize = self.lists.iter().map(|(list, _)| size_of_val(&**list)).sum();
        self.lists.capacity() * 24 + self.numbers.capacity() * 25 + of_lists * 2
    }

    /// Whether the packet is in all ranges of a list. Adds the bits that prove the answer to the mask.
    #[inline(always)]
    pub(super) fn contain(&self, number: u32, flow: &Flow, mask: &mut Mask) -> bool {
        let Some((list, _)) = self.lists.get(number as usize) else { return true };
        let mut show = |range: &Range| {
            mask.add_prefix(range.field, range.bits_that_show(flow.get(range.field)).0);
        };
        // To exclude the packet, one range suffices.
        if let Some(range) = list.iter().find(|range| !range.contains(flow.get(range.field))) {
            show(range);
            return false;
        }
        list.iter().for_each(show);
        true
    }
}
