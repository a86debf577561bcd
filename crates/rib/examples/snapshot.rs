//! Writes a table of a million IPv4 and 200,000 IPv6 routes as a snapshot, opens it again, and prints how long that
//! takes.
//!
//! ```text
//! cargo run --release -p fibula-rib --example snapshot
//! ```
use std::time::{Duration, Instant};

use fibula_core::{Addr, Routes, TableRef};
use fibula_rib::{EnginePart, Pod, Snapshot, Table, write};
use fibula_testkit::fib::{GenSpec, HopModel};
use fibula_testkit::traffic::{Traffic, keys};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let v4: Routes<u32> = generated("gen:v4:2024:1000000:1")?;
    let v6: Routes<u128> = generated("gen:v6:2024:200000:1")?;
    let table = Table::from_routes(v4, v6);

    // Stands for an engine's tables, about as large: the crate does not know engines.
    let bytes = vec![7; 8 << 20];
    let part = EnginePart { name: "example", tables: vec![TableRef { name: "t", bytes: &bytes }] };
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("table.fib");
    let start = Instant::now();
    let written = write(&path, &table, &part, &part)?;
    println!("written: {} bytes, {:.1?}", written.bytes, start.elapsed());
    println!("digest:  {:032x}", written.digest);

    let mut times: Vec<Duration> = (0..21)
        .map(|_| {
            let start = Instant::now();
            let snapshot = Snapshot::open(&path);
            let elapsed = start.elapsed();
            snapshot.map(|_| elapsed)
        })
        .collect::<Result<_, _>>()?;
    times.sort();
    println!("opened:  median {:.2?}, least {:.2?} of {}", times[10], times[0], times.len());

    let snapshot = Snapshot::open(&path)?;
    matched::<u32>(&snapshot, &table);
    matched::<u128>(&snapshot, &table);
    Ok(())
}

fn generated<A: Addr>(spec: &str) -> Result<Routes<A>, Box<dyn std::error::Error>> {
    Ok(spec.parse::<GenSpec>()?.with_hops(HopModel::Near(1000)).generate())
}

fn matched<A: Addr + Pod>(snapshot: &Snapshot, table: &Table) {
    let keys = keys::<A>(table.routes(), Traffic::Pfx, 1 << 20, 1);
    let stored = snapshot.family::<A>();
    let start = Instant::now();
    let sum = keys.iter().filter_map(|&key| stored.matched(key)).count();
    let each = start.elapsed().as_nanos() as f64 / keys.len() as f64;
    println!("matched: IP{}, {each:.0} ns a random key, {sum} of {} keys", A::FAMILY, keys.len());
}
