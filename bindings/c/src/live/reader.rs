//! Readers of a table.

use std::ffi::c_void;
use std::ptr;

use fibula_core::{Addr, PerFamily};
use fibula_rib::PlainGeneration;

use super::Live;
use super::table::Readers;
use crate::batch::Batch;
use crate::error::guarded;
use crate::{array, free, in_blocks, results, room};

/// `fibula_reader` of the header.
pub struct Reader {
    readers: PerFamily<Readers>,
    /// Whether it keeps its tables until it is told to release them.
    is_keeping: bool,
}

impl Reader {
    /// The table for the next batch.
    #[inline]
    fn table<A: Addr>(&mut self) -> &PlainGeneration<A> {
        let reader = self.readers.get_mut::<A>();
        if self.is_keeping { reader.keep() } else { reader.pin() }
    }
}

/// A reader of the table.
///
/// # Safety
/// As the header says of `fibula_reader_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_new(live: *const Live) -> *mut Reader {
    guarded(ptr::null_mut(), || {
        // SAFETY: a table.
        let readers = unsafe { &*live }.table.readers();
        Ok(Box::into_raw(Box::new(Reader { readers, is_keeping: false })))
    })
}

/// Frees a reader.
///
/// # Safety
/// As the header says of `fibula_reader_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_free(reader: *mut Reader) {
    // SAFETY: it is of `fibula_reader_new`, and C gives it up.
    unsafe { free(reader) };
}

/// Looks up IPv4 addresses.
///
/// # Safety
/// As the header says of `fibula_reader_lookup4`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_lookup4(
    reader: *mut Reader,
    addresses: *const u32,
    values: *mut u32,
    count: usize,
) {
    // SAFETY: a reader that no other thread uses, and arrays of `count`.
    let (reader, addresses, values) =
        unsafe { (&mut *reader, array(addresses, count), results(values, count)) };
    reader.table::<u32>().lookup_low(addresses, values);
}

/// Looks up IPv6 addresses.
///
/// # Safety
/// As the header says of `fibula_reader_lookup6`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_lookup6(
    reader: *mut Reader,
    addresses: *const c_void,
    values: *mut u32,
    count: usize,
) {
    // SAFETY: a reader that no other thread uses, and arrays of `count`.
    let (reader, addresses, values) =
        unsafe { (&mut *reader, array(addresses.cast(), count), results(values, count)) };
    let table = reader.table::<u128>();
    in_blocks(addresses, values, |addresses, values| table.lookup_low(addresses, values));
}

/// Looks up IPv4 addresses.
///
/// # Safety
/// As the header says of `fibula_reader_wide4`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_wide4(
    reader: *mut Reader,
    addresses: *const u32,
    values: *mut u64,
    count: usize,
) {
    // SAFETY: a reader that no other thread uses, and arrays of `count`.
    let (reader, addresses, values) =
        unsafe { (&mut *reader, array(addresses, count), room(values, count)) };
    reader.table::<u32>().lookup(addresses, values);
}

/// Looks up IPv6 addresses.
///
/// # Safety
/// As the header says of `fibula_reader_wide6`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_wide6(
    reader: *mut Reader,
    addresses: *const c_void,
    values: *mut u64,
    count: usize,
) {
    // SAFETY: a reader that no other thread uses, and arrays of `count`.
    let (reader, addresses, values) =
        unsafe { (&mut *reader, array(addresses.cast(), count), room(values, count)) };
    let table = reader.table::<u128>();
    in_blocks(addresses, values, |addresses, values| table.lookup(addresses, values));
}

/// Looks up addresses anywhere in memory.
///
/// # Safety
/// As the header says of `fibula_reader_lookup`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_lookup(reader: *mut Reader, batch: *const Batch) -> bool {
    guarded(false, || {
        // SAFETY: a reader that no other thread uses, and a batch whose addresses and values are there.
        unsafe {
            let (reader, batch) = (&mut *reader, &*batch);
            match batch.is_v6() {
                false => {
                    let table = reader.table::<u32>();
                    batch.each(|addresses, values| table.lookup(addresses, values))
                }
                true => {
                    let table = reader.table::<u128>();
                    batch.each(|addresses, values| table.lookup(addresses, values))
                }
            }
        }
    })
}

/// Gives back the tables that the reader holds.
///
/// # Safety
/// As the header says of `fibula_reader_release`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_release(reader: *mut Reader) {
    // SAFETY: a reader that no other thread uses.
    let reader = unsafe { &mut *reader };
    reader.readers.v4.release();
    reader.readers.v6.release();
}

/// Sets whether the reader keeps its tables.
///
/// # Safety
/// As the header says of `fibula_reader_keep`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_keep(reader: *mut Reader, keep: bool) {
    // SAFETY: a reader that no other thread uses.
    unsafe { &mut *reader }.is_keeping = keep;
}
