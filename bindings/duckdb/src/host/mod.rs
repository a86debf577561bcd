//! Calls of DuckDB's C API, and the functions that it calls: the only part with `unsafe`.

mod entry;
mod scalar;
mod scan;
mod types;
mod vector;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs what DuckDB asks for. A panic is an error of the query, and does not unwind into DuckDB.
fn guarded<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(said(&*panic)))
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text =
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason is known");
    format!("a fault in fibula: {text}")
}
