//! The middle of both annotators: from the keys of a block to numbered answers and counts.
//!
//! ```text
//!   formats/ (text, captures)    columns/ (Arrow arrays)
//!                \                  /
//!                 keys               the addresses of each family, and the reasons of cells without an address
//!                 lookup             batches by family; routes and prefix lengths only if they are needed
//!                 answers            for each cell one number: a row, or the reason why there is none
//!                 counts, hits       for the summary
//!                /                  \
//!   rows/ (bytes of rows)        columns/outputs (Arrow columns)
//! ```
//!
//! Only `keys` and `lookup` know that keys are addresses. The stages behind them see numbers. Another kind of key needs
//! a type like [`Cells`](keys::Cells), a lookup that fills [`Answers::rows`](answers::Answers), and columns with a row
//! for each number.
//!
//! - **Invariant** Each cell of a block is in exactly one of the three lists of [`Cells`](keys::Cells), and so has one
//!   answer.
//! - **Invariant** A number without a row means one reason, and every table indexed by numbers has an entry for it.

pub(crate) mod answers;
pub(crate) mod counts;
pub(crate) mod hits;
pub(crate) mod keys;
pub(crate) mod lengths;
pub(crate) mod lookup;
pub(crate) mod summary;
