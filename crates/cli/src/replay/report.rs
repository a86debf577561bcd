//! The results of a replay.

use std::collections::BTreeMap;
use std::io::Write;

use fibula_core::grouped;
use fibula_rib::{Counters, Latencies, RibMemory};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, size};

/// All of it, as `--json` prints it.
#[derive(Default, Serialize)]
pub struct ReplayReport {
    /// The family that was read.
    pub family: &'static str,
    /// Routes of the table before the first update, and after the last, over both families.
    pub routes_before: u64,
    pub routes_after: u64,
    pub updates: u64,
    pub seconds: f64,
    pub updates_per_second: f64,
    /// Changes of best routes, which have to become visible.
    pub changes: u64,
    pub visible_p50_ms: f64,
    pub visible_p99_ms: f64,
    pub visible_max_ms: f64,
    /// Answers of readers that differ from the oracle of their generation, and prefixes that differ at
    /// the end.
    pub wrong: u64,
    /// Answers and prefixes that were compared.
    pub checked: u64,
    pub audit_probes: u64,
    pub audit_differences: u64,
    pub generations: u64,
    pub rebuilds: u64,
    pub patches: u64,
    pub failures: u64,
    /// The average time of making a generation.
    pub making_ms: f64,
    pub engine_v4: &'static str,
    pub engine_v6: &'static str,
    pub mlps_before: f64,
    pub mlps_during: f64,
    pub mlps_after: f64,
    /// `mlps_during` by the mean of the other two.
    pub reader_ratio: f64,
    /// The share of its core that the reader had during the updates, beside other processes.
    pub reader_core_during: f64,
    pub rib: RibStats,
    pub damaged: u64,
    /// Updates of other routing instances than the one that was followed, by name; empty is the main one.
    pub left_out: BTreeMap<String, u64>,
    pub checkpoints: u64,
    /// Updates and ends of sessions that a checkpoint had taken in.
    pub restored_events: u64,
    pub restore_ms: f64,
    /// The most memory that the process has held.
    pub memory_bytes: u64,
}

/// The contents of the RIB.
#[derive(Clone, Copy, Default, Serialize)]
pub struct RibStats {
    pub routes: usize,
    pub prefixes: usize,
    pub bytes: usize,
    pub bytes_per_route: f64,
    pub attribute_sets: usize,
    pub attribute_bytes: usize,
}

impl From<RibMemory> for RibStats {
    fn from(memory: RibMemory) -> Self {
        Self {
            routes: memory.routes,
            prefixes: memory.prefixes,
            bytes: memory.route_bytes,
            bytes_per_route: rounded(memory.per_route()),
            attribute_sets: memory.sets,
            attribute_bytes: memory.set_bytes,
        }
    }
}

impl RibStats {
    /// In one line.
    pub fn line(&self) -> String {
        format!(
            "{} routes of {} prefixes in {}, {:.1} bytes a route; {} attribute sets in {}",
            grouped(self.routes as u64),
            grouped(self.prefixes as u64),
            size(self.bytes as u64),
            self.bytes_per_route,
            grouped(self.attribute_sets as u64),
            size(self.attribute_bytes as u64)
        )
    }
}

/// Three decimals.
pub fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

impl ReplayReport {
    /// Adds the events of one family's table.
    pub fn add(&mut self, counters: &Counters) {
        self.changes += counters.changes.get();
        self.generations += counters.generations.get();
        self.rebuilds += counters.rebuilds.get();
        self.patches += counters.patches.get();
        self.failures += counters.failures.get();
        self.audit_probes += counters.probes.get();
        self.audit_differences += counters.differences.get();
        self.making_ms += counters.making_ns.get() as f64 / 1e6;
    }

    pub fn visible(&mut self, latencies: &Latencies) {
        let ms = |share| rounded(latencies.quantile(share).as_secs_f64() * 1e3);
        (self.visible_p50_ms, self.visible_p99_ms) = (ms(0.5), ms(0.99));
        self.visible_max_ms = rounded(latencies.max().as_secs_f64() * 1e3);
    }

    pub fn print(&self, json: bool) -> Result<(), Failure> {
        if json {
            return output::json(self);
        }
        let mut out = output::stdout();
        let n = grouped;
        writeln!(
            out,
            "table    {} prefixes, then {}",
            n(self.routes_before),
            n(self.routes_after)
        )?;
        writeln!(out, "rib      {}", self.rib.line())?;
        if self.restored_events > 0 {
            let (events, ms) = (n(self.restored_events), self.restore_ms);
            writeln!(out, "restored the first {events} events from the checkpoint, in {ms:.0} ms")?;
        }
        writeln!(
            out,
            "updates  {} in {:.3} s: {} a second; {} changed a best route",
            n(self.updates),
            self.seconds,
            n(self.updates_per_second as u64),
            n(self.changes)
        )?;
        writeln!(
            out,
            "visible  p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms after the RIB had it",
            self.visible_p50_ms, self.visible_p99_ms, self.visible_max_ms
        )?;
        writeln!(
            out,
            "tables   {} generations, {:.2} ms each: {} rebuilds, {} patches, {} failures; v4 {}, v6 {}",
            n(self.generations),
            self.making_ms,
            n(self.rebuilds),
            n(self.patches),
            n(self.failures),
            self.engine_v4,
            self.engine_v6
        )?;
        writeln!(
            out,
            "reader   {:.1} Mlps before, {:.1} during, {:.1} after (IP{}); ratio {:.3}, with {:.3} of its core",
            self.mlps_before,
            self.mlps_during,
            self.mlps_after,
            self.family,
            self.reader_ratio,
            self.reader_core_during
        )?;
        writeln!(
            out,
            "checked  {} answers and prefixes against plain maps, {} wrong; audit {} probes, {} wrong",
            n(self.checked),
            n(self.wrong),
            n(self.audit_probes),
            n(self.audit_differences)
        )?;
        if !self.left_out.is_empty() {
            let others = left_out(&self.left_out);
            writeln!(out, "left out updates of other routing instances: {others} (--vrf NAME)")?;
        }
        if self.damaged > 0 {
            writeln!(out, "damage   {} records skipped", n(self.damaged))?;
        }
        writeln!(out, "memory   {} at most", size(self.memory_bytes))?;
        out.flush()?;
        Ok(())
    }
}

/// The peak memory of this process; 0 if the system does not report it.
pub fn memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kb.map_or(0, |kb| kb * 1024)
}

/// The updates of other routing instances, in a sentence.
pub fn left_out(counts: &BTreeMap<String, u64>) -> String {
    let name =
        |name: &str| if name.is_empty() { "the main one".to_owned() } else { name.to_owned() };
    let each = |(of, count): (&String, &u64)| format!("{} {}", name(of), grouped(*count));
    counts.iter().map(each).collect::<Vec<_>>().join(", ")
}
