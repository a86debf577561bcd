//! What threads meet by: the standard library's, or in the unit tests those of shuttle, which tries schedules.

#[cfg(test)]
pub(crate) use shuttle::sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(test))]
pub(crate) use std::sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicU64, Ordering},
};
