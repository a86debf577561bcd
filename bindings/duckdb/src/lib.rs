//! The DuckDB extension: lookups in tables that `fibula build` wrote, as functions of SQL.
//!
//! It uses the stable part of DuckDB's C API for extensions, so one library is loaded by DuckDB 1.2 and later. `host` is the
//! only part that calls DuckDB and has `unsafe`; `answers` computes what the functions return. `docs/duckdb.md` is what users
//! read.

mod address;
mod answers;
mod host;

use std::sync::Arc;

use fibula_fib::{Fib, OpenTables};

/// A column of more names than stay open costs an opening for each change of the name.
static OPEN: OpenTables<Fib> = OpenTables::new(64);

/// The table of a snapshot file.
fn open(name: &str) -> Result<Arc<Fib>, String> {
    OPEN.open(name, |fib| fib).map_err(|error| error.to_string())
}
