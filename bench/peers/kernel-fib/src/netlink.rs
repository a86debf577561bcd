//! A netlink socket, and the messages that it carries.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt,
};

/// NETLINK_ROUTE.
pub const ROUTE: u32 = 0;
/// NETLINK_FIB_LOOKUP.
pub const FIB_LOOKUP: u32 = 10;

/// Flags of a message: NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE.
pub const REQUEST: u16 = 1;
pub const ACK: u16 = 4;
pub const EXCL: u16 = 0x200;
pub const CREATE: u16 = 0x400;

/// Types of messages: NLMSG_ERROR, RTM_NEWROUTE, RTM_GETROUTE.
pub const ERROR: u16 = 2;
pub const NEW_ROUTE: u16 = 24;
pub const GET_ROUTE: u16 = 26;

/// Bytes of `nlmsghdr` and of `rtmsg`.
pub const HEADER: usize = 16;
pub const ROUTE_MESSAGE: usize = 12;

/// Attributes: RTA_DST, RTA_OIF, RTA_PRIORITY.
pub const DST: u16 = 1;
pub const OIF: u16 = 4;
pub const PRIORITY: u16 = 6;

/// The answer to a question for a route.
pub enum Answer {
    /// A route; its metric.
    Route { metric: Option<u32> },
    /// There is none.
    None,
}

/// A socket.
pub struct Socket(OwnedFd);

impl Socket {
    pub fn open(protocol: u32) -> io::Result<Self> {
        let protocol = std::num::NonZeroU32::new(protocol).map(Protocol::from_raw);
        let flags = SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        sockopt::set_socket_recv_buffer_size_force(&socket, 8 << 20)?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self(socket))
    }

    /// The number of an interface in this network namespace.
    pub fn device(&self, name: &str) -> io::Result<u32> {
        Ok(rustix::net::netdevice::name_to_index(&self.0, name)?)
    }

    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let sent = rustix::net::send(&self.0, bytes, SendFlags::empty())?;
        if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Reads one message.
    pub fn receive<'a>(&self, into: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let (_, len) = rustix::net::recv(&self.0, &mut *into, RecvFlags::TRUNC)?;
        into.get(..len).ok_or_else(|| io::Error::other(format!("a message of {len} bytes")))
    }

    /// Reads the answer to a question for a route.
    pub fn answer(&self) -> io::Result<Answer> {
        let mut room = [0; 1024];
        let message = self.receive(&mut room)?;
        match error(message)? {
            Some(Errno::NETUNREACH | Errno::HOSTUNREACH) => return Ok(Answer::None),
            Some(error) => return Err(error.into()),
            None => {}
        }
        Ok(Answer::Route { metric: attribute(message, PRIORITY) })
    }

    /// Reads the acknowledgement of a message.
    pub fn acknowledged(&self) -> io::Result<()> {
        let mut room = [0; 1024];
        match error(self.receive(&mut room)?)? {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }
}

/// The error in a message; `None` if it is another message, or acknowledges.
fn error(message: &[u8]) -> io::Result<Option<Errno>> {
    if word16(message, 4)? != ERROR {
        return Ok(None);
    }
    let code = i32::from_ne_bytes(word32(message, HEADER)?.to_ne_bytes());
    Ok((code != 0).then(|| Errno::from_raw_os_error(-code)))
}

/// A number in a message about a route.
fn attribute(message: &[u8], wanted: u16) -> Option<u32> {
    let mut rest = message.get(HEADER + ROUTE_MESSAGE..)?;
    while rest.len() >= 4 {
        let (len, kind) = (usize::from(word16(rest, 0).ok()?), word16(rest, 2).ok()?);
        if kind == wanted {
            return word32(rest, 4).ok();
        }
        rest = rest.get(len.max(4).next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

fn word16(bytes: &[u8], at: usize) -> io::Result<u16> {
    let word = bytes.get(at..at + 2).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(u16::from_ne_bytes(word.try_into().expect("2 bytes")))
}

pub fn word32(bytes: &[u8], at: usize) -> io::Result<u32> {
    let word = bytes.get(at..at + 4).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(u32::from_ne_bytes(word.try_into().expect("4 bytes")))
}

/// Appends a message about a route: its header, the family with the length of the prefix, and attributes.
pub fn route_message(
    out: &mut Vec<u8>,
    kind: u16,
    flags: u16,
    rtmsg: [u8; ROUTE_MESSAGE],
    attributes: &[(u16, &[u8])],
) {
    let begin = out.len();
    out.extend([0; 4]);
    out.extend(kind.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend([0; 8]);
    out.extend(rtmsg);
    for (kind, value) in attributes {
        out.extend((4 + value.len() as u16).to_ne_bytes());
        out.extend(kind.to_ne_bytes());
        out.extend(*value);
    }
    let len = (out.len() - begin) as u32;
    out[begin..begin + 4].copy_from_slice(&len.to_ne_bytes());
}
