//! The functions that Java calls: the only part with `unsafe`.
//!
//! A table is the address of a [`Table`]; Java passes one only between `open` and `close`, and closes it when no other
//! call has it. A text or an array is the address of memory that Java has lent for the call, with as many bytes or
//! elements as the next argument says. [`FAILED`] means that [`last`] has the reason.

use std::ffi::c_void;
use std::path::Path;
use std::{ptr, slice};

use fibula_annotate::MAX_PREFIX;
use fibula_core::Value;

use crate::error::{guarded, last};
use crate::table::{Form, Table};

/// The result of a call that failed.
const FAILED: i32 = i32::MIN;
/// The result of a watched call that has looked nothing up: Java looks at the table's file first.
const LOOK: i32 = i32::MIN + 1;

/// The table of a handle.
///
/// # Safety
/// It is of `open`, and not closed during `'a`.
unsafe fn table<'a>(handle: i64) -> &'a Table {
    // SAFETY: as the caller promises.
    unsafe { &*(handle as usize as *const Table) }
}

/// The array that Java lends.
///
/// # Safety
/// At the address are `count` values, which nobody changes during `'a`, or `count` is 0.
unsafe fn array<'a, T>(address: i64, count: i32) -> &'a [T] {
    match usize::try_from(count) {
        Err(_) | Ok(0) => &[],
        // SAFETY: as the caller promises.
        Ok(count) => unsafe { slice::from_raw_parts(address as usize as *const T, count) },
    }
}

/// The array for results.
///
/// # Safety
/// At the address is room for `count` values, which nobody else uses during `'a`, or `count` is 0.
unsafe fn room<'a, T>(address: i64, count: i32) -> &'a mut [T] {
    match usize::try_from(count) {
        Err(_) | Ok(0) => &mut [],
        // SAFETY: as the caller promises.
        Ok(count) => unsafe { slice::from_raw_parts_mut(address as usize as *mut T, count) },
    }
}

/// The bits of a `form`: the address is 4 or 16 bytes, not text; the call is watched.
const BYTES: i32 = 1;
const WATCHED: i32 = 2;

fn form(bits: i32) -> Form {
    if bits & BYTES == 0 { Form::Text } else { Form::Bytes }
}

/// Copies a text to Java if it has room for all of it. Returns the bytes of the text.
fn give(text: &[u8], to: &mut [u8]) -> Result<i32, String> {
    if let Some(to) = to.get_mut(..text.len()) {
        to.copy_from_slice(text);
    }
    i32::try_from(text.len()).map_err(|_| "a text has more than 2 GiB".to_owned())
}

fn utf8(text: &[u8]) -> Result<&str, String> {
    str::from_utf8(text).map_err(|_| "a name is not UTF-8".to_owned())
}

/// Makes the two forms of each function.
macro_rules! functions {
    ($($(#[$about:meta])* fn $name:ident, $jni:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block)*) => {$(
        $(#[$about])*
        ///
        /// # Safety
        /// As the module says of its arguments.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result $body

        /// The same for JNI.
        ///
        /// # Safety
        /// As the module says of its arguments.
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $jni(_: *mut c_void, _: *mut c_void, $($argument: $type),*) -> $result {
            // SAFETY: as the caller promises.
            unsafe { $name($($argument),*) }
        }
    )*};
}

functions! {
    /// Opens the file of this name; 0 if it cannot be opened.
    fn fibula_jvm_open, Java_fibula_JniCalls_open(name: i64, bytes: i32, mapped: i32) -> i64 {
        guarded(0, || {
            // SAFETY: a text.
            let name = utf8(unsafe { array(name, bytes) })?;
            let table = Table::open(Path::new(name), mapped != 0)?;
            Ok(Box::into_raw(Box::new(table)) as usize as i64)
        })
    }

    /// Closes a table.
    fn fibula_jvm_close, Java_fibula_JniCalls_close(handle: i64) -> i32 {
        // SAFETY: it is of `open`, and Java gives it up.
        let table = unsafe { Box::from_raw(handle as usize as *mut Table) };
        guarded(FAILED, || {
            drop(table);
            Ok(0)
        })
    }

    /// Why the last call of this thread failed.
    fn fibula_jvm_error, Java_fibula_JniCalls_error(text: i64, size: i32) -> i32 {
        // SAFETY: room for a text.
        let to = unsafe { room(text, size) };
        give(last().as_bytes(), to).unwrap_or(0)
    }

    /// Number of routes.
    fn fibula_jvm_routes, Java_fibula_JniCalls_routes(handle: i64) -> i64 {
        // SAFETY: an open table.
        unsafe { table(handle) }.routes() as i64
    }

    /// Number of rows of values.
    fn fibula_jvm_height, Java_fibula_JniCalls_height(handle: i64) -> i32 {
        // SAFETY: an open table, which has fewer rows.
        unsafe { table(handle) }.height() as i32
    }

    /// The name of a column; -1 if there are no more.
    fn fibula_jvm_name, Java_fibula_JniCalls_name(handle: i64, column: i32, text: i64, size: i32) -> i32 {
        guarded(FAILED, || {
            // SAFETY: an open table, and room for a text.
            let (table, to) = unsafe { (table(handle), room(text, size)) };
            let column = usize::try_from(column).ok().and_then(|column| table.column(column));
            column.map_or(Ok(-1), |(name, _)| give(name.as_bytes(), to))
        })
    }

    /// Whether a column has integers: 1, else 0.
    fn fibula_jvm_numeric, Java_fibula_JniCalls_numeric(handle: i64, column: i32) -> i32 {
        // SAFETY: an open table.
        let table = unsafe { table(handle) };
        let column = usize::try_from(column).ok().and_then(|column| table.column(column));
        column.is_some_and(|(_, numeric)| numeric).into()
    }

    /// The number of the column of a name.
    fn fibula_jvm_column, Java_fibula_JniCalls_column(handle: i64, name: i64, bytes: i32) -> i32 {
        guarded(FAILED, || {
            // SAFETY: an open table, and a text.
            let (table, name) = unsafe { (table(handle), array(name, bytes)) };
            Ok(table.find(utf8(name)?)? as i32)
        })
    }

    /// The row of an address; [`NO_MATCH`](crate::table::NO_MATCH) or [`NO_ADDRESS`](crate::table::NO_ADDRESS).
    fn fibula_jvm_row, Java_fibula_JniCalls_row(handle: i64, cell: i64, bytes: i32, bits: i32) -> i32 {
        guarded(FAILED, || {
            // SAFETY: an open table, and an address.
            let (table, cell) = unsafe { (table(handle), array(cell, bytes)) };
            if bits & WATCHED != 0 && table.watch.is_due() {
                return Ok(LOOK);
            }
            Ok(table.row(cell, form(bits)))
        })
    }

    /// The row of an IPv4 address.
    fn fibula_jvm_row4, Java_fibula_JniCalls_row4(handle: i64, address: i32) -> i32 {
        // SAFETY: an open table.
        guarded(FAILED, || Ok(unsafe { table(handle) }.row_of(address as u32)))
    }

    /// The rows of addresses, one behind the other, which end where `ends` says.
    fn fibula_jvm_rows, Java_fibula_JniCalls_rows(
        handle: i64, cells: i64, bytes: i32, bits: i32, ends: i64, rows: i64, count: i32
    ) -> i32 {
        guarded(FAILED, || {
            // SAFETY: an open table, addresses, and arrays of `count`.
            unsafe {
                let (cells, ends, rows) = (array(cells, bytes), array(ends, count), room(rows, count));
                table(handle).rows(cells, ends, form(bits), rows);
            }
            Ok(0)
        })
    }

    /// The rows of IPv4 addresses.
    fn fibula_jvm_rows4, Java_fibula_JniCalls_rows4(handle: i64, addresses: i64, rows: i64, count: i32) -> i32 {
        guarded(FAILED, || {
            // SAFETY: an open table, and arrays of `count`.
            unsafe { table(handle).rows4(array(addresses, count), room(rows, count)) };
            Ok(0)
        })
    }

    /// The prefix of an address as text; what `row` returns if there is none.
    fn fibula_jvm_prefix, Java_fibula_JniCalls_prefix(
        handle: i64, cell: i64, bytes: i32, bits: i32, text: i64, size: i32
    ) -> i32 {
        guarded(FAILED, || {
            // SAFETY: an open table and an address. The room for the text may be that of the address.
            let (table, cell) = unsafe { (table(handle), array(cell, bytes)) };
            if bits & WATCHED != 0 && table.watch.is_due() {
                return Ok(LOOK);
            }
            let mut found = [0; MAX_PREFIX];
            let bytes = match table.prefix(cell, form(bits), &mut found) {
                Ok(bytes) => bytes,
                Err(none) => return Ok(none),
            };
            // SAFETY: room for a text; the address, which may be there, is not read any more.
            give(&found[..bytes], unsafe { room(text, size) })
        })
    }

    /// A value as text; -1 if there is none.
    fn fibula_jvm_text, Java_fibula_JniCalls_text(handle: i64, column: i32, row: i32, text: i64, size: i32) -> i32 {
        guarded(FAILED, || {
            // SAFETY: an open table, and room for a text.
            let (table, to) = unsafe { (table(handle), room(text, size)) };
            match table.value(column as usize, row as usize)? {
                Value::Null => Ok(-1),
                Value::Str(text) => give(text.as_bytes(), to),
                Value::Int(number) => give(number.to_string().as_bytes(), to),
            }
        })
    }

    /// A value as a number: 1, or 0 if there is none.
    fn fibula_jvm_number, Java_fibula_JniCalls_number(handle: i64, column: i32, row: i32, number: i64) -> i32 {
        guarded(FAILED, || {
            // SAFETY: an open table, and room for a number.
            let (table, to) = unsafe { (table(handle), room::<u64>(number, 1)) };
            match table.value(column as usize, row as usize)? {
                Value::Null => Ok(0),
                Value::Int(number) => {
                    to[0] = number;
                    Ok(1)
                }
                Value::Str(text) => Err(format!("the value is not a number: {text:?}")),
            }
        })
    }
}

/// The address of a direct buffer of Java; 0 if it has none.
///
/// # Safety
/// A virtual machine calls it, with its own arguments.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_fibula_JniCalls_address(
    env: *mut jni_sys::JNIEnv,
    _: jni_sys::jclass,
    buffer: jni_sys::jobject,
) -> i64 {
    // SAFETY: the functions of `env` are there in every version since 1.4, and it is the calling thread's.
    let address = unsafe { ((**env).v1_4.GetDirectBufferAddress)(env, buffer) };
    if ptr::eq(address, ptr::null_mut()) { 0 } else { address as usize as i64 }
}
