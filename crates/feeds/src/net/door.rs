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
use super::report::{Hear, SourceEvent, SourceReport, Throttle};
use super::source::{Listen, ProtocolFactory};
use super::stream::{is_interrupted, is_pause, remote};

pub(super) struct Door {
    name: Arc<str>,
    /// None while the door is shut.
    listener: Option<TcpListener>,
    token: Token,
    pub(super) address: SocketAddr,
    speakers: Vec<(AnyPrefix, ProtocolFactory)>,
    pub(super) limit: usize,
    keys: Keys,
    refusals: Throttle,
    /// Of the sessions that end with their connections: who connects again and again is a new one each time.
    pub(super) passing: Throttle,
    /// When the system has no descriptors left, the next attempt is made then.
    pub(super) pause: Option<Duration>,
    pub(super) accepted: u64,
    pub(super) trouble: Option<String>,
}

/// Connections that are accepted before it is another source's turn.
const TURN: usize = 16;
/// How long to wait for a descriptor.
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
            refusals: Throttle::default(),
            passing: Throttle::default(),
            pause: None,
            accepted: 0,
            trouble: None,
        })
    }

    /// The same door with other rules.
    pub(super) fn change(&mut self, listen: Listen) {
        (self.speakers, self.limit) = (listen.speakers, listen.limit);
    }

    pub(super) fn keys(&self) -> Vec<(AnyPrefix, Vec<u8>)> {
        self.keys.all()
    }

    /// Gives it these keys and no others.
    pub(super) fn set_keys(&mut self, keys: Vec<(AnyPrefix, Vec<u8>)>) -> io::Result<()> {
        match &self.listener {
            Some(listener) => self.keys.set(listener, keys)?,
            None => self.keys = Keys::of(keys),
        }
        Ok(())
    }

    /// Nobody can connect from here on.
    pub(super) fn shut(&mut self) {
        self.listener = None;
    }

    /// Listens again where it did. If it cannot, another attempt is due when its pause is over.
    pub(super) fn reopen(&mut self, registry: &Registry, now: Duration, hear: &Hear) {
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
                self.wait(why, now, hear);
            }
        }
    }

    fn wait(&mut self, why: String, now: Duration, hear: &Hear) {
        self.pause = Some(now + PAUSE);
        self.trouble = Some(why.clone());
        self.report(hear, SourceEvent::Unavailable { why, retry: PAUSE });
    }

    /// Those who are named one by one.
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

    /// Takes those who wait. Says whether there may be more.
    pub(super) fn turn(
        &mut self,
        now: Duration,
        hear: &Hear,
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
                    self.wait(format!("cannot accept connections: {error}"), now, hear);
                    return false;
                }
            }
        }
        true
    }

    /// Somebody was turned away.
    pub(super) fn refuse(
        &mut self,
        address: IpAddr,
        why: Cow<'static, str>,
        now: Duration,
        hear: &Hear,
    ) {
        self.trouble = Some(format!("refused {address}: {why}"));
        let Some(more) = self.refusals.pass(now) else { return };
        if more > 0 {
            self.report(hear, SourceEvent::More { count: more });
        }
        self.report(hear, SourceEvent::Refused { address, why });
    }

    fn report(&self, hear: &Hear, what: SourceEvent) {
        hear(SourceReport { source: Arc::clone(&self.name), what });
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
        let hear: Hear = Arc::new(|_| {});
        door.reopen(poll.registry(), Duration::ZERO, &hear);
        assert_eq!(door.pause, Some(PAUSE));
        assert!(door.trouble.as_ref().unwrap().contains(&door.address.to_string()));
        assert!(!door.turn(PAUSE, &hear, &mut Vec::new()));
        drop(taken);
        door.reopen(poll.registry(), PAUSE, &hear);
        assert!(door.pause.is_none() && door.trouble.is_none());
        std::net::TcpStream::connect(door.address).unwrap();
    }
}
