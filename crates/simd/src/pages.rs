//! Memory on huge pages of 2 MiB. Each is divided into 128 units. An array takes whole pages and then units of one more
//! page, whose other units serve other arrays. So the arrays of an engine share pages, many small engines do not take
//! 2 MiB each, and no array takes 2 MiB more than it has.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The size of a huge page.
const PAGE: usize = 2 << 20;
/// Huge pages are divided into these.
const UNIT: usize = PAGE / u128::BITS as usize;
/// The smallest array on huge pages. An engine of 256 KiB has few bytes in smaller ones. Thousands of tables with a few
/// routes each stay on the heap.
const FROM: usize = 64 << 10;
/// The environment variable that disables huge pages.
const HUGE_PAGES: &str = "FIBULA_HUGE_PAGES";

/// The memory of one array: whole units.
pub struct Piece {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to this value alone; access to it is `Table`'s matter.
unsafe impl Send for Piece {}
// SAFETY: as for `Send`: it gives no access to the memory at all.
unsafe impl Sync for Piece {}

/// A huge page that arrays share, with a bit for each unit that is taken.
struct Page {
    start: NonNull<u8>,
    used: u128,
}

// SAFETY: the page belongs to the list; the pointer is used under its lock only.
unsafe impl Send for Page {}

type Pages = MutexGuard<'static, Vec<Page>>;

/// The pages that arrays share.
fn pages() -> Pages {
    static PAGES: Mutex<Vec<Page>> = Mutex::new(Vec::new());
    PAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Piece {
    /// Memory for an array of so many bytes, all zero if wanted. `None` if it is small, the system has no memory, or
    /// huge pages are disabled.
    pub fn new(bytes: usize, zeroed: bool) -> Option<Self> {
        if bytes < FROM || !are_enabled() {
            return None;
        }
        let len = bytes.checked_next_multiple_of(UNIT)?;
        let (own, units) = parts(len);
        if own == 0
            && let Some(start) = free_units(units)
        {
            if zeroed {
                // SAFETY: these units of a mapped page were free, and belong to this piece from now on.
                unsafe { start.write_bytes(0, len) };
            }
            return Some(Self { start, len });
        }
        // New pages are zero.
        let start = system::map(len.checked_next_multiple_of(PAGE)?)?;
        if units > 0 {
            // SAFETY: the mapping has one more page than `own`.
            pages().push(Page { start: unsafe { start.add(own) }, used: mask(0, units) });
        }
        Some(Self { start, len })
    }

    /// The first byte, at a multiple of a unit.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let (own, units) = parts(self.len);
        if own > 0 {
            // SAFETY: `new` mapped these pages for this piece alone, which ends here.
            unsafe { system::unmap(self.start, own) };
        }
        if units > 0 {
            give_back(self.start.addr().get() + own, units);
        }
    }
}

/// The bytes of an array on pages of its own, and its units on a shared page behind them.
fn parts(len: usize) -> (usize, u32) {
    (len - len % PAGE, (len % PAGE / UNIT) as u32)
}

/// Takes so many units in a row of the first page that has them.
fn free_units(units: u32) -> Option<NonNull<u8>> {
    pages().iter_mut().find_map(|page| {
        let at = place(page.used, units)?;
        page.used |= mask(at, units);
        // SAFETY: the unit lies within the page.
        Some(unsafe { page.start.add(at as usize * UNIT) })
    })
}

/// Frees the units from this address on. One page without arrays is kept for the next one; others are unmapped.
fn give_back(addr: usize, units: u32) {
    let (start, ahead) = (addr - addr % PAGE, addr % PAGE);
    let mut pages = pages();
    let at = pages.iter().position(|page| page.start.addr().get() == start);
    let at = at.expect("the page of a piece is in the list");
    pages[at].used &= !mask((ahead / UNIT) as u32, units);
    if pages[at].used == 0 && pages.iter().filter(|page| page.used == 0).count() > 1 {
        let page = pages.swap_remove(at);
        drop(pages);
        // SAFETY: `new` mapped the page. No piece has units of it, and no new one can have: it is not in the list.
        unsafe { system::unmap(page.start, PAGE) };
    }
}

/// The first of so many free units in a row.
fn place(used: u128, units: u32) -> Option<u32> {
    // A bit stays while this many units are free from there on; there are none beyond the last bit.
    let (mut free, mut run) = (!used, 1);
    while run < units {
        let by = run.min(units - run);
        free &= free >> by;
        run += by;
    }
    (free != 0).then(|| free.trailing_zeros())
}

/// The bits of so many units, from 1 to 128, from `at` on.
fn mask(at: u32, units: u32) -> u128 {
    u128::MAX >> (u128::BITS - units) << at
}

/// Whether the environment disables huge pages.
pub fn is_disabled() -> bool {
    static DISABLED: OnceLock<bool> = OnceLock::new();
    *DISABLED.get_or_init(|| std::env::var_os(HUGE_PAGES).is_some_and(|word| word == "off"))
}

/// Whether arrays may use huge pages.
fn are_enabled() -> bool {
    static FORKS: OnceLock<bool> = OnceLock::new();
    !is_disabled() && *FORKS.get_or_init(|| system::at_fork(before_fork, after_fork))
}

thread_local! {
    /// The lock on the pages, while this thread forks.
    static HELD: Cell<Option<Pages>> = const { Cell::new(None) };
}

/// A child process has only the thread that forked. If another one held the lock, nobody would release it there.
extern "C" fn before_fork() {
    HELD.set(Some(pages()));
}

extern "C" fn after_fork() {
    HELD.take();
}

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod system {
    use std::ptr::{self, NonNull};

    use super::PAGE;

    /// So many bytes of zeroed huge pages, whole ones at a multiple of their size.
    pub(super) fn map(len: usize) -> Option<NonNull<u8>> {
        let all = len.checked_add(PAGE)?;
        let (rights, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping at an address that the system chooses changes nothing that exists.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), all, rights, kind, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        let mapped = NonNull::new(mapped.cast::<u8>())?;
        let ahead = mapped.addr().get().wrapping_neg() % PAGE;
        // SAFETY: `ahead` is below `PAGE`, by which the mapping is longer than `len`: all of this lies in it. The parts
        // before and behind the result are unmapped where they are not empty; they are whole ordinary pages, and nobody
        // has a pointer to them. The advice changes how pages are served, not what they hold; a system without huge
        // pages returns an error and serves ordinary ones. It comes before the first touch, because pages once served
        // do not become huge.
        unsafe {
            let start = mapped.add(ahead);
            if ahead > 0 {
                unmap(mapped, ahead);
            }
            unmap(start.add(len), PAGE - ahead);
            libc::madvise(start.as_ptr().cast(), len, libc::MADV_HUGEPAGE);
            Some(start)
        }
    }

    /// # Safety
    /// The bytes are whole pages of mappings by `map`, which nobody uses any more.
    pub(super) unsafe fn unmap(start: NonNull<u8>, len: usize) {
        // SAFETY: as the caller grants.
        unsafe { libc::munmap(start.as_ptr().cast(), len) };
    }

    /// Has `before` called before each fork, and `after` in both processes. `false` if the system has no memory for it.
    pub(super) fn at_fork(before: extern "C" fn(), after: extern "C" fn()) -> bool {
        // SAFETY: the functions live as long as the program. A library that is unloaded takes them off the list.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) == 0 }
    }
}

/// Elsewhere tables lie on the heap.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
mod system {
    use std::ptr::NonNull;

    pub(super) fn map(_: usize) -> Option<NonNull<u8>> {
        None
    }

    /// # Safety
    /// None of its own: nothing is mapped.
    pub(super) unsafe fn unmap(_: NonNull<u8>, _: usize) {}

    pub(super) fn at_fork(_: extern "C" fn(), _: extern "C" fn()) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
