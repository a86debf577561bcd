//! What a table does and takes.

use std::ffi::c_char;

use fibula_core::Addr;
use fibula_rib::Plain;

use super::Live;
use crate::error::guarded;
use crate::give;
use crate::route::is_v6;

/// `fibula_counters` of the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Counters {
    changes: u64,
    generations: u64,
    builds: u64,
    patches: u64,
    copies: u64,
    failures: u64,
    making_ns: u64,
    oldest_us: u64,
}

impl Counters {
    fn of<A: Addr>(table: &Plain<A>) -> Self {
        let of = table.counters();
        Self {
            changes: of.changes,
            generations: of.generations,
            builds: of.builds,
            patches: of.patches,
            copies: of.copies,
            failures: of.failures,
            making_ns: of.making.as_nanos() as u64,
            // A change that waits is never younger than 1.
            oldest_us: table.lag().map_or(0, |lag| lag.as_micros().max(1) as u64),
        }
    }
}

/// `fibula_memory` of the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memory {
    routes: u64,
    values: u64,
    engine: u64,
    old: u64,
    held: u64,
}

impl Memory {
    /// Of a table that does not change.
    pub(crate) fn of_file(routes: usize, engine: usize) -> Self {
        Self { routes: routes as u64, values: 0, engine: engine as u64, old: 0, held: 0 }
    }

    fn of<A: Addr>(table: &mut Plain<A>) -> Self {
        let of = table.memory();
        Self {
            routes: of.routes as u64,
            values: of.values as u64,
            engine: of.engine as u64,
            old: of.old as u64,
            held: of.held as u64,
        }
    }
}

/// Which engine answers.
///
/// # Safety
/// As the header says of `fibula_live_engine`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_engine(
    live: *const Live,
    family: u8,
    text: *mut c_char,
    size: usize,
) -> usize {
    guarded(usize::MAX, || {
        // SAFETY: a table.
        let live = unsafe { &*live };
        live.process.check()?;
        let is_v6 = is_v6(family)?;
        let state = live.table.lock()?;
        let name = match is_v6 {
            false => state.tables.v4.current().engine_name(),
            true => state.tables.v6.current().engine_name(),
        };
        // SAFETY: `size` bytes of C.
        Ok(unsafe { give(name.unwrap_or("none"), text, size) })
    })
}

/// The counters of a family.
///
/// # Safety
/// As the header says of `fibula_live_counters`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_counters(
    live: *const Live,
    family: u8,
    counters: *mut Counters,
) -> bool {
    guarded(false, || {
        // SAFETY: a table.
        let live = unsafe { &*live };
        live.process.check()?;
        let is_v6 = is_v6(family)?;
        let state = live.table.lock()?;
        let of = match is_v6 {
            false => Counters::of(&state.tables.v4),
            true => Counters::of(&state.tables.v6),
        };
        // SAFETY: there is room for the counters.
        unsafe { counters.write(of) };
        Ok(true)
    })
}

/// The bytes of a family's parts.
///
/// # Safety
/// As the header says of `fibula_live_memory`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_memory(
    live: *const Live,
    family: u8,
    memory: *mut Memory,
) -> bool {
    guarded(false, || {
        // SAFETY: a table.
        let live = unsafe { &*live };
        live.process.check()?;
        let is_v6 = is_v6(family)?;
        let mut state = live.table.lock()?;
        let of = match is_v6 {
            false => Memory::of(&mut state.tables.v4),
            true => Memory::of(&mut state.tables.v6),
        };
        // SAFETY: there is room for the numbers.
        unsafe { memory.write(of) };
        Ok(true)
    })
}
