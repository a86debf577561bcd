//! Receives packets by a packet socket.

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use std::{io, mem, ptr};

use super::segment::{self, Offload};
use super::{Interface, option};
use crate::port::system::is_full;
use crate::port::{Receive, partial};
use crate::{Packet, Pool};

/// Packets of a system call.
const BATCH: usize = 32;
/// Of a merged packet, the bytes that do not fit into a slot.
const BEHIND: usize = 64 << 10;

pub(super) struct PacketReceive<'p> {
    interface: Arc<Interface>,
    socket: OwnedFd,
    pool: &'p Pool,
    /// Slots for the next packets.
    spare: Vec<Packet<'p>>,
    /// Pieces of merged packets that had no place in the last burst.
    pieces: VecDeque<Packet<'p>>,
    /// For each message of a batch, the bytes that do not fit into its slot.
    behind: Vec<u8>,
    /// A merged packet in one piece.
    whole: Vec<u8>,
    /// Lost by the kernel, which counts from its last answer.
    kernel_lost: Cell<u64>,
    /// Lost here: no free slot for a piece, or a packet of an unknown kind.
    lost: u64,
}

/// The control message that the kernel adds to a packet.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Beside([u8; 64]);

impl<'p> PacketReceive<'p> {
    pub(super) fn new(interface: Arc<Interface>, socket: OwnedFd, pool: &'p Pool) -> Self {
        Self {
            interface,
            socket,
            pool,
            spare: Vec::with_capacity(BATCH),
            pieces: VecDeque::new(),
            behind: vec![0; BATCH * BEHIND],
            whole: Vec::new(),
            kernel_lost: Cell::new(0),
            lost: 0,
        }
    }

    /// Reads the waiting packets, at most so many and at most a batch. Returns their number.
    fn read(&mut self, burst: &mut Vec<Packet<'p>>, most: usize) -> io::Result<usize> {
        let most = most.min(BATCH);
        let missing = most.saturating_sub(self.spare.len());
        self.pool.take_many(&mut self.spare, missing);
        let most = most.min(self.spare.len());
        if most == 0 {
            return Ok(0);
        }
        // SAFETY: all zero is a valid value of these C structs.
        let (mut parts, mut messages): ([[libc::iovec; 3]; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        let mut headers = [[0_u8; Offload::LEN]; BATCH];
        let mut beside = [Beside([0; 64]); BATCH];
        for at in 0..most {
            let packet = &mut self.spare[at];
            packet.set_len(packet.room());
            let behind = &mut self.behind[at * BEHIND..(at + 1) * BEHIND];
            parts[at] = [&mut headers[at][..], packet.bytes_mut(), behind].map(|part| {
                libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() }
            });
            let header = &mut messages[at].msg_hdr;
            header.msg_iov = parts[at].as_mut_ptr();
            header.msg_iovlen = 3;
            header.msg_control = ptr::from_mut(&mut beside[at]).cast();
            header.msg_controllen = size_of::<Beside>() as _;
        }
        // SAFETY: so many messages are filled in; they point to bytes that nobody else has until the call returns.
        let came = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                most as u32,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        if came < 0 {
            return Err(io::Error::last_os_error());
        }
        let came = came as usize;
        let from = burst.len();
        for (at, packet) in self.spare.drain(..came).enumerate() {
            let message = &messages[at];
            let read = (message.msg_len as usize).saturating_sub(Offload::LEN);
            let info = FrameInfo {
                read,
                is_cut: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                offload: Offload::new(&headers[at]),
                // SAFETY: the message is as the kernel filled it in, and what it points to is alive.
                tag: unsafe { tag(&message.msg_hdr) },
            };
            let behind = &self.behind[at * BEHIND..];
            let lost = finish(packet, &info, behind, self.pool, &mut self.whole, |packet| {
                if burst.len() - from < came {
                    burst.push(packet);
                } else {
                    self.pieces.push_back(packet);
                }
            });
            self.lost += lost;
        }
        Ok(came)
    }
}

/// The kernel's information about a packet.
struct FrameInfo {
    read: usize,
    is_cut: bool,
    offload: Offload,
    /// The VLAN tag that it took off: protocol and value.
    tag: Option<(u16, u16)>,
}

/// Makes complete packets of a received message. Returns how many are lost.
fn finish<'p>(
    mut packet: Packet<'p>,
    info: &FrameInfo,
    behind: &[u8],
    pool: &'p Pool,
    whole: &mut Vec<u8>,
    mut done: impl FnMut(Packet<'p>),
) -> u64 {
    let room = packet.room();
    if info.is_cut || info.read > room + BEHIND {
        pool.give([packet]);
        return 1;
    }
    if info.offload.is_merged() {
        packet.set_len(info.read.min(room));
        whole.clear();
        whole.extend_from_slice(packet.bytes());
        whole.extend_from_slice(&behind[..info.read.saturating_sub(room)]);
        pool.give([packet]);
        return segment::cut(whole, &info.offload, pool, |mut piece| {
            put_back(&mut piece, info.tag);
            done(piece);
        });
    }
    if info.read > room {
        pool.give([packet]);
        return 1;
    }
    packet.set_len(info.read);
    if let Some((start, offset)) = info.offload.checksum() {
        partial::complete(packet.bytes_mut(), start, offset);
    }
    put_back(&mut packet, info.tag);
    done(packet);
    0
}

/// Puts a VLAN tag back behind the MAC addresses.
fn put_back(packet: &mut Packet<'_>, tag: Option<(u16, u16)>) {
    let Some((protocol, value)) = tag else { return };
    if packet.bytes().len() < 12 {
        return;
    }
    packet.grow_front(4);
    let bytes = packet.bytes_mut();
    bytes.copy_within(4..16, 0);
    bytes[12..14].copy_from_slice(&protocol.to_be_bytes());
    bytes[14..16].copy_from_slice(&value.to_be_bytes());
}

/// The VLAN tag that the kernel took off.
///
/// # Safety
/// The message is as `recvmmsg` filled it in, and its control data is alive.
unsafe fn tag(message: &libc::msghdr) -> Option<(u16, u16)> {
    // SAFETY: by the caller's promise the control data is a chain of such headers.
    let info = unsafe {
        let header = libc::CMSG_FIRSTHDR(message).as_ref()?;
        if header.cmsg_level != libc::SOL_PACKET || header.cmsg_type != libc::PACKET_AUXDATA {
            return None;
        }
        libc::CMSG_DATA(header).cast::<libc::tpacket_auxdata>().read_unaligned()
    };
    let has = |flag| info.tp_status & flag != 0;
    let protocol = if has(libc::TP_STATUS_VLAN_TPID_VALID) { info.tp_vlan_tpid } else { 0x8100 };
    has(libc::TP_STATUS_VLAN_VALID).then_some((protocol, info.tp_vlan_tci))
}

impl<'p> Receive<'p> for PacketReceive<'p> {
    fn receive(
        &mut self,
        _: &'p Pool,
        burst: &mut Vec<Packet<'p>>,
        most: usize,
    ) -> io::Result<usize> {
        let before = burst.len();
        let pieces = self.pieces.len().min(most);
        burst.extend(self.pieces.drain(..pieces));
        loop {
            let wanted = most - (burst.len() - before);
            if wanted == 0 || !self.pieces.is_empty() {
                break;
            }
            match self.read(burst, wanted) {
                Ok(came) if came < wanted.min(BATCH) => break,
                Ok(_) => {}
                Err(error) if is_full(&error) => break,
                // A merged packet of a kind that the kernel cannot describe.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.lost += 1,
                Err(error) => {
                    self.interface.judge(error)?;
                    break;
                }
            }
        }
        Ok(burst.len() - before)
    }

    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        if !self.pieces.is_empty() {
            return Ok(());
        }
        self.interface.wait(&self.socket, longest)
    }

    fn lost(&self) -> u64 {
        // struct tpacket_stats: packets, drops.
        if let Ok([_, dropped]) = option::<[u32; 2]>(&self.socket, libc::PACKET_STATISTICS) {
            self.kernel_lost.set(self.kernel_lost.get() + u64::from(dropped));
        }
        self.kernel_lost.get() + self.lost
    }
}

impl Drop for PacketReceive<'_> {
    fn drop(&mut self) {
        self.pool.give(self.spare.drain(..).chain(self.pieces.drain(..)));
    }
}
