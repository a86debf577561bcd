//! Code that two or more engines share: elementary intervals as sorted search keys with answers, lookups one after the
//! other, work on several threads, loading of stored tables, and the choice of the fastest form.
//!
//! The public items are for engines in other crates whose tables hold the same codes, such as those of
//! `fibula-baselines`.

mod each;
mod fastest;
mod intervals;
mod key;
mod long;
mod stored;
mod threads;
mod values;

pub use each::each;
pub(crate) use fastest::{best_times, first_of_the_best};
pub(crate) use intervals::Intervals;
pub use key::{SearchAddr, SearchKey};
pub(crate) use long::{Long, LongBuilder};
pub use stored::{optional_table, table};
pub(crate) use threads::on_threads;
pub(crate) use values::Value;
pub use values::{Answer, Values, hop};
