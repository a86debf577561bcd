//! Our MRT reader beside bgpkit-parser, on uncompressed bytes in memory: `mrt_speed FILE...`
//!
//! What both give is compared by `tests/bgpkit.rs`; here only the time is.

use std::fs::File;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bgpkit_parser::BgpkitParser;
use fibula_core::Update;
use fibula_ingest::{
    Damage, Format, ReadOptions, Sink, SourceInfo, SourceSpec, decompress, read_from,
};

#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn begin(&mut self, _: &SourceInfo) {}
    fn update(&mut self, _: &Update<'_>) {
        self.0 += 1;
    }
    fn damage(&mut self, _: &Damage) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The fastest of five runs, and what it counted.
fn fastest(mut run: impl FnMut() -> u64) -> (Duration, u64) {
    let timed = (0..5).map(|_| {
        let start = Instant::now();
        let count = run();
        (start.elapsed(), count)
    });
    timed.min().expect("there are runs")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args_os().skip(1) {
        let mut bytes = Vec::new();
        decompress(File::open(&path)?)?.1.read_to_end(&mut bytes)?;
        let (ours, updates) = fastest(|| {
            let mut count = Count::default();
            let spec = SourceSpec { format: Format::Mrt, ..SourceSpec::new(&path) };
            let input = Cursor::new(bytes.clone());
            read_from(&spec, input, &mut ReadOptions::default(), &mut count).expect("an MRT file");
            count.0
        });
        let (theirs, elements) =
            fastest(|| BgpkitParser::from_reader(Cursor::new(&bytes)).into_iter().count() as u64);
        println!(
            "{}: {:.1} MB; ours {updates} updates, {:.1} ms; bgpkit-parser {elements}, {:.1} ms; {:.1} times",
            path.display(),
            bytes.len() as f64 / 1e6,
            ours.as_secs_f64() * 1e3,
            theirs.as_secs_f64() * 1e3,
            theirs.as_secs_f64() / ours.as_secs_f64(),
        );
    }
    Ok(())
}
