//! VRPs and ASPAs from a validator, as they change: the client of the RPKI-to-Router protocol (RFC 6810, RFC 8210, and
//! version 2 of its successor), over TCP.
//!
//! A validator, or a program beside it, runs a *cache*. The client asks it for the whole set once, and from then on for
//! what has changed since the serial number that it has. [`LiveVrps`] has the result. The protocol is that of the crate
//! `rpki`; what a cache may do to us is bounded here. ASPAs come with version 2.
//!
//! | what happens | what is used |
//! |---|---|
//! | a whole answer | the new set, at once |
//! | an answer that is not whole, announces what is there or withdraws what is not | the set before; the connection ends, and the whole set is asked for |
//! | the connection ends | the set before, until it expires (the cache says when, two hours by default) |
//! | the session's number changes without a reset, or a query is answered with an error | the set before; the whole set is asked for |
//! | the cache sends ASPAs in the form of drafts before 8210bis-11 | the set before; version 1 is used, which has no ASPAs |
//! | the cache fails | the next one of the list, which sends its whole set |
//! | the set expires | none: routes have no validity, by origin or by path |

mod bounded;
mod event;
mod session;
mod target;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;

pub use event::{RtrEvent, RtrNotify};

use crate::{CacheStatus, LiveVrps};

/// The options of an [`RtrFollower`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RtrOptions {
    /// The caches in order of preference, `host:port` each. One is connected at a time: the next one is tried if it
    /// fails.
    pub caches: Vec<String>,
    /// The most VRPs that are taken from a cache, and the most ASes in its ASPAs, customers and providers. The
    /// connection to one that sends more is ended.
    pub most: usize,
    /// The time for a connection to be made, and for each answer to begin and to end.
    pub timeout: Duration,
    /// The wait before a connection is tried again, which doubles from this up to a minute.
    pub retry: Duration,
    /// The longest time for which VRPs are used of which nothing more was heard, if the cache allows more. RFC 8210 has
    /// ten minutes to two days, by default two hours.
    pub longest: Duration,
    /// Is told what happens to the caches.
    pub notify: Option<RtrNotify>,
}

impl RtrOptions {
    /// These caches, four million VRPs and as many ASes in ASPAs, answers within a minute.
    pub fn of(caches: Vec<String>) -> Self {
        Self {
            caches,
            most: 4_000_000,
            timeout: Duration::from_secs(60),
            retry: Duration::from_secs(1),
            longest: Duration::from_secs(172_800),
            notify: None,
        }
    }
}

impl RtrOptions {
    /// Tells what happened to a cache.
    fn tell(&self, cache: usize, event: RtrEvent<'_>) {
        if let (Some(RtrNotify(notify)), Some(cache)) = (&self.notify, self.caches.get(cache)) {
            notify(cache, event);
        }
    }
}

/// A thread that follows a cache. Dropping it closes the connection; what was received stays.
///
/// ```no_run
/// use std::sync::Arc;
/// use fibula_rpki::LiveVrps;
/// use fibula_rpki::rtr::{RtrFollower, RtrOptions};
///
/// let vrps = Arc::new(LiveVrps::default());
/// let caches = vec!["validator.example:3323".to_owned(), "192.0.2.1:8282".to_owned()];
/// let _follower = RtrFollower::start(RtrOptions::of(caches), Arc::clone(&vrps))?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct RtrFollower {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl RtrFollower {
    /// Starts the thread.
    ///
    /// # Errors
    /// If there is no cache, or the system has no thread.
    pub fn start(options: RtrOptions, vrps: Arc<LiveVrps>) -> io::Result<Self> {
        if options.caches.is_empty() {
            return Err(io::Error::other("no cache is named"));
        }
        let status =
            |cache: &String| CacheStatus { endpoint: cache.clone(), ..CacheStatus::default() };
        vrps.set_caches(options.caches.iter().map(status).collect());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, mut stopped) = watch::channel(false);
        let thread = thread::Builder::new().name("rtr".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = session::follow(&options, &vrps) => {}
                    _ = stopped.wait_for(|stop| *stop) => {}
                }
            });
            // The resolver of names cannot be interrupted, and holds nothing.
            runtime.shutdown_background();
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for RtrFollower {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}
