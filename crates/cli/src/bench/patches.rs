//! `fibula bench --device --updates`: what a device is sent after routes have changed, and how long that takes.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use fibula_accel::{Device, DeviceError, DeviceKey, DeviceTable, Image, Offloaded, Pipeline};
use fibula_core::{Hop, Lookup, Patched, Prefix, Routes, grouped};
use fibula_testkit::measure::{median, rounded};
use fibula_testkit::{Oracle, RouteChurn};
use serde::Serialize;

use super::Bench;
use crate::engines::Built;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Grid};
use crate::progress::note;

/// Bursts of a run.
const BURSTS: usize = 8;

/// A measurement, medians of all bursts. The names and the order of the fields are relied on by scripts.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    device: String,
    engine: String,
    kernel: &'static str,
    family: &'static str,
    table: String,
    prefixes: usize,
    /// Changed prefixes.
    burst: usize,
    /// Bytes of the table on the device.
    bytes: usize,
    /// Bytes that were sent.
    sent: usize,
    /// Pieces that they are in.
    pieces: usize,
    /// Microseconds to make the image of the patched engine, and to compare it with the last one.
    image_us: f64,
    /// Microseconds until the device has the new table, made of the old one and what was sent.
    upload_us: f64,
    /// Microseconds to send a whole table.
    whole_us: f64,
    /// Bursts after which the whole table had to be sent, because its layout had changed.
    whole: usize,
}

/// A table that follows the routes.
struct Follower<A: DeviceKey> {
    built: Built<A>,
    table: Arc<dyn DeviceTable>,
    sent: Vec<f64>,
    pieces: Vec<f64>,
    image: Vec<f64>,
    upload: Vec<f64>,
    whole: usize,
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

impl<A: DeviceKey> Follower<A> {
    fn follow(
        &mut self,
        device: &dyn Device,
        routes: &Routes<A>,
        changed: &[Prefix<A>],
    ) -> Result<(), Failure> {
        if self.built.engine.follow(routes, changed)? == Patched::Rebuild {
            let registry = fibula_baselines::registry();
            let entry = registry.find::<A>(self.built.name).expect("it was built before");
            self.built.engine = entry.build(routes, self.built.isa)?;
        }
        let start = Instant::now();
        let before = self.table.image();
        let image = Arc::new(before.after(&*self.built.engine).map_err(Failure::new)?);
        let changes = image.changes(before);
        self.image.push(micros(start));
        let start = Instant::now();
        let (sent, pieces, table) = match changes {
            Some(changes) => {
                let table = device.upload_changes(&self.table, image, &changes);
                (changes.iter().map(ExactSizeIterator::len).sum(), changes.len(), table)
            }
            None => {
                self.whole += 1;
                (image.bytes().len(), 1, device.upload(image))
            }
        };
        self.table = table.map_err(Failure::new)?;
        self.upload.push(micros(start));
        self.sent.push(sent as f64);
        self.pieces.push(pieces as f64);
        Ok(())
    }

    /// Whether the device answers as the oracle does, at the edges of these prefixes.
    fn is_right(
        &self,
        device: &Arc<dyn Device>,
        oracle: &Oracle<A>,
        changed: &[Prefix<A>],
    ) -> Result<bool, DeviceError> {
        let edges = changed.iter().flat_map(|prefix| [prefix.first(), prefix.last()]);
        let beside = changed.iter().filter_map(|prefix| prefix.last().successor());
        let keys: Vec<A> = edges.chain(beside).collect();
        let mut pipeline = Pipeline::new(device.clone(), 1, keys.len())?;
        let table = Offloaded { engine: &self.built.engine, table: self.table.clone() };
        let mut hops = vec![Hop::NONE; keys.len()];
        let summary = pipeline.look_up(&table, &keys, &mut hops);
        let right = keys.iter().zip(&hops).all(|(&key, &hop)| oracle.lookup(key) == hop);
        Ok(right && summary.failures == 0)
    }
}

impl Bench<'_> {
    /// Measures the engines that have a kernel and can be patched.
    pub fn patches<A: DeviceKey>(
        &mut self,
        device: &Arc<dyn Device>,
        table: &str,
        routes: &Routes<A>,
        built: Vec<Built<A>>,
    ) -> Result<(), Failure> {
        let mut routes = routes.clone();
        let mut churn = RouteChurn::new(self.args.seed);
        let mut followers = Vec::new();
        for mut built in built {
            if built.engine.follow(&routes, &[])? == Patched::Rebuild {
                note(format_args!("{} is not patched but built anew, skipped", built.label));
                continue;
            }
            let made = Image::of(&*built.engine).and_then(|image| device.upload(image.into()));
            match made {
                Ok(table) => followers.push(Follower {
                    built,
                    table,
                    sent: vec![],
                    pieces: vec![],
                    image: vec![],
                    upload: vec![],
                    whole: 0,
                }),
                Err(error @ DeviceError::NoKernel { .. }) => {
                    note(format_args!("skipped, IP{}: {error}", A::FAMILY));
                }
                Err(error) => return Err(Failure::new(error)),
            }
        }
        for &burst in &self.args.updates {
            let burst = burst as usize;
            if routes.len() < 2 * burst {
                note(format_args!("{table} has too few prefixes for bursts of {burst}, skipped"));
                continue;
            }
            let mut all = Vec::new();
            for _ in 0..BURSTS * self.args.runs as usize {
                let changes = churn.burst(&routes, burst);
                let changed: Vec<Prefix<A>> = changes.iter().map(|change| change.prefix).collect();
                routes.apply(&changes);
                for follower in &mut followers {
                    follower.follow(&**device, &routes, &changed)?;
                }
                all.extend(changed);
            }
            let oracle = Oracle::new(&routes);
            let mut rows = Vec::new();
            for follower in &mut followers {
                if !follower.is_right(device, &oracle, &all).map_err(Failure::new)? {
                    note(format_args!("{}: the device is wrong, left out", follower.built.label));
                    self.outcome = Outcome::Negative;
                    continue;
                }
                let image = follower.table.image().clone();
                let mut whole = Vec::new();
                for _ in 0..self.args.runs {
                    let start = Instant::now();
                    device.upload(image.clone()).map_err(Failure::new)?;
                    whole.push(micros(start));
                }
                let middle = |of: &mut Vec<f64>| rounded(median(&mut std::mem::take(of)));
                rows.push(Row {
                    device: device.name().to_owned(),
                    engine: follower.built.label.clone(),
                    kernel: image.kernel(),
                    family: A::FAMILY.name(),
                    table: table.to_owned(),
                    prefixes: routes.len(),
                    burst,
                    bytes: image.bytes().len(),
                    sent: middle(&mut follower.sent) as usize,
                    pieces: middle(&mut follower.pieces) as usize,
                    image_us: middle(&mut follower.image),
                    upload_us: middle(&mut follower.upload),
                    whole_us: middle(&mut whole),
                    whole: std::mem::take(&mut follower.whole),
                });
            }
            if !self.args.json {
                group(&rows)?;
            }
            self.patches.extend(rows);
        }
        Ok(())
    }
}

/// Prints the measurements of one table and size of bursts.
fn group(rows: &[Row]) -> Result<(), Failure> {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut out = output::stdout();
    let prefixes = grouped(first.prefixes as u64);
    writeln!(
        out,
        "\n{}, IP{}, {prefixes} prefixes, {} changed",
        first.table, first.family, first.burst
    )?;
    let mut grid = Grid::new(&[
        "engine",
        ">sent",
        ">pieces",
        ">us to image",
        ">us to device",
        ">memory",
        ">us whole",
        ">sent whole",
    ]);
    for row in rows {
        grid.row([
            row.engine.clone(),
            output::size(row.sent as u64),
            row.pieces.to_string(),
            format!("{:.0}", row.image_us),
            format!("{:.0}", row.upload_us),
            output::size(row.bytes as u64),
            format!("{:.0}", row.whole_us),
            row.whole.to_string(),
        ]);
    }
    grid.write_aligned(&mut out)?;
    out.flush()?;
    Ok(())
}
