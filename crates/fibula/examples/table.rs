//! Reads a table from a file and looks addresses up:
//!
//! ```text
//! cargo run -p fibula --example table -- testdata/mrt/pyasn-rib.20140523.0600_first40888.bz2 1.0.0.1 8.8.8.8
//! ```
//!
//! The file is what `fibula build` takes: networks or ranges as text, CSV or JSON, MRT, mmdb, plain or compressed, or a
//! snapshot.

use std::error::Error;

use fibula::sources::TableSources;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: table FILE ADDRESS...")?;

    // `fibula::build` refuses damaged files. This skips and reports the damaged records. With several names, a later
    // source replaces the prefixes of an earlier one.
    let (fib, report) = TableSources::of([name]).fib()?;
    for file in report.files {
        println!(
            "{}: {}, {} records, {} damaged",
            file.name, file.format, file.records, file.damaged
        );
    }
    report.damage.iter().chain(&report.notes).for_each(|line| println!("  {line}"));
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
