//! Connections that are opened here, and opened again.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use mio::net::TcpStream;

use super::{Context, Line, Link};
use crate::FeedError;
use crate::net::report::SourceEvent;
use crate::net::source::Retry;
use crate::net::stream::{Stream, StreamDevice};

/// How a session gets its connections.
pub(in crate::net) enum Via {
    /// Accepted by a door.
    Accepted,
    Connect(SocketAddr, Retry),
    Path(PathBuf),
    Device(Box<dyn Fn() -> io::Result<Box<dyn StreamDevice>> + Send>, Retry),
}

/// A connection that lasted this long counts as successful.
pub(super) const SERVED: Duration = Duration::from_secs(10);
/// The shortest wait between attempts, after a first attempt without a wait.
const SHORTEST: Duration = Duration::from_millis(100);

impl Link {
    /// Opens a connection, if this end is the one that opens connections.
    pub(in crate::net) fn open(&mut self, cx: &mut Context<'_>) -> Result<bool, FeedError> {
        self.attempt = None;
        let opened = match &self.via {
            Via::Accepted => return Ok(false),
            Via::Connect(address, _) => {
                TcpStream::connect(*address).map(Stream::tcp).map(Line::Opening)
            }
            Via::Path(path) => Stream::path(path).map(|stream| match stream.stays_open() {
                true => Line::Quiet(stream),
                false => Line::Open(stream),
            }),
            Via::Device(open, _) => open().map(Stream::Device).map(Line::Open),
        };
        let registered = opened.and_then(|mut line| {
            if let Line::Opening(stream) | Line::Quiet(stream) | Line::Open(stream) = &mut line {
                stream.register(cx.registry, self.token)?;
            }
            Ok(line)
        });
        match registered {
            Ok(line) => {
                let is_open = matches!(line, Line::Open(_));
                self.line = line;
                if is_open {
                    self.begin(cx)?;
                }
                Ok(true)
            }
            Err(error) => {
                self.unavailable(&error, cx);
                Ok(false)
            }
        }
    }

    /// How long to wait before the next attempt, if there is one.
    pub(super) fn retry(&mut self) -> Option<Duration> {
        let retry = match &self.via {
            Via::Accepted => return None,
            Via::Connect(_, retry) | Via::Device(_, retry) => *retry,
            Via::Path(_) => Retry::default(),
        };
        let wait = match self.wait {
            None => retry.first,
            Some(last) => last.saturating_mul(2).max(SHORTEST),
        };
        self.wait = Some(wait.min(retry.longest));
        self.wait
    }

    /// Handles a failed attempt to connect.
    pub(super) fn unavailable(&mut self, error: &io::Error, cx: &mut Context<'_>) {
        if let Line::Opening(mut stream) = std::mem::replace(&mut self.line, Line::None) {
            stream.deregister(cx.registry);
        }
        let why = match &self.via {
            Via::Connect(address, _) => format!("cannot connect to {address}: {error}"),
            Via::Path(path) => format!("cannot open {}: {error}", path.display()),
            Via::Device(..) => format!("cannot open {}: {error}", self.shown.endpoint),
            Via::Accepted => format!("cannot use the connection: {error}"),
        };
        self.trouble = Some(why.clone());
        if let Some(retry) = self.retry() {
            self.attempt = Some(cx.now + retry);
            self.report(cx, SourceEvent::Unavailable { why, retry });
        } else {
            self.report(cx, SourceEvent::Disconnected { why, bytes: 0 });
        }
    }
}
