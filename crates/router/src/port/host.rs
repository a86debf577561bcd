//! The way into the kernel for packets of ports that pass by it (AF_XDP): those of routes over an interface that is no
//! port.
//!
//! ```text
//!   Outcome::host ──► an Ethernet header for the device ──► TAP device fibula0 ──► the kernel routes, filters, forwards
//! ```
//!
//! The kernel sees them as received by the device. It forwards them by its own main table if forwarding is on, takes
//! one from their TTL, and sends errors about them. The device has no address, and nothing that the kernel sends by it
//! is read. It ends with the process, however that ends.
//!
//! There is no loop: the router receives nothing that the kernel or another program sends by a port, and no route of
//! the kernel leads to the device.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use fibula_packet::{Frame, LinkType, Network, ether_type};

use super::system::{Interface, NEEDS_ADMIN, explain};
use super::tap::{Half, TapTransmit, attach};
use super::{Queue, Receive, Transmit};
use crate::{Packet, Pool};

/// An opened device. It stays until this and all its queues are dropped.
pub struct Host {
    half: Half,
}

/// Creates a device, in the network namespace of the calling thread.
///
/// # Errors
/// If the system has no `/dev/net/tun`, or a right is missing (CAP_NET_ADMIN).
pub fn open() -> io::Result<Host> {
    let (file, name) =
        attach("fibula%d", libc::IFF_TAP | libc::IFF_NO_PI, false).map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => NEEDS_ADMIN,
                _ => "the kernel has no TUN/TAP driver here (/dev/net/tun)",
            };
            explain("a TAP device for the kernel's packets", hint, error)
        })?;
    let interface = Arc::new(Interface::find("tap", &name)?);
    // No link-local address, so that the kernel sends nothing by it. There is no such setting without IPv6.
    let _ = fs::write(setting(6, &name, "addr_gen_mode"), "1");
    interface.keep_mac()?;
    interface.set_up()?;
    let host = Host { half: Half::new(interface, file) };
    host.accept_all_sources();
    Ok(host)
}

fn setting(family: u8, interface: &str, name: &str) -> String {
    format!("/proc/sys/net/ipv{family}/conf/{interface}/{name}")
}

impl Host {
    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.half.interface.name
    }

    /// Queues that pass packets to the kernel, for [`Attached::host`](crate::pipeline::Attached::host). They receive
    /// nothing. There is one for each port.
    pub fn queue<'p>(&self) -> Queue<'p> {
        let half = TapTransmit(self.half.clone());
        let transmit = HostTransmit { half, mac: self.half.interface.mac, lost: 0, is_used: false };
        Queue { receive: Box::new(Nothing), transmit: Box::new(transmit) }
    }

    /// The reason why the kernel drops IPv4 packets of the device, and what to do about it.
    pub fn obstacle(&self) -> Option<String> {
        let read = |interface| {
            let path = setting(4, interface, "rp_filter");
            fs::read_to_string(path).unwrap_or_default().trim().parse::<u8>().unwrap_or(0)
        };
        // The kernel takes the greater of both.
        let name = [self.name(), "all"].into_iter().find(|name| read(name) > 0)?;
        Some(format!(
            "the kernel drops IPv4 packets of routes over interfaces that are not ports, since the senders' routes do not \
             lead to {}: `sysctl net.ipv4.conf.{name}.rp_filter=0`",
            self.name()
        ))
    }

    fn accept_all_sources(&self) {
        accept_all_sources(self.name());
    }
}

/// No route leads to the device, so no source would be one that is expected there. If it cannot be written, See
/// [`Host::obstacle`].
fn accept_all_sources(name: &str) {
    let _ = fs::write(setting(4, name, "rp_filter"), "0");
}

/// Packets that the kernel sends by the device; they are not used.
struct Nothing;

impl<'p> Receive<'p> for Nothing {
    fn receive(&mut self, _: &'p Pool, _: &mut Vec<Packet<'p>>, _: usize) -> io::Result<usize> {
        Ok(0)
    }

    fn wait(&mut self, _: Duration) -> io::Result<()> {
        Ok(())
    }
}

struct HostTransmit {
    half: TapTransmit,
    mac: [u8; 6],
    lost: u64,
    is_used: bool,
}

impl HostTransmit {
    /// Gives a packet a link header to the device, without tags. False if there is no IP packet in the frame.
    fn relink(&self, packet: &mut Packet<'_>) -> bool {
        let frame = Frame::parse(LinkType::Ethernet, packet.bytes());
        let (Some(at), Some((_, from)), Some(network)) =
            (frame.network_at(), frame.macs(), frame.network())
        else {
            return false;
        };
        let ether_type = match network {
            Network::Ipv4 => ether_type::IPV4,
            Network::Ipv6 => ether_type::IPV6,
        };
        packet.grow_front(14 - at as isize);
        let header = &mut packet.bytes_mut()[..14];
        header[..6].copy_from_slice(&self.mac);
        header[6..12].copy_from_slice(&from);
        header[12..].copy_from_slice(&ether_type.to_be_bytes());
        true
    }
}

impl<'p> Transmit<'p> for HostTransmit {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        if !std::mem::replace(&mut self.is_used, true) {
            // Again: systemd gives each new device the filter that its settings name, a moment after it appeared.
            accept_all_sources(&self.half.0.interface.name);
        }
        let before = burst.len();
        pool.give(burst.extract_if(.., |packet| !self.relink(packet)));
        let others = before - burst.len();
        self.lost += others as u64;
        Ok(others + self.half.transmit(pool, burst)?)
    }

    fn flush(&mut self, pool: &'p Pool) -> io::Result<()> {
        self.half.flush(pool)
    }

    fn lost(&self) -> u64 {
        self.lost + self.half.lost()
    }
}
