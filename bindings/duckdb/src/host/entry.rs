//! What DuckDB calls when it loads the extension.

use std::ptr;

use libduckdb_sys as duckdb;

use super::types::c_text;
use super::{guarded, scalar, scan};

/// The version of the C API whose stable part is used.
const API: &str = "v1.2.0";

/// Adds the functions to a database. Returns whether that worked; if not, DuckDB has the reason.
///
/// # Safety
/// DuckDB calls it, once for each database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_init_c_api(
    info: duckdb::duckdb_extension_info,
    access: *const duckdb::duckdb_extension_access,
) -> bool {
    let run = || {
        // SAFETY: DuckDB gives both; the API is there before any other function is called.
        match unsafe { duckdb::duckdb_rs_extension_api_init(info, access, API) } {
            Ok(true) => {}
            // DuckDB has said that it is too old.
            Ok(false) => return Ok(false),
            Err(error) => return Err(error.to_owned()),
        }
        // SAFETY: as above. The connection is closed here.
        unsafe {
            let access = &*access;
            let database = access.get_database.ok_or("DuckDB gives no database")?;
            let mut connection = ptr::null_mut();
            let state = duckdb::duckdb_connect(*database(info), &raw mut connection);
            if state != duckdb::duckdb_state_DuckDBSuccess {
                return Err("DuckDB opens no connection".to_owned());
            }
            let mut registered = scan::register(connection);
            for (name, question) in scalar::FUNCTIONS {
                registered = registered.and_then(|()| scalar::register(connection, name, question));
            }
            duckdb::duckdb_disconnect(&raw mut connection);
            registered.map(|()| true)
        }
    };
    guarded(run).unwrap_or_else(|error| {
        let error = c_text(&format!("fibula: {error}"));
        // SAFETY: the pointers are DuckDB's, and the text is copied.
        unsafe {
            if let Some(set_error) = (*access).set_error {
                set_error(info, error.as_ptr());
            }
        }
        false
    })
}
