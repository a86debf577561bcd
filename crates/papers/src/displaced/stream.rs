//! A neighbour on another core that streams through memory.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use core_affinity::CoreId;

/// Words between two looks at the counter.
const BLOCK: usize = 1 << 15;

/// The bytes that the neighbour has moved, and whether it is to end.
#[derive(Default)]
pub struct Stream {
    moved: AtomicU64,
    ends: AtomicBool,
}

impl Stream {
    /// Adds 1 to each word of an array of so many bytes, again and again until [`Stream::end`].
    pub fn run(&self, bytes: usize, core: Option<CoreId>) {
        if let Some(core) = core {
            core_affinity::set_for_current(core);
        }
        let mut words = vec![1u64; (bytes / 8).max(1)];
        while !self.ends.load(Relaxed) {
            for block in words.chunks_mut(BLOCK) {
                block.iter_mut().for_each(|word| *word = word.wrapping_add(1));
                black_box(&mut *block);
                // Each word is read and written.
                self.moved.fetch_add(16 * block.len() as u64, Relaxed);
                if self.ends.load(Relaxed) {
                    break;
                }
            }
        }
    }

    /// Ends it.
    pub fn end(&self) {
        self.ends.store(true, Relaxed);
    }

    /// Waits until it has moved so many bytes since the call.
    pub fn wait(&self, bytes: u64) {
        let start = self.moved.load(Relaxed);
        while self.moved.load(Relaxed) - start < bytes {
            std::thread::yield_now();
        }
    }

    /// Gigabytes a second that it moved while the call lasted.
    pub fn rate_during(&self, call: impl FnOnce()) -> f64 {
        let (start, before) = (Instant::now(), self.moved.load(Relaxed));
        call();
        let moved = self.moved.load(Relaxed) - before;
        moved as f64 / start.elapsed().as_secs_f64() / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_moves_until_it_is_ended() {
        let stream = Stream::default();
        std::thread::scope(|scope| {
            let running = scope.spawn(|| stream.run(1 << 20, None));
            assert!(stream.rate_during(|| stream.wait(1 << 22)) > 0.0);
            stream.end();
            running.join().unwrap();
        });
        let moved = stream.moved.load(Relaxed);
        assert!(moved >= 1 << 22 && moved % 16 == 0, "{moved}");
    }
}
