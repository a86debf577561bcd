//! Dense tables of both families, and every kind of open table over the same routes.
#![allow(dead_code, reason = "not every test uses all of it")]

use fibula_core::{Addr, Attributes, Change, PerFamily, Route, Routes, Update, Value};
use fibula_engines::Isa;
use fibula_fib::{Fib, FibOptions, Pod};
use fibula_rib::{Columns, Live, LiveOptions, Maker, Makers, Rib, Table};
use fibula_testkit::tables;
use tempfile::TempDir;

/// A table whose one column, `value`, repeats the hop.
pub fn table(v4: Routes<u32>, v6: Routes<u128>) -> Table {
    let rows = v4.hop_count().max(v6.hop_count());
    Table { columns: Columns::numbered("value", rows), ..Table::from_routes(v4, v6) }
}

/// Nested routes at nearly every boundary of each other.
pub fn dense(seed: u64) -> Table {
    table(tables::dense(seed, 600), tables::dense(seed, 600))
}

/// The three kinds over the same routes: of a file, of a table in memory, of a live table. A live table
/// ends with its feed, so it comes along.
pub struct Kinds {
    pub file: Fib,
    pub built: Fib,
    pub live: Fib,
    _live: Live,
    _folder: TempDir,
}

impl Kinds {
    pub fn new(table: &Table) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.fib");
        let built = Fib::of_table(table.clone(), &FibOptions::default()).unwrap();
        built.write(&path).unwrap();
        let feed = live(table);
        let live = Fib::of_live(&feed, 0).unwrap();
        Self { file: Fib::open(&path).unwrap(), built, live, _live: feed, _folder: folder }
    }

    pub fn all(&self) -> [(&'static str, &Fib); 3] {
        [("file", &self.file), ("built", &self.built), ("live", &self.live)]
    }
}

/// A live table that took in the routes, each with its hop as the value.
pub fn live(table: &Table) -> Live {
    fn makers<A: Addr>() -> Vec<Maker<A>> {
        let entry = fibula_engines::Registry::product().find::<A>("planb").unwrap().clone();
        vec![Maker::new(entry.name, move |routes: &Routes<A>| entry.build(routes, Isa::detect()))]
    }
    fn feed<A: Addr + Pod>(live: &Live, routes: &Routes<A>) {
        for Route { prefix, hop } in routes.iter() {
            let values = [Value::Int(hop.index().unwrap().into())];
            let change = Change::Announce(Attributes::Values(&values));
            live.apply(&Update::new(prefix.into(), change)).unwrap();
        }
    }
    let both = PerFamily::<Makers> { v4: makers(), v6: makers() };
    let live = Live::start(Rib::default(), &[0], both, LiveOptions::default(), |_| {}).unwrap();
    feed(&live, &table.v4);
    feed(&live, &table.v6);
    live.flush().unwrap();
    live
}
