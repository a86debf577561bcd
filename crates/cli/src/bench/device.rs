//! `fibula bench --device`: the kernels of an accelerator, the pipeline of its slots, and the device and the CPU
//! together, beside the CPU's engine.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use fibula_accel::{
    BatchSummary, Device, DeviceError, DeviceKey, Division, Image, Offloaded, Pipeline,
    ResidentKeys,
};
use fibula_core::{Hop, Routes, grouped};
use fibula_testkit::Oracle;
use fibula_testkit::measure::{LookupMode, TrafficInput, answers, median, rate, rounded};
use serde::Serialize;

use super::Bench;
use crate::engines::Built;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Grid};
use crate::progress::note;

/// A measurement. The names and the order of the fields are relied on by scripts.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    device: String,
    engine: String,
    kernel: &'static str,
    family: &'static str,
    table: String,
    prefixes: usize,
    traffic: String,
    batch: usize,
    slots: u32,
    threads: u32,
    /// Bytes of the table on the device.
    bytes: usize,
    /// The CPU's engine, with that many threads.
    cpu_mlps: f64,
    /// The device's time for kernels alone; 0 if it does not say.
    kernel_mlps: f64,
    /// Keys in and hops out, copies included.
    device_mlps: f64,
    /// Keys and hops stay on the device, all of them one batch; 0 if its memory has no room for them.
    resident_mlps: f64,
    /// The device and the CPU's threads, meeting in the batch; 0 if not measured.
    together_mlps: f64,
    /// The same, with shares by the rates of either alone; 0 if not measured.
    shares_mlps: f64,
    /// With the shares of `--shares`.
    split: Vec<Split>,
    /// Times that a run goes through the keys.
    passes: u32,
    /// Microseconds from the keys of one batch to its hops, with nothing else on the device.
    batch_us: f64,
    /// Parts that the device failed to look up.
    failures: usize,
}

/// The device and the CPU with fixed shares.
#[derive(Clone, Debug, Serialize)]
struct Split {
    /// The device's share in percent.
    percent: u32,
    mlps: f64,
}

/// The device of this name.
pub fn open(name: &str) -> Result<Arc<dyn Device>, Failure> {
    fibula_accel::open(name).map_err(|error| {
        let failure = Failure::new(&error);
        let (listings, _) = fibula_accel::list();
        match listings[..] {
            [] => failure,
            _ => {
                let names: Vec<String> = listings.iter().map(ToString::to_string).collect();
                failure.hint(format_args!("devices here: {}", names.join("; ")))
            }
        }
    })
}

/// An engine, and what is measured of it.
struct Case<'e, A: DeviceKey> {
    built: &'e Built<A>,
    offloaded: Offloaded<'e, A>,
    pipeline: Pipeline<A>,
    cpu: Vec<f64>,
    kernel: Vec<f64>,
    device: Vec<f64>,
    resident: Vec<f64>,
    together: Vec<f64>,
    shares: Vec<f64>,
    /// For each of `--shares`.
    split: Vec<Vec<f64>>,
    latency: Vec<f64>,
    failures: usize,
    is_wrong: bool,
}

impl Bench<'_> {
    /// Measures all engines that have a kernel.
    pub fn on_device<A: DeviceKey>(
        &mut self,
        device: &Arc<dyn Device>,
        table: &str,
        routes: &Routes<A>,
        built: &[Built<A>],
    ) -> Result<(), Failure> {
        let oracle = Oracle::new(routes);
        for traffic in &self.args.traffic {
            let keys = self.keys(routes, traffic)?.concat();
            if keys.is_empty() {
                continue;
            }
            let expected = answers(&oracle, &keys);
            let sizes = self.args.batch.iter();
            let sizes =
                sizes.flat_map(|&batch| self.args.slots.iter().map(move |&slots| (batch, slots)));
            for (batch, slots) in sizes.collect::<Vec<_>>() {
                let mut cases = Vec::new();
                for built in built {
                    cases.extend(self.cases(device, built, batch as usize, slots)?);
                }
                for _ in 0..self.args.runs {
                    for case in &mut cases {
                        self.run(case, &keys, &expected, batch as usize);
                    }
                }
                for wrong in cases.extract_if(.., |case| case.is_wrong) {
                    self.outcome = Outcome::Negative;
                    note(format_args!("{}: the device is wrong, left out", wrong.built.label));
                }
                let rows: Vec<Row> = cases
                    .into_iter()
                    .map(|case| {
                        self.row(case, device, table, routes, traffic, (batch as usize, slots))
                    })
                    .collect();
                if !self.args.json {
                    group(&rows)?;
                }
                self.devices.extend(rows);
            }
        }
        Ok(())
    }

    /// The table on the device, for each kernel of its scheme; none if there is no kernel for it.
    fn cases<'e, A: DeviceKey>(
        &self,
        device: &Arc<dyn Device>,
        built: &'e Built<A>,
        batch: usize,
        slots: u32,
    ) -> Result<Vec<Case<'e, A>>, Failure> {
        let case = |image: Image| {
            let table = device.upload(image.into())?;
            Ok(Case {
                built,
                offloaded: Offloaded { engine: &built.engine, table },
                pipeline: Pipeline::new(device.clone(), slots as usize, batch)?,
                cpu: Vec::new(),
                kernel: Vec::new(),
                device: Vec::new(),
                resident: Vec::new(),
                together: Vec::new(),
                shares: Vec::new(),
                split: vec![Vec::new(); self.args.shares.len()],
                latency: Vec::new(),
                failures: 0,
                is_wrong: false,
            })
        };
        let made = || {
            let image = Image::of(&*built.engine)?;
            let by_lanes = image.by_lanes();
            [Some(image), by_lanes].into_iter().flatten().map(case).collect()
        };
        match made() {
            Ok(cases) => Ok(cases),
            // Of `--engines all`, those with a kernel are meant.
            Err(error @ DeviceError::NoKernel { .. }) => {
                if !self.args.engines.iter().any(|engine| engine == "all") {
                    note(format_args!("skipped, IP{}: {error}", A::FAMILY));
                }
                Ok(Vec::new())
            }
            Err(error) => Err(Failure::new(error)),
        }
    }

    fn run<A: DeviceKey>(
        &self,
        case: &mut Case<'_, A>,
        keys: &[A],
        expected: &[Hop],
        batch: usize,
    ) {
        let (threads, passes) = (self.args.most_threads(), self.args.passes);
        let mut hops = vec![Hop::NONE; keys.len()];
        // The engine's own batches suit the first-level cache.
        let parts: Vec<&[A]> = keys.chunks(keys.len().div_ceil(threads)).collect();
        let mode = LookupMode::Batch(256);
        let run = fibula_testkit::measure::run(&case.built.engine, &parts, mode, &self.cores);
        case.cpu.push(rate(keys.len(), run.time));

        let mut timed =
            |case: &mut Case<'_, A>,
             work: &mut dyn FnMut(&mut Case<'_, A>, &mut [Hop]) -> BatchSummary| {
                hops.fill(Hop::NONE);
                let start = Instant::now();
                let mut summary = work(case, &mut hops);
                for _ in 1..passes {
                    summary += work(case, &mut hops);
                }
                let time = start.elapsed();
                case.failures += summary.failures;
                case.is_wrong |= hops != expected;
                (rate(keys.len() * passes as usize, time), summary)
            };
        // One slot has the device to itself, so its kernels do not share the time.
        let mut one = Pipeline::new(case.pipeline.device().clone(), 1, batch).ok();
        let (alone_rate, alone) = timed(case, &mut |case, hops| {
            let pipeline = one.as_mut().unwrap_or(&mut case.pipeline);
            pipeline.look_up(&case.offloaded, keys, hops)
        });
        case.latency.push(batch.min(keys.len()) as f64 / alone_rate);
        if !alone.kernel_time.is_zero() {
            case.kernel.push(rate(alone.on_device, alone.kernel_time));
        }
        let (device, _) =
            timed(case, &mut |case, hops| case.pipeline.look_up(&case.offloaded, keys, hops));
        case.device.push(device);
        self.run_resident(case, keys, expected);
        for (i, &percent) in self.args.shares.iter().enumerate() {
            let division = Division::Share(f64::from(percent) / 100.0);
            let (rate, _) = timed(case, &mut |case, hops| {
                let Case { pipeline, offloaded, .. } = case;
                pipeline.look_up_together(offloaded, threads, division, keys, hops)
            });
            case.split[i].push(rate);
        }
        if self.args.with_cpu {
            let cpu = *case.cpu.last().expect("just measured");
            let shares = Division::Share(device / (device + cpu));
            for division in [Division::Meeting, shares] {
                let (rate, _) = timed(case, &mut |case, hops| {
                    let Case { pipeline, offloaded, .. } = case;
                    pipeline.look_up_together(offloaded, threads, division, keys, hops)
                });
                match division {
                    Division::Meeting => case.together.push(rate),
                    Division::Share(_) => case.shares.push(rate),
                }
            }
        }
    }

    /// The keys are copied before the time begins, and the hops behind its end.
    fn run_resident<A: DeviceKey>(&self, case: &mut Case<'_, A>, keys: &[A], expected: &[Hop]) {
        let Ok(mut resident) = ResidentKeys::new(case.pipeline.device().clone(), keys) else {
            return;
        };
        let passes = self.args.passes;
        let start = Instant::now();
        let looked_up = (0..passes).try_for_each(|_| resident.look_up(&case.offloaded.table));
        let time = start.elapsed();
        match looked_up.and_then(|()| resident.hops()) {
            Ok(hops) => {
                case.is_wrong |= hops != expected;
                case.resident.push(rate(keys.len() * passes as usize, time));
            }
            Err(_) => case.failures += 1,
        }
    }

    fn row<A: DeviceKey>(
        &self,
        mut case: Case<'_, A>,
        device: &Arc<dyn Device>,
        table: &str,
        routes: &Routes<A>,
        traffic: &TrafficInput,
        (batch, slots): (usize, u32),
    ) -> Row {
        let image = case.offloaded.table.image();
        let middle = |rates: &mut Vec<f64>| match rates[..] {
            [] => 0.0,
            _ => rounded(median(rates)),
        };
        Row {
            device: device.name().to_owned(),
            engine: case.built.label.clone(),
            kernel: image.kernel(),
            family: A::FAMILY.name(),
            table: table.to_owned(),
            prefixes: routes.len(),
            traffic: traffic.to_string(),
            batch,
            slots,
            threads: self.args.most_threads() as u32,
            bytes: image.bytes().len(),
            cpu_mlps: middle(&mut case.cpu),
            kernel_mlps: middle(&mut case.kernel),
            device_mlps: middle(&mut case.device),
            resident_mlps: middle(&mut case.resident),
            together_mlps: middle(&mut case.together),
            shares_mlps: middle(&mut case.shares),
            split: (self.args.shares.iter().zip(&mut case.split))
                .map(|(&percent, rates)| Split { percent, mlps: middle(rates) })
                .collect(),
            passes: self.args.passes,
            batch_us: middle(&mut case.latency),
            failures: case.failures,
        }
    }
}

/// Prints the measurements of one table, traffic and batch.
fn group(rows: &[Row]) -> Result<(), Failure> {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut out = output::stdout();
    let prefixes = grouped(first.prefixes as u64);
    write!(out, "\n{}, IP{}, {prefixes} prefixes, ", first.table, first.family)?;
    write!(out, "{}, batch {}, {} slots, ", first.traffic, first.batch, first.slots)?;
    writeln!(out, "CPU threads {}; Mlps, and ratios", first.threads)?;
    let mut columns =
        vec!["engine", "kernel", ">CPU", ">kernel", ">/ CPU", ">device", ">/ kernel", ">resident"];
    let is_together = first.together_mlps > 0.0;
    if is_together {
        columns.extend([">with CPU", ">/ better", ">by shares", ">/ better"]);
    }
    let shares: Vec<String> =
        first.split.iter().map(|split| format!(">{} %", split.percent)).collect();
    columns.extend(shares.iter().map(String::as_str));
    columns.extend([">us/batch", ">memory", ">failures"]);
    let mut grid = Grid::new(&columns);
    for row in rows {
        let mut cells = vec![row.engine.clone(), row.kernel.to_owned()];
        let ratio = |a: f64, b: f64| format!("{:.2}", a / b.max(0.001));
        cells.extend([
            format!("{:.1}", row.cpu_mlps),
            format!("{:.1}", row.kernel_mlps),
            ratio(row.kernel_mlps, row.cpu_mlps),
            format!("{:.1}", row.device_mlps),
            ratio(row.device_mlps, row.kernel_mlps),
            format!("{:.1}", row.resident_mlps),
        ]);
        if is_together {
            let better = row.cpu_mlps.max(row.device_mlps);
            for mlps in [row.together_mlps, row.shares_mlps] {
                cells.extend([format!("{mlps:.1}"), ratio(mlps, better)]);
            }
        }
        cells.extend(row.split.iter().map(|split| format!("{:.1}", split.mlps)));
        cells.extend([
            format!("{:.0}", row.batch_us),
            output::size(row.bytes as u64),
            row.failures.to_string(),
        ]);
        grid.row(cells);
    }
    grid.write_aligned(&mut out)?;
    out.flush()?;
    Ok(())
}
