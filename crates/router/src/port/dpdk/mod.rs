//! Ports of DPDK: network cards that a process has for itself, and DPDK's virtual devices.
//!
//! ```text
//!   stride of a slot:  | mempool header, rte_mbuf | headroom | packet ...     (FRONT bytes, and what a Packet has)
//!
//!   driver ──rte_mbuf──► its slot ──► Packet ──► ... ──► Packet ──► its slot ──rte_mbuf──► driver
//!      └── takes empty slots from the pool, and gives them back: the pool is its mempool ──────┘
//! ```
//!
//! Nothing is copied. Each slot of the pool has an `rte_mbuf` in front of it, and the mempool that drivers use takes
//! slots from the pool and gives them back to it: a slot has one owner, as with every port, and packets come by any
//! port and leave by any other. So a pool for such ports is made [with room in front](crate::Pool::with_front) of
//! [`FRONT`] bytes.
//!
//! DPDK's environment (EAL) is started once in a process: by [`start`], or with [`ARGUMENTS`] by the first port. It
//! keeps no files, so several processes can run at the same time, and its own memory need not be huge pages, because
//! packets are in the pool.
//!
//! Ports are polled. An idle thread sleeps for 50 microseconds at a time.

mod environment;
mod memory;
mod queue;

use std::io;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice};

pub use self::environment::{ARGUMENTS, explain, start, started};
use self::memory::Mempool;
use self::queue::{DpdkReceive, DpdkTransmit};
use super::system::Interface;
use super::{Port, Queue};
use crate::Pool;

/// The room in front of slots that these ports need.
pub const FRONT: u32 = fibula_dpdk::FIB_FRONT;

/// Bytes in front of a packet that a driver leaves free.
const HEADROOM: usize = 128;
/// The space that the kernel keeps free in front of a packet of an XDP socket, besides.
const XDP_HEADROOM: usize = 256;
/// Ethernet and two VLAN tags.
const LINK: usize = 14 + 8;

/// How a DPDK port is opened.
#[derive(Clone, Debug)]
pub struct DpdkOptions {
    /// Queues each way. The device shares the flows among them, if it can.
    pub queues: u16,
    /// The router's MAC address there; the device's if not given.
    pub mac: Option<[u8; 6]>,
    /// The longest IP packet; the device's if not given.
    pub mtu: Option<u32>,
}

impl Default for DpdkOptions {
    fn default() -> Self {
        Self { queues: 1, mac: None, mtu: None }
    }
}

/// Devices are made and removed one at a time: DPDK's lists of them have no lock.
static DEVICES: Mutex<()> = Mutex::new(());

/// Opens the device of these arguments: `net_null0`, `net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap`,
/// `net_af_xdp0,iface=eth1`, the address of a card on the PCI bus. The part before the first comma is its name; a
/// process has it open once. A device on an interface of the system has the interface's index, MAC address and MTU. One
/// without any has the MAC address 0.
///
/// # Errors
/// If the environment cannot be started, DPDK has no such device or driver or refuses its arguments, the pool has no
/// room in front of its slots, or slots that are too short for the MTU. The error contains DPDK's message.
pub fn open<'p>(devargs: &str, pool: &'p Pool, options: &DpdkOptions) -> io::Result<Port<'p>> {
    let device = devargs.split(',').next().unwrap_or_default();
    let name = format!("dpdk:{device}");
    let invalid =
        |what: String| io::Error::new(io::ErrorKind::InvalidInput, format!("{name}: {what}"));
    if devargs.contains('\0') || device.is_empty() {
        return Err(invalid("a device has a name: net_null0, 0000:01:00.0".to_owned()));
    }
    if pool.front() != FRONT as usize {
        let what = "the pool was made for other ports: it has no room in front of its slots";
        return Err(invalid(what.to_owned()));
    }
    if options.mtu.is_some_and(|mtu| mtu > u32::from(u16::MAX)) {
        return Err(invalid("an MTU is at most 65535".to_owned()));
    }
    if pool.stride() > 1 << 16 {
        return Err(invalid("slots are longer than 65536 bytes".to_owned()));
    }
    started()?;
    let device = Device::open(devargs, &name, Mempool::of(pool)?, options)?;
    let (mut mac, mut mtu) = (options.mac.unwrap_or(device.port.mac), u32::from(device.port.mtu));
    let driver = device.driver();
    let (mut reserved, mut is_partial) = (HEADROOM, false);
    if let Some(interface) = device.interface()? {
        // A sender's kernel leaves checksums to a device; a virtual one does not compute them.
        is_partial = matches!(interface.driver().as_str(), "veth" | "tun");
        (mac, mtu) = (interface.mac, interface.mtu);
        if driver == "net_af_xdp" {
            reserved = FRONT as usize + HEADROOM + XDP_HEADROOM;
        }
    }
    let room = if reserved == HEADROOM { pool.slot_len() } else { pool.stride() } - reserved;
    if mtu as usize + LINK > room {
        return Err(invalid(format!(
            "its packets have up to {mtu} bytes (MTU), the pool's slots have room for {} with {driver}: make slots longer, or the MTU smaller",
            room.saturating_sub(LINK)
        )));
    }
    let device = Arc::new(device);
    let queues = (0..options.queues.max(1)).map(|queue| Queue {
        receive: Box::new(DpdkReceive::new(device.clone(), queue, pool, is_partial)),
        transmit: Box::new(DpdkTransmit::new(device.clone(), queue, pool)),
    });
    let queues = queues.collect();
    let interface = device.port.interface;
    Ok(Port { name, interface, mac, mtu, is_shared: false, queues })
}

/// A device. The last queue that is dropped closes it.
struct Device {
    port: fibula_dpdk::fib_port,
    /// Drivers give slots back to it until they are closed.
    mempool: Arc<Mempool>,
}

impl Device {
    fn open(
        devargs: &str,
        name: &str,
        mempool: Arc<Mempool>,
        options: &DpdkOptions,
    ) -> io::Result<Self> {
        let text = std::ffi::CString::new(devargs).map_err(io::Error::other)?;
        let (mac, mtu) = (options.mac.unwrap_or_default(), options.mtu.unwrap_or_default() as u16);
        // SAFETY: zeros are a valid value of this C struct, which is numbers.
        let mut port: fibula_dpdk::fib_port = unsafe { std::mem::zeroed() };
        let mut step = ptr::null();
        let _one = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        environment::clear_log();
        // SAFETY: the environment is started; the text ends with a zero, the other pointers are to values of this
        // function, and the mempool lives until the device is closed.
        let done = unsafe {
            fibula_dpdk::fib_port_open(
                text.as_ptr(),
                mempool.as_ptr(),
                options.queues.max(1),
                mac.as_ptr(),
                mtu,
                &mut port,
                &mut step,
            )
        };
        if done == 0 {
            return Ok(Self { port, mempool });
        }
        let step = if step.is_null() {
            "opening it".into()
        } else {
            // SAFETY: a string of the shim, which lives as long as the process.
            unsafe { std::ffi::CStr::from_ptr(step) }.to_string_lossy()
        };
        Err(explain(&format!("{name}: {step}"), done))
    }

    fn driver(&self) -> String {
        let name = self.port.driver.iter().map(|&byte| byte as u8);
        String::from_utf8_lossy(&name.take_while(|&byte| byte != 0).collect::<Vec<_>>()).into()
    }

    /// The system's interface that it is on.
    fn interface(&self) -> io::Result<Option<Interface>> {
        if self.port.interface == 0 {
            return Ok(None);
        }
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let socket = rustix::net::socket_with(AddressFamily::INET, kind, flags, None)?;
        let name = netdevice::index_to_name(&socket, self.port.interface)?;
        Interface::find("dpdk", &name).map(Some)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _one = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the device is open, and its queues, which alone receive and transmit, are gone.
        // What its queues still had may now be kept for this thread.
        unsafe {
            fibula_dpdk::fib_port_close(self.port.id);
            fibula_dpdk::fib_flush(self.mempool.as_ptr());
        }
    }
}
