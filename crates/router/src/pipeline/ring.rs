//! Rings between two threads: one puts packets in, one takes them out, and neither waits.

use std::sync::Arc;

use rtrb::{Consumer, Producer, RingBuffer};

use super::bell::Bell;
use crate::Packet;

/// A packet on its way to another thread. [`Packet::port`] is, from a lookup on, the number of its exit.
pub(super) struct Item<'p> {
    pub(super) packet: Packet<'p>,
    /// When it was received, in nanoseconds of the pipeline's clock.
    pub(super) stamp: u64,
}

/// The end that packets are put into. When it is dropped, the other end is notified.
pub(super) struct Sender<'p> {
    // Dropped in this order: the ring is without a sender when the bell is rung.
    ring: Producer<Item<'p>>,
    bell: RungAtTheEnd,
}

struct RungAtTheEnd(Arc<Bell>);

impl Drop for RungAtTheEnd {
    fn drop(&mut self) {
        self.0.ring();
    }
}

/// The end that packets are taken from.
pub(super) struct Receiver<'p>(Consumer<Item<'p>>);

/// A ring of so many packets to the thread with this bell.
pub(super) fn ring<'p>(room: usize, bell: &Arc<Bell>) -> (Sender<'p>, Receiver<'p>) {
    let (producer, consumer) = RingBuffer::new(room);
    let bell = RungAtTheEnd(Arc::clone(bell));
    (Sender { ring: producer, bell }, Receiver(consumer))
}

impl<'p> Sender<'p> {
    /// Takes packets from the front of the burst, as many as there is room for.
    pub(super) fn send(&mut self, burst: &mut Vec<Packet<'p>>, stamp: u64) -> usize {
        let count = self.ring.slots().min(burst.len());
        let chunk = self.ring.write_chunk_uninit(count).expect("there is so much room");
        chunk.fill_from_iter(burst.drain(..count).map(|packet| Item { packet, stamp }));
        self.bell.0.ring();
        count
    }
}

impl<'p> Receiver<'p> {
    /// Takes at most `most` packets out.
    pub(super) fn take(&mut self, most: usize) -> impl Iterator<Item = Item<'p>> {
        let count = self.0.slots().min(most);
        self.0.read_chunk(count).expect("so many are there").into_iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether nothing will ever come again.
    pub(super) fn is_over(&self) -> bool {
        // In this order, so that packets that were put in before the end are seen.
        self.0.is_abandoned() && self.0.is_empty()
    }
}
