//! The rate limit of ICMP errors for each port: RFC 1812, section 4.3.2.8, RFC 4443, section 2.4 (f).

use std::time::{Duration, Instant};

/// A token bucket. It is kept as the moment at which it would be full again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    full_at: Option<Instant>,
}

impl Bucket {
    /// Takes a token, if there is one, from a bucket that holds `burst` and gets `rate` a second.
    pub(super) fn take(&mut self, now: Instant, rate: u32, burst: u32) -> bool {
        if rate == 0 {
            return false;
        }
        let token = Duration::from_nanos(1_000_000_000 / u64::from(rate));
        let missing = self.full_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let allowed = missing + token <= token * burst;
        if allowed {
            self.full_at = Some(now + missing + token);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_and_then_the_rate() {
        let (start, mut bucket) = (Instant::now(), Bucket::default());
        let mut taken = |ms: u64, tries: usize| {
            let now = start + Duration::from_millis(ms);
            (0..tries).filter(|_| bucket.take(now, 100, 5)).count()
        };
        assert_eq!(taken(0, 9), 5);
        assert_eq!(taken(9, 9), 0);
        assert_eq!(taken(10, 9), 1);
        assert_eq!(taken(39, 9), 2);
        assert_eq!(taken(40, 9), 1);
        assert_eq!(taken(10_000, 9), 5);
        // A clock that steps back gives nothing, and takes nothing.
        assert_eq!(taken(5_000, 9), 0);
        assert_eq!(taken(10_010, 9), 1);
    }

    #[test]
    fn none_and_any_number() {
        let now = Instant::now();
        assert!(!Bucket::default().take(now, 0, 5) && !Bucket::default().take(now, 5, 0));
        let mut bucket = Bucket::default();
        assert!((0..1000).all(|_| bucket.take(now, u32::MAX, 1)));
    }
}
