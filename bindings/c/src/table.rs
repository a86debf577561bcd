//! Files that `fibula build` wrote.

use std::ffi::{c_char, c_void};
use std::ptr;

use fibula_core::{Addr, Hop, Lookup, Value};
use fibula_fib::{Fib, FibOptions};
use fibula_rib::{AlignedBytes, Pod, Snapshot};

use crate::batch::Batch;
use crate::error::{Outcome, guarded, text};
use crate::live::Memory;
use crate::route::{NONE64, Route, address, is_v6};
use crate::{BLOCK, address_bytes, array, free, give, in_blocks, results};

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

    /// The rows of addresses, of which there are at most [`BLOCK`], as values of 64 bits.
    fn rows<A: Addr + Pod>(&self, addrs: &[A], values: &mut [u64]) {
        let mut rows = [Hop::NONE; BLOCK];
        let rows = &mut rows[..addrs.len()];
        self.0.lookup_batch(addrs, rows);
        for (value, row) in values.iter_mut().zip(rows) {
            *value = row.index().map_or(NONE64, u64::from);
        }
    }

    fn memory<A: Addr + Pod>(&self) -> Memory {
        let family = self.0.family::<A>();
        Memory::of_file(family.routes().memory().total(), family.memory().total())
    }
}

/// Opens a file.
///
/// # Safety
/// As the header says of `fibula_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_open(path: *const c_char) -> *mut Table {
    guarded(ptr::null_mut(), || {
        // SAFETY: a text of C.
        let path = unsafe { crate::path(path) }?;
        Ok(Box::into_raw(Box::new(Table(Fib::open(path)?))))
    })
}

/// Opens the bytes of a file.
///
/// # Safety
/// As the header says of `fibula_open_memory`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_open_memory(bytes: *const c_void, size: usize) -> *mut Table {
    guarded(ptr::null_mut(), || {
        // SAFETY: `size` bytes.
        let bytes = AlignedBytes::from(unsafe { array::<u8>(bytes.cast(), size) });
        let fib = Fib::of_snapshot(Snapshot::from_bytes(bytes)?, &FibOptions::default())?;
        Ok(Box::into_raw(Box::new(Table(fib))))
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

/// Looks up addresses anywhere in memory.
///
/// # Safety
/// As the header says of `fibula_lookup`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_lookup(table: *const Table, batch: *const Batch) -> bool {
    guarded(false, || {
        // SAFETY: an open table, and a batch whose addresses and values are there.
        unsafe {
            let (table, batch) = (&*table, &*batch);
            match batch.is_v6() {
                false => batch.each::<u32>(|addrs, rows| table.rows(addrs, rows)),
                true => batch.each::<u128>(|addrs, rows| table.rows(addrs, rows)),
            }
        }
    })
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
        // SAFETY: an open table, and an address of this family.
        let (table, bytes) = unsafe { (&*table, address_bytes(family, bytes)) };
        let found = table.0.lookup(address(family, bytes)?).ok_or("no route covers the address")?;
        let prefix = found.prefix().ok_or("the table has no prefixes")?;
        // SAFETY: there is room for a route.
        unsafe { route.write(Route::new(prefix, found.hop().to_bits().into())) };
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

/// The bytes of a family.
///
/// # Safety
/// As the header says of `fibula_table_memory`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_table_memory(
    table: *const Table,
    family: u8,
    memory: *mut Memory,
) -> bool {
    guarded(false, || {
        // SAFETY: an open table.
        let table = unsafe { &*table };
        let of = match is_v6(family)? {
            false => table.memory::<u32>(),
            true => table.memory::<u128>(),
        };
        // SAFETY: there is room for the numbers.
        unsafe { memory.write(of) };
        Ok(true)
    })
}
