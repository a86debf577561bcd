//! XDP sockets (AF_XDP): packets pass by the kernel's network stack.
//!
//! ```text
//!   interface ──► XDP program ──► not for this machine ──► receive ring ──► Receive
//!                     │                                    fill ring ◄── free slots of the pool
//!                     └──► all else ──► the kernel         transmit ring ◄── Transmit
//!                                                          completion ring ──► slots that were sent
//! ```
//!
//! The pool's area is the sockets' memory (UMEM): a received packet lies in its slot when it is seen. Each queue of the
//! interface has a socket. The program hands over unicast IPv4 and IPv6 packets to the interface's MAC address, with or
//! without a VLAN tag, unless the destination is an address of this machine ([`AfXdp::set_local`]); ARP, neighbour
//! discovery, multicast and packets for the machine stay with the kernel. It is attached as long as the port or its
//! handle lives, and no longer than the process.
//!
//! The program cannot see a VLAN tag that the device has removed (`ethtool -K IF rxvlan off`; on a veth pair
//! `ethtool -K PEER txvlan off`). In generic mode, packets that are longer than a slot are lost: large packets of a TCP
//! sender at the other end of a veth pair (`ethtool -K PEER tso off gso off`), or that were merged
//! (`ethtool -K IF gro off`).

mod asm;
mod generate;
mod inject;
mod program;
mod receive;
mod ring;
mod socket;
mod transmit;

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub use self::generate::Generator;
pub use self::inject::to_kernel;
use self::program::Program;
use self::receive::XdpReceive;
use self::socket::{Socket, Wanted};
use self::transmit::XdpTransmit;
use super::system::{Interface, explain, is_full};
use super::xdp::FastPath;
use super::{Port, Queue, bpf};
use crate::Pool;

/// The place where the program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In the driver if possible, else in the kernel.
    #[default]
    Auto,
    /// In the driver, before the kernel makes a packet of the frame.
    Native,
    /// In the kernel, on any interface. This is slower.
    Generic,
}

/// The way received packets get into the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// The device writes them if it can, else the kernel.
    #[default]
    Auto,
    /// The kernel copies them.
    Copy,
    /// The device writes them.
    ZeroCopy,
}

/// Options of an AF_XDP port.
#[derive(Clone, Debug)]
pub struct AfXdpOptions {
    /// The place where the program runs.
    pub mode: Mode,
    /// The way received packets get into the pool.
    pub copying: Copying,
    /// Entries of each of a queue's four rings, a power of two. The fill ring's slots are taken from the pool at once.
    /// Without it 8,192 of a virtual interface and 2,048 of others, or as many that the fill rings of all ports have
    /// half of the pool's slots.
    pub ring: Option<u32>,
    /// Ports of this kind that share the pool.
    pub ports: u32,
    /// The machine's own addresses: see [`AfXdp::set_local`].
    pub local: Vec<IpAddr>,
}

impl Default for AfXdpOptions {
    fn default() -> Self {
        Self { mode: Mode::Auto, copying: Copying::Auto, ring: None, ports: 1, local: Vec::new() }
    }
}

/// The handle of an open port: it controls the program, and reports which options are in effect.
#[derive(Clone)]
pub struct AfXdp {
    attached: Arc<Attached>,
    mode: Mode,
    is_zero_copy: bool,
}

/// A program on an interface; the link is open as long as it is attached.
struct Attached {
    program: Program,
    fast: Option<Arc<FastPath>>,
    _link: OwnedFd,
}

impl AfXdp {
    /// Packets to these addresses, all that the machine has, stay with the kernel; replaces the addresses set before.
    ///
    /// # Errors
    /// If there are more than 16,384 of a family.
    pub fn set_local(&self, addresses: &[IpAddr]) -> io::Result<()> {
        if let Some(fast) = &self.attached.fast {
            fast.set_own(addresses);
        }
        self.attached.program.set_local(addresses)
    }

    /// [`Mode::Native`] or [`Mode::Generic`].
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether the device itself writes received packets into the pool, in all queues.
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }
}

/// Opens all queues of the interface in the network namespace that the thread is in.
///
/// # Errors
/// If there is no such interface, its MTU is too large for the pool's slots, these are not of 2048 or 4096 bytes, the
/// driver does not support the options, another XDP program is attached, or a right is missing (CAP_NET_ADMIN,
/// CAP_NET_RAW and CAP_BPF). The error contains the kernel verifier's message.
pub fn open<'p>(
    name: &str,
    pool: &'p Pool,
    options: &AfXdpOptions,
) -> io::Result<(Port<'p>, AfXdp)> {
    open_as(Interface::find("afxdp", name)?, pool, options, None)
}

/// As [`open`], as the router's port of that number, with a fast path: packets that it can forward by itself never come
/// to the sockets.
///
/// # Errors
/// As [`open`].
pub fn open_fast<'p>(
    name: &str,
    pool: &'p Pool,
    options: &AfXdpOptions,
    (fast, number): (&Arc<FastPath>, u16),
) -> io::Result<(Port<'p>, AfXdp)> {
    let interface = Interface::find("xdp", name)?;
    fast.set_port(number, interface.index)
        .map_err(|error| explain(&interface.port, hint(&error), error))?;
    open_as(interface, pool, options, Some((fast, number)))
}

fn open_as<'p>(
    interface: Interface,
    pool: &'p Pool,
    options: &AfXdpOptions,
    fast: Option<(&Arc<FastPath>, u16)>,
) -> io::Result<(Port<'p>, AfXdp)> {
    let (name, interface) = (interface.name.clone(), Arc::new(interface));
    check(&interface, pool, options)?;
    let (queues, transmit_queues) = interface.channels();
    if queues != transmit_queues {
        let what = format!(
            "it has {queues} receive and {transmit_queues} transmit queues: make them equal with `ethtool -L {name}`"
        );
        return Err(interface.error(io::ErrorKind::Unsupported, &what));
    }
    let is_virtual = matches!(interface.driver().as_str(), "veth" | "tun");
    // What the kernel runs as it likes may be a virtual interface's, too.
    let may_be_partial = is_virtual || options.mode != Mode::Native;
    let of_port = fast.map(|(fast, number)| (&**fast, number, may_be_partial));
    let program = Program::load(interface.mac, queues, of_port)
        .map_err(|error| explain(&interface.port, hint(&error), error))?;
    program.set_local(&options.local)?;
    let (link, mode) = attach(&interface, &program, options.mode)?;
    let fast = fast.map(|(fast, _)| Arc::clone(fast));
    let attached = Arc::new(Attached { program, fast, _link: link });
    let copying = match (mode, options.copying) {
        // The kernel has copied the packet already.
        (Mode::Generic, Copying::Auto) => Copying::Copy,
        (_, copying) => copying,
    };
    // A sender's kernel leaves checksums to a device; a virtual one does not compute them.
    let is_partial = mode == Mode::Generic || is_virtual;
    let mut handle = AfXdp { attached: attached.clone(), mode, is_zero_copy: true };
    let in_all = queues.saturating_mul(options.ports);
    let ring = options.ring.unwrap_or_else(|| ring_size(is_virtual, pool.slots(), in_all));
    let queues = (0..queues)
        .map(|queue| {
            let wanted = Wanted { queue, ring, copying };
            let opened = Socket::open(&interface, &attached, &attached.program, pool, &wanted)?;
            handle.is_zero_copy &= opened.is_zero_copy;
            let socket = opened.socket;
            Ok(Queue {
                receive: Box::new(XdpReceive::new(
                    opened.fill,
                    opened.received,
                    socket.clone(),
                    pool,
                    is_partial,
                )),
                transmit: Box::new(XdpTransmit::new(opened.sent, opened.completed, socket, pool)),
            })
        })
        .collect::<io::Result<_>>()
        .map_err(|error| explain(&interface.port, hint(&error), error))?;
    let port = Port {
        name: interface.port.clone(),
        interface: interface.index,
        mac: interface.mac,
        mtu: interface.mtu,
        is_shared: false,
        queues,
    };
    Ok((port, handle))
}

fn check(interface: &Interface, pool: &Pool, options: &AfXdpOptions) -> io::Result<()> {
    if !matches!(pool.stride(), 2048 | 4096) {
        let what = format!("slots of {} bytes: XDP sockets take 2048 or 4096", pool.stride());
        return Err(interface.error(io::ErrorKind::InvalidInput, &what));
    }
    if let Some(ring) = options.ring.filter(|ring| !ring.is_power_of_two()) {
        let what = format!("rings of {ring} entries: it must be a power of two");
        return Err(interface.error(io::ErrorKind::InvalidInput, &what));
    }
    interface.check_room(pool)
}

/// Entries of a ring if no number is wanted. A kernel thread that receives for a virtual interface may have the core
/// for some milliseconds before the router runs again, so the ring must hold the packets that arrive meanwhile.
fn ring_size(is_virtual: bool, slots: usize, queues: u32) -> u32 {
    let most: u32 = if is_virtual { 8192 } else { 2048 };
    let share = slots / 2 / queues.max(1) as usize;
    let share = u32::try_from(share).unwrap_or(u32::MAX).max(64);
    most.min(1 << share.ilog2())
}

/// Attaches the program as it is wanted.
fn attach(interface: &Interface, program: &Program, wanted: Mode) -> io::Result<(OwnedFd, Mode)> {
    let attach = |flag| bpf::attach(&program.program, interface.index, flag);
    let native = || {
        attach(bpf::NATIVE).map(|link| (link, Mode::Native)).map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::EBUSY | libc::EEXIST) => ANOTHER,
                Some(libc::EPERM | libc::EACCES) => RIGHTS,
                _ => {
                    "its driver does not run this XDP program (none at all, or not with this MTU or number of queues): try generic mode"
                }
            };
            explain(&interface.port, hint, error)
        })
    };
    let generic = || {
        attach(bpf::GENERIC)
            .map(|link| (link, Mode::Generic))
            .map_err(|error| explain(&interface.port, hint(&error), error))
    };
    match wanted {
        Mode::Native => native(),
        Mode::Generic => generic(),
        Mode::Auto => native().or_else(|_| generic()),
    }
}

const ANOTHER: &str = "another XDP program is attached: `ip link show` names it, `ip link set IF xdp off` detaches one that no process holds";
const RIGHTS: &str =
    "run it as root, or give the program CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_IPC_LOCK";

/// What to do about an error.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => RIGHTS,
        Some(libc::EBUSY | libc::EEXIST) => ANOTHER,
        Some(libc::EOPNOTSUPP) => "the driver cannot do this: without zero copy it may",
        Some(libc::EINVAL) => "the kernel does not take it: is it older than 5.9?",
        Some(libc::EAFNOSUPPORT) => "the kernel has no XDP sockets (CONFIG_XDP_SOCKETS)",
        Some(libc::ENOBUFS | libc::ENOMEM) => "too little memory may be locked: raise `ulimit -l`",
        _ => "",
    }
}

/// Whether the kernel cannot do more now.
fn is_busy(error: rustix::io::Errno) -> bool {
    is_full(&error.into())
}

#[cfg(test)]
mod tests {
    use super::ring_size;

    #[test]
    fn fill_rings_have_half_of_the_slots_at_most() {
        assert_eq!(ring_size(true, 32_768, 2), 8192);
        assert_eq!(ring_size(false, 32_768, 2), 2048);
        assert_eq!(ring_size(true, 32_768, 3), 4096);
        assert_eq!(ring_size(false, 32_768, 32), 512);
        assert_eq!(ring_size(true, 1000, 1), 256);
        assert_eq!(ring_size(true, 10, 0), 64);
    }
}
