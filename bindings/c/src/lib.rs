//! The C library: lookups in files that `fibula build` wrote, and tables that change while they are read.
//!
//! `include/fibula.h` is what its users read; a test compares it with the functions and structs here, type by type.
//! `unsafe` is needed for each pointer that comes from C, and the header states what it must point to.
//!
//! Functions that can fail return NULL, `false` or `SIZE_MAX`, and leave a text for `fibula_error`. They check all
//! input before they change anything. A panic inside of them is such an error, too; in the other functions it ends the
//! program.

mod batch;
mod error;
mod fork;
mod live;
mod route;
mod table;

use std::ffi::{c_char, c_void};
use std::path::Path;
use std::{ptr, slice};

use fibula_core::Hop;

use crate::error::{Outcome, text};

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
    // SAFETY: as the caller promises; `Hop` is a transparent `u32`, and all values are valid.
    unsafe { room(first.cast(), count) }
}

/// The array that C lends for results. It may be NULL if it is empty.
///
/// # Safety
/// `first` points to `count` values that nobody else uses during `'a`, or `count` is 0.
unsafe fn room<'a, T>(first: *mut T, count: usize) -> &'a mut [T] {
    match count {
        0 => &mut [],
        // SAFETY: as the caller promises.
        _ => unsafe { slice::from_raw_parts_mut(first, count) },
    }
}

/// The bytes of an address of this family, none if there is no such family.
///
/// # Safety
/// `bytes` points to an address of the family.
unsafe fn address_bytes<'a>(family: u8, bytes: *const c_void) -> &'a [u8] {
    let count = match family {
        4 => 4,
        6 => 16,
        _ => 0,
    };
    // SAFETY: as the caller promises.
    unsafe { array(bytes.cast(), count) }
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

/// Copies a text to C, with a NUL behind it, as much as has room. Returns the bytes of all of it, without the NUL.
///
/// # Safety
/// `to` points to `size` bytes that nobody else uses, or `size` is 0.
unsafe fn give(from: &str, to: *mut c_char, size: usize) -> usize {
    if let Some(room) = size.checked_sub(1) {
        let count = from.floor_char_boundary(room);
        // SAFETY: `count` is below `size`, and what comes from Rust does not overlap with what C lent.
        unsafe {
            ptr::copy_nonoverlapping(from.as_ptr().cast(), to, count);
            *to.add(count) = 0;
        }
    }
    from.len()
}

/// A path: on Unix any bytes, elsewhere UTF-8.
///
/// # Safety
/// Those of [`text`].
unsafe fn path<'a>(path: *const c_char) -> Outcome<&'a Path> {
    #[cfg(unix)]
    if !path.is_null() {
        use std::os::unix::ffi::OsStrExt as _;
        // SAFETY: as the caller promises.
        let bytes = unsafe { std::ffi::CStr::from_ptr(path) }.to_bytes();
        return Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)));
    }
    // SAFETY: as the caller promises.
    Ok(Path::new(unsafe { text(path, "the path") }?))
}

/// Number of addresses that are converted at a time.
const BLOCK: usize = 256;

/// Looks up IPv6 addresses in network byte order, in blocks.
fn in_blocks<V>(addresses: &[[u8; 16]], values: &mut [V], lookup: impl Fn(&[u128], &mut [V])) {
    let mut numbers = [0; BLOCK];
    for (addresses, values) in addresses.chunks(BLOCK).zip(values.chunks_mut(BLOCK)) {
        let numbers = &mut numbers[..addresses.len()];
        for (number, address) in numbers.iter_mut().zip(addresses) {
            *number = u128::from_be_bytes(*address);
        }
        lookup(numbers, values);
    }
}
