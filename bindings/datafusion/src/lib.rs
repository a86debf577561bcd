//! Longest-prefix match as functions of DataFusion's SQL, in tables that `fibula build` wrote.
//!
//! ```
//! # use fibula_core::{Attributes, Change, Update, Value};
//! # use fibula_fib::{Fib, FibOptions};
//! # use fibula_rib::{BuilderOptions, ColumnKind, TableBuilder};
//! use datafusion::prelude::*;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("networks.fib");
//! # let mut builder = TableBuilder::new(BuilderOptions::default());
//! # builder.begin_source("t", "text", &[("site".into(), ColumnKind::Str)], false, None);
//! # let site = [Value::Str("zurich")];
//! # builder.apply(&Update::new("10.20.0.0/16".parse()?, Change::Announce(Attributes::Values(&site))));
//! # Fib::of_table(builder.finish()?, &FibOptions::default())?.write(&path)?;
//! # let path = path.display();
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let context = SessionContext::new();
//! fibula_datafusion::functions().into_iter().for_each(|function| context.register_udf(function));
//! let (name, function) = fibula_datafusion::table_function();
//! context.register_udtf(name, function);
//!
//! // `path` is that of a snapshot, here of a table with the prefix 10.20.0.0/16 in Zurich.
//! let found = context.sql(&format!("SELECT fibula_value('{path}', '10.20.30.40', 'site') AS site")).await?;
//! # let found =
//! found.to_string().await?;
//! # assert!(found.contains("zurich"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | function | result |
//! |---|---|
//! | `fibula(table, address)` | `Struct`: the longest match as `prefix`, then its values in their types; null without a match |
//! | `fibula_prefix(table, address)` | `Utf8`: the prefix of the longest match |
//! | `fibula_value(table, address, column)` | its value in one column |
//! | `fibula_number(table, address, column)` | `UInt64`: the same of a column of integers |
//! | `fibula_covering(table, address)` | `List(Utf8)`: all prefixes that match, longest first |
//! | `fibula_table(table)` | a table: `prefix`, then the columns, in the order of addresses |
//!
//! The functions have the names of the DuckDB extension. `fibula`, and `fibula_value` for other types than text, need the
//! table and the column as constants, because a query is planned with the types of its columns.
//!
//! Addresses are the columns that [`ColumnAnnotator`](fibula_annotate::ColumnAnnotator) takes, which does the work:
//! text, bytes in network order, numbers (IPv4), dictionaries of these. What is no address gives null.

mod answer;
mod function;
mod names;
mod routes;

use std::sync::Arc;

use datafusion_catalog::TableFunctionImpl;
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::ScalarUDF;
use fibula_annotate::PreparedTable;
use fibula_fib::{Fib, OpenTables};

use self::function::Function;
use self::routes::TableOfRoutes;

/// A column of more names than stay open costs an opening for each change of the name.
static OPEN: OpenTables<PreparedTable<Fib>> = OpenTables::new(64);

/// The functions of rows: `fibula`, `fibula_prefix`, `fibula_value`, `fibula_number`, `fibula_covering`.
pub fn functions() -> Vec<ScalarUDF> {
    Function::ALL
        .iter()
        .map(|&question| ScalarUDF::new_from_impl(Function::new(question)))
        .collect()
}

/// The function of tables, `fibula_table`, with its name.
pub fn table_function() -> (&'static str, Arc<dyn TableFunctionImpl>) {
    ("fibula_table", Arc::new(TableOfRoutes))
}

/// The table of a snapshot file, of the file that is there now.
fn open(name: &str) -> Result<Arc<PreparedTable<Fib>>> {
    let open = OPEN.open(name, PreparedTable::new);
    open.map_err(|error| DataFusionError::Execution(format!("fibula: {error}")))
}
