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
use super::report::{Happened, Hear, Report, Throttle};
use super::source::{Listen, Speaker};
use super::stream::{is_interrupted, is_pause, remote};

pub(super) struct Door {
    name: Arc<str>,
    listener: TcpListener,
    pub(super) address: SocketAddr,
    speakers: Vec<(AnyPrefix, Speaker)>,
    pub(super) limit: usize,
    keys: Keys,
    refusals: Throttle,
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
        let mut listener = TcpListener::bind(listen.address)?;
        let mut keys = Keys::default();
        keys.set(&listener, listen.keys)?;
        let address = listener.local_addr()?;
        registry.register(&mut listener, token, Interest::READABLE)?;
        Ok(Self {
            name,
            listener,
            address,
            speakers: listen.speakers,
            limit: listen.limit,
            keys,
            refusals: Throttle::default(),
            pause: None,
            accepted: 0,
            trouble: None,
        })
    }

    /// The same door with other rules.
    pub(super) fn change(&mut self, listen: Listen) -> io::Result<()> {
        (self.speakers, self.limit) = (listen.speakers, listen.limit);
        self.keys.set(&self.listener, listen.keys)
    }

    /// Those who are named one by one.
    pub(super) fn hosts(&self) -> Vec<(IpAddr, Speaker)> {
        let named = |(prefix, speaker): &(AnyPrefix, Speaker)| {
            host(*prefix).map(|address| (address, speaker.clone()))
        };
        self.speakers.iter().filter_map(named).collect()
    }

    /// The protocol for this remote address, if it may connect.
    pub(super) fn speaker(&self, address: IpAddr) -> Option<&Speaker> {
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
        self.pause = None;
        for _ in 0..TURN {
            match self.listener.accept() {
                Ok((stream, address)) => into.push((stream, remote(address))),
                Err(error) if is_pause(&error) => return false,
                // A connection that ended before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if is_interrupted(&error) => {}
                Err(error) => {
                    self.pause = Some(now + PAUSE);
                    let why = format!("cannot accept connections: {error}");
                    self.trouble = Some(why.clone());
                    self.report(hear, Happened::Unavailable { why, retry: PAUSE });
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
            self.report(hear, Happened::More { count: more });
        }
        self.report(hear, Happened::Refused { address, why });
    }

    fn report(&self, hear: &Hear, what: Happened) {
        hear(Report { source: Arc::clone(&self.name), what });
    }
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
