//! A connection with unsent data that is about to be closed.

use std::time::Duration;

use mio::{Registry, Token};

use super::outbox::Outbox;
use super::stream::{Got, Stream, is_interrupted};

pub(super) struct Farewell {
    stream: Stream,
    out: Outbox,
    is_said: bool,
    /// It is closed then, heard or not.
    pub(super) until: Duration,
}

/// How long last words may take. A loop that ends waits for them.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(500);

impl Farewell {
    pub(super) fn new(
        (mut stream, out): (Stream, Outbox),
        now: Duration,
        (registry, token): (&Registry, Token),
    ) -> Option<Self> {
        stream.register(registry, token).ok()?;
        Some(Self { stream, out, is_said: false, until: now + LAST_WORDS })
    }

    /// Says what there is to say, then waits for the other end to close: a socket that is closed with bytes
    /// that nobody has read resets the connection, and what was sent last may be lost. Says whether it is
    /// over; `None` if there is more to be read.
    pub(super) fn turn(&mut self, buffer: &mut [u8]) -> Option<bool> {
        if !self.is_said {
            if self.out.send(&mut self.stream).is_err() {
                return Some(true);
            }
            self.is_said = self.out.is_empty();
            if self.is_said {
                self.stream.end_writing();
            }
        }
        match self.stream.read(buffer) {
            Ok(Got::Bytes(_)) => None,
            Ok(Got::End | Got::Lost) => Some(true),
            Err(error) if is_interrupted(&error) => None,
            Err(error) => Some(!super::stream::is_pause(&error)),
        }
    }

    pub(super) fn close(mut self, registry: &Registry) {
        self.stream.deregister(registry);
    }
}
