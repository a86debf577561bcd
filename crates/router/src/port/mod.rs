//! Ports receive and send packets, in bursts.
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
pub mod memory;
#[cfg(target_os = "linux")]
mod partial;
pub mod pcap;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
pub mod tap;
#[cfg(target_os = "linux")]
pub mod xdp;

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
    /// Whether the kernel sees each received packet, too, and answers what is for itself (AF_PACKET).
    pub is_shared: bool,
    /// One or more.
    pub queues: Vec<Queue<'p>>,
}

/// Both halves of a queue.
pub struct Queue<'p> {
    /// The receiving half.
    pub receive: Box<dyn Receive<'p> + 'p>,
    /// What goes out.
    pub transmit: Box<dyn Transmit<'p> + 'p>,
}

/// Receives the packets of one queue.
pub trait Receive<'p>: Send {
    /// Appends at most `most` packets to the burst, without waiting, and says how many. The pool is the one that
    /// the port was opened on. Sets [`Packet::port`] to nothing: that is the pipeline's.
    ///
    /// # Errors
    /// If the port is gone, or the system refuses; packets appended so far are good.
    fn receive(
        &mut self,
        pool: &'p Pool,
        burst: &mut Vec<Packet<'p>>,
        most: usize,
    ) -> io::Result<usize>;

    /// Waits until something may have come, or for that long.
    ///
    /// # Errors
    /// As [`Receive::receive`].
    fn wait(&mut self, longest: Duration) -> io::Result<()>;

    /// A descriptor that can be read once something has come, so that one thread waits for several queues; `None` if there is none,
    /// and [`Receive::wait`] is called.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether nothing will ever come again: a file at its end, or a device that is gone for good. After an error
    /// that is not the end of the queue, it is asked again a little later.
    fn is_over(&self) -> bool {
        false
    }

    /// What the port itself lost before anybody saw it.
    fn lost(&self) -> u64 {
        0
    }
}

/// What goes out by one queue.
pub trait Transmit<'p>: Send {
    /// Takes packets from the front of the burst, as many as there is room for now, and says how many; the
    /// others stay, in order. Gives slots back to the pool once they are sent.
    ///
    /// # Errors
    /// If the port is gone, or the system refuses.
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize>;

    /// Hands over what was taken and still waits in the port, and takes back the slots of what was sent. Called after the last
    /// burst of a round, and while idle.
    ///
    /// # Errors
    /// As [`Transmit::transmit`].
    fn flush(&mut self, pool: &'p Pool) -> io::Result<()>;

    /// Called once, after everything was handed over: hands over the rest, and waits for slots that come back soon.
    ///
    /// # Errors
    /// As [`Transmit::transmit`].
    fn close(&mut self, pool: &'p Pool) -> io::Result<()> {
        self.flush(pool)
    }

    /// Packets that were taken and cannot be sent: longer than the link takes, or the link is down.
    fn lost(&self) -> u64 {
        0
    }
}
