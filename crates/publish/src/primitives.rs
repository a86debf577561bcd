use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

/// The types that threads share: those of the standard library, or those of a model check.
pub trait Primitives {
    /// An atomic number.
    type Number;
    /// A pointer that is swapped.
    type Cell<T>;

    /// Makes a number.
    fn number(first: u64) -> Self::Number;
    /// Loads it; what was written before it was stored is visible then.
    fn load_number(number: &Self::Number) -> u64;
    /// Stores it.
    fn store_number(number: &Self::Number, next: u64);

    /// Makes a pointer.
    fn cell<T>(first: Arc<T>) -> Self::Cell<T>;
    /// The pointer at this moment.
    fn load<T>(cell: &Self::Cell<T>) -> Arc<T>;
    /// Replaces it, and returns the one before.
    fn swap<T>(cell: &Self::Cell<T>, next: Arc<T>) -> Arc<T>;
}

/// Atomic numbers of the standard library, and `arc-swap`, whose swap and load are lock-free.
#[derive(Debug)]
pub struct Standard;

impl Primitives for Standard {
    type Number = AtomicU64;
    type Cell<T> = ArcSwap<T>;

    fn number(first: u64) -> AtomicU64 {
        AtomicU64::new(first)
    }
    #[inline]
    fn load_number(number: &AtomicU64) -> u64 {
        number.load(Ordering::Acquire)
    }
    fn store_number(number: &AtomicU64, next: u64) {
        number.store(next, Ordering::Release);
    }

    fn cell<T>(first: Arc<T>) -> ArcSwap<T> {
        ArcSwap::new(first)
    }
    fn load<T>(cell: &ArcSwap<T>) -> Arc<T> {
        cell.load_full()
    }
    fn swap<T>(cell: &ArcSwap<T>, next: Arc<T>) -> Arc<T> {
        cell.swap(next)
    }
}
