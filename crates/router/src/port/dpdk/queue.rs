//! Both halves of a device's queue.

use std::io;
use std::ptr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Device;
use crate::port::{Receive, Transmit, partial};
use crate::{Packet, Pool};

/// The most packets of a call.
const BURST: usize = fibula_dpdk::FIB_BURST as usize;
/// How long an idle thread sleeps: nothing wakes it.
const NAP: Duration = Duration::from_micros(50);
/// Reading the number of packets that a device lost takes longer than a burst, so it is read once in this many bursts.
const ASK: u32 = 4096;

/// The state of a half.
struct Half<'p> {
    device: Arc<Device>,
    queue: u16,
    /// The pool that the device was opened on.
    pool: &'p Pool,
    /// Bursts until the lost packets are read again.
    ask_in: u32,
    /// The packets that the device lost before it was opened here, and since. Only the first queue counts them, for all
    /// queues.
    before: u64,
    lost: u64,
}

pub(super) struct DpdkReceive<'p> {
    half: Half<'p>,
    /// Packets that do not lie in one slot.
    odd: u64,
    /// Whether senders leave checksums to the device.
    is_partial: bool,
}

pub(super) struct DpdkTransmit<'p> {
    half: Half<'p>,
}

impl<'p> Half<'p> {
    fn new(device: Arc<Device>, queue: u16, pool: &'p Pool) -> Self {
        Self { device, queue, pool, ask_in: ASK, before: 0, lost: 0 }
    }

    fn device_lost(&self) -> (u64, u64) {
        let (mut received, mut sent) = (0, 0);
        // SAFETY: the device is open.
        unsafe { fibula_dpdk::fib_lost(self.device.port.id, &mut received, &mut sent) };
        (received, sent)
    }

    /// Reads the number of packets that the device lost, once in a while.
    fn ask(&mut self, of: fn((u64, u64)) -> u64) {
        if self.queue == 0 {
            self.ask_in = ASK;
            self.lost = of(self.device_lost()).saturating_sub(self.before);
        }
    }

    fn count_burst(&mut self, of: fn((u64, u64)) -> u64) {
        self.ask_in = self.ask_in.saturating_sub(1);
        if self.ask_in == 0 {
            self.ask(of);
        }
    }

    /// Has the free slots that DPDK keeps for this thread go to the pool.
    fn flush(&self) {
        // SAFETY: the mempool is that of the device, which is open.
        unsafe { fibula_dpdk::fib_flush(self.device.mempool.as_ptr()) };
    }

    /// The pool that packets are taken from and given to must be the one that the driver has.
    fn check(&self, pool: &Pool) {
        assert!(ptr::eq(pool, self.pool), "a packet of another pool");
    }
}

fn received((received, _): (u64, u64)) -> u64 {
    received
}

fn sent((_, sent): (u64, u64)) -> u64 {
    sent
}

impl<'p> DpdkReceive<'p> {
    pub(super) fn new(device: Arc<Device>, queue: u16, pool: &'p Pool, is_partial: bool) -> Self {
        let mut half = Half::new(device, queue, pool);
        half.before = received(half.device_lost());
        Self { half, odd: 0, is_partial }
    }
}

impl<'p> DpdkTransmit<'p> {
    pub(super) fn new(device: Arc<Device>, queue: u16, pool: &'p Pool) -> Self {
        let mut half = Half::new(device, queue, pool);
        half.before = sent(half.device_lost());
        Self { half }
    }
}

impl<'p> Receive<'p> for DpdkReceive<'p> {
    fn receive(
        &mut self,
        pool: &'p Pool,
        burst: &mut Vec<Packet<'p>>,
        most: usize,
    ) -> io::Result<usize> {
        let half = &mut self.half;
        half.check(pool);
        let (before, most) = (burst.len(), most.min(BURST));
        burst.reserve(most);
        let (mempool, port) = (half.device.mempool.as_ptr(), half.device.port.id);
        // SAFETY: the device is open, this half alone receives by the queue, and there is room for so many packets.
        // Those that are written lie in slots that the driver took from the pool and has given to us, and end within
        // them; `Pool` compares the layouts.
        let count = unsafe {
            let to = burst.as_mut_ptr().add(before).cast();
            let count =
                fibula_dpdk::fib_receive(mempool, port, half.queue, to, most as u16, &mut self.odd);
            burst.set_len(before + usize::from(count));
            count
        };
        if self.is_partial {
            for packet in burst.iter_mut().rev().take(count.into()) {
                partial::complete_if_partial(packet.bytes_mut());
            }
        }
        half.count_burst(received);
        Ok(count.into())
    }

    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        thread::sleep(longest.min(NAP));
        Ok(())
    }

    fn lost(&self) -> u64 {
        self.half.lost + self.odd
    }
}

impl DpdkTransmit<'_> {
    /// Makes the driver return the slots of sent packets.
    fn clean(&mut self) {
        // SAFETY: the device is open, and this half alone sends by the queue.
        unsafe { fibula_dpdk::fib_clean(self.half.device.port.id, self.half.queue) };
    }
}

impl Drop for DpdkTransmit<'_> {
    fn drop(&mut self) {
        self.clean();
    }
}

/// Halves are dropped by the thread that used them.
impl Drop for Half<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl<'p> Transmit<'p> for DpdkTransmit<'p> {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        let half = &mut self.half;
        half.check(pool);
        let (mempool, port) = (half.device.mempool.as_ptr(), half.device.port.id);
        let mut taken = 0;
        while taken < burst.len() {
            let part = &burst[taken..burst.len().min(taken + BURST)];
            // SAFETY: the device is open, this half alone sends by the queue, and we own the packets, which we forget
            // below as far as the driver has them now; `Pool` compares the layouts.
            let count = unsafe {
                let (packets, count) = (part.as_ptr().cast(), part.len() as u16);
                fibula_dpdk::fib_transmit(mempool, port, half.queue, packets, count)
            };
            let count = usize::try_from(count).expect("a packet of another pool");
            taken += count;
            if count < part.len() {
                break;
            }
        }
        // A packet has nothing to drop: its slot is the driver's.
        burst.drain(..taken);
        half.count_burst(sent);
        Ok(taken)
    }

    fn flush(&mut self, _: &'p Pool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, _: &'p Pool) -> io::Result<()> {
        self.clean();
        self.half.flush();
        self.half.ask(sent);
        Ok(())
    }

    fn lost(&self) -> u64 {
        self.half.lost
    }
}
