//! The C library: lookups in files that `fibula build` wrote, and tables that change while they are read.
//!
//! `include/fibula.h` is what its users read; a test compares it with the functions here, type by type. `unsafe` is
//! needed for each pointer that comes from C, and the header states what it must point to.
//!
//! Functions that can fail return NULL, `false` or `SIZE_MAX`, and leave a text for `fibula_error`. They check all
//! input before they change anything. A panic inside of them is such an error, too; in the other functions it ends the
//! program.

mod error;
mod live;
mod route;
mod table;

use std::slice;

use fibula_core::Hop;

/// The array that C points to. It may be NULL if it is empty.
///
/// # Safety
/// `first` points to `count` values that nobody writes to during `'a`, or `count` is 0.
unsafe fn array<'a, T>(first: *const T, count: usize) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: as the caller promises.
        _ => unsafe { slice::from_raw_parts(first, count) },
    }
}

/// The array for results, of `uint32_t`, which is how a [`Hop`] lies in memory.
///
/// # Safety
/// `first` points to `count` integers that nobody else uses during `'a`, or `count` is 0.
unsafe fn results<'a>(first: *mut u32, count: usize) -> &'a mut [Hop] {
    match count {
        0 => &mut [],
        // SAFETY: as the caller promises; `Hop` is a transparent `u32`, and all values are valid.
        _ => unsafe { slice::from_raw_parts_mut(first.cast(), count) },
    }
}

/// Frees what C has, if it is not NULL.
///
/// # Safety
/// `object` is NULL, or of `Box::into_raw` and not used any more.
unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: as the caller promises.
        drop(unsafe { Box::from_raw(object) });
    }
}

/// IPv6 addresses that are converted to numbers at a time.
const BLOCK: usize = 256;

/// Looks up IPv6 addresses in network byte order, in blocks.
fn in_blocks(addresses: &[[u8; 16]], rows: &mut [Hop], lookup: impl Fn(&[u128], &mut [Hop])) {
    let mut numbers = [0; BLOCK];
    for (addresses, rows) in addresses.chunks(BLOCK).zip(rows.chunks_mut(BLOCK)) {
        let numbers = &mut numbers[..addresses.len()];
        for (number, address) in numbers.iter_mut().zip(addresses) {
            *number = u128::from_be_bytes(*address);
        }
        lookup(numbers, rows);
    }
}
