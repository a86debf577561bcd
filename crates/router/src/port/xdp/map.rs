//! Maps of the kernel that programs and user space share.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use crate::port::bpf::{self, Element, MAP_CREATE, MAP_FREEZE, MAP_LOOKUP, MAP_UPDATE};

/// Kinds and flags, as the kernel numbers them.
pub(super) const ARRAY: u32 = 2;
pub(super) const MMAPABLE: u32 = 1 << 10;
pub(super) const INNER_MAP: u32 = 1 << 12;
pub(super) const RDONLY_PROG: u32 = 1 << 7;

/// The definition of a map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub kind: u32,
    pub key: u32,
    pub value: u32,
    pub entries: u32,
    pub flags: u32,
}

/// A map that was made here, so its sizes are known.
pub(super) struct Map {
    pub fd: OwnedFd,
    spec: Spec,
}

impl Map {
    /// Makes it. A map of maps needs one that is as they will be.
    pub fn new(spec: Spec, inner: Option<&Map>) -> io::Result<Self> {
        let inner = inner.map_or(0, |inner| inner.fd.as_raw_fd() as u32);
        let arguments = [spec.kind, spec.key, spec.value, spec.entries, spec.flags, inner];
        // SAFETY: these are the first six fields of the command, the others are zero if they are left out.
        let fd = unsafe { bpf::open(MAP_CREATE, &arguments)? };
        Ok(Self { fd, spec })
    }

    /// Sets an entry of a map with keys of four bytes. Of a map of maps, returns once no program uses the entry before.
    ///
    /// # Panics
    /// If the value is not as long as the map's.
    pub fn set(&self, key: u32, value: &[u8]) -> io::Result<()> {
        assert_eq!((self.spec.key, self.spec.value as usize), (4, value.len()), "sizes of the map");
        let element = self.element(&key, value.as_ptr().expose_provenance());
        // SAFETY: the kernel reads a key and a value, which are of the map's sizes.
        unsafe { bpf::bpf(MAP_UPDATE, &element).map(drop) }
    }

    /// The numbers of an entry of a map that has one for each processor, added up.
    ///
    /// # Panics
    /// If the map's values are not numbers of 64 bits, as many as are asked for.
    pub fn sums<const N: usize>(&self, key: u32, processors: usize) -> io::Result<[u64; N]> {
        assert_eq!((self.spec.key, self.spec.value as usize), (4, N * 8), "sizes of the map");
        let mut all = vec![[0_u64; N]; processors];
        let element = self.element(&key, all.as_mut_ptr().expose_provenance());
        // SAFETY: the kernel writes a value, whose length is a multiple of eight, for each processor that there may be.
        unsafe { bpf::bpf(MAP_LOOKUP, &element)? };
        let mut sums = [0_u64; N];
        for each in all {
            sums.iter_mut().zip(each).for_each(|(sum, one)| *sum = sum.wrapping_add(one));
        }
        Ok(sums)
    }

    fn element(&self, key: &u32, value: usize) -> Element {
        Element {
            map: self.fd.as_raw_fd() as u32,
            padding: 0,
            key: ptr::from_ref(key).expose_provenance() as u64,
            value: value as u64,
            flags: 0,
        }
    }

    /// Nothing in it changes any more, so the kernel takes its values for constants.
    pub fn freeze(&self) -> io::Result<()> {
        let arguments = [self.fd.as_raw_fd() as u32];
        // SAFETY: this is the command's only field.
        unsafe { bpf::bpf(MAP_FREEZE, &arguments).map(drop) }
    }

    /// The map's values in this process's memory. It was made with [`MMAPABLE`].
    pub fn mapped(&self) -> io::Result<Mapped> {
        let len = self.spec.value.next_multiple_of(8) as usize * self.spec.entries as usize;
        // SAFETY: a new mapping, where the kernel chooses.
        let base = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, &self.fd, 0)?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapped { base, len })
    }
}

/// The values of an array, one behind the other. Programs may read them at any time. The writer must make sure that
/// they do not, or that each single word is valid together with the old ones.
pub(super) struct Mapped {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is shared with the kernel alone, and stays where it is; there is one owner.
unsafe impl Send for Mapped {}

impl Mapped {
    /// Writes bytes that no program reads now.
    ///
    /// # Panics
    /// If they end beyond the end.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at.checked_add(bytes.len()).is_some_and(|end| end <= self.len), "beyond the end");
        // SAFETY: the bytes lie in the mapping; no reference into it exists.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(at), bytes.len()) }
    }

    /// Writes a word; programs that see it see all that was written before.
    ///
    /// # Panics
    /// If it is no word's place.
    pub fn store(&self, at: usize, word: u64) {
        assert!(at.is_multiple_of(8) && at + 8 <= self.len, "no word's place");
        // SAFETY: an aligned word of the mapping, which is only accessed as such or by `write`, which excludes this.
        let place = unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) };
        place.store(word, Ordering::Release);
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped with this length; nothing points into it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
