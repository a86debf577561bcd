//! Shared code of two engines: the elementary intervals as sorted search keys with answers, and loading of stored
//! tables.

mod bits;
mod intervals;
mod key;
mod long;
mod stored;
mod values;

pub(crate) use bits::bits;
pub(crate) use intervals::Intervals;
pub use key::{SearchAddr, SearchKey};
pub(crate) use long::Long;
pub(crate) use stored::{optional_table, table};
pub(crate) use values::{Answer, Value, Values, hop};
