//! Opens the ports of interfaces anew: when an interface was removed and there is one of its name again, and when the
//! MAC address or the number of queues of one with XDP sockets has changed.
//!
//! The control thread and the pipeline wake the keeper when something may have changed; each second it looks by itself.
//! It compares the state of the interfaces with the state that the ports were opened for, so that it does not matter
//! which of several quick changes it was woken for. It alone logs that a port is down or up.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use fibula_router::Pool;
use fibula_router::control::{Control, PortLink};
use fibula_router::pipeline::{PipelineHandle, Renewer};
use fibula_router::port::Identity;
use fibula_router::port::xdp::FastPath;
use tracing::{info, warn};

use super::ports::{self, XdpPorts};
use crate::config::{PortConfig, PortKind, RouteConfig};

/// How long it waits for further changes before it looks.
const SETTLE: Duration = Duration::from_millis(20);
/// How often it looks without being woken.
const TICK: Duration = Duration::from_secs(1);
/// How long the threads of the pipeline may take to close a port.
const CLOSING: Duration = Duration::from_secs(2);

/// Wakes the keeper. Clones wake the same one.
#[derive(Clone)]
pub(super) struct Waker(SyncSender<()>);

impl Waker {
    /// A waker, and what the keeper waits for.
    pub(super) fn new() -> (Self, Receiver<()>) {
        let (send, receive) = mpsc::sync_channel(1);
        (Self(send), receive)
    }

    pub(super) fn wake(&self) {
        // If it is full, the keeper has not looked yet.
        let _ = self.0.try_send(());
    }
}

/// Why ports are down, for readers.
pub(super) struct PortStates {
    names: Vec<String>,
    down: Mutex<Vec<Option<String>>>,
}

impl PortStates {
    pub(super) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let names: Vec<String> = names.into_iter().collect();
        let down = names.iter().map(|_| Some("it was not looked at yet".to_owned())).collect();
        Self { names, down: Mutex::new(down) }
    }

    fn down(&self) -> MutexGuard<'_, Vec<Option<String>>> {
        self.down.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A sentence about the first port that is down.
    pub(super) fn obstacle(&self) -> Option<String> {
        let down = self.down();
        let first =
            self.names.iter().zip(&*down).find_map(|(name, why)| Some((name, why.as_ref()?)));
        first.map(|(name, why)| format!("port {name} is down: {why}"))
    }

    /// Logs and keeps a port's state, if it is another one than before.
    fn set(&self, number: usize, why: Option<String>, is_first: bool) {
        let mut down = self.down();
        let name = &self.names[number];
        if down[number] == why && !is_first {
            return;
        }
        // An interface that is there again, and not up yet: the port is down as before.
        let is_known = down[number].is_some() && why.as_deref() == Some(LINK_DOWN) && !is_first;
        match &why {
            Some(_) if is_known => {}
            Some(why) => warn!("port {name} is down: {why}"),
            None => info!("port {name} is up"),
        }
        down[number] = why;
    }
}

/// The state of a port.
enum State {
    /// It is on this interface.
    Open(Identity),
    /// It has no queues, for this reason.
    Closed(String),
    /// It is not on an interface that the keeper follows.
    Fixed,
}

/// What a keeper uses.
pub(super) struct Parts<'a, 'p> {
    pub(super) config: &'a RouteConfig,
    pub(super) pool: &'p Pool,
    pub(super) control: &'a Control,
    pub(super) renewer: Renewer<'p>,
    pub(super) pipeline: PipelineHandle,
    pub(super) fast: Option<Arc<FastPath>>,
    pub(super) xdp: Arc<XdpPorts>,
    pub(super) states: Arc<PortStates>,
}

pub(super) struct Keeper<'a, 'p> {
    parts: Parts<'a, 'p>,
    ports: Vec<State>,
    /// Ports of which it was said that they lose frames.
    losing: Vec<bool>,
}

impl<'a, 'p> Keeper<'a, 'p> {
    /// One for ports that were opened on these interfaces.
    pub(super) fn new(parts: Parts<'a, 'p>, interfaces: &[u32]) -> Self {
        let state = |(config, &index): (&PortConfig, &u32)| match device(config) {
            None => State::Fixed,
            Some(_) => match Identity::at(index) {
                Ok(Some(identity)) => State::Open(identity),
                _ => State::Closed(REMOVED.to_owned()),
            },
        };
        let ports: Vec<_> = parts.config.ports.iter().zip(interfaces).map(state).collect();
        let losing = parts.config.ports.iter().map(|port| !has_xdp_sockets(port)).collect();
        Self { parts, ports, losing }
    }

    /// Runs until the other end of the channel is gone.
    pub(super) fn run(mut self, wakes: &Receiver<()>, is_stopped: impl Fn() -> bool) {
        let mut is_first = true;
        loop {
            let is_changed = self.look();
            // After a change the control thread makes new paths first.
            if !is_changed {
                self.report(is_first);
                self.report_losses();
                is_first = false;
            }
            let longest = if is_changed { SETTLE } else { TICK };
            match wakes.recv_timeout(longest) {
                Err(RecvTimeoutError::Disconnected) => return,
                Ok(()) => thread::sleep(SETTLE),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if is_stopped() {
                return;
            }
        }
    }

    /// Compares all ports with their interfaces. Returns whether one was closed or opened.
    fn look(&mut self) -> bool {
        let mut is_changed = false;
        for number in 0..self.ports.len() {
            let config = &self.parts.config.ports[number];
            let Some(name) = device(config) else { continue };
            if let State::Open(known) = &self.ports[number] {
                // An error of the system is no sign that the interface is gone.
                let Ok(now) = Identity::at(known.index) else { continue };
                let Some(why) = difference(config, known, now.as_ref()) else {
                    self.follow(number, now);
                    continue;
                };
                self.close(number, why);
                is_changed = true;
            }
            if let State::Closed(why) = &self.ports[number]
                && let Ok(identity) = Identity::named(name)
            {
                let why = why.clone();
                is_changed |= self.open(number, identity, &why);
            }
        }
        is_changed
    }

    /// The port stays on its interface, which may have another name or MTU now.
    fn follow(&mut self, number: usize, now: Option<Identity>) {
        let (State::Open(known), Some(now)) = (&mut self.ports[number], now) else { return };
        let port = &self.parts.config.ports[number].port;
        if known.name != now.name {
            info!("port {port}: its interface is called {} now; the port stays on it", now.name);
        }
        if known.mtu != now.mtu && !now.fits(self.parts.pool) {
            warn!(
                "port {port}: its MTU is {} now: packets that are longer than a slot are lost; \
                 make the MTU smaller, or set slot-bytes and start the router again",
                now.mtu
            );
        }
        *known = now;
    }

    fn close(&mut self, number: usize, why: String) {
        let config = &self.parts.config.ports[number];
        self.parts.control.set_port(number as u16, link(config, 0, [0; 6], 0), Vec::new());
        self.parts.xdp.set(number, None);
        if !self.parts.renewer.close(number, CLOSING) {
            warn!("port {}: a thread of the router has not closed it so far", config.port);
        }
        self.ports[number] = State::Closed(why);
    }

    /// Returns whether it is open now.
    fn open(&mut self, number: usize, identity: Identity, closed: &str) -> bool {
        let Parts { config, pool, control, renewer, fast, xdp, .. } = &self.parts;
        let config = &config.ports[number];
        match ports::open_one(config, number, pool, xdp, fast.as_ref()) {
            Ok((port, handle)) => {
                xdp.set(number, handle);
                let link = PortLink::from(&port);
                let fixed = config.messages(&link);
                renewer.open(number, port.queues);
                control.set_port(number as u16, link, fixed);
                info!(
                    "port {}: opened anew on interface {}: {closed}",
                    config.port, identity.index
                );
                self.ports[number] = State::Open(identity);
                true
            }
            Err(error) => {
                self.ports[number] = State::Closed(format!("it cannot be opened anew: {error}"));
                false
            }
        }
    }

    /// Reports the first frame that a port with XDP sockets loses.
    fn report_losses(&mut self) {
        if self.losing.iter().all(|is_said| *is_said) {
            return;
        }
        let counted = self.parts.pipeline.counters().ports;
        for (port, is_said) in counted.iter().zip(&mut self.losing) {
            if port.lost_in > 0 && !std::mem::replace(is_said, true) {
                warn!(
                    "port {}: frames are lost before they come here, {} so far: they are longer than a slot (merged by \
                     GRO, or not cut by a virtual neighbour with TSO), or come faster than they are taken; \
                     fibula_router_port_lost_total counts them",
                    port.name, port.lost_in
                );
            }
        }
    }

    /// Reports the changes of the ports' states.
    fn report(&self, is_first: bool) {
        let up = self.parts.control.figures().ports;
        for (number, state) in self.ports.iter().enumerate() {
            let why = match state {
                State::Closed(why) => Some(why.clone()),
                _ if up.get(number) == Some(&true) => None,
                _ => Some(LINK_DOWN.to_owned()),
            };
            self.parts.states.set(number, why, is_first);
        }
    }
}

fn has_xdp_sockets(config: &PortConfig) -> bool {
    matches!(config.port, PortKind::AfXdp(_) | PortKind::Xdp(_))
}

const REMOVED: &str =
    "its interface was removed; the port is opened anew when there is one of its name";

/// The kernel says that the link is down, or has no carrier.
const LINK_DOWN: &str = "its next hops are not used";

/// The interface of a port that the keeper follows. Devices of DPDK are opened once.
fn device(config: &PortConfig) -> Option<&str> {
    match &config.port {
        PortKind::AfPacket(name) | PortKind::AfXdp(name) | PortKind::Xdp(name) => Some(name),
        _ => None,
    }
}

/// Why the port must be opened anew, if it must.
fn difference(config: &PortConfig, known: &Identity, now: Option<&Identity>) -> Option<String> {
    let Some(now) = now else { return Some(REMOVED.to_owned()) };
    if matches!(config.port, PortKind::AfPacket(_)) {
        // The kernel itself compares MAC addresses, and has one stream of packets for all queues.
        return None;
    }
    if known.mac != now.mac {
        return Some("its MAC address has changed".to_owned());
    }
    (known.queues != now.queues).then(|| "its number of queues has changed".to_owned())
}

fn link(config: &PortConfig, interface: u32, mac: [u8; 6], mtu: u32) -> PortLink {
    PortLink { name: config.port.to_string(), interface, mac, mtu }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_name_the_first_port_that_is_down() {
        let states = PortStates::new(["afxdp:a", "afxdp:b"].map(str::to_owned));
        assert!(states.obstacle().is_some());
        states.set(0, None, true);
        states.set(1, Some("x".to_owned()), true);
        assert_eq!(states.obstacle().as_deref(), Some("port afxdp:b is down: x"));
        states.set(1, None, false);
        assert_eq!(states.obstacle(), None);
    }

    #[test]
    fn a_port_is_opened_anew_for_what_it_depends_on() {
        let known =
            Identity { index: 7, name: "e".to_owned(), mac: [2; 6], mtu: 1500, queues: (1, 1) };
        let changed: [(&str, Identity); 4] = [
            ("", Identity { mtu: 900, name: "f".to_owned(), ..known.clone() }),
            ("MAC", Identity { mac: [4; 6], ..known.clone() }),
            ("queues", Identity { queues: (2, 2), ..known.clone() }),
            ("", known.clone()),
        ];
        for (what, now) in changed {
            for (port, is_xdp) in [("afxdp:e", true), ("xdp:e", true), ("afpacket:e", false)] {
                let config: PortConfig = port.parse().unwrap();
                let why = difference(&config, &known, Some(&now)).unwrap_or_default();
                assert_eq!(why.contains(what) && !why.is_empty(), is_xdp && !what.is_empty());
                let why = difference(&config, &known, None).unwrap_or_default();
                assert!(why.contains("removed"), "{why}");
            }
        }
    }
}
