//! Rings of descriptors that a program and the kernel share: one side puts entries in, the other takes them out.
//!
//! Both counters only grow, and wrap around at 2^32; an entry's place is its number modulo the ring's size, a power of
//! two. The producer may be at most a whole ring ahead.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags};
use rustix::net::xdp::XdpRingOffset;

/// Where a ring's parts lie.
pub(super) struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: Option<NonNull<AtomicU32>>,
    entries: NonNull<T>,
    size: u32,
    /// The mapping, which is removed on drop.
    mapped: Option<(NonNull<u8>, usize)>,
}

// SAFETY: the memory is shared with the kernel alone, and stays where it is.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps the ring of an XDP socket that lies at this place of its file.
    pub fn map(
        socket: &OwnedFd,
        offset: &XdpRingOffset,
        place: u64,
        size: u32,
    ) -> io::Result<Self> {
        let len = offset.desc as usize + size as usize * size_of::<T>();
        // SAFETY: a new mapping, where the kernel chooses.
        let mapped = unsafe {
            let flags = MapFlags::SHARED | MapFlags::POPULATE;
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap(ptr::null_mut(), len, protection, flags, socket, place)?
        };
        let base = NonNull::new(mapped.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the kernel says where in the mapping these are; they are aligned as their types want it.
        unsafe {
            Ok(Self {
                producer: base.add(offset.producer as usize).cast(),
                consumer: base.add(offset.consumer as usize).cast(),
                flags: offset.flags.map(|flags| base.add(flags as usize).cast()),
                entries: base.add(offset.desc as usize).cast(),
                size,
                mapped: Some((base, len)),
            })
        }
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: it points into the mapping, which lives as long as the ring.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    /// Whether the kernel waits to be woken before it looks at the ring.
    fn needs_wakeup(&self) -> bool {
        // SAFETY: as above.
        self.flags.is_none_or(|flags| unsafe { flags.as_ref() }.load(Ordering::Relaxed) & 1 != 0)
    }

    fn entry(&self, number: u32) -> NonNull<T> {
        // SAFETY: the place is below the ring's size.
        unsafe { self.entries.add((number & (self.size - 1)) as usize) }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        if let Some((base, len)) = self.mapped {
            // SAFETY: mapped with this length; nothing that points into it outlives the ring.
            let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), len) };
        }
    }
}

/// The side that puts entries in.
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// The next entry's number; the other side sees it after `submit`.
    next: u32,
    /// How far the other side was when that was last asked.
    taken: u32,
}

impl<T: Copy> Producer<T> {
    pub fn new(ring: Ring<T>) -> Self {
        Self { ring, next: 0, taken: 0 }
    }

    /// How many entries there is room for, at least as many as are wanted if there are that many.
    pub fn room(&mut self, wanted: u32) -> u32 {
        let mut used = self.next.wrapping_sub(self.taken);
        if self.ring.size - used < wanted {
            self.taken = self.ring.consumer().load(Ordering::Acquire);
            used = self.next.wrapping_sub(self.taken);
        }
        self.ring.size.saturating_sub(used)
    }

    /// Puts an entry in, where there was room.
    pub fn put(&mut self, entry: T) {
        // SAFETY: the other side has taken this entry out: `room` said so.
        unsafe { self.ring.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
    }

    /// Publishes the added entries to the other side.
    pub fn submit(&mut self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// How many entries the other side has not taken out.
    pub fn waiting(&mut self) -> u32 {
        self.taken = self.ring.consumer().load(Ordering::Acquire);
        self.next.wrapping_sub(self.taken)
    }

    pub fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// The side that takes entries out.
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// The next entry's number; the other side sees it after `release`.
    next: u32,
    /// How far the other side was when that was last asked.
    put: u32,
}

impl<T: Copy> Consumer<T> {
    pub fn new(ring: Ring<T>) -> Self {
        Self { ring, next: 0, put: 0 }
    }

    /// How many entries can be taken out, at most that many.
    pub fn ready(&mut self, most: u32) -> u32 {
        if self.put.wrapping_sub(self.next) < most {
            self.put = self.ring.producer().load(Ordering::Acquire);
        }
        self.put.wrapping_sub(self.next).min(self.ring.size).min(most)
    }

    /// Takes an entry out, where one was ready.
    pub fn take(&mut self) -> T {
        // SAFETY: the other side has put this entry in: `ready` said so.
        let entry = unsafe { self.ring.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        entry
    }

    /// Returns the places of the removed entries to the other side.
    pub fn release(&mut self) {
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of a ring of eight, whose counters stand just before they wrap around.
    struct Memory {
        producer: AtomicU32,
        consumer: AtomicU32,
        flags: AtomicU32,
        entries: [u64; 8],
    }

    const START: u32 = u32::MAX - 10;

    fn sides(memory: &mut Memory) -> (Producer<u64>, Consumer<u64>) {
        let mut ring = || Ring {
            producer: NonNull::from(&memory.producer),
            consumer: NonNull::from(&memory.consumer),
            flags: Some(NonNull::from(&memory.flags)),
            entries: NonNull::from(&mut memory.entries).cast(),
            size: 8,
            mapped: None,
        };
        (
            Producer { ring: ring(), next: START, taken: START },
            Consumer { ring: ring(), next: START, put: START },
        )
    }

    fn memory() -> Memory {
        let counter = || AtomicU32::new(START);
        let flags = AtomicU32::new(0);
        Memory { producer: counter(), consumer: counter(), flags, entries: [0; 8] }
    }

    #[test]
    fn entries_come_out_as_they_went_in_across_the_wrap() {
        let mut memory = memory();
        let (mut producer, mut consumer) = sides(&mut memory);
        let (mut put, mut taken) = (0, 0);
        for round in 0..100 {
            let count = producer.room(8).min(1 + round % 8);
            for _ in 0..count {
                producer.put(put);
                put += 1;
            }
            assert_eq!(consumer.ready(8), (put - taken) as u32 - count, "not yet submitted");
            producer.submit();
            assert_eq!(producer.waiting(), (put - taken) as u32);
            for _ in 0..consumer.ready(1 + round % 5) {
                assert_eq!(consumer.take(), taken);
                taken += 1;
            }
            consumer.release();
        }
        assert!(taken > 200);
    }

    #[test]
    fn a_full_ring_has_no_room_until_its_entries_are_released() {
        let mut memory = memory();
        let (mut producer, mut consumer) = sides(&mut memory);
        for entry in 0..8 {
            assert!(producer.room(1) > 0);
            producer.put(entry);
        }
        producer.submit();
        assert_eq!(producer.room(1), 0);
        assert_eq!(consumer.ready(3), 3);
        assert_eq!([consumer.take(), consumer.take(), consumer.take()], [0, 1, 2]);
        assert_eq!(producer.room(1), 0);
        consumer.release();
        assert_eq!(producer.room(1), 3);
        assert_eq!((consumer.ready(9), producer.waiting()), (5, 5));
    }

    #[test]
    fn the_flag_shows_who_must_be_woken() {
        let mut memory = memory();
        let (producer, _) = sides(&mut memory);
        assert!(!producer.needs_wakeup());
        memory.flags.store(1, Ordering::Relaxed);
        assert!(producer.needs_wakeup());
    }
}
