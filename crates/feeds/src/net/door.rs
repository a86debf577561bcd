//! A listening socket, and the addresses that may connect.

use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fibula_core::AnyPrefix;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};

use super::keys::Keys;
use super::report::{OnReport, SourceEvent, SourceReport};
use super::source::{Listen, ProtocolFactory};
use super::stream::{is_interrupted, is_pause, remote};
use crate::LogLimit;

pub(super) struct Door {
    name: Arc<str>,
    /// The listening socket; `None` while the door is closed.
    listener: Option<TcpListener>,
    token: Token,
    pub(super) address: SocketAddr,
    speakers: Vec<(AnyPrefix, ProtocolFactory)>,
    pub(super) limit: usize,
    keys: Keys,
    refusals: LogLimit,
    /// Limits the reports of sessions that end with their connections, because each new connection of such an address
    /// is a new session.
    pub(super) passing: LogLimit,
    /// The time of the next attempt, after the system had no free descriptor.
    pub(super) pause: Option<Duration>,
    pub(super) accepted: u64,
    pub(super) trouble: Option<String>,
}

/// Maximum number of connections accepted in one turn.
const TURN: usize = 16;
/// How long to wait before the next attempt to get a descriptor.
const PAUSE: Duration = Duration::from_secs(1);

impl Door {
    pub(super) fn open(
        name: Arc<str>,
        listen: Listen,
        (registry, token): (&Registry, Token),
    ) -> io::Result<Self> {
        let (listener, keys) = bind(listen.address, listen.keys, registry, token)?;
        let address = listener.local_addr()?;
        Ok(Self {
            name,
            listener: Some(listener),
            token,
            address,
            speakers: listen.speakers,
            limit: listen.limit,
            keys,
            refusals: LogLimit::of_reports(5),
            passing: LogLimit::of_reports(5),
            pause: None,
            accepted: 0,
            trouble: None,
        })
    }

    /// Replaces the rules of the door.
    pub(super) fn change(&mut self, listen: Listen) {
        (self.speakers, self.limit) = (listen.speakers, listen.limit);
    }

    pub(super) fn keys(&self) -> Vec<(AnyPrefix, Vec<u8>)> {
        self.keys.all()
    }

    /// Sets the keys of the socket and removes all others.
    pub(super) fn set_keys(&mut self, keys: Vec<(AnyPrefix, Vec<u8>)>) -> io::Result<()> {
        match &self.listener {
            Some(listener) => self.keys.set(listener, keys)?,
            None => self.keys = Keys::of(keys),
        }
        Ok(())
    }

    /// Closes the listening socket.
    pub(super) fn shut(&mut self) {
        self.listener = None;
    }

    /// Listens again on the same address. If that fails, the next attempt is due after a pause.
    pub(super) fn reopen(&mut self, registry: &Registry, now: Duration, on_report: &OnReport) {
        if self.listener.is_some() {
            return;
        }
        match bind(self.address, self.keys.all(), registry, self.token) {
            Ok((listener, keys)) => {
                (self.listener, self.keys) = (Some(listener), keys);
                (self.pause, self.trouble) = (None, None);
            }
            Err(error) => {
                let why = format!("cannot listen on {} any more: {error}", self.address);
                self.wait(why, now, on_report);
            }
        }
    }

    fn wait(&mut self, why: String, now: Duration, on_report: &OnReport) {
        self.pause = Some(now + PAUSE);
        self.trouble = Some(why.clone());
        self.report(on_report, SourceEvent::Unavailable { why, retry: PAUSE });
    }

    /// The remote addresses that are configured one by one.
    pub(super) fn hosts(&self) -> Vec<(IpAddr, ProtocolFactory)> {
        let named = |(prefix, speaker): &(AnyPrefix, ProtocolFactory)| {
            host(*prefix).map(|address| (address, speaker.clone()))
        };
        self.speakers.iter().filter_map(named).collect()
    }

    /// The protocol for this remote address, if it may connect.
    pub(super) fn speaker(&self, address: IpAddr) -> Option<&ProtocolFactory> {
        let within = self.speakers.iter().filter(|(prefix, _)| contains(*prefix, address));
        within.max_by_key(|(prefix, _)| length(*prefix)).map(|(_, speaker)| speaker)
    }

    /// Accepts waiting connections. Returns whether there may be more.
    pub(super) fn turn(
        &mut self,
        now: Duration,
        on_report: &OnReport,
        into: &mut Vec<(TcpStream, IpAddr)>,
    ) -> bool {
        let Some(listener) = &self.listener else { return false };
        self.pause = None;
        for _ in 0..TURN {
            match listener.accept() {
                Ok((stream, address)) => into.push((stream, remote(address))),
                Err(error) if is_pause(&error) => return false,
                // A connection that ended before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if is_interrupted(&error) => {}
                Err(error) => {
                    self.wait(format!("cannot accept connections: {error}"), now, on_report);
                    return false;
                }
            }
        }
        true
    }

    /// Reports a refused connection.
    pub(super) fn refuse(
        &mut self,
        address: IpAddr,
        why: Cow<'static, str>,
        now: Duration,
        on_report: &OnReport,
    ) {
        self.trouble = Some(format!("refused {address}: {why}"));
        let Some(more) = self.refusals.admit(now) else { return };
        if more > 0 {
            self.report(on_report, SourceEvent::More { count: more });
        }
        self.report(on_report, SourceEvent::Refused { address, why });
    }

    fn report(&self, on_report: &OnReport, what: SourceEvent) {
        on_report(SourceReport { source: Arc::clone(&self.name), what });
    }
}

fn bind(
    address: SocketAddr,
    wanted: Vec<(AnyPrefix, Vec<u8>)>,
    registry: &Registry,
    token: Token,
) -> io::Result<(TcpListener, Keys)> {
    let mut listener = TcpListener::bind(address)?;
    let mut keys = Keys::default();
    keys.set(&listener, wanted)?;
    registry.register(&mut listener, token, Interest::READABLE)?;
    Ok((listener, keys))
}

fn host(prefix: AnyPrefix) -> Option<IpAddr> {
    match prefix {
        AnyPrefix::V4(prefix) => (prefix.len() == 32).then(|| IpAddr::V4(prefix.addr().into())),
        AnyPrefix::V6(prefix) => (prefix.len() == 128).then(|| IpAddr::V6(prefix.addr().into())),
    }
}

fn contains(prefix: AnyPrefix, address: IpAddr) -> bool {
    match (prefix, address) {
        (AnyPrefix::V4(prefix), IpAddr::V4(address)) => prefix.contains(address.into()),
        (AnyPrefix::V6(prefix), IpAddr::V6(address)) => prefix.contains(address.into()),
        _ => false,
    }
}

fn length(prefix: AnyPrefix) -> u8 {
    match prefix {
        AnyPrefix::V4(prefix) => prefix.len(),
        AnyPrefix::V6(prefix) => prefix.len(),
    }
}

#[cfg(test)]
mod tests {
    use mio::Poll;

    use super::*;

    #[test]
    fn a_door_that_cannot_be_opened_again_is_tried_again() {
        let poll = Poll::new().unwrap();
        let address = "127.0.0.1:0".parse().unwrap();
        let listen = Listen { address, speakers: Vec::new(), limit: 1, keys: Vec::new() };
        let mut door = Door::open("door".into(), listen, (poll.registry(), Token(1))).unwrap();
        door.shut();
        let taken = std::net::TcpListener::bind(door.address).unwrap();
        let on_report: OnReport = Arc::new(|_| {});
        door.reopen(poll.registry(), Duration::ZERO, &on_report);
        assert_eq!(door.pause, Some(PAUSE));
        assert!(door.trouble.as_ref().unwrap().contains(&door.address.to_string()));
        assert!(!door.turn(PAUSE, &on_report, &mut Vec::new()));
        drop(taken);
        door.reopen(poll.registry(), PAUSE, &on_report);
        assert!(door.pause.is_none() && door.trouble.is_none());
        std::net::TcpStream::connect(door.address).unwrap();
    }
}
