//! A burst whose packets go to several places.

use std::{ptr, slice};

use crate::Packet;

/// Takes the packets out of a burst, in order. Unlike with `Vec::drain`, each packet is copied from one vector to the
/// other in one step. A local variable in between would be written with stores of other sizes than the loads that read
/// it, so the processor could not forward them: some 5 ns for each packet (Zen 4).
///
/// Packets that are left when this is dropped keep their slots.
pub(crate) struct Leaving<'b, 'p> {
    burst: &'b mut Vec<Packet<'p>>,
    next: usize,
    count: usize,
}

/// Number of vectors whose ends are kept in one array while packets are sorted.
const VECTORS: usize = 32;

impl<'b, 'p> Leaving<'b, 'p> {
    pub(crate) fn new(burst: &'b mut Vec<Packet<'p>>) -> Self {
        let count = burst.len();
        // They are this value's from here on, and nobody's if it is forgotten.
        // SAFETY: nothing is less than the capacity.
        unsafe { burst.set_len(0) };
        Self { burst, next: 0, count }
    }

    /// Where the next packet is.
    #[inline(always)]
    fn next(&mut self) -> *const Packet<'p> {
        assert!(self.next < self.count, "as many packets as there were in the burst");
        // SAFETY: below the number of packets that there were.
        let next = unsafe { self.burst.as_ptr().add(self.next) };
        self.next += 1;
        next
    }

    /// The next packets, at most so many.
    pub(crate) fn rest(&self, most: usize) -> &[Packet<'p>] {
        // SAFETY: the packets from `next` to `count` are this value's.
        unsafe {
            let first = self.burst.as_ptr().add(self.next);
            slice::from_raw_parts(first, most.min(self.count - self.next))
        }
    }

    /// The next packet, which stays the next one.
    #[inline(always)]
    pub(crate) fn first(&mut self) -> &mut Packet<'p> {
        assert!(self.next < self.count, "as many packets as there were in the burst");
        // SAFETY: below the number of packets that there were, and not moved yet.
        unsafe { &mut *self.burst.as_mut_ptr().add(self.next) }
    }

    /// Moves the next packet to the end of the vector.
    #[inline(always)]
    pub(crate) fn push_to(&mut self, vector: &mut Vec<Packet<'p>>) {
        vector.reserve(1);
        let (next, len) = (self.next(), vector.len());
        // SAFETY: there is room for one behind the last one. Each packet is moved once: nobody reads it here again.
        unsafe {
            vector.as_mut_ptr().add(len).copy_from_nonoverlapping(next, 1);
            vector.set_len(len + 1);
        }
    }

    /// Moves the next packets to the ends of vectors, as many as there are items, in one loop without calls. `write`
    /// gets each packet with its item before it is moved, and returns the number of its vector.
    ///
    /// # Panics
    /// If there are more items than packets, or there is no such vector. Packets that were moved by this call then keep
    /// their slots.
    #[inline(always)]
    pub(crate) fn sort<T>(
        &mut self,
        vectors: &mut [Vec<Packet<'p>>],
        items: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Packet<'p>, T) -> u16,
    ) {
        let (from, count) = (self.next, items.len());
        assert!(count <= self.count - from, "as many packets as there were in the burst");
        self.next += count;
        // SAFETY: the packets from `from` on were this value's; now they are this function's.
        let packets =
            unsafe { slice::from_raw_parts_mut(self.burst.as_mut_ptr().add(from), count) };
        let mut all = [ptr::null_mut(); VECTORS];
        let Some(ends) = all.get_mut(..vectors.len()) else {
            for (packet, item) in packets.iter_mut().zip(items) {
                let vector = &mut vectors[usize::from(write(packet, item))];
                // SAFETY: each packet is moved once: nobody reads it here again.
                vector.push(unsafe { ptr::from_mut(packet).read() });
            }
            return;
        };
        for (end, vector) in ends.iter_mut().zip(&mut *vectors) {
            vector.reserve(count);
            *end = vector.spare_capacity_mut().as_mut_ptr().cast::<Packet<'p>>();
        }
        for (packet, item) in packets.iter_mut().zip(items) {
            let end = &mut ends[usize::from(write(packet, item))];
            // SAFETY: each vector has room for as many packets as there are. Each packet is moved once: nobody reads it
            // here again.
            unsafe {
                end.copy_from_nonoverlapping(packet, 1);
                *end = end.add(1);
            }
        }
        for (end, vector) in ends.iter().zip(vectors) {
            // SAFETY: the end is that of the packets behind the vector's first one.
            unsafe { vector.set_len(end.offset_from_unsigned(vector.as_ptr())) }
        }
    }

    /// Takes the next packet.
    pub(crate) fn take(&mut self) -> Packet<'p> {
        // SAFETY: as for `push_to`.
        unsafe { self.next().read() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pool;

    #[test]
    fn a_burst_leaves_in_order() {
        let pool = Pool::new(64, 512);
        let mut burst = Vec::new();
        assert_eq!(pool.take_many(&mut burst, 20), 20);
        for (packet, byte) in burst.iter_mut().zip(0..) {
            packet.fill(&[byte]);
        }
        let (mut even, mut odd) = (Vec::new(), Vec::new());
        let mut leaving = Leaving::new(&mut burst);
        for at in 0..20 {
            match at % 2 {
                0 => leaving.push_to(&mut even),
                _ => odd.push(leaving.take()),
            }
        }
        assert!(burst.is_empty());
        let bytes =
            |packets: &[Packet<'_>]| packets.iter().map(|p| p.bytes()[0]).collect::<Vec<_>>();
        assert_eq!(bytes(&even), (0..20).step_by(2).collect::<Vec<_>>());
        assert_eq!(bytes(&odd), (1..20).step_by(2).collect::<Vec<_>>());
        pool.give(even.into_iter().chain(odd));
        assert_eq!(pool.free(), 64);
    }

    #[test]
    fn packets_are_sorted() {
        for places in [1, 2, VECTORS, VECTORS + 1] {
            let pool = Pool::new(64, 512);
            let mut burst = Vec::new();
            assert_eq!(pool.take_many(&mut burst, 12), 12);
            let mut vectors: Vec<_> = (0..places).map(Vec::with_capacity).collect();
            let mut leaving = Leaving::new(&mut burst);
            for bytes in [0..5, 5..5, 5..12_u8] {
                leaving.sort(&mut vectors, bytes.map(usize::from), |packet, byte| {
                    assert!(packet.fill(&[byte as u8]));
                    (byte * 7 % places) as u16
                });
            }
            for (place, vector) in vectors.iter().enumerate() {
                let bytes = vector.iter().map(|packet| usize::from(packet.bytes()[0]));
                assert!(bytes.eq((0..12).filter(|byte| byte * 7 % places == place)));
            }
            pool.give(vectors.into_iter().flatten());
            assert_eq!(pool.free(), 64);
        }
    }

    #[test]
    #[should_panic(expected = "as many packets as there were")]
    fn no_more_are_sorted_than_there_are() {
        let pool = Pool::new(1, 512);
        let mut burst = vec![pool.take().unwrap()];
        Leaving::new(&mut burst).sort(&mut [Vec::new()], [0, 0].into_iter(), |_, place| place);
    }

    #[test]
    #[should_panic(expected = "as many packets as there were")]
    fn no_more_leave_than_there_are() {
        let pool = Pool::new(1, 512);
        let mut burst = vec![pool.take().unwrap()];
        let mut leaving = Leaving::new(&mut burst);
        let _ = leaving.take();
        let _ = leaving.take();
    }
}
