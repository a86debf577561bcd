//! `fibula_table('x.fib')`: the routes of a table as rows.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fibula_core::{ColumnKind, Value};
use fibula_fib::Fib;
use libduckdb_sys as duckdb;

use super::guarded;
use super::types::{SqlType, c_text, taken_text};
use super::vector::Output;
use crate::open;

/// Columns before those of the table.
const OWN: [&str; 1] = ["prefix"];

/// Adds the function.
///
/// # Safety
/// The connection is open.
pub unsafe fn register(connection: duckdb::duckdb_connection) -> Result<(), String> {
    let text = SqlType::text();
    // SAFETY: the function is created, used and destroyed here; type and name are copied.
    unsafe {
        let mut function = duckdb::duckdb_create_table_function();
        duckdb::duckdb_table_function_set_name(function, c"fibula_table".as_ptr());
        duckdb::duckdb_table_function_add_parameter(function, text.raw());
        duckdb::duckdb_table_function_set_bind(function, Some(bind));
        duckdb::duckdb_table_function_set_init(function, Some(init));
        duckdb::duckdb_table_function_set_function(function, Some(fill));
        duckdb::duckdb_table_function_supports_projection_pushdown(function, true);
        let state = duckdb::duckdb_register_table_function(connection, function);
        duckdb::duckdb_destroy_table_function(&raw mut function);
        match state {
            duckdb::duckdb_state_DuckDBSuccess => Ok(()),
            _ => Err("DuckDB does not take the function fibula_table".to_owned()),
        }
    }
}

/// The table of a query.
struct Bound(Arc<Fib>);

/// The columns that a query wants, and the next route.
struct Scan {
    columns: Vec<usize>,
    next: AtomicUsize,
}

unsafe extern "C" fn drop_bound(bound: *mut c_void) {
    // SAFETY: it is the box that `bind` leaked.
    drop(unsafe { Box::from_raw(bound.cast::<Bound>()) });
}

unsafe extern "C" fn drop_scan(scan: *mut c_void) {
    // SAFETY: it is the box that `init` leaked.
    drop(unsafe { Box::from_raw(scan.cast::<Scan>()) });
}

unsafe extern "C" fn bind(info: duckdb::duckdb_bind_info) {
    let run = || {
        // SAFETY: there is one parameter, a text; values are destroyed here.
        let name = unsafe {
            let mut value = duckdb::duckdb_bind_get_parameter(info, 0);
            let name = match duckdb::duckdb_is_null_value(value) {
                true => None,
                false => taken_text(duckdb::duckdb_get_varchar(value)),
            };
            duckdb::duckdb_destroy_value(&raw mut value);
            name
        };
        let table = open(&name.ok_or("the name of a table is missing")?)?;
        let columns = table.columns();
        let mut types = vec![SqlType::text()];
        types.extend((0..columns.width()).map(|column| match columns.kind(column) {
            ColumnKind::Int => SqlType::number(),
            ColumnKind::Str => SqlType::text(),
        }));
        let names = OWN.iter().map(|&name| name.to_owned()).chain(columns.names_beside(&OWN));
        // SAFETY: names and types are copied; the box is freed by `drop_bound`.
        unsafe {
            for (name, of) in names.zip(&types) {
                duckdb::duckdb_bind_add_result_column(info, c_text(&name).as_ptr(), of.raw());
            }
            duckdb::duckdb_bind_set_cardinality(info, table.len() as u64, true);
            let bound = Box::into_raw(Box::new(Bound(table)));
            duckdb::duckdb_bind_set_bind_data(info, bound.cast(), Some(drop_bound));
        }
        Ok(())
    };
    if let Err(error) = guarded(run) {
        let error = c_text(&format!("fibula: {error}"));
        // SAFETY: the text is copied.
        unsafe { duckdb::duckdb_bind_set_error(info, error.as_ptr()) };
    }
}

unsafe extern "C" fn init(info: duckdb::duckdb_init_info) {
    // SAFETY: the numbers are below the count; the box is freed by `drop_scan`.
    unsafe {
        let count = duckdb::duckdb_init_get_column_count(info);
        let columns =
            (0..count).map(|at| duckdb::duckdb_init_get_column_index(info, at) as usize).collect();
        let scan = Box::into_raw(Box::new(Scan { columns, next: AtomicUsize::new(0) }));
        duckdb::duckdb_init_set_init_data(info, scan.cast(), Some(drop_scan));
    }
}

unsafe extern "C" fn fill(info: duckdb::duckdb_function_info, chunk: duckdb::duckdb_data_chunk) {
    let run = || {
        // SAFETY: the boxes are those of `bind` and `init`; the chunk has the columns that `init` was told of.
        unsafe {
            let bound = &*duckdb::duckdb_function_get_bind_data(info).cast::<Bound>();
            let scan = &*duckdb::duckdb_function_get_init_data(info).cast::<Scan>();
            let size = duckdb::duckdb_vector_size() as usize;
            let begin = scan.next.fetch_add(size, Ordering::Relaxed).min(bound.0.len());
            let end = (begin + size).min(bound.0.len());
            let outputs = (0..scan.columns.len() as u64)
                .map(|at| Output::of(duckdb::duckdb_data_chunk_get_vector(chunk, at)));
            let outputs: Vec<_> = scan.columns.iter().copied().zip(outputs).collect();
            write_routes(&bound.0, begin..end, &outputs)?;
            duckdb::duckdb_data_chunk_set_size(chunk, (end - begin) as u64);
        }
        Ok(())
    };
    if let Err(error) = guarded(run) {
        let error = c_text(&format!("fibula: {error}"));
        // SAFETY: the text is copied.
        unsafe { duckdb::duckdb_function_set_error(info, error.as_ptr()) };
    }
}

fn write_routes(
    table: &Fib,
    range: Range<usize>,
    outputs: &[(usize, Output)],
) -> Result<(), String> {
    let columns = table.columns();
    outputs.iter().for_each(|(_, output)| output.nulls(range.len()));
    let routes = table.routes_between(range).map_err(|error| error.to_string())?;
    for (row, route) in routes.enumerate() {
        for &(column, output) in outputs {
            let value = match (column.checked_sub(OWN.len()), route.hop().index()) {
                (None, _) => {
                    let Some(prefix) = route.prefix() else { continue };
                    output.text(row, prefix.to_string().as_bytes());
                    output.set(row);
                    continue;
                }
                (Some(column), _) if column >= columns.width() => continue, // the number of a row
                (Some(column), Some(hop)) => columns.value(column, hop),
                (Some(_), None) => continue,
            };
            match value {
                Value::Null => continue,
                Value::Int(number) => output.number(row, number),
                Value::Str(text) => output.text(row, text.as_bytes()),
            }
            output.set(row);
        }
    }
    Ok(())
}
