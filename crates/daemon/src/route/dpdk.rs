//! Ports of DPDK, in builds that have them.

use std::io;

use fibula_router::Pool;
use fibula_router::port::Port;

use crate::DaemonError;
use crate::config::{PortConfig, RouteConfig};
#[cfg(not(feature = "dpdk"))]
use crate::config::{Problem, RouteProblem};

#[cfg(feature = "dpdk")]
use fibula_router::port::dpdk;

/// Starts DPDK's environment if there are ports of DPDK. Returns the number of bytes that they need in front of each
/// slot.
#[cfg(feature = "dpdk")]
pub fn start(config: &RouteConfig) -> Result<u32, DaemonError> {
    if config.dpdk().next().is_none() {
        return Ok(0);
    }
    let arguments = config.pipeline.eal.as_deref().unwrap_or(dpdk::ARGUMENTS);
    dpdk::start(arguments, config.dpdk()).map_err(|error| DaemonError::Router(error.into()))?;
    Ok(dpdk::FRONT)
}

/// Opens a device.
#[cfg(feature = "dpdk")]
pub fn open<'p>(
    device: &str,
    number: usize,
    config: &PortConfig,
    pool: &'p Pool,
) -> io::Result<Port<'p>> {
    let options = dpdk::DpdkOptions {
        queues: config.queues.unwrap_or(1),
        mac: config.mac.map(|mac| mac.0),
        mtu: config.mtu,
    };
    let mut port = dpdk::open(device, pool, &options)?;
    if port.mac == [0; 6] {
        port.mac = config.mac(number);
    }
    Ok(port)
}

/// Ports of DPDK cannot be had.
#[cfg(not(feature = "dpdk"))]
pub fn start(config: &RouteConfig) -> Result<u32, DaemonError> {
    match config.dpdk().next() {
        None => Ok(0),
        Some(device) => Err(Problem::Route(RouteProblem::WithoutDpdk(device.to_owned())).into()),
    }
}

#[cfg(not(feature = "dpdk"))]
pub fn open<'p>(_: &str, _: usize, _: &PortConfig, _: &'p Pool) -> io::Result<Port<'p>> {
    Err(io::ErrorKind::Unsupported.into())
}
