//! A small table to annotate with.

use std::sync::LazyLock;

use fibula_annotate::{LookupFamily, LookupTable};
use fibula_core::{Addr, Attributes, Change, Lookup, Update, Value};
use fibula_rib::{BuilderOptions, ColumnKind, Columns, IndexedRoutes, Pod, TableBuilder};
use fibula_testkit::Oracle;

/// A table whose engine is the oracle.
pub struct World(Columns, Family<u32>, Family<u128>);

struct Family<A: Addr + Pod>(Oracle<A>, IndexedRoutes<A>);

impl<A: Addr + Pod> LookupFamily<A> for Family<A> {
    fn engine(&self) -> &dyn Lookup<A> {
        &self.0
    }
    fn routes(&self) -> &IndexedRoutes<A> {
        &self.1
    }
}

impl LookupTable for World {
    fn columns(&self) -> &Columns {
        &self.0
    }
    fn v4(&self) -> &dyn LookupFamily<u32> {
        &self.1
    }
    fn v6(&self) -> &dyn LookupFamily<u128> {
        &self.2
    }
}

/// Routes with values that are awkward to write.
pub static WORLD: LazyLock<World> = LazyLock::new(|| {
    let mut builder = TableBuilder::new(BuilderOptions::default());
    let columns = [("asn".into(), ColumnKind::Int), ("org".into(), ColumnKind::Str)];
    builder.begin_source("world", "text", &columns, false, None);
    for (prefix, asn, org) in [
        ("0.0.0.0/1", Value::Int(1), "a,b"),
        ("10.0.0.0/8", Value::Int(u64::MAX), "say \"no\""),
        ("10.1.0.0/16", Value::Null, "tab\there; and | there"),
        ("::/1", Value::Int(0), "Zoë \\ \u{1}"),
        ("2001:db8::/32", Value::Int(3), ""),
    ] {
        let change = Change::Announce(Attributes::Values(&[asn, Value::Str(org)]));
        let prefix = prefix.parse().unwrap();
        builder.apply(&Update::new(prefix, change));
    }
    let table = builder.finish().unwrap();
    let v4 = Family(Oracle::new(&table.v4), IndexedRoutes::new(&table.v4));
    let v6 = Family(Oracle::new(&table.v6), IndexedRoutes::new(&table.v6));
    World(table.columns, v4, v6)
});
