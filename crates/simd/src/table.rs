use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;

use crate::pages::Piece;

/// Tables begin at a cache line.
const LINE: usize = 64;

/// An immutable array of plain integers, aligned to a cache line, for an engine's lookups.
///
/// It owns its memory, or keeps alive the owner of the bytes that it points into (a mapped file). On
/// 64-bit Linux, tables of 64 KiB and more lie on huge pages (2 MiB), which they share: the tables of an engine, and
/// small engines, lie on the same ones. This saves a TLB miss for most lookups. They have ordinary pages if the system
/// has no huge ones, and lie on the heap with `FIBULA_HUGE_PAGES=off` in the environment. Cloning shares.
///
/// ```
/// use fibula_simd::Table;
/// let table = Table::from_slice(&[1u32, 2, 3]);
/// assert_eq!(table[2], 3);
/// assert_eq!(table.as_ptr().addr() % 64, 0);
/// assert_eq!(table.as_bytes().len(), 12);
/// ```
pub struct Table<T: Pod> {
    start: NonNull<T>,
    len: usize,
    /// Keeps the memory at `start` alive and unchanged.
    owner: Owner,
    _marker: PhantomData<T>,
}

#[derive(Clone)]
#[expect(dead_code, reason = "held for their drop")]
enum Owner {
    Own(Arc<Memory>),
    Shared(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

// SAFETY: the memory behind `start` is changed only by a table that is its only owner, through an
// exclusive borrow, and is freed by the last owner, which is itself `Send + Sync`; `T: Pod` are plain integers.
unsafe impl<T: Pod> Send for Table<T> {}
// SAFETY: as for `Send`; shared access only reads.
unsafe impl<T: Pod> Sync for Table<T> {}

impl<T: Pod> Table<T> {
    /// A table of `len` zeroed elements that `fill` then writes.
    ///
    /// # Panics
    /// If the size exceeds the address space.
    pub fn with(len: usize, fill: impl FnOnce(&mut [T])) -> Self {
        let memory =
            Memory::new(len.checked_mul(size_of::<T>()).expect("table size overflows"), true);
        let start = memory.start.cast::<T>();
        // SAFETY: the allocation has `len * size_of::<T>()` bytes, all zero, which is a valid value
        // of a `Pod`; it is aligned to 64, which `T`'s alignment divides (asserted in `ALIGNED`);
        // nobody else has it yet.
        fill(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) });
        let () = Self::ALIGNED;
        Self { start, len, owner: Owner::Own(Arc::new(memory)), _marker: PhantomData }
    }

    /// A copy of the slice.
    pub fn from_slice(slice: &[T]) -> Self {
        Self::with_room(slice, slice.len())
    }

    /// A copy of the slice, followed by zeroed elements up to `len`. Faster than [`Table::with`], because the copied
    /// part is not zeroed before.
    ///
    /// ```
    /// use fibula_simd::Table;
    /// assert_eq!(*Table::with_room(&[1u32, 2], 4), [1, 2, 0, 0]);
    /// ```
    ///
    /// # Panics
    /// If the slice is longer than `len`, or the size exceeds the address space.
    pub fn with_room(slice: &[T], len: usize) -> Self {
        let () = Self::ALIGNED;
        let room = len.checked_sub(slice.len()).expect("room for the slice");
        let memory =
            Memory::new(len.checked_mul(size_of::<T>()).expect("table size overflows"), false);
        let start = memory.start.cast::<T>();
        // SAFETY: the allocation has room for `slice.len() + room` elements; it is aligned to 64, which `T`'s alignment
        // divides (asserted in `ALIGNED`); nobody else has it yet. Zero is a valid value of a `Pod`.
        unsafe {
            start.copy_from_nonoverlapping(NonNull::from(slice).cast(), slice.len());
            start.add(slice.len()).write_bytes(0, room);
        }
        Self { start, len, owner: Owner::Own(Arc::new(memory)), _marker: PhantomData }
    }

    /// A copy of the vector, whose own memory is not aligned to cache lines.
    pub fn from_vec(vec: Vec<T>) -> Self {
        Self::from_slice(&vec)
    }

    /// The bytes `start..start + len` of the owner as a table, in place. `None` unless they lie
    /// within the owner, begin at a cache line and hold whole elements.
    pub fn from_shared(
        owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
        start: usize,
        len: usize,
    ) -> Option<Self> {
        let () = Self::ALIGNED;
        let bytes = (*owner).as_ref().get(start..start.checked_add(len)?)?;
        if bytes.as_ptr().addr() % LINE != 0 || !len.is_multiple_of(size_of::<T>()) {
            return None;
        }
        // The pointer outlives the borrow of the owner that it came from. That is sound: the slice
        // may live as long as a shared borrow of the owner, and the reference count that we hold
        // keeps the owner in place and prevents exclusive borrows for as long.
        let start = NonNull::from(bytes).cast::<T>();
        let len = len / size_of::<T>();
        Some(Self { start, len, owner: Owner::Shared(owner), _marker: PhantomData })
    }

    /// Moves tables into one allocation, one behind the other, each at a cache line. Many small tables are then in few
    /// pages, and in huge ones if they are large together. The next call of [`Table::to_mut`] gives a table memory of
    /// its own again. O(bytes).
    ///
    /// # Panics
    /// If the size exceeds the address space.
    ///
    /// ```
    /// use fibula_simd::Table;
    /// let (mut a, mut b) = (Table::from_slice(&[1u32, 2]), Table::from_slice(&[3u32]));
    /// Table::pack([&mut a, &mut b]);
    /// assert_eq!((a[1], b[0]), (2, 3));
    /// assert_eq!(b.as_ptr().addr() - a.as_ptr().addr(), 64);
    /// ```
    pub fn pack<'t>(tables: impl IntoIterator<Item = &'t mut Self>)
    where
        T: 't,
    {
        let tables: Vec<&mut Self> = tables.into_iter().collect();
        let bytes = |table: &Self| size_of_val::<[T]>(table).next_multiple_of(LINE);
        let all = tables.iter().try_fold(0usize, |all, table| all.checked_add(bytes(table)));
        let memory = Arc::new(Memory::new(all.expect("table size overflows"), false));
        let mut at = 0;
        for table in tables {
            // SAFETY: the memory has the sizes of all tables, each up to a multiple of a line, so that `len` elements
            // from here on are in it. `T`'s alignment divides a line (asserted in `ALIGNED`). Nobody else has this
            // memory yet, least of all the table that is copied.
            let start = unsafe {
                let start = memory.start.add(at).cast::<T>();
                start.copy_from_nonoverlapping(table.start, table.len);
                start
            };
            let () = Self::ALIGNED;
            at += bytes(table);
            *table = Self { start, owner: Owner::Own(Arc::clone(&memory)), ..*table };
        }
    }

    /// Mutable elements. If the memory is shared with clones or a file, this makes a copy first, so the others do not
    /// see the change.
    ///
    /// ```
    /// use fibula_simd::Table;
    /// let mut table = Table::from_slice(&[1u32, 2, 3]);
    /// let before = table.clone();
    /// table.to_mut()[1] = 7;
    /// assert_eq!((table[1], before[1]), (7, 2));
    /// ```
    pub fn to_mut(&mut self) -> &mut [T] {
        let is_ours = match &mut self.owner {
            Owner::Own(memory) => Arc::get_mut(memory).is_some(),
            Owner::Shared(_) => false,
        };
        if !is_ours {
            *self = Self::from_slice(self);
        }
        // SAFETY: `start` points at `len` initialised elements, aligned to a cache line. They are in
        // memory of ours and we are the only owner, as just seen or just made; the result borrows `self`,
        // so no other owner can come to be while it lives.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// The bytes, in the machine's byte order.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    const ALIGNED: () = assert!(size_of::<T>() > 0 && LINE.is_multiple_of(align_of::<T>()));
}

impl<T: Pod> Deref for Table<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `start` points at `len` initialised elements (both constructors), aligned to a
        // cache line, kept alive and unchanged by the owner.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Pod> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self { start: self.start, len: self.len, owner: self.owner.clone(), _marker: PhantomData }
    }
}

impl<T: Pod> Default for Table<T> {
    /// The empty table.
    fn default() -> Self {
        Self::from_slice(&[])
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({} x {})", self.len, std::any::type_name::<T>())
    }
}

/// Bytes at a cache line, on huge pages or of the allocator.
struct Memory {
    start: NonNull<u8>,
    owner: Allocated,
}

enum Allocated {
    #[expect(dead_code, reason = "held for its drop")]
    HugePages(Piece),
    Heap(Layout),
}

// SAFETY: the memory belongs to this value alone; who may touch it is `Table`'s matter.
unsafe impl Send for Memory {}
// SAFETY: as for `Send`: it gives no access to the memory at all.
unsafe impl Sync for Memory {}

impl Memory {
    /// So many bytes, all zero if wanted.
    fn new(bytes: usize, zeroed: bool) -> Self {
        if let Some(piece) = Piece::new(bytes, zeroed) {
            return Self { start: piece.start(), owner: Allocated::HugePages(piece) };
        }
        // At least a line, so that the layout is never empty.
        let layout = Layout::from_size_align(bytes.max(LINE), LINE).expect("table size overflows");
        // SAFETY: the layout is not empty.
        let start = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, owner: Allocated::Heap(layout) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Allocated::Heap(layout) = self.owner {
            // SAFETY: `start` came from the allocator with this layout.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_tables_are_aligned() {
        for len in [0, 1, 15, 16, 17, 1000] {
            let table = Table::<u32>::with(len, |t| t.iter_mut().for_each(|x| *x = 7));
            assert_eq!(table.len(), len);
            assert!(table.iter().all(|&x| x == 7));
            assert_eq!(table.as_ptr().addr() % LINE, 0);
        }
        let table = Table::<u64>::with((2 << 20) / 4, |t| t[5] = 1);
        assert_eq!(table.as_ptr().addr() % LINE, 0);
        assert_eq!(table.iter().sum::<u64>(), 1);
    }

    #[test]
    fn packed_tables_keep_what_they_hold() {
        let mut tables: Vec<Table<u64>> =
            (0..100).map(|n| Table::from_vec(vec![n; n as usize % 20])).collect();
        let alone = tables[7].clone();
        Table::pack(&mut tables);
        let first = tables[0].as_ptr().addr();
        for (n, table) in tables.iter().enumerate() {
            assert_eq!(**table, vec![n as u64; n % 20]);
            assert_eq!(table.as_ptr().addr() % LINE, 0);
            assert!(table.as_ptr().addr() - first <= 100 * 20 * 8);
        }
        // A change is seen by nobody else.
        tables[7].to_mut()[0] = 1;
        assert_eq!((tables[7][0], alone[0], tables[8][0], tables[6][5]), (1, 7, 8, 6));
        drop(tables.split_off(1));
        Table::pack(&mut tables);
        Table::<u64>::pack([]);
        // Together they are large.
        let mut tables = [0u64, 1].map(|n| Table::from_vec(vec![n; (2 << 20) / 8]));
        Table::pack(&mut tables);
        assert_eq!((tables[0][0], tables[1][0], tables[1].last()), (0, 1, Some(&1)));
    }

    #[test]
    fn shared_bytes_are_used_in_place_or_refused() {
        let bytes = Table::<u8>::from_slice(&(0..=255).collect::<Vec<u8>>());
        struct Bytes(Table<u8>);
        impl AsRef<[u8]> for Bytes {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        let at = bytes.as_ptr().addr();
        let owner: Arc<dyn AsRef<[u8]> + Send + Sync> = Arc::new(Bytes(bytes));
        let table = Table::<u16>::from_shared(owner.clone(), 64, 6).unwrap();
        assert_eq!(table.as_bytes(), [64, 65, 66, 67, 68, 69]);
        assert_eq!(table.as_ptr().addr(), at + 64);
        assert!(Table::<u16>::from_shared(owner.clone(), 64, 5).is_none(), "half an element");
        assert!(Table::<u16>::from_shared(owner.clone(), 32, 6).is_none(), "not at a line");
        assert!(Table::<u16>::from_shared(owner.clone(), 192, 66).is_none(), "past the end");
        assert!(Table::<u16>::from_shared(owner.clone(), usize::MAX, 2).is_none());
        drop(owner);
        assert_eq!(table.clone()[1], u16::from_ne_bytes([66, 67]), "outlives the other owners");
    }
}
