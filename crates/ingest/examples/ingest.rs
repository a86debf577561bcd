//! Reads files, prints what they hold, their damage and the time that it took: `ingest FILE...`

use std::ops::ControlFlow;
use std::time::Instant;

use fibula_core::Update;
use fibula_ingest::{Damage, ReadOptions, Sink, SourceInfo, SourceSpec, read};

#[derive(Default)]
struct Print {
    damage: u64,
}

impl Sink for Print {
    fn begin(&mut self, info: &SourceInfo) {
        let columns: Vec<_> =
            info.columns.iter().map(|c| format!("{} {:?}", c.name, c.kind)).collect();
        println!("{}: {} [{}]", info.name, info.format, columns.join(", "));
    }
    fn update(&mut self, _: &Update<'_>) {}
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        self.damage += 1;
        if self.damage <= 5 {
            println!("  {damage}");
        }
        ControlFlow::Continue(())
    }
}

fn main() {
    for path in std::env::args_os().skip(1) {
        let mut print = Print::default();
        let start = Instant::now();
        match read(&SourceSpec::new(path), &mut ReadOptions::default(), &mut print) {
            Err(error) => println!("{error}"),
            Ok(report) => println!(
                "  {} records, {} updates, {} damaged, {:.1} MB, {:.0} ms, ignored {:?}",
                report.records,
                report.updates,
                report.damaged,
                report.bytes as f64 / 1e6,
                start.elapsed().as_secs_f64() * 1e3,
                report.ignored,
            ),
        }
    }
}
