//! The handle of the control thread, by which workers reach it.

use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc as Shared, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fibula_core::{NextHops, Vrf};
use fibula_fib::Fib;
use fibula_ingest::netlink::LinkMessage;
use fibula_rib::Live;

use super::catalogue::Catalogue;
use super::compile::PortLink;
use super::figures::{ControlError, ControlEvent, ControlFigures, ControlOptions};
use super::published;
use super::resolve::{Resolve, Wanted};
use super::run::{Run, SharedState};
use super::views::{LiveViews, Meeting, StaticViews};
use crate::egress::Egress;
use crate::sync::Arc;

/// The control thread of a router. It ends when this value is dropped.
pub struct Control {
    meeting: Arc<Meeting>,
    asker: Arc<Asker>,
    figures: Arc<Mutex<ControlFigures>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Starts it for the router's ports, by their numbers. `events` is called with information for the operator, and
    /// must not block.
    ///
    /// # Errors
    /// If the system cannot create a socket or a thread.
    pub fn start(
        ports: Vec<PortLink>,
        options: ControlOptions,
        events: impl Fn(ControlEvent) + Send + 'static,
    ) -> Result<Self, ControlError> {
        let (ours, theirs) = UnixStream::pair().map_err(ControlError::Io)?;
        ours.set_nonblocking(true).map_err(ControlError::Io)?;
        theirs.set_nonblocking(true).map_err(ControlError::Io)?;
        let waker = Arc::new(Waker(theirs));
        let wake = {
            let waker = Arc::clone(&waker);
            Box::new(move || waker.wake())
        };
        let meeting =
            Arc::new(Meeting { catalogue: Catalogue::new(wake), published: published::nothing() });
        let asker = Arc::new(Asker { wanted: Wanted::default(), waker, moved: Mutex::default() });
        let figures = Arc::<Mutex<ControlFigures>>::default();
        let stop = Arc::new(AtomicBool::new(false));
        let shared = SharedState {
            meeting: Arc::clone(&meeting),
            asker: Arc::clone(&asker),
            figures: Arc::clone(&figures),
            stop: Arc::clone(&stop),
        };
        let run = Run::new(shared, ours, ports, options, Box::new(events));
        let run = run.map_err(ControlError::Io)?;
        let thread = thread::Builder::new()
            .name("fibula-control".to_owned())
            .spawn(move || run.run())
            .map_err(ControlError::Io)?;
        Ok(Self { meeting, asker, figures, stop, thread: Some(thread) })
    }

    /// Makes a worker's handle for the VRF's tables. Waits until the links are known.
    ///
    /// # Errors
    /// If the VRF is not followed, or the kernel does not report its links within ten seconds.
    pub fn views(&self, live: &Live, vrf: Vrf) -> Result<LiveViews, ControlError> {
        let readers = live.reader::<u32>(vrf).zip(live.reader::<u128>(vrf));
        let (v4, v6) = readers.ok_or(ControlError::NoTable(vrf))?;
        let mut views = LiveViews::new(v4, v6, Arc::clone(&self.meeting));
        self.wait_until(|| views.renew())?;
        Ok(views)
    }

    /// Makes handles for a table that does not change, with these next hops by hop number. Clone it for each worker.
    ///
    /// # Errors
    /// If the kernel does not report its links within ten seconds.
    pub fn static_views(
        &self,
        fib: &Fib,
        next_hops: impl IntoIterator<Item = NextHops>,
    ) -> Result<StaticViews, ControlError> {
        let meeting = Arc::clone(&self.meeting);
        let mut views = StaticViews::changing(fib.clone(), next_hops, meeting);
        self.wait_until(|| views.renew())?;
        Ok(views)
    }

    fn wait_until(&self, mut is_done: impl FnMut() -> bool) -> Result<(), ControlError> {
        let began = Instant::now();
        while !is_done() || self.figures().published == 0 {
            if began.elapsed() > Duration::from_secs(10) {
                return Err(ControlError::NoAnswer);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// The interface for resolving MAC addresses.
    pub fn resolver(&self) -> Shared<dyn Resolve> {
        let asker = Arc::clone(&self.asker);
        struct Handle(Arc<Asker>);
        impl Resolve for Handle {
            fn want(&self, port: u16, address: IpAddr) {
                self.0.want(port, address);
            }
        }
        Shared::new(Handle(asker))
    }

    /// The port of this number has another link now, with these configured addresses and neighbours. Its interface is 0
    /// while it has none.
    pub fn set_port(&self, number: u16, link: PortLink, fixed: Vec<LinkMessage>) {
        let mut moved = self.asker.moved.lock().unwrap_or_else(PoisonError::into_inner);
        moved.push((number, link, fixed));
        drop(moved);
        self.asker.waker.wake();
    }

    /// The published egress table.
    pub fn egress(&self) -> Egress {
        self.meeting.published.load().paths.description().clone()
    }

    /// The counters.
    pub fn figures(&self) -> ControlFigures {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.asker.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How workers reach the control thread.
pub(super) struct Asker {
    pub(super) wanted: Wanted,
    pub(super) waker: Arc<Waker>,
    /// Ports that are on another interface now, with their fixed messages.
    pub(super) moved: Mutex<Vec<(u16, PortLink, Vec<LinkMessage>)>>,
}

impl Resolve for Asker {
    fn want(&self, port: u16, address: IpAddr) {
        if self.wanted.add(port, address) {
            self.waker.wake();
        }
    }
}

pub(super) struct Waker(pub(super) UnixStream);

impl Waker {
    pub(super) fn wake(&self) {
        // If there is no room, the thread has not read the last ones yet.
        let _ = (&self.0).write(&[1]);
    }
}
