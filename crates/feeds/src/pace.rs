use std::fmt;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

/// The clock of feeds.
pub trait Clock {
    /// Time since the clock began.
    fn now(&self) -> Duration;
    /// Returns this much later.
    fn sleep(&self, time: Duration);
}

/// The system's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock(Instant);

impl Default for SystemClock {
    /// Begins now.
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }
}

/// The speed at which updates are played.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Speed {
    /// As fast as the table accepts them.
    #[default]
    Max,
    /// This many times the original speed.
    Times(f64),
}

/// The text is not a [`Speed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeedError;

impl fmt::Display for SpeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a speed is max, or how many times real time: 1, 10")
    }
}

impl std::error::Error for SpeedError {}

impl FromStr for Speed {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Self, SpeedError> {
        match text {
            "max" => Ok(Self::Max),
            _ => match text.parse() {
                Ok(times) if times > 0.0 && f64::is_finite(times) => Ok(Self::Times(times)),
                _ => Err(SpeedError),
            },
        }
    }
}

/// Delays updates until they are due.
#[derive(Clone, Debug)]
pub struct Pacer {
    speed: Speed,
    /// Maximum number of updates in each second.
    rate: Option<u64>,
    started: Duration,
    /// The time of the first update that has one, in microseconds.
    first: Option<u64>,
    count: u64,
}

/// Shorter waits are not worth a call of the system.
const NAP: Duration = Duration::from_millis(1);

impl Pacer {
    /// Begins now. At most `rate` updates each second, whatever the speed.
    pub fn new(speed: Speed, rate: Option<u64>, clock: &impl Clock) -> Self {
        Self { speed, rate, started: clock.now(), first: None, count: 0 }
    }

    /// Waits for the next update, whose original time was `time` (microseconds since 1970, 0 if unknown).
    pub fn wait(&mut self, time: u64, clock: &impl Clock) {
        let due = self.due(time);
        if due > Duration::ZERO {
            let early = due.saturating_sub(clock.now().saturating_sub(self.started));
            if early > NAP {
                clock.sleep(early);
            }
        }
    }

    /// The time of the next update, since the beginning.
    fn due(&mut self, time: u64) -> Duration {
        self.count += 1;
        let seconds = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let mut due = Duration::ZERO;
        if let Some(rate) = self.rate {
            due = seconds(self.count as f64 / rate.max(1) as f64);
        }
        if let Speed::Times(times) = self.speed
            && time > 0
        {
            let since = time.saturating_sub(*self.first.get_or_insert(time));
            due = due.max(seconds(since as f64 / 1e6 / times));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock that advances only by sleeping, or by hand.
    #[derive(Default)]
    struct Fake(Cell<Duration>);

    impl Clock for Fake {
        fn now(&self) -> Duration {
            self.0.get()
        }
        fn sleep(&self, time: Duration) {
            self.0.set(self.0.get() + time);
        }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn updates_keep_their_distances() {
        let clock = Fake(Cell::new(ms(500)));
        let mut pacer = Pacer::new(Speed::Times(10.0), None, &clock);
        // Times in microseconds, and when each update comes: a tenth of the distance to the first; those
        // without a time, and those that are late already, at once.
        let second = 1_000_000;
        let began = 1_445_558_400 * second;
        for (time, expected) in [
            (0, 500),
            (began, 500),
            (began + second, 600),
            (0, 600),
            (began + 3 * second, 800),
            (began + second, 800),
        ] {
            pacer.wait(time, &clock);
            assert_eq!(clock.now(), ms(expected), "{time}");
        }
        clock.sleep(ms(1000));
        pacer.wait(began + 5 * second, &clock);
        assert_eq!(clock.now(), ms(1800), "what is late is not made later");
        // Less than a nap is not waited for.
        pacer.wait(began + 13 * second + 5_000, &clock);
        assert_eq!(clock.now(), ms(1800));
    }

    #[test]
    fn rates_bound_any_speed() {
        let clock = Fake::default();
        let mut pacer = Pacer::new(Speed::Max, Some(100), &clock);
        (0..250).for_each(|_| pacer.wait(0, &clock));
        assert_eq!(clock.now(), ms(2500));
        let clock = Fake::default();
        let mut pacer = Pacer::new(Speed::Max, None, &clock);
        (1..250).for_each(|i| pacer.wait(i * 1_000_000, &clock));
        assert_eq!(clock.now(), Duration::ZERO);
        // Times that are far apart are far away, and no panic.
        let mut pacer = Pacer::new(Speed::Times(1e-300), None, &clock);
        pacer.due(1);
        assert_eq!(pacer.due(u64::MAX), Duration::MAX);
    }

    #[test]
    fn speeds_are_read() {
        assert_eq!("max".parse(), Ok(Speed::Max));
        assert_eq!("2.5".parse(), Ok(Speed::Times(2.5)));
        for text in ["0", "-1", "inf", "NaN", "fast", ""] {
            assert_eq!(text.parse::<Speed>(), Err(SpeedError), "{text}");
        }
    }
}
