//! Receives packets by an XDP socket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::xdp::XdpDesc;
use rustix::net::{RecvFlags, sockopt};

use super::ring::{Consumer, Producer};
use super::socket::{Held, Socket};
use crate::pool::HEADROOM;
use crate::port::{Receive, partial};
use crate::{Packet, Pool};

pub(super) struct XdpReceive<'p> {
    // The rings go before the socket: they keep it open.
    fill: Producer<u64>,
    received: Consumer<XdpDesc>,
    held: Held,
    socket: Arc<Socket<'p>>,
    /// On their way to the kernel; kept for its memory.
    free: Vec<Packet<'p>>,
    /// Whether senders leave checksums to the device.
    is_partial: bool,
}

impl<'p> XdpReceive<'p> {
    pub(super) fn new(
        fill: Producer<u64>,
        received: Consumer<XdpDesc>,
        socket: Arc<Socket<'p>>,
        pool: &'p Pool,
        is_partial: bool,
    ) -> Self {
        let mut this =
            Self { fill, received, held: Held::new(pool), socket, free: Vec::new(), is_partial };
        this.refill(pool);
        this
    }

    /// Gives the kernel as many free slots as it takes.
    fn refill(&mut self, pool: &'p Pool) {
        // A few at a time are not worth the lines of memory that both sides write.
        let room = self.fill.room(REFILL);
        if room < REFILL {
            return;
        }
        pool.take_many(&mut self.free, room as usize);
        if self.free.is_empty() {
            return;
        }
        for packet in self.free.drain(..) {
            let (slot, _) = pool.place(&packet);
            self.held.insert(slot);
            self.fill.put(u64::from(slot) * pool.stride() as u64);
        }
        self.fill.submit();
    }

    /// Has the driver look at the fill ring, if it waits for that.
    fn wake(&self) -> io::Result<()> {
        if self.fill.needs_wakeup() {
            let flags = RecvFlags::DONTWAIT;
            match rustix::net::recv(self.socket.fd(), &mut [0_u8; 0][..], flags) {
                Err(error) if !super::is_busy(error) => {
                    self.socket.interface.judge(error.into())?
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The smallest number of slots that the fill ring gets at once.
const REFILL: u32 = 32;

impl<'p> Receive<'p> for XdpReceive<'p> {
    fn receive(
        &mut self,
        pool: &'p Pool,
        burst: &mut Vec<Packet<'p>>,
        most: usize,
    ) -> io::Result<usize> {
        let ready = self.received.ready(u32::try_from(most).unwrap_or(u32::MAX));
        let stride = pool.stride() as u64;
        let before = burst.len();
        for _ in 0..ready {
            let entry = self.received.take();
            let slot = u32::try_from(entry.addr / stride).unwrap_or(u32::MAX);
            if !self.held.remove(slot) {
                continue; // the kernel never had it
            }
            let start = (entry.addr % stride) as u32;
            let is_whole = u64::from(start) + u64::from(entry.len) <= stride;
            let (start, len) = if is_whole { (start, entry.len) } else { (HEADROOM as u32, 0) };
            // SAFETY: the packet was forgotten when the kernel got the slot, and the kernel has just given it back.
            let mut packet = unsafe { pool.reclaim(slot, start, len) };
            if self.is_partial {
                partial::complete_if_partial(packet.bytes_mut());
            }
            burst.push(packet);
        }
        if ready > 0 {
            self.received.release();
        }
        self.refill(pool);
        self.wake()?;
        Ok(burst.len() - before)
    }

    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        self.socket.interface.wait(self.socket.fd(), longest)
    }

    fn lost(&self) -> u64 {
        sockopt::xdp_statistics(self.socket.fd())
            .map_or(0, |lost| lost.rx_dropped + lost.rx_ring_full.unwrap_or(0))
    }
}

impl Drop for XdpReceive<'_> {
    fn drop(&mut self) {
        self.socket.leave(&self.held);
    }
}
