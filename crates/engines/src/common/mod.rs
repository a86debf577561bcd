//! Code that two or more engines share: elementary intervals as sorted search keys with answers, hash tables of prefixes,
//! bits of addresses, lookups one after the other, work on several threads, and loading of stored tables.

mod bits;
mod hashed;
mod intervals;
mod key;
mod long;
mod search;
mod stored;
mod threads;
mod values;

pub(crate) use bits::bits;
pub(crate) use hashed::{Hashed, Item, Part, parts};
pub(crate) use intervals::Intervals;
pub use key::{SearchAddr, SearchKey};
pub(crate) use long::{Long, LongBuilder};
pub(crate) use search::{Search, each, many, one};
pub(crate) use stored::{optional_table, table};
pub(crate) use threads::on_threads;
pub(crate) use values::{Answer, Value, Values, hop};
