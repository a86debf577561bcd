//! The control thread: it owns the kernel's socket, makes paths and publishes them.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc as Shared, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fibula_core::{NextHops, Vrf};
use fibula_feeds::kernel::KernelSocket;
use fibula_feeds::net::{Got, StreamDevice as _};
use fibula_fib::Fib;
use fibula_ingest::netlink::LinkMessage;
use fibula_rib::Live;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::catalogue::{Catalogue, Known};
use super::compile::{PortLink, egress};
use super::figures::{ControlError, ControlEvent, ControlFigures, ControlOptions};
use super::links::Links;
use super::published::{self, Current, Retired};
use super::resolve::{Questions, Resolve, Wanted};
use super::views::{LiveViews, Meeting, StaticViews};
use super::watch::{Came, Watch};
use crate::Paths;
use crate::egress::{Egress, Group};
use crate::sync::Arc;

/// The control thread of a router. It ends when this value is dropped.
pub struct Control {
    meeting: Arc<Meeting>,
    asker: Arc<Asker>,
    figures: Arc<Mutex<ControlFigures>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How workers reach the control thread.
struct Asker {
    wanted: Wanted,
    waker: Arc<Waker>,
    /// Ports that are on another interface now, with their fixed messages.
    moved: Mutex<Vec<(u16, PortLink, Vec<LinkMessage>)>>,
}

impl Resolve for Asker {
    fn want(&self, port: u16, address: IpAddr) {
        if self.wanted.add(port, address) {
            self.waker.wake();
        }
    }
}

struct Waker(UnixStream);

impl Waker {
    fn wake(&self) {
        // If there is no room, the thread has not read the last ones yet.
        let _ = (&self.0).write(&[1]);
    }
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
        let mut links = Links::default();
        options.fixed.into_iter().for_each(|message| links.fix(message));
        let overruns = Shared::new(AtomicU64::new(0));
        let socket = options.kernel.then(|| open(options.room, &overruns)).transpose();
        let run = Run {
            meeting: Arc::clone(&meeting),
            asker: Arc::clone(&asker),
            figures: Arc::clone(&figures),
            stop: Arc::clone(&stop),
            calls: ours,
            socket: socket.map_err(ControlError::Io)?,
            is_kernel: options.kernel,
            room: options.room,
            overruns,
            ports,
            links,
            watch: Watch::default(),
            questions: Questions::default(),
            buffer: vec![0; 64 << 10],
            out: Vec::new(),
            retired: Retired::default(),
            state: State::default(),
            events: Box::new(events),
        };
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

/// RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR.
const GROUPS: [u32; 4] = [1, 3, 5, 9];

fn open(room: usize, overruns: &Shared<AtomicU64>) -> io::Result<KernelSocket> {
    KernelSocket::hearing(&GROUPS, room, Shared::clone(overruns))
}

/// The state of the thread.
struct Run {
    meeting: Arc<Meeting>,
    asker: Arc<Asker>,
    figures: Arc<Mutex<ControlFigures>>,
    stop: Arc<AtomicBool>,
    calls: UnixStream,
    socket: Option<KernelSocket>,
    is_kernel: bool,
    room: usize,
    overruns: Shared<AtomicU64>,
    ports: Vec<PortLink>,
    links: Links,
    watch: Watch,
    questions: Questions,
    /// A datagram of the kernel: a dump's are as long as there is room, up to 32 KiB.
    buffer: Vec<u8>,
    /// To be sent to the kernel.
    out: Vec<u8>,
    retired: Retired,
    state: State,
    events: Box<dyn Fn(ControlEvent) + Send>,
}

#[derive(Default)]
struct State {
    /// Something changed since the last paths.
    is_dirty: bool,
    /// The links are known.
    is_complete: bool,
    /// The version of the catalogue that the last paths are made of.
    knows: u64,
    /// When the next paths may be made: half of the time is for other work.
    not_before: Duration,
    /// When the socket is opened again.
    open_at: Option<Duration>,
    was_refused: bool,
    own: Option<Vec<IpAddr>>,
    figures: ControlFigures,
}

/// Old paths are looked after so often.
const TIDY: Duration = Duration::from_millis(100);

impl Run {
    fn run(mut self) {
        let began = Instant::now();
        self.state.is_dirty = true;
        if self.is_kernel {
            self.watch.dump(Duration::ZERO, &mut self.links, &mut self.out);
        } else {
            self.state.is_complete = true;
        }
        while !self.stop.load(Relaxed) {
            let now = began.elapsed();
            self.send();
            self.hear(now);
            self.take_ports();
            self.ask(now);
            self.send();
            if self.meeting.catalogue.version() != self.state.knows {
                self.state.is_dirty = true;
            }
            if self.state.is_dirty && self.state.is_complete && now >= self.state.not_before {
                self.publish(began, now);
            }
            let is_untidy = self.retired.sweep();
            let timeout = self.timeout(began.elapsed(), is_untidy);
            self.wait(timeout);
        }
    }

    fn timeout(&self, now: Duration, is_untidy: bool) -> Option<Duration> {
        let State { is_dirty, is_complete, not_before, open_at, .. } = &self.state;
        let due = (*is_dirty && *is_complete).then_some(*not_before);
        let tidy = is_untidy.then(|| now + TIDY);
        [due, tidy, *open_at, self.watch.deadline(), self.questions.deadline()]
            .into_iter()
            .flatten()
            .min()
            .map(|at| at.saturating_sub(now))
    }

    /// Waits for the kernel or for a call.
    fn wait(&mut self, timeout: Option<Duration>) {
        let mut fds = vec![PollFd::new(&self.calls, PollFlags::IN)];
        if let Some(socket) = &self.socket {
            fds.push(PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN));
        }
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        // An error is as good as a wake-up.
        let _ = poll(&mut fds, timeout.as_ref());
        let mut calls = [0; 64];
        while (&self.calls).read(&mut calls).is_ok_and(|len| len > 0) {}
    }

    /// Reads all messages of the kernel.
    fn hear(&mut self, now: Duration) {
        if self.socket.is_none() && self.state.open_at.is_some_and(|at| now >= at) {
            self.reopen(now);
        }
        if self.watch.deadline().is_some_and(|at| now >= at) {
            self.lost(now, "it does not answer");
        }
        while let Some(socket) = &mut self.socket {
            match socket.read(&mut self.buffer) {
                Ok(Got::Bytes(len)) => {
                    let (links, out) = (&mut self.links, &mut self.out);
                    let came = self.watch.datagram(now, &self.buffer[..len], links, out);
                    self.came(now, came);
                    // A dump continues when the next part is requested.
                    self.send();
                }
                Ok(Got::Lost) => return self.lost(now, "notifications were lost"),
                Ok(_) => return self.lost(now, "the socket is closed"),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.lost(now, &error.to_string()),
            }
        }
    }

    fn came(&mut self, now: Duration, came: Came) {
        let Came { is_changed, interfaces, is_complete, stale, refused, damage } = came;
        self.state.is_dirty |= is_changed;
        self.state.is_complete |= is_complete;
        if interfaces {
            (self.events)(ControlEvent::Interfaces);
        }
        for (interface, address) in stale {
            if self.ports.iter().any(|port| port.interface == interface) {
                self.questions.add(now, interface, address);
            }
        }
        if let Some(error) = refused
            && !std::mem::replace(&mut self.state.was_refused, true)
        {
            (self.events)(ControlEvent::Refused(error));
        }
        if let Some(damage) = damage {
            (self.events)(ControlEvent::Damaged(damage));
        }
    }

    fn lost(&mut self, now: Duration, why: &str) {
        (self.events)(ControlEvent::Lost(why.to_owned()));
        self.reopen(now);
    }

    /// Opens a new socket, which has no old dump in it, and requests everything.
    fn reopen(&mut self, now: Duration) {
        self.out.clear();
        self.socket = open(self.room, &self.overruns).ok();
        self.watch.dump(now, &mut self.links, &mut self.out);
        self.state.open_at = self.socket.is_none().then(|| now + Duration::from_secs(1));
    }

    /// Takes over the ports that have other links.
    fn take_ports(&mut self) {
        let mut moved = self.asker.moved.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, link, fixed) in moved.drain(..) {
            let Some(port) = self.ports.get_mut(usize::from(number)) else { continue };
            self.links.unfix(port.interface);
            fixed.into_iter().for_each(|message| self.links.fix(message));
            *port = link;
            self.state.is_dirty = true;
        }
    }

    /// Requests the wanted neighbours, as far as the rate allows.
    fn ask(&mut self, now: Duration) {
        for (port, address) in self.asker.wanted.take() {
            let Some(port) = self.ports.get(usize::from(port)) else { continue };
            let interface = port.interface;
            if self.links.mac(interface, address).is_none() {
                self.questions.add(now, interface, address);
            }
        }
        while let Some((interface, address)) = self.questions.next(now) {
            self.watch.question(interface, address, &mut self.out);
        }
    }

    fn send(&mut self) {
        if let Some(socket) = &mut self.socket
            && !self.out.is_empty()
        {
            // Lost requests are repeated: dumps after their deadline, neighbours when they are wanted again.
            let _ = socket.write(&self.out);
        }
        self.out.clear();
    }

    /// Makes paths and swaps them.
    fn publish(&mut self, began: Instant, now: Duration) {
        let own = self.links.own();
        if self.state.own.as_ref() != Some(&own) {
            (self.events)(ControlEvent::Own(own.clone()));
            self.state.own = Some(own);
        }
        let Known { groups, version } = self.meeting.catalogue.known();
        let description = egress(&self.links, &self.ports, groups.iter().map(Option::as_deref));
        self.count(&groups, &description);
        let number = self.meeting.published.number() + 1;
        let paths = Paths::new(description);
        let old = self.meeting.published.publish(Current { number, knows: version, paths });
        self.retired.put(old);
        let making = began.elapsed().saturating_sub(now);
        self.state.figures.published = number;
        self.state.figures.making = making;
        self.state.knows = version;
        self.state.is_dirty = false;
        self.state.not_before = began.elapsed() + making.max(Duration::from_millis(1));
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        figures.clone_from(&self.state.figures);
    }

    fn count(&mut self, groups: &[Option<Arc<NextHops>>], description: &Egress) {
        let figures = &mut self.state.figures;
        let used = groups.iter().zip(&description.groups).skip(1).filter_map(|(means, group)| {
            means.as_ref().filter(|means| means.kind == fibula_core::RouteKind::Unicast)?;
            Some(group)
        });
        (figures.host_groups, figures.dead_groups) = (0, 0);
        for group in used {
            match group {
                Group::Local => figures.host_groups += 1,
                Group::Forward(members) if members.is_empty() => figures.dead_groups += 1,
                _ => {}
            }
        }
        figures.groups = groups.iter().skip(1).flatten().count();
        figures.gateways = description.adjacencies.len();
        figures.unresolved = description.adjacencies.iter().filter(|way| way.mac.is_none()).count();
        figures.neighbours = description.neighbours.len();
        figures.asked = self.questions.count;
        figures.watched = self.watch.figures;
        figures.overruns = self.overruns.load(Relaxed);
        let is_up = |port: &PortLink| {
            self.links.interface(port.interface).is_some_and(|interface| interface.is_up)
        };
        let ports: Vec<bool> = self.ports.iter().map(is_up).collect();
        for (at, (port, &is_up)) in self.ports.iter().zip(&ports).enumerate() {
            if figures.ports.get(at).copied() != Some(is_up) {
                (self.events)(ControlEvent::Port { name: port.name.clone(), is_up });
            }
        }
        figures.ports = ports;
    }
}
