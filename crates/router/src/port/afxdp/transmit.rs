//! Sends packets by an XDP socket.

use std::io;
use std::sync::Arc;

use rustix::net::SendFlags;
use rustix::net::xdp::{XdpDesc, XdpDescOptions};

use super::ring::{Consumer, Producer};
use super::socket::{Held, Socket};
use crate::port::Transmit;
use crate::{Packet, Pool};

pub(super) struct XdpTransmit<'p> {
    // The rings go before the socket: they keep it open.
    sent: Producer<XdpDesc>,
    completed: Consumer<u64>,
    held: Held,
    socket: Arc<Socket<'p>>,
    /// Kept for its memory.
    back: Vec<Packet<'p>>,
    is_down: bool,
    lost: u64,
}

impl<'p> XdpTransmit<'p> {
    pub(super) fn new(
        sent: Producer<XdpDesc>,
        completed: Consumer<u64>,
        socket: Arc<Socket<'p>>,
        pool: &'p Pool,
    ) -> Self {
        let held = Held::new(pool);
        Self { sent, completed, held, socket, back: Vec::new(), is_down: false, lost: 0 }
    }

    /// Returns the slots of sent packets to the pool.
    fn take_back(&mut self, pool: &'p Pool) {
        let ready = self.completed.ready(u32::MAX);
        for _ in 0..ready {
            let slot = u32::try_from(self.completed.take() / pool.stride() as u64);
            let slot = slot.unwrap_or(u32::MAX);
            if self.held.remove(slot) {
                // SAFETY: the packet was forgotten when the kernel got the slot, and the kernel has just given it back.
                self.back.push(unsafe { pool.reclaim(slot, 0, 0) });
            }
        }
        if ready > 0 {
            self.completed.release();
            pool.give(self.back.drain(..));
        }
    }

    /// Makes the kernel send as much of the ring as it can now.
    fn kick(&mut self) -> io::Result<()> {
        let mut waiting = self.sent.waiting();
        while waiting > 0 && self.sent.needs_wakeup() {
            let result = rustix::net::send(self.socket.fd(), &[], SendFlags::DONTWAIT);
            if let Err(error) = result
                && !super::is_busy(error)
            {
                self.socket.interface.judge(error.into())?;
                self.is_down = true;
                return Ok(());
            }
            self.is_down = false;
            // In copy mode a call sends a part of the ring.
            let left = self.sent.waiting();
            if left >= waiting {
                break;
            }
            waiting = left;
        }
        Ok(())
    }
}

impl<'p> Transmit<'p> for XdpTransmit<'p> {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        self.take_back(pool);
        if self.is_down {
            let count = burst.len();
            self.lost += count as u64;
            pool.give(burst.drain(..));
            return Ok(count);
        }
        let room = self.sent.room(burst.len() as u32) as usize;
        let count = room.min(burst.len());
        for packet in burst.drain(..count) {
            let (slot, start) = pool.place(&packet);
            self.held.insert(slot);
            self.sent.put(XdpDesc {
                addr: u64::from(slot) * pool.stride() as u64 + u64::from(start),
                len: packet.bytes().len() as u32,
                options: XdpDescOptions::empty(),
            });
        }
        self.sent.submit();
        if !burst.is_empty() {
            self.kick()?;
        }
        Ok(count)
    }

    fn flush(&mut self, pool: &'p Pool) -> io::Result<()> {
        self.kick()?;
        self.take_back(pool);
        if self.is_down {
            // The next call checks again whether the link is up, and then sends the ring's packets.
            self.socket.interface.check_there()?;
        }
        Ok(())
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

impl Drop for XdpTransmit<'_> {
    fn drop(&mut self) {
        self.socket.leave(&self.held);
    }
}
