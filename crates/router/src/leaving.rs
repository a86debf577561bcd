//! A burst whose packets go to several places.

use std::slice;

use crate::Packet;

/// Takes the packets out of a burst, in order. Unlike those of `Vec::drain`, they are copied from one vector into the
/// other at once. A packet that is a variable in between is written in other pieces than it is read in, for which the
/// processor waits: some 5 ns each (Zen 4).
///
/// Packets that are left when this goes keep their slots.
pub(crate) struct Leaving<'b, 'p> {
    burst: &'b mut Vec<Packet<'p>>,
    next: usize,
    count: usize,
}

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
    #[should_panic(expected = "as many packets as there were")]
    fn no_more_leave_than_there_are() {
        let pool = Pool::new(1, 512);
        let mut burst = vec![pool.take().unwrap()];
        let mut leaving = Leaving::new(&mut burst);
        let _ = leaving.take();
        let _ = leaving.take();
    }
}
