//! A limit for lines of a log that others can cause.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Limits one kind of line that a stranger can cause, in a log or in the reports of a [`Hub`](crate::net::Hub): the
/// first ones of a minute are written, the others are counted. The next line that is written says how many were left
/// out; [`LogLimit::left_out`] is for owners with a timer.
///
/// ```
/// use std::time::Duration;
/// use fibula_feeds::LogLimit;
///
/// let limit = LogLimit::new(2);
/// let at = |second| limit.admit(Duration::from_secs(second));
/// assert_eq!([at(0), at(1), at(2), at(59)], [Some(0), Some(0), None, None]);
/// assert_eq!(limit.left_out(Duration::from_secs(59)), 0);
/// assert_eq!([at(60), at(61)], [Some(2), Some(0)]);
/// ```
#[derive(Debug)]
pub struct LogLimit {
    most: u32,
    interval: Duration,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// When the current interval began.
    begin: Duration,
    written: u32,
    left_out: u64,
}

impl LogLimit {
    /// Writes at most this number of lines a minute.
    pub const fn new(most: u32) -> Self {
        Self::with(most, Duration::from_secs(60))
    }

    /// Lets this number of reports of a hub pass in ten seconds.
    pub(crate) const fn of_reports(most: u32) -> Self {
        Self::with(most, Duration::from_secs(10))
    }

    const fn with(most: u32, interval: Duration) -> Self {
        let state = State { begin: Duration::ZERO, written: 0, left_out: 0 };
        Self { most, interval, state: Mutex::new(state) }
    }

    /// Whether to write a line at this time of any [`Clock`](crate::Clock): `None` if not, else the number of lines
    /// that were left out before it and not reported yet.
    pub fn admit(&self, now: Duration) -> Option<u64> {
        let mut state = self.state();
        if now.saturating_sub(state.begin) >= self.interval {
            (state.begin, state.written) = (now, 0);
        }
        if state.written >= self.most {
            state.left_out += 1;
            return None;
        }
        state.written += 1;
        Some(std::mem::take(&mut state.left_out))
    }

    /// The number of lines that were left out in a minute that is over, and are not reported yet.
    pub fn left_out(&self, now: Duration) -> u64 {
        let mut state = self.state();
        match now.saturating_sub(state.begin) >= self.interval {
            true => std::mem::take(&mut state.left_out),
            false => 0,
        }
    }

    /// Takes over the state of the other limit if it wrote a line more recently.
    pub(crate) fn keep_up(&self, other: &Self) {
        let other = *other.state();
        let mut state = self.state();
        if (other.begin, other.written) > (state.begin, state.written) {
            *state = other;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
