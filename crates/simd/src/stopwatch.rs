use std::time::Duration;

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
use std::time::Instant;

/// The time since a moment, on machines with a clock. WebAssembly in a browser has none, and `Instant` panics there:
/// then all times are zero, and of several ways to do the same the first counts as the fastest.
///
/// ```
/// use fibula_simd::Stopwatch;
/// let watch = Stopwatch::start();
/// let first = watch.elapsed();
/// assert!(watch.elapsed() >= first);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    started: Instant,
}

impl Stopwatch {
    /// Begins now.
    pub fn start() -> Self {
        Self {
            #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
            started: Instant::now(),
        }
    }

    /// The time since then.
    pub fn elapsed(self) -> Duration {
        #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
        return self.started.elapsed();
        #[cfg(all(target_family = "wasm", target_os = "unknown"))]
        Duration::ZERO
    }
}
