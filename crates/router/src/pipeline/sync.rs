//! The primitives by which threads are woken: the standard library's, or in the unit tests those of shuttle, which
//! tries schedules (see `model.rs`). Tests of whole pipelines are in `tests/`, which link the library with the standard
//! ones.

#[cfg(test)]
pub(super) use shuttle::sync::atomic::{AtomicBool, Ordering, fence};
#[cfg(not(test))]
pub(super) use std::sync::atomic::{AtomicBool, Ordering, fence};
