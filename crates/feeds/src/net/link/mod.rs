//! A session: a protocol, and its connection if it has one.

mod opening;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fibula_rib::{Listener, TableError};
use mio::{Registry, Token};

use self::opening::SERVED;
pub(in crate::net) use self::opening::Via;
use super::ahead::{Ahead, AheadTotal};
use super::outbox::Outbox;
use super::report::{OnReport, SourceEvent, SourceReport};
use super::stream::{Got, Stream, is_interrupted, is_pause};
use crate::{ConnectionRefusal, FeedError, LogLimit, Protocol, SourceState, SourceStatus};

/// The parts of the loop that a session uses.
pub(in crate::net) struct Context<'a> {
    pub(in crate::net) registry: &'a Registry,
    pub(in crate::net) now: Duration,
    pub(in crate::net) to: &'a mut dyn Listener,
    pub(in crate::net) on_report: &'a OnReport,
    /// The read buffer, shared by all sources.
    pub(in crate::net) buffer: &'a mut [u8],
    /// Streams with unsent data that are about to be closed.
    pub(in crate::net) farewells: &'a mut Vec<(Stream, Outbox)>,
}

/// Maximum number of bytes read from a connection in one turn.
pub(in crate::net) const TURN: usize = 128 << 10;

/// The parts of a session's status that do not change.
#[derive(Clone)]
pub(in crate::net) struct Shown {
    pub(in crate::net) kind: &'static str,
    pub(in crate::net) table: String,
    pub(in crate::net) endpoint: String,
}

pub(in crate::net) struct Link {
    pub(in crate::net) name: Arc<str>,
    pub(in crate::net) shown: Shown,
    /// The settings of its speaker.
    pub(in crate::net) settings: String,
    protocol: Box<dyn Protocol>,
    via: Via,
    token: Token,
    line: Line,
    ahead: Ahead,
    out: Outbox,
    /// The beginning of the current connection, and its received bytes.
    began: Duration,
    brought: u64,
    /// The time of the next attempt to connect, and the length of the last wait.
    attempt: Option<Duration>,
    wait: Option<Duration>,
    /// Whether data arrived since the board was last written.
    last: Option<Duration>,
    state: (SourceState, SystemTime),
    trouble: Option<String>,
    /// Limits the reports about successive connections.
    pub(in crate::net) reports: Arc<LogLimit>,
}

enum Line {
    None,
    /// The system is still connecting.
    Opening(Stream),
    /// A pipe without a writer.
    Quiet(Stream),
    Open(Stream),
}

impl Link {
    pub(in crate::net) fn new(
        (name, shown): (Arc<str>, Shown),
        settings: String,
        protocol: Box<dyn Protocol>,
        via: Via,
        token: Token,
        ahead: Arc<AheadTotal>,
    ) -> Self {
        Self {
            name,
            shown,
            settings,
            protocol,
            via,
            token,
            line: Line::None,
            ahead: Ahead::new(ahead),
            out: Outbox::default(),
            began: Duration::ZERO,
            brought: 0,
            attempt: None,
            wait: None,
            last: None,
            state: (SourceState::Idle, SystemTime::now()),
            trouble: None,
            reports: Arc::new(LogLimit::of_reports(20)),
        }
    }

    /// Assigns a peer whose routes come from a checkpoint.
    pub(in crate::net) fn adopt(&mut self, peer: u32, now: Duration) {
        self.protocol.adopt(peer, now);
    }

    /// Sets the time of the next attempt to connect.
    pub(in crate::net) fn begin_at(&mut self, now: Duration) {
        self.attempt = Some(now);
    }

    /// Whether the session can be dropped without losing routes or a connection.
    pub(in crate::net) fn is_over(&self) -> bool {
        matches!(self.line, Line::None)
            && self.attempt.is_none()
            && self.protocol.state() == SourceState::Idle
    }

    /// The time when [`Link::tick`] has work to do.
    pub(in crate::net) fn deadline(&self) -> Option<Duration> {
        self.protocol.deadline().into_iter().chain(self.attempt).min()
    }

    /// Returns whether the protocol accepts a new connection in place of the existing one. If it refuses, it may send
    /// data on the existing one.
    pub(in crate::net) fn admit(&mut self, cx: &mut Context<'_>) -> Result<(), ConnectionRefusal> {
        let admitted = self.protocol.admit(cx.now, self.out.bytes());
        match &self.line {
            // If sending fails, the existing connection is closed, which does not affect the new one.
            Line::Open(_) => {
                let _ = self.after(Ok(()), cx);
            }
            _ => self.out.clear(),
        }
        admitted
    }

    /// Takes over an accepted and admitted connection. An existing one is dead or about to be closed.
    pub(in crate::net) fn attach(
        &mut self,
        mut stream: Stream,
        cx: &mut Context<'_>,
    ) -> Result<bool, FeedError> {
        self.close("the other end opened a new connection", cx);
        if let Err(error) = stream.register(cx.registry, self.token) {
            self.unavailable(&error, cx);
            return Ok(false);
        }
        self.line = Line::Open(stream);
        self.begin(cx)?;
        Ok(true)
    }

    fn begin(&mut self, cx: &mut Context<'_>) -> Result<(), FeedError> {
        (self.began, self.brought, self.trouble) = (cx.now, 0, None);
        self.out.clear();
        self.report(cx, SourceEvent::Connected);
        if let Line::Open(stream) = &self.line
            && let Some(address) = stream.local()
        {
            self.protocol.local_address(address);
        }
        let begun = self.protocol.connected(cx.now, cx.to, self.out.bytes());
        self.after(begun, cx)
    }

    /// Reads and writes a connection that is ready. Returns whether it may have more to read.
    pub(in crate::net) fn turn(&mut self, cx: &mut Context<'_>) -> Result<bool, FeedError> {
        if let Line::Opening(stream) = &self.line {
            match stream.opened() {
                Ok(None) => return Ok(false),
                Ok(Some(())) => {
                    let line = std::mem::replace(&mut self.line, Line::None);
                    if let Line::Opening(stream) = line {
                        self.line = Line::Open(stream);
                    }
                    self.begin(cx)?;
                }
                Err(error) => {
                    self.unavailable(&error, cx);
                    return Ok(false);
                }
            }
        }
        self.after(Ok(()), cx)?;
        let mut left = TURN;
        while left > 0 {
            let (Line::Open(stream) | Line::Quiet(stream)) = &mut self.line else {
                return Ok(false);
            };
            match self.ahead.read(stream, cx.buffer) {
                Ok(Got::Bytes(bytes)) => {
                    left = left.saturating_sub(bytes);
                    self.take(bytes, cx)?;
                }
                Ok(Got::End) => {
                    self.ended(cx);
                    return Ok(false);
                }
                Ok(Got::Lost) => self.close("more came than there was room for: some is lost", cx),
                Err(error) if is_pause(&error) => return Ok(false),
                Err(error) if is_interrupted(&error) => {}
                Err(error) => self.close(&error.to_string(), cx),
            }
        }
        if let Line::Open(stream) = &mut self.line {
            self.ahead.fill(stream, cx.buffer);
        }
        Ok(true)
    }

    fn take(&mut self, bytes: usize, cx: &mut Context<'_>) -> Result<(), FeedError> {
        if let Line::Quiet(_) = &self.line {
            if let Line::Quiet(stream) = std::mem::replace(&mut self.line, Line::None) {
                self.line = Line::Open(stream);
            }
            self.begin(cx)?;
        }
        self.last = Some(cx.now);
        self.brought += bytes as u64;
        let taken = self.protocol.bytes(cx.now, &cx.buffer[..bytes], cx.to, self.out.bytes());
        self.after(taken, cx)
    }

    /// Handles the result of a call of the protocol: sends its output, or closes the connection if the call failed.
    /// Returns an error only if the table can take no further events.
    fn after(
        &mut self,
        called: Result<(), FeedError>,
        cx: &mut Context<'_>,
    ) -> Result<(), FeedError> {
        match called {
            Ok(()) => {
                if let Line::Open(stream) = &mut self.line
                    && let Err(error) = self.out.send(stream)
                {
                    self.out.clear();
                    self.close(&error.to_string(), cx);
                }
                Ok(())
            }
            Err(error) if is_fatal(&error) => Err(error),
            Err(error) => {
                self.close(&error.to_string(), cx);
                Ok(())
            }
        }
    }

    /// The other end has closed.
    fn ended(&mut self, cx: &mut Context<'_>) {
        let comes_back = match &self.line {
            Line::Quiet(_) => return,
            Line::Open(stream) if stream.stays_open() => {
                if let Line::Open(stream) = std::mem::replace(&mut self.line, Line::None) {
                    self.line = Line::Quiet(stream);
                }
                let what = |why, bytes| SourceEvent::Disconnected { why, bytes };
                return self.lost("its writer has closed it", what, cx);
            }
            Line::Open(Stream::Pipe(_) | Stream::File(_)) => false,
            _ => true,
        };
        self.close("the other end closed the connection", cx);
        if !comes_back {
            self.attempt = None;
            self.report(cx, SourceEvent::Ended);
        }
    }

    /// Closes the connection.
    fn close(&mut self, why: &str, cx: &mut Context<'_>) {
        self.cut(why, |why, bytes| SourceEvent::Disconnected { why, bytes }, cx);
    }

    fn cut(&mut self, why: &str, what: fn(String, u64) -> SourceEvent, cx: &mut Context<'_>) {
        let (mut stream, was_open) = match std::mem::replace(&mut self.line, Line::None) {
            Line::None => return,
            Line::Open(stream) => (stream, true),
            Line::Opening(stream) | Line::Quiet(stream) => (stream, false),
        };
        stream.deregister(cx.registry);
        self.ahead.clear();
        let out = std::mem::take(&mut self.out);
        if !out.is_empty() {
            cx.farewells.push((stream, out));
        }
        if was_open {
            self.lost(why, what, cx);
        }
        self.attempt = self.retry().map(|wait| cx.now + wait);
    }

    fn lost(&mut self, why: &str, what: fn(String, u64) -> SourceEvent, cx: &mut Context<'_>) {
        self.protocol.disconnected(cx.now);
        if cx.now.saturating_sub(self.began) >= SERVED {
            self.wait = None;
        }
        self.trouble = Some(why.to_owned());
        self.report(cx, what(why.to_owned(), self.brought));
    }

    /// Handles the passing of time. Returns whether the connection must be read.
    pub(in crate::net) fn tick(&mut self, cx: &mut Context<'_>) -> Result<bool, FeedError> {
        let is_due = |at: Option<Duration>| at.is_some_and(|at| at <= cx.now);
        if is_due(self.protocol.deadline()) {
            let ticked = self.protocol.tick(cx.now, cx.to, self.out.bytes());
            self.after(ticked, cx)?;
        }
        let is_due = self.attempt.is_some_and(|at| at <= cx.now);
        if is_due { self.open(cx) } else { Ok(false) }
    }

    /// Requests everything again: by the protocol if it can, else by a new connection.
    pub(in crate::net) fn refresh(&mut self, cx: &mut Context<'_>) -> Result<bool, FeedError> {
        let Line::Open(_) = &self.line else { return Ok(false) };
        match self.protocol.refresh(cx.now, cx.to, self.out.bytes()) {
            Ok(true) => self.after(Ok(()), cx)?,
            // The writer of a pipe cannot be made to send again.
            Ok(false) if matches!(self.via, Via::Path(_)) => return Ok(false),
            Ok(false) => self.close("closed, to be sent everything again", cx),
            Err(error) => self.after(Err(error), cx)?,
        }
        Ok(true)
    }

    /// Closes the connection and removes its routes, because this session has the most and the table is full.
    pub(in crate::net) fn cut_off(&mut self, cx: &mut Context<'_>) -> Result<(), FeedError> {
        if let Line::Open(_) = &self.line {
            self.protocol.close(self.out.bytes());
        }
        self.close("the table is full, and this session had the most routes", cx);
        self.protocol.end(cx.to)
    }

    /// Closes the connection when the loop ends, after the protocol's last message. The routes stay.
    pub(in crate::net) fn leave(&mut self, cx: &mut Context<'_>) {
        self.close_here("this end was stopped", cx);
    }

    /// Removes the source and its routes.
    pub(in crate::net) fn end(&mut self, cx: &mut Context<'_>) -> Result<(), FeedError> {
        self.close_here("the source was removed", cx);
        self.protocol.end(cx.to)
    }

    /// Closes the connection because the operator stopped or removed the source.
    fn close_here(&mut self, why: &str, cx: &mut Context<'_>) {
        if let Line::Open(_) = &self.line {
            self.protocol.close(self.out.bytes());
        }
        self.cut(why, |why, bytes| SourceEvent::Closed { why, bytes }, cx);
        self.attempt = None;
    }

    /// The state for the board.
    pub(in crate::net) fn status(&mut self, now: Duration) -> SourceStatus {
        let clock = SystemTime::now();
        let state = self.protocol.state();
        if self.state.0 != state {
            self.state = (state, clock);
        }
        SourceStatus {
            name: self.name.to_string(),
            kind: self.shown.kind,
            endpoint: self.shown.endpoint.clone(),
            table: self.shown.table.clone(),
            state,
            figures: self.protocol.figures(),
            since: self.state.1,
            until: (state == SourceState::Lost)
                .then(|| self.protocol.expires())
                .flatten()
                .and_then(|at| clock.checked_add(at.saturating_sub(now))),
            last: self.last.and_then(|last| clock.checked_sub(now.saturating_sub(last))),
            trouble: self.trouble.clone(),
        }
    }

    pub(in crate::net) fn state(&self) -> SourceState {
        self.protocol.state()
    }

    fn report(&mut self, cx: &Context<'_>, what: SourceEvent) {
        let report = |what| (cx.on_report)(SourceReport { source: Arc::clone(&self.name), what });
        // A daemon that reconnects all the time must not fill the disk with reports.
        match self.reports.admit(cx.now) {
            None => return,
            Some(0) => {}
            Some(count) => report(SourceEvent::More { count }),
        }
        report(what);
    }
}

/// Whether no source can feed the table any more, rather than only this one.
pub(in crate::net) fn is_fatal(error: &FeedError) -> bool {
    use TableError::{OtherFeed, Stopped};
    matches!(error, FeedError::Table(Stopped { .. } | OtherFeed { .. }))
}
