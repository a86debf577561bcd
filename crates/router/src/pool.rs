//! The memory of packets: equal slots in one area, and who owns each.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::{alloc, slice};

/// One area of memory, cut into slots that hold a packet each. Ports may hand the whole area to the system
/// (AF_XDP, DPDK), so it never moves.
pub struct Pool {
    area: NonNull<u8>,
    slots: u32,
    slot_len: u32,
    free: Mutex<Vec<u32>>,
}

// SAFETY: the area is only reached through packets, each of which owns its slot alone.
unsafe impl Send for Pool {}
// SAFETY: as above; the list of free slots has a lock.
unsafe impl Sync for Pool {}

/// Bytes that are kept free in front of a received packet, for headers that become longer.
pub const HEADROOM: usize = 256;

/// A packet in a slot of a pool, which it owns alone. One that is forgotten keeps its slot until the pool
/// goes: give it back with [`Pool::give`].
#[must_use = "a packet that is dropped keeps its slot: give it back to its pool"]
pub struct Packet<'p> {
    slot: NonNull<u8>,
    slot_len: u32,
    start: u32,
    len: u32,
    /// The router's number of the port that it came in by.
    pub port: u16,
    /// For the stages: the classifier's mark; 0 at first.
    pub mark: u16,
    pool: PhantomData<&'p Pool>,
}

// SAFETY: a packet owns its slot as a box owns its value.
unsafe impl Send for Packet<'_> {}

impl Pool {
    /// A pool of `slots` slots of `slot_len` bytes, a power of two of at least 512.
    ///
    /// # Panics
    /// If `slot_len` is no such power, or there are no slots.
    pub fn new(slots: u32, slot_len: u32) -> Self {
        assert!(slot_len.is_power_of_two() && slot_len >= 512 && slots > 0);
        let area = NonNull::new(
            // SAFETY: the layout is not empty.
            unsafe { alloc::alloc_zeroed(layout(slots, slot_len)) },
        )
        .unwrap_or_else(|| alloc::handle_alloc_error(layout(slots, slot_len)));
        Self { area, slots, slot_len, free: Mutex::new((0..slots).rev().collect()) }
    }

    /// Where the area begins, and its length in bytes.
    pub fn area(&self) -> (NonNull<u8>, usize) {
        (self.area, self.slots as usize * self.slot_len as usize)
    }

    /// Bytes of a slot.
    pub fn slot_len(&self) -> usize {
        self.slot_len as usize
    }

    /// An empty packet with [`HEADROOM`] in front; `None` if all slots are in use.
    pub fn take(&self) -> Option<Packet<'_>> {
        let slot = self.free.lock().expect("nobody panics with it").pop()?;
        Some(self.packet(slot))
    }

    /// Takes packets back.
    pub fn give<'p>(&'p self, packets: impl IntoIterator<Item = Packet<'p>>) {
        let mut free = self.free.lock().expect("nobody panics with it");
        free.extend(packets.into_iter().map(|packet| self.slot_of(&packet)));
    }

    /// Slots that nobody owns.
    pub fn free(&self) -> usize {
        self.free.lock().expect("nobody panics with it").len()
    }

    fn packet(&self, slot: u32) -> Packet<'_> {
        // SAFETY: the slot's number is below the number of slots.
        let start = unsafe { self.area.add(slot as usize * self.slot_len()) };
        Packet {
            slot: start,
            slot_len: self.slot_len,
            start: HEADROOM as u32,
            len: 0,
            port: 0,
            mark: 0,
            pool: PhantomData,
        }
    }

    fn slot_of(&self, packet: &Packet<'_>) -> u32 {
        let at = packet.slot.addr().get().wrapping_sub(self.area.addr().get());
        let slot = at / self.slot_len();
        assert!(slot < self.slots as usize, "a packet of another pool");
        slot as u32
    }
}

/// For ports that lend slots to the system, which names them by their place in the area.
#[cfg(target_os = "linux")]
impl Pool {
    /// How many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.slots as usize
    }

    /// The packet's slot, and where in it the packet begins.
    pub(crate) fn place(&self, packet: &Packet<'_>) -> (u32, u32) {
        (self.slot_of(packet), packet.start)
    }

    /// The packet of that length in a slot, which begins there.
    ///
    /// # Safety
    /// The slot's last packet was forgotten, and nobody else has the slot: no other packet, not the system.
    ///
    /// # Panics
    /// If there is no such slot, or it is not that long.
    pub(crate) unsafe fn reclaim(&self, slot: u32, start: u32, len: u32) -> Packet<'_> {
        assert!(slot < self.slots && start <= self.slot_len && len <= self.slot_len - start);
        Packet { start, len, ..self.packet(slot) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; no packet outlives the pool that it borrows.
        unsafe { alloc::dealloc(self.area.as_ptr(), layout(self.slots, self.slot_len)) }
    }
}

fn layout(slots: u32, slot_len: u32) -> alloc::Layout {
    let len = slots as usize * slot_len as usize;
    // Whole pages, as the system wants them for AF_XDP.
    alloc::Layout::from_size_align(len, 4096).expect("an area that memory may have")
}

impl Packet<'_> {
    /// The packet's bytes, from its link header on.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: start + len is at most the slot's length, and the slot is this packet's alone.
        unsafe {
            slice::from_raw_parts(self.slot.as_ptr().add(self.start as usize), self.len as usize)
        }
    }

    /// The packet's bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`.
        unsafe {
            slice::from_raw_parts_mut(
                self.slot.as_ptr().add(self.start as usize),
                self.len as usize,
            )
        }
    }

    /// Makes it `len` bytes long, where it begins; what is new has whatever the slot held.
    ///
    /// # Panics
    /// If the slot is not that long.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.slot_len as usize - self.start as usize, "longer than its slot");
        self.len = len as u32;
    }

    /// Makes it begin `by` bytes earlier (negative: later). Its end stays.
    ///
    /// # Panics
    /// If there is no such room in front, or fewer bytes in it.
    pub fn grow_front(&mut self, by: isize) {
        let start = (self.start as isize).checked_sub(by).filter(|&start| start >= 0);
        let len = (self.len as isize).checked_add(by).filter(|&len| len >= 0);
        let (start, len) = start.zip(len).expect("room in front");
        (self.start, self.len) = (start as u32, len as u32);
    }

    /// Bytes that it may have from where it begins.
    pub fn room(&self) -> usize {
        (self.slot_len - self.start) as usize
    }

    /// Takes over these bytes; false, and nothing changes, if the slot is too short for them.
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= self.room();
        if fits {
            self.set_len(bytes.len());
            self.bytes_mut().copy_from_slice(bytes);
        }
        fits
    }
}
