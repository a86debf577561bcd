//! Reads a table from a file and looks addresses up:
//!
//! ```text
//! cargo run -p fibula --example table -- testdata/mrt/pyasn-rib.20140523.0600_first40888.bz2 1.0.0.1 8.8.8.8
//! ```
//!
//! The file is what `fibula build` takes: networks or ranges as text, CSV or JSON, MRT, mmdb, plain or compressed, or a
//! snapshot.

use std::error::Error;

use fibula::ingest::{Damage, ReadProgress, ReadReport};
use fibula::sources::{Merge, Settings, Source, Watch};
use fibula::{Fib, FibOptions};

/// Prints what was read.
struct Print;

impl Watch for Print {
    fn progress(&mut self, _: &str, _: ReadProgress) {}

    fn done(&mut self, name: &str, report: &ReadReport, damage: &[Damage]) {
        println!(
            "{name}: {}, {} records, {} damaged",
            report.format, report.records, report.damaged
        );
        damage.iter().for_each(|damage| println!("  {damage}"));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: table FILE ADDRESS...")?;

    // Several files can be added: for the same prefix a later one replaces an earlier one.
    let mut merge = Merge::new(Settings::default());
    merge.add(&name, &Source::parse(&name)?, &mut Print)?;
    let fib = Fib::of_table(merge.finish()?, &FibOptions::default())?;
    println!("{} prefixes, columns {:?}", fib.len(), fib.columns().names().collect::<Vec<_>>());

    for address in arguments {
        match fib.lookup(address.parse()?) {
            Some(found) => println!("{address}: {found}"),
            None => println!("{address}: no route"),
        }
    }
    // `fib.write("table.fib")?` keeps it: `Fib::open` then takes milliseconds.
    Ok(())
}
