//! Files that `fibula build` wrote.

use std::ffi::{c_char, c_void};
use std::path::Path;
use std::ptr;

use fibula_core::Value;
use fibula_fib::Fib;

use crate::error::{Outcome, guarded, text};
use crate::route::{Route, address};
use crate::{array, free, in_blocks, results};

/// `fibula_table` of the header.
pub struct Table(Fib);

impl Table {
    fn value(&self, column: usize, row: u32) -> Outcome<Value<'_>> {
        let (columns, rows) = (self.0.columns().width(), self.0.columns().len());
        if column >= columns {
            return Err(format!("there is no column {column}: the table has {columns}").into());
        }
        if row >= rows {
            return Err(format!("there is no row {row}: the table has {rows}").into());
        }
        Ok(self.0.columns().value(column, row))
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

/// Opens a file.
///
/// # Safety
/// As the header says of `fibula_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_open(path: *const c_char) -> *mut Table {
    guarded(ptr::null_mut(), || {
        // SAFETY: a text of C.
        let path = unsafe { self::path(path) }?;
        Ok(Box::into_raw(Box::new(Table(Fib::open(path)?))))
    })
}

/// Closes a table.
///
/// # Safety
/// As the header says of `fibula_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_close(table: *mut Table) {
    // SAFETY: it is of `fibula_open`, and C gives it up.
    unsafe { free(table) };
}

/// Looks up IPv4 addresses.
///
/// # Safety
/// As the header says of `fibula_lookup4`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_lookup4(
    table: *const Table,
    addresses: *const u32,
    rows: *mut u32,
    count: usize,
) {
    // SAFETY: an open table, and arrays of `count`.
    let (table, addresses, rows) =
        unsafe { (&*table, array(addresses, count), results(rows, count)) };
    table.0.lookup_batch(addresses, rows);
}

/// Looks up IPv6 addresses.
///
/// # Safety
/// As the header says of `fibula_lookup6`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_lookup6(
    table: *const Table,
    addresses: *const c_void,
    rows: *mut u32,
    count: usize,
) {
    // SAFETY: an open table, and arrays of `count`.
    let (table, addresses, rows) =
        unsafe { (&*table, array(addresses.cast(), count), results(rows, count)) };
    in_blocks(addresses, rows, |numbers, rows| table.0.lookup_batch(numbers, rows));
}

/// The longest match with its prefix.
///
/// # Safety
/// As the header says of `fibula_match`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_match(
    table: *const Table,
    family: u8,
    bytes: *const c_void,
    route: *mut Route,
) -> bool {
    guarded(false, || {
        let count = match family {
            4 => 4,
            6 => 16,
            _ => 0,
        };
        // SAFETY: an open table, and an address of this family.
        let (table, bytes) = unsafe { (&*table, array::<u8>(bytes.cast(), count)) };
        let found = table.0.lookup(address(family, bytes)?).ok_or("no route covers the address")?;
        let prefix = found.prefix().ok_or("the table has no prefixes")?;
        // SAFETY: there is room for a route.
        unsafe { route.write(Route::new(prefix, found.hop().to_bits())) };
        Ok(true)
    })
}

/// Number of routes.
///
/// # Safety
/// As the header says of `fibula_routes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_routes(table: *const Table) -> usize {
    // SAFETY: an open table.
    unsafe { &*table }.0.len()
}

/// Number of columns.
///
/// # Safety
/// As the header says of `fibula_columns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_columns(table: *const Table) -> usize {
    // SAFETY: an open table.
    unsafe { &*table }.0.columns().width()
}

/// The number of a column.
///
/// # Safety
/// As the header says of `fibula_column`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_column(table: *const Table, name: *const c_char) -> usize {
    guarded(usize::MAX, || {
        // SAFETY: an open table, and a text of C.
        let (table, name) = unsafe { (&*table, text(name, "the column's name")?) };
        table.0.columns().find(name).ok_or_else(|| {
            let known: Vec<_> = table.0.columns().names().collect();
            format!("there is no column {name:?}; there are: {}", known.join(", ")).into()
        })
    })
}

/// The name of a column.
///
/// # Safety
/// As the header says of `fibula_column_name`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_column_name(
    table: *const Table,
    column: usize,
    name: *mut c_char,
    size: usize,
) -> usize {
    guarded(usize::MAX, || {
        // SAFETY: an open table.
        let columns = unsafe { &*table }.0.columns();
        let found = columns.names().nth(column);
        let found = found.ok_or_else(|| {
            format!("there is no column {column}: the table has {}", columns.width())
        })?;
        // SAFETY: `size` bytes of C.
        Ok(unsafe { give(found, name, size) })
    })
}

/// A value as text.
///
/// # Safety
/// As the header says of `fibula_text`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_text(
    table: *const Table,
    column: usize,
    row: u32,
    text: *mut c_char,
    size: usize,
) -> usize {
    guarded(usize::MAX, || {
        // SAFETY: an open table.
        let table = unsafe { &*table };
        let number;
        let value = match table.value(column, row)? {
            Value::Null => "",
            Value::Str(value) => value,
            Value::Int(value) => {
                number = value.to_string();
                &number
            }
        };
        // SAFETY: `size` bytes of C.
        Ok(unsafe { give(value, text, size) })
    })
}

/// A value as a number.
///
/// # Safety
/// As the header says of `fibula_number`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_number(
    table: *const Table,
    column: usize,
    row: u32,
    number: *mut u64,
) -> bool {
    guarded(false, || {
        // SAFETY: an open table.
        match unsafe { &*table }.value(column, row)? {
            Value::Int(value) => {
                // SAFETY: there is room for a number.
                unsafe { number.write(value) };
                Ok(true)
            }
            Value::Str(text) => Err(format!("the value is not a number: {text:?}").into()),
            Value::Null => Err("there is no value".into()),
        }
    })
}

/// Which engine answers.
///
/// # Safety
/// As the header says of `fibula_engine`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_engine(
    table: *const Table,
    family: u8,
    text: *mut c_char,
    size: usize,
) -> usize {
    guarded(usize::MAX, || {
        // SAFETY: an open table.
        let fib = &unsafe { &*table }.0;
        let reason = match address(family, &[0; 16])?.is_ipv4() {
            true => fib.family::<u32>().reason(),
            false => fib.family::<u128>().reason(),
        };
        // SAFETY: `size` bytes of C.
        Ok(unsafe { give(reason, text, size) })
    })
}
