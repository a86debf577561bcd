//! Opens the ports of a router.

use std::sync::Arc;

use fibula_router::control::{Control, ControlEvent, ControlOptions, PortLink};
use fibula_router::pipeline::{Attached, Cores, ThreadLayout};
use fibula_router::port::afxdp::AfXdp;
use fibula_router::port::host::{self, Host};
use fibula_router::port::xdp::FastPath;
use fibula_router::port::{Port, Queue, afpacket, afxdp, memory, pcap, tap};
use fibula_router::{PipelineOptions, Pool};
use tracing::{info, warn};

use super::dpdk;
use crate::DaemonError;
use crate::config::{PipelineConfig, PortConfig, PortKind, RouteConfig, Threads, interface_of};

/// Opens the ports, in order.
pub(super) fn open<'p>(
    configs: &[PortConfig],
    pool: &'p Pool,
    fast: Option<&Arc<FastPath>>,
) -> Result<(Vec<Port<'p>>, Vec<AfXdp>), DaemonError> {
    let (mut ports, mut xdp) = (Vec::new(), Vec::new());
    let with_sockets = configs
        .iter()
        .filter(|config| matches!(config.port, PortKind::AfXdp(_) | PortKind::Xdp(_)));
    let sockets = afxdp::AfXdpOptions { ports: with_sockets.count() as u32, ..Default::default() };
    for (number, config) in configs.iter().enumerate() {
        let failed = |error| DaemonError::Port { port: config.port.to_string(), error };
        let queues = config.queues.unwrap_or(1);
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
                pcap::open(&number.to_string(), &options).map_err(failed)?
            }
            PortKind::AfPacket(name) => {
                let options = afpacket::AfPacketOptions { queues, ..Default::default() };
                afpacket::open(name, pool, &options).map_err(failed)?
            }
            PortKind::AfXdp(name) => {
                let (port, attached) = afxdp::open(name, pool, &sockets).map_err(failed)?;
                xdp.push(attached);
                port
            }
            PortKind::Xdp(name) => {
                let fast = fast.map(|fast| (fast, number as u16));
                let fast = fast.expect("it is opened where there are xdp ports");
                let (port, attached) =
                    afxdp::open_fast(name, pool, &sockets, fast).map_err(failed)?;
                xdp.push(attached);
                port
            }
            PortKind::Tap(name) => {
                let options = tap::TapOptions { queues, ..Default::default() };
                tap::open(name, pool, &options).map_err(failed)?
            }
            PortKind::Dpdk(device) => dpdk::open(device, number, config, pool).map_err(failed)?,
        };
        port.interface = config.interface(number, port.interface);
        ports.push(port);
    }
    Ok((ports, xdp))
}

/// Whether packets of a port that are for the kernel must be passed to it. It does not see packets of XDP sockets. It
/// forwards by its main table: packets of another VRF must not come there.
fn has_host(config: &RouteConfig, port: &PortConfig) -> bool {
    let vrf = port.vrf.as_deref().or(config.router.vrf.as_deref());
    matches!(port.port, PortKind::AfXdp(_) | PortKind::Xdp(_))
        && !vrf.is_some_and(|vrf| vrf.contains('/'))
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
    xdp: Vec<AfXdp>,
) -> Result<Control, DaemonError> {
    let links: Vec<PortLink> = ports.iter().map(PortLink::from).collect();
    let fixed =
        config.ports.iter().zip(&links).flat_map(|(port, link)| port.messages(link)).collect();
    let kernel = config.ports.iter().any(|port| port.port.is_of_system());
    let options = ControlOptions { kernel, fixed, ..ControlOptions::default() };
    let events = move |event: ControlEvent| match &event {
        ControlEvent::Own(addresses) => {
            for port in &xdp {
                if let Err(error) = port.set_local(addresses) {
                    warn!("the machine's own addresses are not known to a port: {error}");
                }
            }
        }
        ControlEvent::Port { .. } => info!("{event}"),
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
