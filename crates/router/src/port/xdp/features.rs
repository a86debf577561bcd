//! Which interfaces take packets that XDP programs redirect to them. The kernel drops packets to one that does not, and
//! no counter of the interface shows it. So the router checks this first, by generic netlink (family `netdev`, since
//! Linux 6.3).

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

/// Of `enum netdev_xdp_act`: the interface sends frames of programs.
const NDO_XMIT: u64 = 4;

/// The kernel's socket for questions, in the namespace of the thread that opened it.
pub(super) struct Features {
    socket: OwnedFd,
    family: u16,
}

impl Features {
    /// `None` if the kernel does not have it.
    pub fn open() -> Option<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (kind, generic) = (SocketType::DGRAM, Some(netlink::GENERIC));
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, generic).ok()?;
        let mut this = Self { socket, family: 0 };
        // GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME; CTRL_ATTR_FAMILY_ID
        let id = this.ask(16, 3, (2, b"netdev\0"), 1).ok()??;
        this.family = u16::from_ne_bytes(*id.first_chunk()?);
        Some(this)
    }

    /// Whether the interface takes packets; `None` if the kernel does not report it.
    pub fn sends(&self, interface: u32) -> Option<bool> {
        // NETDEV_CMD_DEV_GET, NETDEV_A_DEV_IFINDEX; NETDEV_A_DEV_XDP_FEATURES
        let found = self.ask(self.family, 1, (1, &interface.to_ne_bytes()), 3).ok()??;
        Some(u64::from_ne_bytes(*found.first_chunk()?) & NDO_XMIT != 0)
    }

    /// Sends a request with one attribute, and returns the wanted attribute of the answer.
    fn ask(
        &self,
        family: u16,
        command: u8,
        (kind, value): (u16, &[u8]),
        wanted: u16,
    ) -> io::Result<Option<Vec<u8>>> {
        // Answers to earlier questions that nobody waited for.
        let mut buffer = vec![0_u8; 16 << 10];
        while rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT).is_ok() {}
        let mut text = vec![0_u8; 16];
        text[4..6].copy_from_slice(&family.to_ne_bytes());
        text[6..8].copy_from_slice(&1_u16.to_ne_bytes()); // NLM_F_REQUEST
        text.extend([command, 1, 0, 0]);
        text.extend((4 + value.len() as u16).to_ne_bytes());
        text.extend(kind.to_ne_bytes());
        text.extend(value);
        text.resize(text.len().next_multiple_of(4), 0);
        let len = text.len() as u32;
        text[..4].copy_from_slice(&len.to_ne_bytes());
        rustix::net::send(&self.socket, &text, SendFlags::empty())?;
        // The kernel answers before `send` returns.
        let (_, len) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
        Ok(attribute(&buffer[..len.min(buffer.len())], wanted))
    }
}

/// An attribute of a message of generic netlink.
fn attribute(message: &[u8], wanted: u16) -> Option<Vec<u8>> {
    const ERROR: u16 = 2;
    let half = |at: usize| Some(u16::from_ne_bytes(*message.get(at..)?.first_chunk()?));
    if half(4)? == ERROR {
        return None;
    }
    let mut at = 20;
    loop {
        let len = usize::from(half(at)?);
        if half(at + 2)? & 0x3fff == wanted {
            return Some(message.get(at + 4..at + len)?.to_vec());
        }
        at += len.max(4).next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_and_cut_messages_are_not_read_beyond_their_end() {
        let mut message = vec![0_u8; 20];
        message.extend([5, 0, 1, 0, 7, 0, 0, 0].map(|byte: u8| byte));
        message.extend([12, 0, 3, 0, 5, 0, 0, 0, 0, 0, 0, 0].map(|byte: u8| byte));
        if cfg!(target_endian = "little") {
            assert_eq!(attribute(&message, 1), Some(vec![7]));
            assert_eq!(attribute(&message, 3).map(|value| value[0]), Some(5));
            assert_eq!(attribute(&message, 4), None);
            for len in 0..message.len() {
                assert_eq!(attribute(&message[..len], 3), None);
            }
        }
    }
}
