//! `fibula bench --device --gather`: how fast a device reads words at random places of working sets. No table of that
//! size is looked up faster than its reads.

use std::io::Write;
use std::sync::Arc;

use fibula_accel::{Device, DeviceError, Image, Walked};
use fibula_core::{Family, Lookup};
use fibula_testkit::measure::{Stamp, median, rate, rounded};
use serde::Serialize;

use super::{Args, report};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Grid};
use crate::progress::note;

/// Keys whose sums are compared with the walk's.
const CHECKED: usize = 1000;

/// A measurement. The names and the order of the fields are relied on by scripts.
#[derive(Clone, Debug, Serialize)]
struct Row {
    device: String,
    kernel: &'static str,
    /// Bytes of the working set.
    bytes: usize,
    /// Keys of a batch.
    batch: usize,
    reads_per_key: usize,
    /// Million reads of four bytes a second, in the kernels' time.
    mreads_per_s: f64,
}

/// Measures every working set, and prints it.
pub fn run(args: &Args, stamp: &Stamp, device: &Arc<dyn Device>) -> Result<Outcome, Failure> {
    let mut rows = Vec::new();
    for &kib in &args.gather {
        let batch = args.batch.iter().copied().max().unwrap_or(1) as usize;
        match measure(device, (kib as usize) << 10, batch, args.runs, args.seed) {
            Ok(Some(row)) => rows.push(row),
            Ok(None) => {
                note(format_args!(
                    "{kib} KiB: the device is wrong, or does not say how long it computes"
                ));
                return Ok(Outcome::Negative);
            }
            // Most often its memory is not enough: smaller ones are still worth knowing.
            Err(error) => note(format_args!("{kib} KiB: skipped: {error}")),
        }
    }
    if rows.is_empty() {
        return Err(Failure::new("nothing was measured"));
    }
    if args.json {
        report::json(stamp, &rows)?;
        return Ok(Outcome::Done);
    }
    let mut grid = Grid::new(&["working set", ">million reads/s", ">GB/s of words"]);
    for row in &rows {
        grid.row([
            output::size(row.bytes as u64),
            format!("{:.0}", row.mreads_per_s),
            format!("{:.1}", row.mreads_per_s * 4.0 / 1e3),
        ]);
    }
    let mut out = output::stdout();
    writeln!(
        out,
        "\n{}, {} reads a key, batches of {}",
        device.name(),
        Image::GATHERS,
        rows[0].batch
    )?;
    grid.write_aligned(&mut out)?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// One working set; `None` if the sums are wrong or the device does not say its time.
fn measure(
    device: &Arc<dyn Device>,
    bytes: usize,
    batch: usize,
    runs: u32,
    seed: u64,
) -> Result<Option<Row>, DeviceError> {
    let image = Arc::new(Image::gather(bytes));
    let table = device.upload(image.clone())?;
    let mut slot = device.slot(Family::V4, batch)?;
    let walk = Walked::<u32>::new(image.clone());
    let mut rates = Vec::new();
    // The first run warms up: a device raises its clocks, and caches fill.
    for run in 0..=runs {
        let keys = slot.keys_mut();
        // All keys differ, and those of neighbours are not near each other.
        let first = (seed as u32).wrapping_add(run).wrapping_mul(0x85eb_ca6b);
        let key = |i: usize| (i as u32).wrapping_mul(0xc2b2_ae35).wrapping_add(first);
        for (i, place) in keys.chunks_exact_mut(size_of::<u32>()).enumerate() {
            place.copy_from_slice(&key(i).to_ne_bytes());
        }
        slot.submit(&table, batch)?;
        slot.wait()?;
        let hops = slot.hops().iter().take(CHECKED).enumerate();
        let is_right = hops.into_iter().all(|(i, &sum)| sum == walk.lookup(key(i)).to_bits());
        match slot.kernel_time() {
            Some(time) if is_right && run > 0 => rates.push(rate(batch * Image::GATHERS, time)),
            Some(_) if is_right => {}
            _ => return Ok(None),
        }
    }
    Ok(Some(Row {
        device: device.name().to_owned(),
        kernel: image.kernel(),
        bytes,
        batch,
        reads_per_key: Image::GATHERS,
        mreads_per_s: rounded(median(&mut rates)),
    }))
}
