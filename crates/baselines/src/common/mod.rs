//! Code that two or more baselines share: hash tables of prefixes, bits of addresses, lookups one after the other.

mod bits;
mod hashed;
mod search;

pub(crate) use bits::bits;
pub(crate) use hashed::{Hashed, Item, Part, SlotsMut, parts};
pub(crate) use search::{Search, many, one};
