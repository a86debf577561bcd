//! Sends packets by a packet socket.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::{io, mem, ptr};

use super::Interface;
use crate::port::Transmit;
use crate::port::system::is_full;
use crate::{Packet, Pool};

/// Packets of a system call.
const BATCH: usize = 64;

pub(super) struct PacketTransmit {
    interface: Arc<Interface>,
    socket: OwnedFd,
    lost: u64,
}

impl PacketTransmit {
    pub(super) fn new(interface: Arc<Interface>, socket: OwnedFd) -> Self {
        Self { interface, socket, lost: 0 }
    }

    /// Sends the first of these packets. Returns how many.
    fn send(&self, packets: &mut [Packet<'_>]) -> io::Result<usize> {
        let count = packets.len().min(BATCH);
        // SAFETY: all zero is a valid value of these C structs.
        let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        for (at, packet) in packets[..count].iter_mut().enumerate() {
            let bytes = packet.bytes_mut();
            parts[at] = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
            messages[at].msg_hdr.msg_iov = ptr::from_mut(&mut parts[at]);
            messages[at].msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: so many messages are filled in; each points to the bytes of a packet, which the kernel copies before
        // the call returns.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT as _,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}

impl<'p> Transmit<'p> for PacketTransmit {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        let mut taken = 0;
        let result = loop {
            if taken == burst.len() {
                break Ok(());
            }
            match self.send(&mut burst[taken..]) {
                Ok(sent) => taken += sent,
                Err(error) if is_full(&error) => break Ok(()),
                // Longer than the interface takes, or shorter than an Ethernet header: this packet alone.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::EINVAL)) =>
                {
                    taken += 1;
                    self.lost += 1;
                }
                Err(error) => match self.interface.judge(error) {
                    // The link is down: packets sent now are lost, as on any link.
                    Ok(()) => {
                        self.lost += (burst.len() - taken) as u64;
                        taken = burst.len();
                    }
                    Err(error) => break Err(error),
                },
            }
        };
        pool.give(burst.drain(..taken));
        result.map(|()| taken)
    }

    fn flush(&mut self, _: &'p Pool) -> io::Result<()> {
        Ok(())
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}
