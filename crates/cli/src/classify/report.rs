//! Counts packets by rule.

use std::io::Write as _;
use std::path::Path;

use fibula_annotate::RuleTotals;
use fibula_classify::{Rule, RuleId};
use fibula_core::grouped;
use serde::Serialize;

use super::Hits;
use super::packets::PacketCounts;
use crate::failure::Failure;
use crate::output::{Grid, Output};
use crate::progress::{ms, note};

/// The results of a run.
pub struct ClassifyReport<'a> {
    /// The packets by rule.
    pub counts: RuleTotals,
    /// The rules, and the bytes by rule.
    pub hits: &'a Hits,
    /// Counts of packets and damage.
    pub said: &'a PacketCounts,
    /// The file with the packets.
    pub name: &'a Path,
}

#[derive(Serialize)]
struct Json<'a> {
    packets: u64,
    unmatched: Counted,
    rules: Vec<JsonRule<'a>>,
    slow_path: u64,
    megaflows: usize,
    masks: usize,
    evicted: u64,
    unknown_links: u64,
    damaged: u64,
}

#[derive(Serialize)]
struct Counted {
    packets: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct JsonRule<'a> {
    line: u32,
    rule: String,
    action: String,
    label: Option<&'a str>,
    packets: u64,
    bytes: u64,
}

impl ClassifyReport<'_> {
    fn packets(&self) -> u64 {
        self.counts.packets.iter().sum::<u64>() + self.counts.unmatched
    }

    /// The rules that were hit, with packets and bytes, in the order of the file.
    fn rules(&self) -> impl Iterator<Item = (&Rule, u64, u64)> {
        let hits = self.hits;
        let counted = move |(id, rule): (RuleId, _)| {
            let packets = self.counts.packets.get(id.0 as usize).copied().unwrap_or(0);
            let bytes = hits.bytes.get(id.0 as usize).copied().unwrap_or(0);
            (packets > 0).then_some((rule, packets, bytes))
        };
        hits.classifier.rules().iter().filter_map(counted)
    }

    /// The counts as JSON.
    pub fn json(&self, output: &Path) -> Result<(), Failure> {
        let counts = &self.counts;
        let rule = |(rule, packets, bytes): (_, _, _)| {
            let rule: &Rule = rule;
            let (line, label) = (rule.line, rule.label.as_deref());
            let (text, action) = (rule.to_string(), rule.action.to_string());
            JsonRule { line, rule: text, action, label, packets, bytes }
        };
        let unmatched = Counted { packets: counts.unmatched, bytes: self.hits.unmatched_bytes };
        let json = Json {
            packets: self.packets(),
            unmatched,
            rules: self.rules().map(rule).collect(),
            slow_path: counts.slow_path,
            megaflows: counts.megaflows,
            masks: counts.masks,
            evicted: counts.evicted,
            unknown_links: self.said.unknown_links,
            damaged: self.said.damaged,
        };
        let mut out = Output::create(output)?;
        serde_json::to_writer_pretty(&mut out, &json)?;
        writeln!(out)?;
        out.finish()
    }

    /// The counts as a table, followed by the summary of all packets.
    pub fn table(&self, output: &Path) -> Result<(), Failure> {
        let mut grid = Grid::new(&[">packets", ">bytes", ">line", "rule"]);
        for (rule, packets, bytes) in self.rules() {
            let line = rule.line.to_string();
            grid.row([grouped(packets), grouped(bytes), line, rule.to_string()]);
        }
        let unmatched = self.counts.unmatched;
        if unmatched > 0 {
            let bytes = grouped(self.hits.unmatched_bytes);
            grid.row([grouped(unmatched), bytes, String::new(), "no rule".to_owned()]);
        }
        let mut out = Output::create(output)?;
        grid.write_aligned(&mut out)?;
        out.finish()?;
        self.note();
        Ok(())
    }

    /// Prints the summary of all packets on standard error.
    pub fn note(&self) {
        let (counts, name) = (&self.counts, self.name.display());
        let rate = self.packets() as f64 / counts.spent.as_secs_f64().max(1e-9);
        note(format_args!(
            "{name}: {} packets, {} of them without a rule; {} rules were hit, of {}",
            grouped(self.packets()),
            grouped(counts.unmatched),
            grouped(self.rules().count() as u64),
            grouped(self.hits.classifier.rules().len() as u64),
        ));
        note(format_args!(
            "{} packets took the slow path; {} megaflows of {} masks; classified in {} ({} packets/s)",
            grouped(counts.slow_path),
            grouped(counts.megaflows as u64),
            grouped(counts.masks as u64),
            ms(counts.spent),
            grouped(rate as u64),
        ));
        if self.said.unknown_links > 0 {
            let count = grouped(self.said.unknown_links);
            note(format_args!("{name}: {count} packets of a link type that is not known"));
        }
        if let Some(first) = &self.said.first_damage {
            let count = grouped(self.said.damaged);
            note(format_args!("{name}: {count} damaged places, the first at {first}"));
        }
    }
}
