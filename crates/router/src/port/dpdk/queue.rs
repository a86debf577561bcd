//! Both halves of a device's queue.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fibula_dpdk::fib_frame;

use super::Device;
use crate::port::{Receive, Transmit, partial};
use crate::{Packet, Pool};

/// The most packets of a call.
const BURST: usize = fibula_dpdk::FIB_BURST as usize;
/// How long an idle thread sleeps: nothing wakes it.
const NAP: Duration = Duration::from_micros(50);
/// Asking a device what it lost takes longer than a burst, so this many bursts pass between.
const ASK: u32 = 4096;

const NONE: fib_frame = fib_frame { slot: ptr::null_mut(), start: 0, len: 0 };

/// What is handed to the shim and back in a call.
struct Frames(Box<[fib_frame; BURST]>);

// SAFETY: pointers are read in the call that they were written in, and by the same thread.
unsafe impl Send for Frames {}

/// What a half has.
struct Half<'p> {
    device: Arc<Device>,
    queue: u16,
    /// The pool that the device was opened on.
    pool: &'p Pool,
    frames: Frames,
    /// Bursts until the device is asked what it lost.
    ask_in: u32,
    /// What it lost before it was opened here, and since; of the first queue alone, for all of them.
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
        let frames = Frames(Box::new([NONE; BURST]));
        Self { device, queue, pool, frames, ask_in: ASK, before: 0, lost: 0 }
    }

    fn device_lost(&self) -> (u64, u64) {
        let (mut received, mut sent) = (0, 0);
        // SAFETY: the device is open.
        unsafe { fibula_dpdk::fib_lost(self.device.port.id, &mut received, &mut sent) };
        (received, sent)
    }

    /// Asks the device what it lost, once in a while.
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
        let (frames, most) = (half.frames.0.as_mut_ptr(), most.min(BURST) as u16);
        let (mempool, port) = (half.device.mempool.as_ptr(), half.device.port.id);
        // SAFETY: the device is open, this half alone receives by the queue, and there is room for so many frames.
        let count = unsafe {
            fibula_dpdk::fib_receive(mempool, port, half.queue, frames, most, &mut self.odd)
        };
        burst.extend(half.frames.0[..usize::from(count)].iter().map(|frame| {
            // SAFETY: the driver had the slot, which it took from the pool and which lies in the pool's area, and has given it to us.
            unsafe {
                let slot = NonNull::new_unchecked(frame.slot);
                pool.reclaim_at(slot, frame.start.into(), frame.len.into())
            }
        }));
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
    /// Gives back what was sent, and what this thread keeps for what it receives next.
    fn clean(&mut self) {
        let mempool = self.half.device.mempool.as_ptr();
        // SAFETY: the device is open, and this half alone sends by the queue.
        unsafe { fibula_dpdk::fib_clean(mempool, self.half.device.port.id, self.half.queue) };
    }
}

impl Drop for DpdkTransmit<'_> {
    fn drop(&mut self) {
        self.clean();
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
            for (frame, packet) in half.frames.0.iter_mut().zip(part) {
                let (slot, start) = pool.slot_at(packet);
                // Slots have at most 64 KiB: see `Mempool`.
                let (start, len) = (start as u16, packet.bytes().len() as u16);
                *frame = fib_frame { slot: slot.as_ptr(), start, len };
            }
            // SAFETY: the device is open, this half alone sends by the queue, and the frames lie in slots of packets that
            // we own, and forget below as far as the driver has them now.
            let count = unsafe {
                let (frames, count) = (half.frames.0.as_ptr(), part.len() as u16);
                fibula_dpdk::fib_transmit(mempool, port, half.queue, frames, count)
            };
            taken += usize::from(count);
            if usize::from(count) < part.len() {
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
        self.half.ask(sent);
        Ok(())
    }

    fn lost(&self) -> u64 {
        self.half.lost
    }
}
