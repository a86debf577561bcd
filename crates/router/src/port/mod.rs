//! Ports: they receive and send packets, in bursts.
//!
//! A port is opened on a [`Pool`] and has queues; a queue has two halves, which different threads may own.
//! Frames are Ethernet, without the checksum at their end.

#[cfg(target_os = "linux")]
pub mod afpacket;
#[cfg(target_os = "linux")]
pub mod afxdp;
#[cfg(target_os = "linux")]
mod bpf;
#[cfg(all(target_os = "linux", feature = "dpdk"))]
pub mod dpdk;
#[cfg(target_os = "linux")]
pub mod host;
#[cfg(target_os = "linux")]
mod identity;
pub mod memory;
#[cfg(target_os = "linux")]
pub mod offloads;
#[cfg(target_os = "linux")]
mod partial;
pub mod pcap;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
pub mod tap;
#[cfg(target_os = "linux")]
pub mod xdp;

#[cfg(target_os = "linux")]
pub use identity::Identity;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::{Packet, Pool};

/// An opened port.
pub struct Port<'p> {
    /// Its name: `memory`, `afxdp:eth1`.
    pub name: String,
    /// The system's index of its interface; 0 if it has none.
    pub interface: u32,
    /// The MAC address that the router has there.
    pub mac: [u8; 6],
    /// The longest IP packet that it sends, in bytes.
    pub mtu: u32,
    /// Whether the kernel also sees each received packet, and answers packets for this machine (AF_PACKET).
    pub is_shared: bool,
    /// The queues, at least one.
    pub queues: Vec<Queue<'p>>,
}

/// Both halves of a queue.
pub struct Queue<'p> {
    /// The receiving half.
    pub receive: Box<dyn Receive<'p> + 'p>,
    /// The transmitting half.
    pub transmit: Box<dyn Transmit<'p> + 'p>,
}

/// Receives the packets of one queue.
pub trait Receive<'p>: Send {
    /// Appends up to `most` packets to the burst, without waiting, and returns their number. The pool is the one that
    /// the port was opened on. [`Packet::port`] is not set here: the pipeline sets it.
    ///
    /// # Errors
    /// If the port is gone, or a system call fails. Packets appended before are valid.
    fn receive(
        &mut self,
        pool: &'p Pool,
        burst: &mut Vec<Packet<'p>>,
        most: usize,
    ) -> io::Result<usize>;

    /// Waits until packets may have arrived, or for this time.
    ///
    /// # Errors
    /// The errors of [`Receive::receive`].
    fn wait(&mut self, longest: Duration) -> io::Result<()>;

    /// A file descriptor that becomes readable when packets arrive, so that one thread can wait for several queues.
    /// If it is `None`, [`Receive::wait`] is called.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether no packets will ever arrive again: a file at its end, or a device that is gone for good. After an
    /// error without this, the queue is tried again a little later.
    fn is_over(&self) -> bool {
        false
    }

    /// Packets that the port lost before delivering them.
    fn lost(&self) -> u64 {
        0
    }
}

/// Transmits the packets of one queue.
pub trait Transmit<'p>: Send {
    /// Takes packets from the front of the burst, as many as there is room for now, and returns their number. The
    /// others stay, in order. Slots return to the pool once they are sent.
    ///
    /// # Errors
    /// If the port is gone, or a system call fails.
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize>;

    /// Passes accepted packets on to the system, and takes back the slots of sent packets. Called after the last
    /// burst of a round, and while idle.
    ///
    /// # Errors
    /// The errors of [`Transmit::transmit`].
    fn flush(&mut self, pool: &'p Pool) -> io::Result<()>;

    /// Called once at the end: passes on the remaining packets, and waits for slots that return soon.
    ///
    /// # Errors
    /// The errors of [`Transmit::transmit`].
    fn close(&mut self, pool: &'p Pool) -> io::Result<()> {
        self.flush(pool)
    }

    /// Packets that were accepted and cannot be sent, because they are longer than the link allows or the link is
    /// down.
    fn lost(&self) -> u64 {
        0
    }
}
