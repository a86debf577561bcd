//! Sequence numbers: what was lost, what came late, and when an exporter started anew.

use crate::counts::ExportCounts;

/// An uptime that is so many milliseconds smaller than the last one is that of another start.
const STEP_BACK: i32 = -10_000;

/// The expected number of the next datagram of a domain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sequence {
    next: Option<u32>,
    uptime: Option<u32>,
}

impl Sequence {
    /// Compares a datagram's number with the expected one. `units` is what the datagram adds to the number, if that is
    /// known. A number that is at most `window` smaller than expected is that of a late datagram.
    pub(crate) fn check(
        &mut self,
        number: u32,
        units: Option<u32>,
        uptime: Option<u32>,
        window: u32,
        counts: &mut ExportCounts,
    ) {
        let restarted = match (self.uptime, uptime) {
            // The difference wraps with the uptime itself, after 49.7 days.
            (Some(last), Some(now)) => (now.wrapping_sub(last) as i32) < STEP_BACK,
            _ => false,
        };
        if let Some(next) = self.next.filter(|_| !restarted) {
            let ahead = number.wrapping_sub(next);
            if (ahead as i32) < 0 {
                if next.wrapping_sub(number) <= window {
                    counts.late += 1;
                    return;
                }
                counts.restarts += 1;
            } else {
                counts.lost += u64::from(ahead);
            }
        }
        counts.restarts += u64::from(restarted);
        self.next = units.map(|units| number.wrapping_add(units));
        self.uptime = uptime.or(self.uptime);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(steps: &[(u32, u32, u32)]) -> (u64, u64, u64) {
        let (mut sequence, mut counts) = (Sequence::default(), ExportCounts::default());
        for (number, units, uptime) in steps {
            sequence.check(*number, Some(*units), Some(*uptime), 100, &mut counts);
        }
        (counts.lost, counts.late, counts.restarts)
    }

    #[test]
    fn gaps_late_datagrams_and_restarts() {
        assert_eq!(run(&[(10, 5, 0), (15, 5, 1), (20, 1, 2)]), (0, 0, 0));
        assert_eq!(run(&[(10, 5, 0), (18, 5, 1)]), (3, 0, 0));
        assert_eq!(run(&[(10, 5, 0), (20, 5, 1), (15, 5, 2), (25, 1, 3)]), (5, 1, 0));
        assert_eq!(run(&[(u32::MAX - 1, 5, 0), (3, 5, 1), (9, 1, 2)]), (1, 0, 0));
        assert_eq!(run(&[(5000, 5, 900_000), (0, 5, 100), (5, 5, 200)]), (0, 0, 1));
        assert_eq!(run(&[(5000, 5, 0), (0, 5, 0), (5, 5, 0)]), (0, 0, 1));
        // The uptime wraps.
        assert_eq!(run(&[(1, 1, u32::MAX - 5), (2, 1, 100)]), (0, 0, 0));
    }
}
