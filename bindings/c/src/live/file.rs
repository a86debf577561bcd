//! Tables from files and to them.

use std::ffi::c_char;
use std::path::Path;

use fibula_core::{Addr, AnyPrefix, ColumnKind, Hop, Prefix, Routes, Value};
use fibula_fib::{Fib, FibOptions};
use fibula_rib::{Columns, ColumnsBuilder, Pod, Provenance, SourceRecord, Table, TableError};

use super::Live;
use super::table::State;
use crate::error::{Outcome, guarded, text};
use crate::route::Route;

/// The column of a file that [`fibula_live_save`] writes.
const COLUMN: &str = "value";

impl Live {
    /// Adds the routes of a file.
    fn load(&self, path: &Path, column: &str) -> Outcome<()> {
        let fib = Fib::open_with(path, &FibOptions::default().engines(["search"]))?;
        let Some(place) = fib.columns().find(column) else {
            let known: Vec<_> = fib.columns().names().collect();
            return Err(
                format!("there is no column {column:?}; there are: {}", known.join(", ")).into()
            );
        };
        let mut routes = Vec::with_capacity(fib.len());
        read::<u32>(&fib, place, &mut routes)?;
        read::<u128>(&fib, place, &mut routes)?;
        self.set(&routes)
    }

    fn save(&self, path: &Path) -> Outcome<()> {
        let table = {
            let mut state = self.table.lock()?;
            copy(&mut state)?
        };
        Fib::of_table(table, &self.settings.engines.options)?.write(path)?;
        Ok(())
    }
}

/// Adds a family's routes with their values in a column.
fn read<A: Addr + Pod>(fib: &Fib, column: usize, routes: &mut Vec<Route>) -> Outcome<()> {
    let columns: &Columns = fib.columns();
    let of = fib.family::<A>().routes();
    for route in (0..of.len()).map(|at| of.get(at)) {
        let value = route.hop.index().map(|row| columns.value(column, row));
        let prefix = AnyPrefix::from(route.prefix);
        let Some(Value::Int(value)) = value else {
            return Err(format!("the value of {prefix} is not a number").into());
        };
        routes.push(Route::new(prefix, value));
    }
    Ok(())
}

/// The routes with a column of their values.
fn copy(state: &mut State) -> Result<Table, TableError> {
    fn family<A: Addr>(
        state: &mut State,
        columns: &mut ColumnsBuilder,
    ) -> Result<Routes<A>, TableError> {
        let routes = state.tables.get_mut::<A>().walk(Prefix::ALL, None);
        let with_row = routes
            .map(|(prefix, value)| Ok((prefix, Hop::new(columns.intern(&[Value::Int(value)])?))));
        with_row.collect()
    }
    let mut columns = ColumnsBuilder::new(&[(COLUMN, ColumnKind::Int)]);
    let (v4, v6) = (family(state, &mut columns)?, family(state, &mut columns)?);
    let source = SourceRecord {
        name: "a live table".to_owned(),
        format: "fibula_live".to_owned(),
        ..SourceRecord::default()
    };
    let provenance = Provenance { sources: vec![source], ..Provenance::of_now() };
    Ok(Table { v4, v6, columns: columns.finish()?, provenance })
}

/// Adds the routes of a file.
///
/// # Safety
/// As the header says of `fibula_live_load`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_load(
    live: *mut Live,
    path: *const c_char,
    column: *const c_char,
) -> bool {
    guarded(false, || {
        // SAFETY: a table, and texts of C.
        let (live, path) = unsafe { (&*live, crate::path(path)?) };
        let column = match column.is_null() {
            true => COLUMN,
            // SAFETY: a text of C.
            false => unsafe { text(column, "the column's name") }?,
        };
        live.process.check()?;
        live.load(path, column)?;
        Ok(true)
    })
}

/// Writes the routes to a file.
///
/// # Safety
/// As the header says of `fibula_live_save`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_save(live: *const Live, path: *const c_char) -> bool {
    guarded(false, || {
        // SAFETY: a table, and a text of C.
        let (live, path) = unsafe { (&*live, crate::path(path)?) };
        live.process.check()?;
        live.save(path)?;
        Ok(true)
    })
}
