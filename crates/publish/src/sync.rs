/// Declares the module `sync` of a crate: the synchronisation types of the standard library, or in its unit tests those
/// of `shuttle`, and `Threads`, the [`Primitives`](crate::Primitives) of the same.
///
/// Which one it is depends on the crate that calls the macro, so this cannot be a module here: a library is compiled
/// without `cfg(test)` while the unit tests of another run. Types of `shuttle` work only inside its checks. So unit
/// tests of what uses this module belong in the crate's `model.rs`, and tests with threads of their own in `tests/`,
/// which link the library with the standard types.
#[macro_export]
macro_rules! sync {
    () => {
        /// See `fibula_publish::sync`.
        #[allow(dead_code, unused_imports, reason = "each crate uses a part")]
        mod sync {
            #[cfg(test)]
            pub(crate) use shuttle::sync::{
                Arc, Condvar, Mutex, MutexGuard, RwLock, Weak, atomic,
                atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
            };
            #[cfg(not(test))]
            pub(crate) use std::sync::{
                Arc, Condvar, Mutex, MutexGuard, RwLock, Weak,
                atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
            };

            use std::sync::PoisonError;
            use std::time::Duration;

            /// Locks. A thread that panicked has left the state whole: all that may panic is called without locks, or
            /// before the first change.
            pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
                mutex.lock().unwrap_or_else(PoisonError::into_inner)
            }

            pub(crate) fn wait<'a, T>(
                condvar: &Condvar,
                guard: MutexGuard<'a, T>,
            ) -> MutexGuard<'a, T> {
                condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
            }

            pub(crate) fn wait_for<'a, T>(
                condvar: &Condvar,
                guard: MutexGuard<'a, T>,
                time: Duration,
            ) -> MutexGuard<'a, T> {
                condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
            }

            #[cfg(not(test))]
            pub(crate) use $crate::Standard as Threads;

            /// A lock for the pointer, because a model check cannot see inside `arc-swap`.
            #[cfg(test)]
            pub(crate) struct Threads;

            #[cfg(test)]
            impl $crate::Primitives for Threads {
                type Number = AtomicU64;
                type Cell<T> = Mutex<Arc<T>>;

                fn number(first: u64) -> AtomicU64 {
                    AtomicU64::new(first)
                }
                fn load_number(number: &AtomicU64) -> u64 {
                    number.load(Ordering::Acquire)
                }
                fn store_number(number: &AtomicU64, next: u64) {
                    number.store(next, Ordering::Release);
                }

                fn cell<T>(first: Arc<T>) -> Mutex<Arc<T>> {
                    Mutex::new(first)
                }
                fn load<T>(cell: &Mutex<Arc<T>>) -> Arc<T> {
                    lock(cell).clone()
                }
                fn swap<T>(cell: &Mutex<Arc<T>>, next: Arc<T>) -> Arc<T> {
                    std::mem::replace(&mut *lock(cell), next)
                }
            }
        }
    };
}
