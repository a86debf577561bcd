//! Connects to a cache, and to the next one if it fails.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rpki::rtr::client::Client;
use rpki::rtr::state::State;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::bounded::{Bounded, OLD_ASPAS};
use super::target::Target;
use super::{RtrEvent, RtrOptions};
use crate::{CacheState, LiveVrps};

/// The version of the protocol with which a connection begins. A cache may want an older one.
const VERSION: u8 = 2;
/// The version without ASPAs.
const WITHOUT_ASPAS: u8 = 1;
/// The longest wait between two attempts.
const LONGEST: Duration = Duration::from_secs(60);

/// What the client knows of the set that it has.
struct Known {
    /// The cache that sent it, and where it stands there.
    cache: usize,
    /// `None`: the whole set has to be asked for.
    state: Option<State>,
    expires: Instant,
}

/// Follows the caches, and never returns.
pub(super) async fn follow(options: &RtrOptions, vrps: &Arc<LiveVrps>) {
    let mut target = Target::new(Arc::clone(vrps), options.most);
    let mut known: Option<Known> = None;
    let (mut cache, mut wait) = (0, options.retry);
    let mut versions = vec![VERSION; options.caches.len()];
    loop {
        vrps.set_cache(cache, |status| status.state = CacheState::Connecting);
        let (version, known_here) = (versions[cache], known.take());
        let mut session =
            Session { options, vrps, cache, version, known: known_here, is_heard: false };
        let error;
        (target, error) = session.run(target).await;
        let is_heard = session.is_heard;
        let has_old_aspas = error == OLD_ASPAS;
        known = session.known;
        options.tell(cache, RtrEvent::Lost { why: &error });
        vrps.set_cache(cache, |status| {
            status.state = CacheState::Lost;
            status.trouble = Some(error);
        });
        if has_old_aspas {
            versions[cache] = WITHOUT_ASPAS;
        } else if is_heard {
            wait = options.retry;
        } else {
            cache = (cache + 1) % options.caches.len();
        }
        let next = Instant::now() + wait;
        wait = (wait * 2).min(LONGEST);
        // The set may expire before the next attempt.
        if let Some(Known { expires, .. }) = known
            && expires <= next
        {
            sleep_until(expires).await;
            expire(&mut target, options, vrps, known.take());
        }
        sleep_until(next).await;
    }
}

fn expire(target: &mut Target, options: &RtrOptions, vrps: &LiveVrps, known: Option<Known>) {
    target.expire();
    if let Some(Known { cache, .. }) = known {
        options.tell(cache, RtrEvent::Expired);
        vrps.set_cache(cache, |status| (status.vrps, status.aspas, status.expires) = (0, 0, None));
    }
}

/// A connection.
struct Session<'a> {
    options: &'a RtrOptions,
    vrps: &'a LiveVrps,
    cache: usize,
    version: u8,
    known: Option<Known>,
    /// Whether the cache has sent a whole answer.
    is_heard: bool,
}

impl Session<'_> {
    /// Runs until the connection ends; why it did.
    async fn run(&mut self, target: Target) -> (Target, String) {
        let endpoint = &self.options.caches[self.cache];
        let connecting = TcpStream::connect(endpoint.as_str());
        let connected = timeout_at(self.deadline(Duration::ZERO), connecting).await;
        let socket = match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(socket) => socket,
            Err(error) => return (target, format!("cannot connect: {error}")),
        };
        self.vrps.set_cache(self.cache, |status| status.connections += 1);
        // Serial numbers have a meaning only at the cache that gave them.
        let known = self.known.as_ref().filter(|known| known.cache == self.cache);
        let state = known.and_then(|known| known.state);
        let socket = Bounded::new(socket);
        let mut client = Client::with_initial_version(self.version, socket, target, state);
        let error = loop {
            if let Err(error) = self.step(&mut client).await {
                break error;
            }
        };
        (client.into_target(), error)
    }

    /// When an answer has to be there that begins after this time; at the latest when the VRPs expire.
    fn deadline(&self, quiet: Duration) -> Instant {
        let now = Instant::now();
        let deadline = now + quiet + self.options.timeout;
        self.known.as_ref().map_or(deadline, |known| deadline.min(known.expires.max(now)))
    }

    /// One answer: at once if nothing was heard on this connection, else when the cache says that there is news, or it
    /// is time to ask.
    async fn step(&mut self, client: &mut Client<Bounded, Target>) -> Result<(), String> {
        let refresh = Duration::from_secs(client.target().timing.refresh.into());
        let deadline = self.deadline(if self.is_heard { refresh } else { Duration::ZERO });
        let session = |client: &Client<_, _>| client.state().map(State::session);
        let before = session(client);
        let whole = async {
            let answer = client.update().await?;
            // A difference to another set.
            if !answer.is_reset && session(client) != before {
                return Err(io::Error::other("another session without a reset"));
            }
            client.apply(answer).await
        };
        let error = match timeout_at(deadline, whole).await {
            Ok(Ok(())) => {
                self.heard(client);
                return Ok(());
            }
            Ok(Err(error)) => error,
            Err(_) => {
                if let Some(known) = self.known.take_if(|known| known.expires <= Instant::now()) {
                    expire(client.target_mut(), self.options, self.vrps, Some(known));
                }
                return Err("no whole answer in time".to_owned());
            }
        };
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        if let UnexpectedEof | ConnectionReset | BrokenPipe = error.kind() {
            return Err("the cache closed the connection".to_owned());
        }
        // Errors of the kind `Other` are about the answer: what is held is not what the cache believes.
        if error.kind() == io::ErrorKind::Other
            && let Some(known) = &mut self.known
        {
            known.state = None;
        }
        // The client has no words for an answer that was refused here.
        Err(match error.to_string() {
            text if text.is_empty() => REFUSED.to_owned(),
            text => text,
        })
    }

    /// The cache has sent a whole answer.
    fn heard(&mut self, client: &Client<Bounded, Target>) {
        let (target, state) = (client.target(), client.state());
        let life = Duration::from_secs(target.timing.expire.into()).min(self.options.longest);
        self.known = Some(Known { cache: self.cache, state, expires: Instant::now() + life });
        let (vrps, aspas) = target.len();
        let serial = state.map_or(0, |state| state.serial().0);
        match (std::mem::replace(&mut self.is_heard, true), target.applied.is_reset) {
            (false, _) => {
                self.options.tell(self.cache, RtrEvent::Connected { serial, vrps, aspas });
            }
            (true, true) => self.options.tell(self.cache, RtrEvent::Reset { vrps, aspas }),
            (true, false) => {}
        }
        let now = SystemTime::now();
        self.vrps.set_cache(self.cache, |status| {
            status.state = CacheState::Up;
            status.session = state.map(|state| (state.session(), state.serial().0));
            (status.vrps, status.aspas) = (vrps, aspas);
            status.updated = Some(now);
            status.expires = Some(now + life);
            status.updates += 1;
            status.resets += u64::from(target.applied.is_reset);
            status.ignored += target.applied.ignored;
            status.trouble = None;
        });
    }
}

const REFUSED: &str = "an answer with a VRP or an ASPA that cannot be, that announces what is there or withdraws what is \
                       not, or with too many VRPs or ASPAs";
