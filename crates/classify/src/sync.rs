//! What threads meet by: the standard library's, or in the unit tests those of shuttle, which tries schedules.

#[cfg(test)]
pub(crate) use shuttle::sync::{
    Arc, Mutex, MutexGuard, RwLock, Weak,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};
#[cfg(not(test))]
pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard, RwLock, Weak,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};
