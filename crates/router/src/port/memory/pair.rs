//! Two ports with connected ends: each receives the packets that the other sends.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::port::{Port, Queue, Receive, Transmit};
use crate::{Packet, Pool};

/// Two connected ports of so many queues. Both are of one pool, so packets are handed over, not copied. Queue `n`
/// of one is connected with queue `n` of the other, by at most `room` packets each way; when one end's transmitting
/// half is dropped, the other end is over once it has received what there is.
///
/// ```
/// use fibula_router::{Pool, port::memory};
/// let pool = Pool::new(8, 2048);
/// let (mut left, mut right) = memory::pair(&pool, 1, 4);
/// let mut burst = vec![pool.take().unwrap()];
/// burst[0].fill(b"frame");
/// assert_eq!(left.queues[0].transmit.transmit(&pool, &mut burst).unwrap(), 1);
/// assert_eq!(right.queues[0].receive.receive(&pool, &mut burst, 32).unwrap(), 1);
/// assert_eq!(burst[0].bytes(), b"frame");
/// pool.give(burst);
/// ```
pub fn pair<'p>(pool: &'p Pool, queues: usize, room: usize) -> (Port<'p>, Port<'p>) {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for _ in 0..queues {
        let ((to_right, from_left), (to_left, from_right)) =
            (RingBuffer::new(room), RingBuffer::new(room));
        let queue = |send, receive| Queue {
            receive: Box::new(FromRing { ring: receive, pool }),
            transmit: Box::new(ToRing { ring: send }),
        };
        left.push(queue(to_right, from_right));
        right.push(queue(to_left, from_left));
    }
    let port = |name: &str, end, queues| Port {
        name: format!("memory:{name}"),
        interface: 0,
        mac: [2, 0, 0, 0, 1, end],
        mtu: super::mtu(pool),
        is_shared: false,
        queues,
    };
    (port("left", 1, left), port("right", 2, right))
}

struct FromRing<'p> {
    ring: Consumer<Packet<'p>>,
    pool: &'p Pool,
}

struct ToRing<'p> {
    ring: Producer<Packet<'p>>,
}

impl<'p> Receive<'p> for FromRing<'p> {
    fn receive(
        &mut self,
        _: &'p Pool,
        burst: &mut Vec<Packet<'p>>,
        most: usize,
    ) -> io::Result<usize> {
        let count = self.ring.slots().min(most);
        burst.extend(self.ring.read_chunk(count).expect("so many are there"));
        Ok(count)
    }

    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        // The other end has no way to wake this one.
        let until = Instant::now() + longest;
        while self.ring.is_empty() && Instant::now() < until {
            thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        // In this order, so that packets that were pushed before the end are seen.
        self.ring.is_abandoned() && self.ring.is_empty()
    }
}

/// Nobody receives the packets that still wait: their slots are returned.
impl Drop for FromRing<'_> {
    fn drop(&mut self) {
        let count = self.ring.slots();
        self.pool.give(self.ring.read_chunk(count).expect("so many are there"));
    }
}

impl<'p> Transmit<'p> for ToRing<'p> {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        if self.ring.is_abandoned() {
            // A cable without another end: it takes everything.
            let count = burst.len();
            pool.give(burst.drain(..));
            return Ok(count);
        }
        let count = self.ring.slots().min(burst.len());
        let chunk = self.ring.write_chunk_uninit(count).expect("there is so much room");
        chunk.fill_from_iter(burst.drain(..count));
        Ok(count)
    }

    fn flush(&mut self, _: &'p Pool) -> io::Result<()> {
        Ok(())
    }
}
