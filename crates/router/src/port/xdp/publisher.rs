//! Keeps the tables in the kernel up to date: a thread that checks for new tables.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{FastPath, Stamp};
use crate::View;

/// Tables that change, with numbers that show whether they did.
pub trait Stamped: Send {
    /// Updates the egress paths, or everything if `with_routes`. The routes that a [`View`] shows must change only in
    /// the second case.
    fn renew(&mut self, with_routes: bool);

    /// The current tables, if there are any yet.
    fn held(&self) -> Option<(Stamp, View<'_>)>;
}

/// The interval between checks. A link that has failed may be used for as long.
const PAUSE: Duration = Duration::from_millis(5);
/// Tables of routes are copied whole, so it takes at most a tenth of the time, and memory's, of a processor.
const SHARE: u32 = 10;
/// The longest wait after a copy. Changes of routes are collected for 50 ms in any case.
const LONGEST: Duration = Duration::from_millis(500);

/// The interval between queries for the interfaces that take packets.
const ASK: Duration = Duration::from_millis(250);

/// The thread. Dropped, it ends, and the tables stay as they are.
pub struct Publisher {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Publishes the current tables, then starts the thread. `events` gets messages for the operator, each once.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn start(
        fast: Arc<FastPath>,
        mut views: impl Stamped + 'static,
        events: impl Fn(String) + Send + 'static,
    ) -> io::Result<Self> {
        views.renew(true);
        let mut messages = LastMessages::default();
        messages.ports(&events, fast.ask_ports());
        if let Some((stamp, view)) = views.held() {
            fast.publish(stamp, &view)?;
        }
        let (stop, stopped) = mpsc::channel::<()>();
        let run = move || {
            let (mut not_before, mut ask_at) = (Instant::now(), Instant::now());
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let now = Instant::now();
                if now >= ask_at {
                    ask_at = now + ASK;
                    messages.ports(&events, fast.ask_ports());
                }
                views.renew(now >= not_before);
                let Some((stamp, view)) = views.held() else { continue };
                match fast.publish(stamp, &view) {
                    Ok(true) => {
                        let took = now.elapsed();
                        not_before = now + took + (took * SHARE).min(LONGEST);
                    }
                    Ok(false) => {}
                    Err(error) => {
                        messages.report(&events, format!("tables in the kernel are old: {error}"))
                    }
                }
                messages.families(&events, fast.families());
            }
        };
        let thread = thread::Builder::new().name("fibula-xdp".to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The messages that were reported last.
#[derive(Default)]
struct LastMessages {
    last: String,
    families: Option<(bool, bool)>,
}

impl LastMessages {
    fn report(&mut self, events: &impl Fn(String), what: String) {
        if self.last != what {
            events(what.clone());
            self.last = what;
        }
    }

    fn ports(&mut self, events: &impl Fn(String), changed: Vec<(u16, bool)>) {
        for (port, is_fast) in changed {
            events(match is_fast {
                true => format!("port {port}: its interface takes packets of the fast path now"),
                false => format!(
                    "port {port}: its interface takes no packets of XDP programs, so they leave by the socket \
                     (veth: the other end needs an XDP program, or `ethtool -K PEER gro on`)"
                ),
            });
        }
    }

    fn families(&mut self, events: &impl Fn(String), families: (bool, bool)) {
        if self.families.replace(families) == Some(families) {
            return;
        }
        for (name, engine, is_there) in
            [("IPv4", "runmap", families.0), ("IPv6", "wideleaf", families.1)]
        {
            if !is_there {
                let what = "no fast path: its engine has no program in the kernel;";
                self.report(events, format!("{name}: {what} {engine} has one (--engine)"));
            }
        }
    }
}
