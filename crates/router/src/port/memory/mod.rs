//! Ports without a system behind them: packets are generated where they are received, and counted where they
//! are sent. No privileges are needed, and nothing but memory limits the rate.

mod flows;
mod pair;
mod random;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::pool::HEADROOM;
use crate::port::{Port, Queue, Receive, Transmit};
use crate::{Packet, Pool};

pub use flows::Flows;
pub use pair::pair;
pub use random::random;

/// Options of a memory port.
#[derive(Clone)]
pub struct MemoryOptions {
    /// The router's MAC address there.
    pub mac: [u8; 6],
    /// One or more. The flows are divided among the queues: each flow comes in by one of them.
    pub queues: usize,
    /// The frames to receive.
    pub flows: Arc<Flows>,
    /// How many packets each queue receives before it is over; `None`: it never is.
    pub packets: Option<u64>,
}

/// The packets sent by a memory port, over all its queues. Can be read at any time.
#[derive(Default)]
pub struct Sent(Box<[SentByQueue]>);

/// On separate cache lines, because each queue belongs to another thread.
#[derive(Default)]
#[repr(align(128))]
struct SentByQueue {
    packets: AtomicU64,
    bytes: AtomicU64,
    checksum: AtomicU64,
}

impl Sent {
    /// Packets.
    pub fn packets(&self) -> u64 {
        self.0.iter().map(|queue| queue.packets.load(Relaxed)).sum()
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|queue| queue.bytes.load(Relaxed)).sum()
    }

    /// The sum of all packets' [`checksum`], whatever their order and their queues.
    pub fn checksum(&self) -> u64 {
        self.0.iter().fold(0, |sum, queue| sum.wrapping_add(queue.checksum.load(Relaxed)))
    }
}

/// The sum of the whole words of a frame, each rotated by another number of bits. It compares sent packets with
/// expected ones, and makes the compiler keep writes that nothing else reads.
#[inline]
pub fn checksum(frame: &[u8]) -> u64 {
    let (words, rest) = frame.as_chunks::<8>();
    let word = |sum: u64, (at, word): (u32, &[u8; 8])| {
        sum.wrapping_add(u64::from_le_bytes(*word).rotate_left(7 * at))
    };
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    (0..).zip(words.iter().chain([&last])).fold(frame.len() as u64, word)
}

/// Makes a port that receives generated packets, and a counter of the packets that it sends.
pub fn open<'p>(name: &str, pool: &'p Pool, options: &MemoryOptions) -> (Port<'p>, Arc<Sent>) {
    let sent = Arc::new(Sent((0..options.queues).map(|_| SentByQueue::default()).collect()));
    let cut = |queue: usize| options.flows.len() * queue / options.queues;
    let queue = |at: usize| Queue {
        receive: Box::new(Generate {
            flows: Arc::clone(&options.flows),
            from: cut(at),
            to: cut(at + 1),
            next: cut(at),
            left: options.packets.unwrap_or(u64::MAX),
            lost: 0,
        }),
        transmit: Box::new(Count { sent: Arc::clone(&sent), queue: at }),
    };
    let port = Port {
        name: format!("memory:{name}"),
        interface: 0,
        mac: options.mac,
        mtu: mtu(pool),
        is_shared: false,
        queues: (0..options.queues).map(queue).collect(),
    };
    (port, sent)
}

/// The longest IP packet that slots hold.
fn mtu(pool: &Pool) -> u32 {
    (pool.slot_len() - HEADROOM - 18) as u32
}

/// The receiving half: flows `from..to`, in a circle.
struct Generate {
    flows: Arc<Flows>,
    from: usize,
    to: usize,
    next: usize,
    left: u64,
    /// Frames that no slot has room for.
    lost: u64,
}

impl Generate {
    fn ended(&self) -> bool {
        self.left == 0 || self.from == self.to
    }
}

impl<'p> Receive<'p> for Generate {
    fn receive(
        &mut self,
        pool: &'p Pool,
        burst: &mut Vec<Packet<'p>>,
        most: usize,
    ) -> io::Result<usize> {
        if self.ended() {
            return Ok(0);
        }
        let from = burst.len();
        let most = most.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = pool.take_many(burst, most);
        for packet in &mut burst[from..] {
            let len = self.flows.frame_len(self.next);
            if len <= packet.room() {
                packet.set_len(len);
                self.flows.write(self.next, packet.bytes_mut());
            } else {
                self.lost += 1;
            }
            self.next = if self.next + 1 == self.to { self.from } else { self.next + 1 };
        }
        self.left -= count as u64;
        self.flows.prefetch(self.next, count);
        if self.lost == 0 {
            return Ok(count);
        }
        // An empty frame is none.
        pool.give(burst.extract_if(from.., |packet| packet.bytes().is_empty()));
        Ok(burst.len() - from)
    }

    /// There is always something, unless it is over.
    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        if self.ended() {
            thread::sleep(longest);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.ended()
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

/// The sending half.
struct Count {
    sent: Arc<Sent>,
    queue: usize,
}

impl<'p> Transmit<'p> for Count {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        let (mut bytes, mut sum) = (0, 0u64);
        for packet in &*burst {
            bytes += packet.bytes().len() as u64;
            sum = sum.wrapping_add(checksum(packet.bytes()));
        }
        let (count, sent) = (burst.len(), &self.sent.0[self.queue]);
        // Nobody else writes there.
        let add = |to: &AtomicU64, more| to.store(to.load(Relaxed).wrapping_add(more), Relaxed);
        add(&sent.packets, count as u64);
        add(&sent.bytes, bytes);
        add(&sent.checksum, sum);
        pool.give(burst.drain(..));
        Ok(count)
    }

    fn flush(&mut self, _: &'p Pool) -> io::Result<()> {
        Ok(())
    }
}
