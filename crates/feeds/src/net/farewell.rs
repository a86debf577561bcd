//! A connection with unsent data that is about to be closed.

use std::time::Duration;

use mio::{Registry, Token};

use super::outbox::Outbox;
use super::stream::{Got, Stream, is_interrupted};

pub(super) struct Farewell {
    stream: Stream,
    out: Outbox,
    is_said: bool,
    /// The time when the connection is closed in any case.
    pub(super) until: Duration,
}

/// Maximum time for sending the remaining data. A loop that ends waits this long.
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

    /// Sends the remaining data, then waits for the other end to close: closing a socket with unread bytes resets the
    /// connection, and the last data may be lost. Returns whether the connection is finished; `None` if there is more
    /// to read.
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
