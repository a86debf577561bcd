//! How many routes a second the FPM decoder reads, from uncompressed bytes in memory: `fpm_speed FILE...`
//!
//! What it says is compared with the kernel's table by `tests/fpm.rs`; here only the time is.

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::time::Instant;

use fibula_core::Update;
use fibula_ingest::fpm::FpmDecoder;
use fibula_ingest::{Damage, Driver, Sink, Tail, decompress};

#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn update(&mut self, _: &Update<'_>) {
        self.0 += 1;
    }
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        panic!("{damage}");
    }
}

/// Bytes that a socket gives at a time.
const READ: usize = 64 << 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args_os().skip(1) {
        let mut bytes = Vec::new();
        decompress(File::open(&path)?)?.1.read_to_end(&mut bytes)?;
        let mut fastest = f64::INFINITY;
        let (mut updates, mut frames) = (0, 0);
        for _ in 0..9 {
            let (mut driver, mut count) =
                (Driver::new(Box::new(FpmDecoder::default()), READ), Count(0));
            let start = Instant::now();
            for part in bytes.chunks(READ) {
                driver.push(part, &mut count)?;
            }
            driver.finish(Tail::End, &mut count)?;
            fastest = fastest.min(start.elapsed().as_secs_f64());
            (updates, frames) = (count.0, driver.records());
        }
        println!(
            "{}: {:.1} MB, {frames} frames, {updates} updates, {:.1} ms: {:.2} M updates/s",
            path.to_string_lossy(),
            bytes.len() as f64 / 1e6,
            fastest * 1e3,
            updates as f64 / fastest / 1e6,
        );
    }
    Ok(())
}
