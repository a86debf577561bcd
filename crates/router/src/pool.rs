//! The memory of packets: equal slots in one area, each with an owner.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use crate::free::Free;

/// One area of memory, divided into slots for one packet each. Ports may give the whole area to the system (AF_XDP,
/// DPDK), so it never moves. Areas of 2 MiB and more use huge pages (not with `FIBULA_HUGE_PAGES=off`).
///
/// Any thread may take packets and return them. Bursts are cheap, see [`Pool::take_many`].
///
/// ```
/// use fibula_router::Pool;
/// let pool = Pool::new(4, 2048);
/// let mut packet = pool.take().unwrap();
/// assert!(packet.fill(b"some bytes"));
/// assert_eq!((packet.bytes(), pool.free()), (&b"some bytes"[..], 3));
/// pool.give([packet]);
/// assert_eq!(pool.free(), 4);
/// ```
///
/// A packet cannot be used after it was returned:
///
/// ```compile_fail,E0382
/// let pool = fibula_router::Pool::new(4, 2048);
/// let packet = pool.take().unwrap();
/// pool.give([packet]);
/// packet.bytes();
/// ```
///
/// A packet cannot outlive its pool:
///
/// ```compile_fail,E0505
/// let pool = fibula_router::Pool::new(4, 2048);
/// let packet = pool.take().unwrap();
/// drop(pool);
/// packet.bytes();
/// ```
pub struct Pool {
    area: NonNull<u8>,
    layout: Layout,
    /// From slot to slot.
    stride: u32,
    /// Bytes in front of each slot that no packet reaches.
    front: u32,
    slots: u32,
    free: Free,
}

// SAFETY: the area is only reached through packets, each of which owns its slot alone; it is freed by whoever
// drops the pool, which no packet outlives.
unsafe impl Send for Pool {}
// SAFETY: as above; `Free`, which says who owns which slot, is itself `Sync`.
unsafe impl Sync for Pool {}

/// Bytes kept free in front of a received packet, for headers that become longer.
pub const HEADROOM: usize = 256;

/// The environment variable that disables huge pages, and the size from which areas use them.
const HUGE_PAGES: &str = "FIBULA_HUGE_PAGES";
const HUGE: usize = 2 << 20;
/// Bytes of a cache line.
const LINE: u32 = 64;
/// Areas begin at a page, as AF_XDP requires.
const PAGE: usize = 4096;

/// A packet in a slot of a pool, with exclusive ownership of the slot. A packet that is leaked keeps its slot as long
/// as the pool lives: return it with [`Pool::give`].
#[must_use = "a packet that is dropped keeps its slot: give it back to its pool"]
// DPDK's shim reads and writes it.
#[repr(C)]
pub struct Packet<'p> {
    slot: NonNull<u8>,
    slot_len: u32,
    start: u32,
    len: u32,
    /// The router's number of the port that received it.
    pub port: u16,
    /// The classifier's mark, for the stages; 0 at first.
    pub mark: u16,
    pool: PhantomData<&'p Pool>,
}

// SAFETY: a packet owns its slot as a box owns its value.
unsafe impl Send for Packet<'_> {}

impl Pool {
    /// Makes a pool of `slots` slots of `slot_len` bytes, a power of two of at least 512.
    ///
    /// # Panics
    /// If `slot_len` is not such a power, there are no slots, or their total size exceeds the address space.
    pub fn new(slots: u32, slot_len: u32) -> Self {
        assert!(slot_len.is_power_of_two());
        Self::with_front(slots, slot_len, 0)
    }

    /// A pool with slots of `stride` bytes, of which the first `front` bytes are for the ports' data about the slot
    /// (DPDK: `port::dpdk::FRONT`). The stride need not be a power of two here. Slots an odd number of cache lines
    /// apart (64 bytes) do not compete for the same few places of the first-level cache; AF_XDP takes powers of two
    /// only.
    ///
    /// # Panics
    /// If the stride is below 512 or no multiple of 64, the front leaves no room for a packet, there are no slots, or
    /// so many that their size exceeds the address space.
    pub fn with_front(slots: u32, stride: u32, front: u32) -> Self {
        assert!(stride.is_multiple_of(LINE) && stride >= 512 && slots > 0);
        assert!(front as usize + HEADROOM < stride as usize);
        let len = (slots as usize).checked_mul(stride as usize).expect("the pool's size overflows");
        assert!(len / (LINE as usize) < u32::MAX as usize, "the pool's size overflows");
        let is_huge = len >= HUGE && std::env::var_os(HUGE_PAGES).is_none_or(|word| word != "off");
        let layout = Layout::from_size_align(len, if is_huge { HUGE } else { PAGE })
            .expect("the pool's size overflows");
        // SAFETY: the layout is not empty.
        let area =
            NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        if is_huge {
            // Before the first touch: pages once served do not become huge by themselves.
            ask_for_huge_pages(area, layout);
        }
        // SAFETY: the allocation has that many bytes. They are written so that every byte of a slot is
        // initialised, and so that no page is served while packets arrive.
        unsafe { area.as_ptr().write_bytes(0, len) };
        Self { area, layout, stride, front, slots, free: Free::new(slots) }
    }

    /// The start of the area, and its length in bytes. Only the owner of a slot's packet may write there, or a port
    /// that lends the slot to the system while the owner waits.
    pub fn area(&self) -> (NonNull<u8>, usize) {
        (self.area, self.layout.size())
    }

    /// The size of a slot in bytes.
    pub fn slot_len(&self) -> usize {
        (self.stride - self.front) as usize
    }

    /// The distance between slots in bytes, including the bytes in front of each.
    pub fn stride(&self) -> usize {
        self.stride as usize
    }

    /// Bytes in front of each slot.
    pub fn front(&self) -> usize {
        self.front as usize
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// An empty packet with [`HEADROOM`] in front; `None` if all slots are in use.
    pub fn take(&self) -> Option<Packet<'_>> {
        let mut packet = None;
        self.free.take(1, |slot| packet = Some(self.packet(slot)));
        packet
    }

    /// Appends up to `most` empty packets to the burst and returns their number. It is smaller only if there are not
    /// enough free slots.
    pub fn take_many<'p>(&'p self, burst: &mut Vec<Packet<'p>>, most: usize) -> usize {
        self.free.take(most, |slot| burst.push(self.packet(slot)))
    }

    /// Returns packets to the pool.
    ///
    /// # Panics
    /// If a packet belongs to another pool. Its slot is then lost to both.
    pub fn give<'p>(&'p self, packets: impl IntoIterator<Item = Packet<'p>>) {
        self.free.give(packets.into_iter().map(|packet| self.slot_of(&packet)));
    }

    /// Number of free slots.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    fn packet(&self, slot: u32) -> Packet<'_> {
        // SAFETY: the slot's number is below the number of slots.
        let start = unsafe { self.area.add(slot as usize * self.stride() + self.front()) };
        Packet {
            slot: start,
            slot_len: self.stride - self.front,
            start: HEADROOM as u32,
            len: 0,
            port: 0,
            mark: 0,
            pool: PhantomData,
        }
    }

    /// The slot of a packet. Its address shows whether it belongs to this pool, because pools that exist at the same
    /// time have disjoint areas, and a packet's pool exists.
    fn slot_of(&self, packet: &Packet<'_>) -> u32 {
        let at = packet.slot.addr().get().wrapping_sub(self.area.addr().get());
        assert!(at < self.layout.size(), "a packet of another pool");
        // In lines, since a division of 32 bits takes half the time of one of 64; areas are shorter than 256 GiB.
        (at / LINE as usize) as u32 / (self.stride / LINE)
    }
}

/// For ports that lend slots to the system, which names them by their place in the area.
#[cfg(target_os = "linux")]
impl Pool {
    /// The packet's slot, and where in its stride the packet begins.
    pub(crate) fn place(&self, packet: &Packet<'_>) -> (u32, u32) {
        (self.slot_of(packet), self.front + packet.start)
    }

    /// The packet of that length in a slot, which begins there in its stride, but not in its front.
    ///
    /// # Safety
    /// The slot's last packet was forgotten, and nobody else has the slot: no other packet, not the system.
    ///
    /// # Panics
    /// If there is no such slot, or it is not that long.
    pub(crate) unsafe fn reclaim(&self, slot: u32, start: u32, len: u32) -> Packet<'_> {
        let (start, slot_len) = (start.saturating_sub(self.front), self.stride - self.front);
        assert!((slot as usize) < self.slots() && start <= slot_len && len <= slot_len - start);
        Packet { start, len, ..self.packet(slot) }
    }
}

/// For ports whose driver takes and returns slots.
#[cfg(all(target_os = "linux", feature = "dpdk"))]
impl Pool {
    /// Takes at most `most` slots and returns how many. The caller owns them until it returns them or makes packets in
    /// them.
    pub(crate) fn take_slots(&self, most: usize, each: impl FnMut(u32)) -> usize {
        self.free.take(most, each)
    }

    /// Takes slots back.
    ///
    /// # Safety
    /// The caller has them, and no packet is in them.
    pub(crate) unsafe fn give_slots(&self, slots: impl Iterator<Item = u32>) {
        self.free.give(slots);
    }
}

/// The layout of a packet in the shim.
#[cfg(all(target_os = "linux", feature = "dpdk"))]
const _: () = {
    use std::mem::offset_of;

    use fibula_dpdk::fib_packet;

    assert!(size_of::<Packet<'_>>() == size_of::<fib_packet>());
    assert!(offset_of!(Packet<'_>, slot) == offset_of!(fib_packet, slot));
    assert!(offset_of!(Packet<'_>, slot_len) == offset_of!(fib_packet, slot_len));
    assert!(offset_of!(Packet<'_>, start) == offset_of!(fib_packet, start));
    assert!(offset_of!(Packet<'_>, len) == offset_of!(fib_packet, len));
    assert!(offset_of!(Packet<'_>, port) == offset_of!(fib_packet, port));
    assert!(offset_of!(Packet<'_>, mark) == offset_of!(fib_packet, mark));
};

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; no packet outlives the pool that it borrows.
        unsafe { dealloc(self.area.as_ptr(), self.layout) }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn ask_for_huge_pages(start: NonNull<u8>, layout: Layout) {
    // SAFETY: the range is ours and begins at a page; the advice changes how pages are served, not what they
    // hold. A kernel without huge pages returns an error, which changes nothing either.
    unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn ask_for_huge_pages(_: NonNull<u8>, _: Layout) {}

impl Packet<'_> {
    /// The packet's bytes, from its link header on.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: start + len is at most the slot's length, and the slot is this packet's alone.
        unsafe {
            slice::from_raw_parts(self.slot.as_ptr().add(self.start as usize), self.len as usize)
        }
    }

    /// The packet's bytes, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`.
        unsafe {
            slice::from_raw_parts_mut(
                self.slot.as_ptr().add(self.start as usize),
                self.len as usize,
            )
        }
    }

    /// Sets the length to `len` bytes without moving the beginning. Added bytes have the previous contents of the
    /// slot.
    ///
    /// # Panics
    /// If the slot is too short.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.slot_len as usize - self.start as usize, "longer than its slot");
        self.len = len as u32;
    }

    /// Cuts off the bytes after its first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// Moves the beginning `by` bytes earlier (later if negative), and keeps the end.
    ///
    /// # Panics
    /// If there is not enough room in front, or the packet has fewer bytes.
    pub fn grow_front(&mut self, by: isize) {
        let start = (self.start as isize).checked_sub(by).filter(|&start| start >= 0);
        let len = (self.len as isize).checked_add(by).filter(|&len| len >= 0);
        let (start, len) = start.zip(len).expect("room in front");
        (self.start, self.len) = (start as u32, len as u32);
    }

    /// The maximum length from its beginning.
    pub fn room(&self) -> usize {
        (self.slot_len - self.start) as usize
    }

    /// Copies these bytes into the packet. Returns false, without a change, if the slot is too short.
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= self.room();
        if fits {
            self.set_len(bytes.len());
            self.bytes_mut().copy_from_slice(bytes);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn packets_own_their_slots() {
        let pool = Pool::new(3, 512);
        let mut packets: Vec<Packet<'_>> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!((packets.len(), pool.free()), (3, 0));
        for (packet, byte) in packets.iter_mut().zip(1..) {
            assert_eq!((packet.bytes(), packet.room()), (&[][..], 512 - HEADROOM));
            assert!(packet.fill(&[byte; 512 - HEADROOM]));
            assert!(!packet.fill(&[0; 512 - HEADROOM + 1]), "longer than its slot");
        }
        for (packet, byte) in packets.iter_mut().zip(1..) {
            assert_eq!(packet.bytes(), [byte; 512 - HEADROOM]);
            packet.grow_front(HEADROOM as isize);
            packet.bytes_mut().fill(byte);
        }
        assert!(packets.iter().zip(1..).all(|(packet, byte)| packet.bytes() == [byte; 512]));
        // Packets go to other threads, and come back from there.
        let mut last = packets.pop().unwrap();
        thread::scope(|scope| {
            let pool = &pool;
            scope.spawn(move || pool.give(packets));
            last.grow_front(-500);
            assert_eq!(last.bytes(), [3; 12]);
        });
        pool.give([last]);
        assert_eq!(pool.free(), 3);
        let again = pool.take().unwrap();
        assert_eq!((again.bytes().len(), again.port, again.mark), (0, 0, 0));
        pool.give([again]);
    }

    #[test]
    #[should_panic(expected = "a packet of another pool")]
    fn a_packet_of_another_pool_is_refused() {
        let (one, other) = (Pool::new(2, 512), Pool::new(2, 512));
        other.give(one.take());
    }

    #[test]
    fn no_packet_reaches_the_front() {
        let pool = Pool::with_front(2, 1024, 192);
        assert_eq!((pool.slot_len(), pool.stride(), pool.slots()), (832, 1024, 2));
        let mut packets: Vec<Packet<'_>> = std::iter::from_fn(|| pool.take()).collect();
        for packet in &mut packets {
            packet.grow_front(HEADROOM as isize);
            assert_eq!(packet.room(), 832);
            packet.set_len(832);
            packet.bytes_mut().fill(7);
        }
        let (area, len) = pool.area();
        // SAFETY: the area is initialised, and no packet is written to meanwhile.
        let area = unsafe { slice::from_raw_parts(area.as_ptr(), len) };
        for stride in area.chunks(1024) {
            assert!(stride[..192].iter().all(|&byte| byte == 0));
            assert!(stride[192..].iter().all(|&byte| byte == 7));
        }
        #[cfg(target_os = "linux")]
        assert_eq!(pool.place(&packets[0]).1, 192);
        pool.give(packets);
    }

    #[test]
    #[should_panic(expected = "room in front")]
    fn a_packet_does_not_begin_before_its_slot() {
        let pool = Pool::new(1, 512);
        pool.take().unwrap().grow_front(HEADROOM as isize + 1);
    }

    #[test]
    fn large_pools_begin_at_huge_pages() {
        if cfg!(miri) {
            return; // writes megabytes
        }
        let pool = Pool::new(2048, 2048);
        let (start, len) = pool.area();
        assert_eq!((start.addr().get() % PAGE, len, pool.slots()), (0, 4 << 20, 2048));
        let mut burst = Vec::new();
        assert_eq!(pool.take_many(&mut burst, 3000), 2048);
        assert_eq!(pool.take_many(&mut burst, 1), 0);
        pool.give(burst.drain(..));
        assert_eq!(pool.free(), 2048);
    }
}
