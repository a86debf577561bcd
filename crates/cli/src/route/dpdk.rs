//! Ports of DPDK, in builds that have them.

use std::io;

use fibula_router::Pool;
use fibula_router::port::Port;

use super::config::Config;
use super::port::PortConfig;
use crate::failure::Failure;

#[cfg(feature = "dpdk")]
use fibula_router::port::dpdk;

/// Starts DPDK's environment if there are ports of DPDK, and says how many bytes they need in front of each slot.
#[cfg(feature = "dpdk")]
pub fn start(config: &Config) -> Result<u32, Failure> {
    if config.dpdk().next().is_none() {
        return Ok(0);
    }
    let arguments = config.pipeline.eal.as_deref().unwrap_or(dpdk::ARGUMENTS);
    dpdk::start(arguments, config.dpdk()).map_err(Failure::new)?;
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
pub fn start(config: &Config) -> Result<u32, Failure> {
    match config.dpdk().next() {
        None => Ok(0),
        Some(device) => Err(Failure::new(format_args!(
            "--port dpdk:{device}: this fibula was built without DPDK"
        ))
        .hint("install libdpdk-dev, pkg-config and libclang-dev, and build it with `cargo build --release -p fibula-cli --features dpdk`")),
    }
}

#[cfg(not(feature = "dpdk"))]
pub fn open<'p>(_: &str, _: usize, _: &PortConfig, _: &'p Pool) -> io::Result<Port<'p>> {
    Err(io::ErrorKind::Unsupported.into())
}
