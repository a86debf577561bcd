//! A session: a protocol, and the connection that it has or has not.

mod opening;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fibula_rib::{Listener, TableError};
use mio::{Registry, Token};

use self::opening::SERVED;
pub(in crate::net) use self::opening::Via;
use super::ahead::Ahead;
use super::outbox::Outbox;
use super::report::{Hear, SourceEvent, SourceReport, Throttle};
use super::stream::{Got, Stream, is_interrupted, is_pause};
use crate::{ConnectionRefusal, FeedError, Protocol, SourceState, SourceStatus};

/// What a session needs of the loop that it lives in.
pub(in crate::net) struct Context<'a> {
    pub(in crate::net) registry: &'a Registry,
    pub(in crate::net) now: Duration,
    pub(in crate::net) to: &'a mut dyn Listener,
    pub(in crate::net) hear: &'a Hear,
    /// For what is read, of all sources.
    pub(in crate::net) buffer: &'a mut [u8],
    /// Streams on which something is left to be said before they are closed.
    pub(in crate::net) farewells: &'a mut Vec<(Stream, Outbox)>,
}

/// Bytes that are read from a connection before it is the next one's turn.
pub(in crate::net) const TURN: usize = 128 << 10;

/// What is shown of a session besides its state.
#[derive(Clone)]
pub(in crate::net) struct Shown {
    pub(in crate::net) kind: &'static str,
    pub(in crate::net) table: String,
    pub(in crate::net) endpoint: String,
}

pub(in crate::net) struct Link {
    pub(in crate::net) name: Arc<str>,
    pub(in crate::net) shown: Shown,
    /// As its speaker's.
    pub(in crate::net) settings: String,
    protocol: Box<dyn Protocol>,
    via: Via,
    token: Token,
    line: Line,
    ahead: Ahead,
    out: Outbox,
    /// Of the connection that is there: when it began, and the bytes that it brought.
    began: Duration,
    brought: u64,
    /// When a connection is opened next, and how long the last wait was.
    attempt: Option<Duration>,
    wait: Option<Duration>,
    /// Whether the other end said anything since the board was written.
    last: Option<Duration>,
    state: (SourceState, SystemTime),
    trouble: Option<String>,
    /// For successive connections.
    pub(in crate::net) reports: Throttle,
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
    ) -> Self {
        Self {
            name,
            shown,
            settings,
            protocol,
            via,
            token,
            line: Line::None,
            ahead: Ahead::default(),
            out: Outbox::default(),
            began: Duration::ZERO,
            brought: 0,
            attempt: None,
            wait: None,
            last: None,
            state: (SourceState::Idle, SystemTime::now()),
            trouble: None,
            reports: Throttle::of(20),
        }
    }

    /// This peer's routes come from a checkpoint.
    pub(in crate::net) fn adopt(&mut self, peer: u32, now: Duration) {
        self.protocol.adopt(peer, now);
    }

    /// A connection is opened then.
    pub(in crate::net) fn begin_at(&mut self, now: Duration) {
        self.attempt = Some(now);
    }

    /// Whether nothing would be lost with it.
    pub(in crate::net) fn is_over(&self) -> bool {
        matches!(self.line, Line::None)
            && self.attempt.is_none()
            && self.protocol.state() == SourceState::Idle
    }

    /// When [`Link::tick`] has something to do.
    pub(in crate::net) fn deadline(&self) -> Option<Duration> {
        self.protocol.deadline().into_iter().chain(self.attempt).min()
    }

    /// Somebody has connected: whether the protocol takes the connection in place of the one that is there. If it does
    /// not, it may have something to say on that one.
    pub(in crate::net) fn admit(&mut self, cx: &mut Context<'_>) -> Result<(), ConnectionRefusal> {
        let admitted = self.protocol.admit(cx.now, self.out.bytes());
        match &self.line {
            // What is not sent closes the connection, which changes nothing for the new one.
            Line::Open(_) => {
                let _ = self.after(Ok(()), cx);
            }
            _ => self.out.clear(),
        }
        admitted
    }

    /// A connection was accepted and admitted. The one before it, if it is still there, is dead or about to be.
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
        let begun = self.protocol.connected(cx.now, cx.to, self.out.bytes());
        self.after(begun, cx)
    }

    /// The connection has something to read, or room to write. Says whether it may have more.
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

    /// After a call of the protocol: sends what it says; if it failed, closes the connection. The error is
    /// that of a table that nobody can feed any more.
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

    /// The connection is of no further use.
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

    /// Time has passed. Says whether the connection is to be looked at.
    pub(in crate::net) fn tick(&mut self, cx: &mut Context<'_>) -> Result<bool, FeedError> {
        let is_due = |at: Option<Duration>| at.is_some_and(|at| at <= cx.now);
        if is_due(self.protocol.deadline()) {
            let ticked = self.protocol.tick(cx.now, cx.to, self.out.bytes());
            self.after(ticked, cx)?;
        }
        let is_due = self.attempt.is_some_and(|at| at <= cx.now);
        if is_due { self.open(cx) } else { Ok(false) }
    }

    /// Asks for everything again: by the protocol if it can, else by a new connection.
    pub(in crate::net) fn refresh(&mut self, cx: &mut Context<'_>) -> Result<bool, FeedError> {
        let Line::Open(_) = &self.line else { return Ok(false) };
        match self.protocol.refresh(cx.now, cx.to, self.out.bytes()) {
            Ok(true) => self.after(Ok(()), cx)?,
            // The writer of a pipe says what it says, and nothing again.
            Ok(false) if matches!(self.via, Via::Path(_)) => return Ok(false),
            Ok(false) => self.close("closed, to be sent everything again", cx),
            Err(error) => self.after(Err(error), cx)?,
        }
        Ok(true)
    }

    /// The loop ends: the other end hears the last words. The routes stay.
    pub(in crate::net) fn leave(&mut self, cx: &mut Context<'_>) {
        self.close_here("this end was stopped", cx);
    }

    /// The source is no more, nor are its routes.
    pub(in crate::net) fn end(&mut self, cx: &mut Context<'_>) -> Result<(), FeedError> {
        self.close_here("the source was removed", cx);
        self.protocol.end(cx.to)
    }

    /// The operator wants no connection any more.
    fn close_here(&mut self, why: &str, cx: &mut Context<'_>) {
        if let Line::Open(_) = &self.line {
            self.protocol.close(self.out.bytes());
        }
        self.cut(why, |why, bytes| SourceEvent::Closed { why, bytes }, cx);
        self.attempt = None;
    }

    /// How it stands, for the board.
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
            last: self.last.and_then(|last| clock.checked_sub(now.saturating_sub(last))),
            trouble: self.trouble.clone(),
        }
    }

    pub(in crate::net) fn state(&self) -> SourceState {
        self.protocol.state()
    }

    fn report(&mut self, cx: &Context<'_>, what: SourceEvent) {
        let report = |what| (cx.hear)(SourceReport { source: Arc::clone(&self.name), what });
        // A daemon that connects without end is no reason to fill a disk.
        match self.reports.pass(cx.now) {
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
