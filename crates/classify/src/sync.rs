//! The synchronisation types: from the standard library, or in unit tests from shuttle, which tries thread schedules.

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
