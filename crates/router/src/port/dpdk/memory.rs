//! A pool as DPDK's drivers see it: a mempool, whose objects are the pool's slots.

use std::io;
use std::os::raw::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use fibula_dpdk::{fib_owner, fib_pool};

use super::environment::{self, explain};
use crate::Pool;

/// The mempool of a pool. Only ports of that pool have it, and none of them outlives the pool.
pub(super) struct Mempool {
    made: NonNull<fib_pool>,
    area: usize,
}

// SAFETY: DPDK's mempools are for any thread; so are the functions of the owner, as the pool is.
unsafe impl Send for Mempool {}
// SAFETY: as above.
unsafe impl Sync for Mempool {}

/// The mempools that there are, by the address of the pool's area: two would write their headers into the same slots.
static ALL: Mutex<Vec<(usize, Weak<Mempool>)>> = Mutex::new(Vec::new());

impl Mempool {
    /// That of this pool, which is made if there is none. Must not be kept for longer than the pool is borrowed for.
    pub(super) fn of(pool: &Pool) -> io::Result<Arc<Self>> {
        let (area, _) = pool.area();
        let at = area.addr().get();
        let mut all = loop {
            let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
            match all.iter().find(|(area, _)| *area == at).map(|(_, mempool)| mempool.upgrade()) {
                None => break all,
                Some(Some(mempool)) => return Ok(mempool),
                // Another thread frees it just now.
                Some(None) => drop(all),
            }
            thread::yield_now();
        };
        let owner = fib_owner {
            context: ptr::from_ref(pool).cast_mut().cast(),
            take: Some(take),
            give: Some(give),
            count: Some(count),
        };
        let mut error = 0;
        let (slots, stride) = (pool.slots() as u32, pool.stride() as u32);
        environment::clear_log();
        // SAFETY: the area has so many slots of so many bytes, of which no packet reaches the front; the owner's
        // context is a pool that outlives all ports that have the mempool.
        let made = unsafe {
            fibula_dpdk::fib_pool_new(area.as_ptr().cast(), slots, stride, &owner, &mut error)
        };
        let mempool = NonNull::new(made).map(|made| Arc::new(Self { made, area: at }));
        let mempool = mempool.ok_or_else(|| {
            explain(&format!("DPDK takes no pool of {slots} slots of {stride} bytes"), error)
        })?;
        all.push((at, Arc::downgrade(&mempool)));
        Ok(mempool)
    }

    pub(super) fn as_ptr(&self) -> *mut fib_pool {
        self.made.as_ptr()
    }
}

impl Drop for Mempool {
    fn drop(&mut self) {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: made by `fib_pool_new`, and no device has it any more.
        unsafe { fibula_dpdk::fib_pool_free(self.as_ptr()) }
        all.retain(|(area, _)| *area != self.area);
    }
}

unsafe extern "C" fn take(context: *mut c_void, slots: *mut u32, count: u32) -> c_int {
    // SAFETY: the context is a pool that lives as long as the mempool, and there is room for so many numbers.
    let (pool, slots) = unsafe {
        slots.write_bytes(0, count as usize);
        (&*context.cast::<Pool>(), slice::from_raw_parts_mut(slots, count as usize))
    };
    let mut taken = 0;
    pool.take_slots(slots.len(), |slot| {
        slots[taken] = slot;
        taken += 1;
    });
    if taken == slots.len() {
        return 1;
    }
    // SAFETY: they were taken just now.
    unsafe { pool.give_slots(slots[..taken].iter().copied()) };
    0
}

unsafe extern "C" fn give(context: *mut c_void, slots: *const u32, count: u32) {
    // SAFETY: as in `take`; the driver had these slots, and has them no longer.
    unsafe {
        let pool = &*context.cast::<Pool>();
        pool.give_slots(slice::from_raw_parts(slots, count as usize).iter().copied());
    }
}

unsafe extern "C" fn count(context: *mut c_void) -> u32 {
    // SAFETY: as in `take`.
    unsafe { (*context.cast::<Pool>()).free() as u32 }
}
