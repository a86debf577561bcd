//! The control thread: it owns the kernel's socket, makes paths and publishes them.

use std::io::{self, ErrorKind, Read as _};
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc as Shared, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fibula_core::NextHops;
use fibula_feeds::kernel::KernelSocket;
use fibula_feeds::net::{Got, StreamDevice as _};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::catalogue::Known;
use super::compile::{PortLink, egress};
use super::figures::{ControlEvent, ControlFigures, ControlOptions};
use super::handle::Asker;
use super::links::Links;
use super::published::{Current, Retired};
use super::resolve::Questions;
use super::views::Meeting;
use super::watch::{Came, Watch};
use crate::Paths;
use crate::egress::{Egress, Group};
use crate::sync::Arc;

/// RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR.
const GROUPS: [u32; 4] = [1, 3, 5, 9];

fn open(room: usize, overruns: &Shared<AtomicU64>) -> io::Result<KernelSocket> {
    KernelSocket::hearing(&GROUPS, room, Shared::clone(overruns))
}

/// What the thread shares with its handle.
pub(super) struct SharedState {
    pub(super) meeting: Arc<Meeting>,
    pub(super) asker: Arc<Asker>,
    pub(super) figures: Arc<Mutex<ControlFigures>>,
    pub(super) stop: Arc<AtomicBool>,
}

/// The state of the thread.
pub(super) struct Run {
    shared: SharedState,
    /// Becomes readable when the handle calls.
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
    /// Opens the kernel's socket, if it is to be followed.
    pub(super) fn new(
        shared: SharedState,
        calls: UnixStream,
        ports: Vec<PortLink>,
        options: ControlOptions,
        events: Box<dyn Fn(ControlEvent) + Send>,
    ) -> io::Result<Self> {
        let mut links = Links::default();
        options.fixed.into_iter().for_each(|message| links.fix(message));
        let overruns = Shared::new(AtomicU64::new(0));
        let socket = options.kernel.then(|| open(options.room, &overruns)).transpose()?;
        Ok(Self {
            shared,
            calls,
            socket,
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
            events,
        })
    }

    /// The thread, until its handle is dropped.
    pub(super) fn run(mut self) {
        let began = Instant::now();
        self.state.is_dirty = true;
        if self.is_kernel {
            self.watch.dump(Duration::ZERO, &mut self.links, &mut self.out);
        } else {
            self.state.is_complete = true;
        }
        while !self.shared.stop.load(Relaxed) {
            let now = began.elapsed();
            self.send();
            self.hear(now);
            self.take_ports();
            self.ask(now);
            self.send();
            if self.shared.meeting.catalogue.version() != self.state.knows {
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
        let mut moved = self.shared.asker.moved.lock().unwrap_or_else(PoisonError::into_inner);
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
        for (port, address) in self.shared.asker.wanted.take() {
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
        let Known { groups, version } = self.shared.meeting.catalogue.known();
        let description = egress(&self.links, &self.ports, groups.iter().map(Option::as_deref));
        self.count(&groups, &description);
        let number = self.shared.meeting.published.number() + 1;
        let paths = Paths::new(description);
        let old = self.shared.meeting.published.publish(Current { number, knows: version, paths });
        self.retired.put(old);
        let making = began.elapsed().saturating_sub(now);
        self.state.figures.published = number;
        self.state.figures.making = making;
        self.state.knows = version;
        self.state.is_dirty = false;
        self.state.not_before = began.elapsed() + making.max(Duration::from_millis(1));
        let mut figures = self.shared.figures.lock().unwrap_or_else(PoisonError::into_inner);
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
