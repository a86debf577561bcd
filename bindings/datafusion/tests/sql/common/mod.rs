//! Tables for tests, and a context that has the functions.

use std::path::Path;

use datafusion::prelude::{SessionConfig, SessionContext};
use fibula_core::{Attributes, Change, Update, Value};
use fibula_fib::{Fib, FibOptions};
use fibula_rib::{BuilderOptions, ColumnKind, TableBuilder};

/// A context with the functions.
pub fn context() -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    fibula_datafusion::functions().into_iter().for_each(|function| context.register_udf(function));
    let (name, function) = fibula_datafusion::table_function();
    context.register_udtf(name, function);
    context
}

/// Writes a table with the columns `site` and `vlan`, in one step as `fibula build` does.
pub fn write<'a>(
    path: &Path,
    routes: impl IntoIterator<Item = (&'a str, Option<&'a str>, Option<u64>)>,
) {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    let columns = [("site".into(), ColumnKind::Str), ("vlan".into(), ColumnKind::Int)];
    builder.begin_source("test", "text", &columns, false, None);
    for (prefix, site, vlan) in routes {
        let row = [site.map_or(Value::Null, Value::Str), vlan.map_or(Value::Null, Value::Int)];
        let change = Change::Announce(Attributes::Values(&row));
        builder.apply(&Update::new(prefix.parse().expect("a prefix"), change));
    }
    let table = builder.finish().expect("a table");
    Fib::of_table(table, &FibOptions::default()).expect("engines").write(path).expect("a file");
}

/// The table of the page.
pub const NETWORKS: [(&str, Option<&str>, Option<u64>); 3] = [
    ("10.0.0.0/8", Some("hq"), Some(1)),
    ("10.20.0.0/16", Some("zurich"), Some(20)),
    ("2001:db8::/32", Some("hq"), None),
];
