//! Opens the ports of a router.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fibula_router::control::{Control, ControlEvent, ControlOptions, PortLink};
use fibula_router::pipeline::{Attached, Cores, ThreadLayout};
use fibula_router::port::afxdp::{AfXdp, AfXdpOptions, Mode};
use fibula_router::port::host::{self, Host};
use fibula_router::port::offloads::Offloads;
use fibula_router::port::xdp::FastPath;
use fibula_router::port::{Port, Queue, afpacket, afxdp, memory, pcap, tap};
use fibula_router::{PipelineOptions, Pool};
use tracing::{info, warn};

use super::dpdk;
use super::keeper::Waker;
use crate::DaemonError;
use crate::config::{
    Offloading, PipelineConfig, PortConfig, PortKind, RouteConfig, Threads, interface_of,
};

/// Opens the ports, in order.
pub(super) fn open<'p>(
    configs: &[PortConfig],
    pool: &'p Pool,
    fast: Option<&Arc<FastPath>>,
    offloads: Offloading,
) -> Result<(Vec<Port<'p>>, XdpPorts), DaemonError> {
    let xdp = XdpPorts::new(configs, offloads);
    let mut ports = Vec::new();
    for (number, config) in configs.iter().enumerate() {
        let failed = |error| DaemonError::Port { port: config.port.to_string(), error };
        let (port, handle) = open_one(config, number, pool, &xdp, fast).map_err(failed)?;
        xdp.set(number, handle);
        ports.push(port);
    }
    Ok((ports, xdp))
}

/// Opens the port of that number, which has a handle if it has XDP sockets.
pub(super) fn open_one<'p>(
    config: &PortConfig,
    number: usize,
    pool: &'p Pool,
    xdp: &XdpPorts,
    fast: Option<&Arc<FastPath>>,
) -> io::Result<(Port<'p>, Option<XdpPort>)> {
    let queues = config.queues.unwrap_or(1);
    let mut handle = None;
    let mut port = match &config.port {
        PortKind::Memory => {
            let (name, mac) = (number.to_string(), config.mac(number));
            let mut port = memory::random(&name, pool, mac, number as u64 + 1);
            port.mtu = config.mtu().min(port.mtu);
            port
        }
        PortKind::Pcap { input, output } => {
            let pace = if config.times { pcap::Pace::Times } else { pcap::Pace::Full };
            let options = pcap::PcapOptions {
                mac: config.mac(number),
                mtu: config.mtu(),
                input: input.clone(),
                pace,
                output: output.clone(),
            };
            pcap::open(&number.to_string(), &options)?
        }
        PortKind::AfPacket(name) => {
            let options = afpacket::AfPacketOptions { queues, ..Default::default() };
            afpacket::open(name, pool, &options)?
        }
        PortKind::AfXdp(name) => {
            let offloads = xdp.offloads("afxdp", name)?;
            let (port, attached) = afxdp::open(name, pool, &xdp.options())?;
            handle = Some(XdpPort::new(&port, attached, offloads));
            port
        }
        PortKind::Xdp(name) => {
            let fast = fast.map(|fast| (fast, number as u16));
            let fast = fast.expect("it is opened where there are xdp ports");
            let offloads = xdp.offloads("xdp", name)?;
            let (port, attached) = afxdp::open_fast(name, pool, &xdp.options(), fast)?;
            handle = Some(XdpPort::new(&port, attached, offloads));
            port
        }
        PortKind::Tap(name) => {
            let options = tap::TapOptions { queues, ..Default::default() };
            tap::open(name, pool, &options)?
        }
        PortKind::Dpdk(device) => dpdk::open(device, number, config, pool)?,
    };
    port.interface = config.interface(number, port.interface);
    Ok((port, handle))
}

/// A port with XDP sockets.
pub(super) struct XdpPort {
    handle: AfXdp,
    /// They are as before once the port is closed.
    _offloads: Offloads,
}

impl XdpPort {
    /// Warns of frames that the port would lose.
    fn new(port: &Port<'_>, handle: AfXdp, offloads: Offloads) -> Self {
        if handle.mode() == Mode::Generic {
            let on: Vec<_> = offloads.on().iter().map(|offload| offload.name()).collect();
            let own = match &on[..] {
                [] => String::new(),
                on => format!("{} is on here (--offloads off turns it off); ", on.join(", ")),
            };
            warn!(
                "{}: its XDP program runs in generic mode, which loses frames that are longer than a slot: merged ones \
                 (GRO) and those that a virtual neighbour did not cut (TSO), so that TCP stops: {own}at the other end \
                 of a virtual link use `ethtool -K PEER tso off gso off`",
                port.name
            );
        }
        Self { handle, _offloads: offloads }
    }
}

/// The handles of ports with XDP sockets, and the addresses of this machine, which their programs know.
pub(super) struct XdpPorts {
    sockets: u32,
    offloading: Offloading,
    known: Mutex<Known>,
}

struct Known {
    /// By the number of the port.
    handles: Vec<Option<XdpPort>>,
    own: Vec<IpAddr>,
}

impl XdpPorts {
    fn new(configs: &[PortConfig], offloading: Offloading) -> Self {
        let has_sockets =
            |config: &&PortConfig| matches!(config.port, PortKind::AfXdp(_) | PortKind::Xdp(_));
        let sockets = configs.iter().filter(has_sockets).count() as u32;
        let handles = configs.iter().map(|_| None).collect();
        Self { sockets, offloading, known: Mutex::new(Known { handles, own: Vec::new() }) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The options of a port that is opened now.
    pub(super) fn options(&self) -> AfXdpOptions {
        AfXdpOptions { ports: self.sockets, local: self.known().own.clone(), ..Default::default() }
    }

    /// The offloads of an interface on which a port will be opened, turned off if this is wanted.
    fn offloads(&self, kind: &str, name: &str) -> io::Result<Offloads> {
        let mut offloads = Offloads::find(kind, name)?;
        if self.offloading == Offloading::Off {
            offloads.turn_off()?;
        }
        Ok(offloads)
    }

    /// The port has this handle now.
    pub(super) fn set(&self, number: usize, handle: Option<XdpPort>) {
        let mut known = self.known();
        if let Some(handle) = &handle {
            tell(&handle.handle, &known.own);
        }
        let old = std::mem::replace(&mut known.handles[number], handle);
        drop(known);
        drop(old);
    }

    /// Closes the handles of all ports. Others may have this value until the process ends.
    pub(super) fn close(&self) {
        let ports: Vec<_> = self.known().handles.iter_mut().map(Option::take).collect();
        drop(ports);
    }

    /// The machine has these addresses now.
    fn set_own(&self, addresses: &[IpAddr]) {
        let mut known = self.known();
        known.own = addresses.to_vec();
        known.handles.iter().flatten().for_each(|port| tell(&port.handle, addresses));
    }
}

fn tell(handle: &AfXdp, addresses: &[IpAddr]) {
    if let Err(error) = handle.set_local(addresses) {
        warn!("the machine's own addresses are not known to a port: {error}");
    }
}

/// Whether packets of a port that are for the kernel must be passed to it. It does not see packets of XDP sockets. It
/// forwards by its main table: packets of another VRF must not come there.
fn has_host(config: &RouteConfig, port: &PortConfig) -> bool {
    matches!(port.port, PortKind::AfXdp(_) | PortKind::Xdp(_))
        && !config.table_of(port).is_some_and(|table| table.contains('/'))
}

/// The ports, each with the receiver of its packets for this machine.
pub(super) fn attach<'p>(
    config: &RouteConfig,
    ports: Vec<Port<'p>>,
) -> Result<Vec<Attached<'p>>, DaemonError> {
    let host = host(config);
    let attach = |(port, of): (_, &PortConfig)| {
        let host = match &of.port {
            PortKind::Dpdk(device) => to_kernel(device)?,
            _ => host.as_ref().filter(|_| has_host(config, of)).map(Host::queue),
        };
        Ok(Attached { port, host })
    };
    ports.into_iter().zip(&config.ports).map(attach).collect()
}

/// The way into the kernel, if a port needs one. Without it the router only forwards between its ports.
fn host(config: &RouteConfig) -> Option<Host> {
    config.ports.iter().find(|port| has_host(config, port))?;
    match host::open() {
        Ok(host) => {
            info!("{}: receives packets of routes over interfaces that are not ports", host.name());
            if let Some(obstacle) = host.obstacle() {
                warn!("{obstacle}");
            }
            Some(host)
        }
        Err(error) => {
            warn!("packets of routes over interfaces that are not ports are dropped: {error}");
            None
        }
    }
}

/// Passes a DPDK device's packets for this machine to its kernel, which does not see them otherwise.
fn to_kernel<'p>(device: &str) -> Result<Option<Queue<'p>>, DaemonError> {
    if !device.starts_with("net_af_xdp") {
        return Ok(None);
    }
    let queue = afxdp::to_kernel(interface_of(device).unwrap_or_default());
    queue.map(Some).map_err(|error| DaemonError::Port { port: format!("dpdk:{device}"), error })
}

/// Starts the control of the ports.
pub(super) fn control(
    config: &RouteConfig,
    ports: &[Port<'_>],
    xdp: Arc<XdpPorts>,
    waker: Waker,
) -> Result<Control, DaemonError> {
    let links: Vec<PortLink> = ports.iter().map(PortLink::from).collect();
    let fixed =
        config.ports.iter().zip(&links).flat_map(|(port, link)| port.messages(link)).collect();
    let kernel = config.ports.iter().any(|port| port.port.is_of_system());
    let options = ControlOptions { kernel, fixed, ..ControlOptions::default() };
    let events = move |event: ControlEvent| match &event {
        ControlEvent::Own(addresses) => xdp.set_own(addresses),
        // The keeper looks what it is.
        ControlEvent::Port { .. } | ControlEvent::Interfaces => waker.wake(),
        _ => warn!("{event}"),
    };
    Ok(Control::start(links, options, events)?)
}

/// The options of the pipeline.
pub(super) fn options(config: &RouteConfig) -> PipelineOptions {
    let PipelineConfig { shape, burst, cores, .. } = &config.pipeline;
    PipelineOptions {
        shape: match *shape {
            Threads::Fused(threads) => ThreadLayout::Fused { threads },
            Threads::Stages(receive, lookup, transmit) => {
                ThreadLayout::Staged { receive, lookup, transmit }
            }
        },
        burst: *burst,
        cores: cores.clone().map_or(Cores::Auto, Cores::List),
        ..PipelineOptions::default()
    }
}
