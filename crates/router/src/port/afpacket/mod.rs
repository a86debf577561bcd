//! Packet sockets (AF_PACKET): any Ethernet interface, no special driver.
//!
//! The kernel sees each received packet, too ([`Port::is_shared`]): it answers packets for the machine itself, and must
//! not forward (`net.ipv4.ip_forward=0`, `net.ipv6.conf.all.forwarding=0`), or packets are sent twice. Only frames for
//! the interface's own MAC address come; frames that the machine sends itself do not.
//!
//! A queue has a socket for each direction. Packets are read directly into their slots, many in one system call
//! (`recvmmsg`, `sendmmsg`); a mapped ring (TPACKET) would copy each of them once more. With each packet the kernel
//! reports the work that it left to a device, and this port does that work: it puts the VLAN tag back in its place,
//! completes a checksum, and cuts a packet that the kernel merged (GRO), or that a neighbour on a virtual link did not
//! cut (TSO), into packets of the original size.

mod receive;
mod segment;
mod transmit;

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use self::receive::PacketReceive;
use self::transmit::PacketTransmit;
use super::system::{self, Interface, explain};
use super::{Port, Queue};
use crate::Pool;

/// How an AF_PACKET port is opened.
#[derive(Clone, Debug)]
pub struct AfPacketOptions {
    /// Queues, among which the kernel shares the flows by a hash (PACKET_FANOUT).
    pub queues: u16,
    /// Bytes of packets that the kernel keeps for a queue, and as many that wait to be sent.
    pub buffer: usize,
}

impl Default for AfPacketOptions {
    fn default() -> Self {
        Self { queues: 1, buffer: 16 << 20 }
    }
}

/// Opens the interface in the network namespace that the thread is in.
///
/// # Errors
/// If there is no such interface, it is not an Ethernet interface, its MTU is too large for the pool's slots, or the
/// right to do so is missing (CAP_NET_RAW).
pub fn open<'p>(name: &str, pool: &'p Pool, options: &AfPacketOptions) -> io::Result<Port<'p>> {
    let interface = Arc::new(Interface::find("afpacket", name)?);
    interface.check_room(pool)?;
    let queues = options.queues.max(1);
    let mut fanout = None;
    let queues = (0..queues)
        .map(|_| {
            let incoming = incoming(&interface, options.buffer)?;
            if queues > 1 {
                fanout = Some(join(&incoming, fanout)?);
            }
            let outgoing = outgoing(&interface, options.buffer)?;
            Ok(Queue {
                receive: Box::new(PacketReceive::new(interface.clone(), incoming, pool)),
                transmit: Box::new(PacketTransmit::new(interface.clone(), outgoing)),
            })
        })
        .collect::<io::Result<_>>()
        .map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "run it as root, or give the program CAP_NET_RAW"
                }
                _ => "",
            };
            explain(&interface.port, hint, error)
        })?;
    Ok(Port {
        name: interface.port.clone(),
        interface: interface.index,
        mac: interface.mac,
        mtu: interface.mtu,
        is_shared: true,
        queues,
    })
}

/// The socket for received packets.
fn incoming(interface: &Interface, buffer: usize) -> io::Result<OwnedFd> {
    let socket = socket()?;
    for option in [libc::PACKET_IGNORE_OUTGOING, libc::PACKET_AUXDATA, libc::PACKET_VNET_HDR] {
        system::set_option(&socket, libc::SOL_PACKET, option, &1_i32)?;
    }
    only_for_us(&socket)?;
    if sockopt::set_socket_recv_buffer_size_force(&socket, buffer).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, buffer)?;
    }
    bind(&socket, interface, libc::ETH_P_ALL as u16)?;
    Ok(socket)
}

/// The socket that sends; it receives nothing.
fn outgoing(interface: &Interface, buffer: usize) -> io::Result<OwnedFd> {
    let socket = socket()?;
    system::set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32)?;
    // There is no call that forces this size.
    sockopt::set_socket_send_buffer_size(&socket, buffer)?;
    bind(&socket, interface, 0)?;
    Ok(socket)
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?)
}

fn bind(socket: &OwnedFd, interface: &Interface, protocol: u16) -> io::Result<()> {
    // SAFETY: all zero is a valid value of this C struct.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface.index as i32;
    // SAFETY: the address is of the type that the family requires, and lives until the call returns.
    let result = unsafe {
        libc::bind(
            socket.as_fd().as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes the kernel drop packets for other MAC addresses than the interface's before it copies them.
fn only_for_us(socket: &OwnedFd) -> io::Result<()> {
    let op = |code: u32, jump_false, k| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: jump_false,
        k,
    };
    let packet_type = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
    let mut program = [
        op(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, packet_type),
        op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0), // PACKET_HOST
        op(libc::BPF_RET | libc::BPF_K, 0, u32::MAX),
        op(libc::BPF_RET | libc::BPF_K, 0, 0),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    system::set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
}

/// Joins the group that shares the interface's flows, or makes one; returns its number.
fn join(socket: &OwnedFd, group: Option<u16>) -> io::Result<u16> {
    let kind = match group {
        Some(_) => libc::PACKET_FANOUT_HASH,
        None => libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_UNIQUEID,
    };
    let wanted = kind << 16 | u32::from(group.unwrap_or(0));
    system::set_option(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &wanted)?;
    let joined: u32 = option(socket, libc::PACKET_FANOUT)?;
    Ok(joined as u16)
}

/// An option of a packet socket.
fn option<T: Copy + Default>(socket: &OwnedFd, option: i32) -> io::Result<T> {
    let mut value = T::default();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most so many bytes of the value; callers use types of integers alone.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_mut(&mut value).cast(),
            &mut len,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}
