//! Counts packets by rule.

use std::io::Write as _;
use std::path::Path;

use fibula_annotate::{RuleTotals, Summary};
use fibula_classify::{Rule, RuleId, Rules};
use fibula_core::grouped;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{Grid, Output};
use crate::progress::{ms, note};

/// The results of a run.
pub struct ClassifyReport<'a> {
    /// The packets by rule.
    pub totals: &'a RuleTotals,
    pub rules: &'a Rules,
    /// Counts of packets and damage.
    pub summary: &'a Summary,
    /// The file with the packets.
    pub name: &'a Path,
}

#[derive(Serialize)]
struct ClassifyCounts<'a> {
    packets: u64,
    unmatched: UnmatchedCounts,
    rules: Vec<RuleCounts<'a>>,
    slow_path: u64,
    megaflows: usize,
    masks: usize,
    evicted: u64,
    unknown_links: u64,
    damaged: u64,
}

#[derive(Serialize)]
struct UnmatchedCounts {
    packets: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct RuleCounts<'a> {
    line: u32,
    rule: String,
    action: String,
    label: Option<&'a str>,
    packets: u64,
    bytes: u64,
}

impl ClassifyReport<'_> {
    fn packets(&self) -> u64 {
        self.totals.packets.iter().sum::<u64>() + self.totals.unmatched
    }

    /// The rules that were hit, with packets and bytes, in the order of the file.
    fn hit_rules(&self) -> impl Iterator<Item = (&Rule, u64, u64)> {
        let counted = move |(id, rule): (RuleId, _)| {
            let packets = self.totals.packets.get(id.0 as usize).copied().unwrap_or(0);
            let bytes = self.totals.bytes.get(id.0 as usize).copied().unwrap_or(0);
            (packets > 0).then_some((rule, packets, bytes))
        };
        self.rules.iter().filter_map(counted)
    }

    /// The counts as JSON.
    pub fn json(&self, output: &Path) -> Result<(), Failure> {
        let totals = self.totals;
        let rule = |(rule, packets, bytes): (_, _, _)| {
            let rule: &Rule = rule;
            let (line, label) = (rule.line, rule.label.as_deref());
            let (text, action) = (rule.to_string(), rule.action.to_string());
            RuleCounts { line, rule: text, action, label, packets, bytes }
        };
        let unmatched =
            UnmatchedCounts { packets: totals.unmatched, bytes: totals.unmatched_bytes };
        let json = ClassifyCounts {
            packets: self.packets(),
            unmatched,
            rules: self.hit_rules().map(rule).collect(),
            slow_path: totals.slow_path,
            megaflows: totals.megaflows,
            masks: totals.masks,
            evicted: totals.evicted,
            unknown_links: self.summary.unknown_links,
            damaged: self.summary.damaged,
        };
        let mut out = Output::create(output)?;
        serde_json::to_writer_pretty(&mut out, &json)?;
        writeln!(out)?;
        out.finish()
    }

    /// The counts as a table, followed by the summary of all packets.
    pub fn table(&self, output: &Path) -> Result<(), Failure> {
        let mut grid = Grid::new(&[">packets", ">bytes", ">line", "rule"]);
        for (rule, packets, bytes) in self.hit_rules() {
            let line = rule.line.to_string();
            grid.row([grouped(packets), grouped(bytes), line, rule.to_string()]);
        }
        let unmatched = self.totals.unmatched;
        if unmatched > 0 {
            let bytes = grouped(self.totals.unmatched_bytes);
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
        let (totals, name) = (self.totals, self.name.display());
        let rate = self.packets() as f64 / totals.spent.as_secs_f64().max(1e-9);
        note(format_args!(
            "{name}: {} packets, {} of them without a rule; {} rules were hit, of {}",
            grouped(self.packets()),
            grouped(totals.unmatched),
            grouped(self.hit_rules().count() as u64),
            grouped(self.rules.len() as u64),
        ));
        note(format_args!(
            "{} packets took the slow path; {} megaflows of {} masks; classified in {} ({} packets/s)",
            grouped(totals.slow_path),
            grouped(totals.megaflows as u64),
            grouped(totals.masks as u64),
            ms(totals.spent),
            grouped(rate as u64),
        ));
        if self.summary.unknown_links > 0 {
            let count = grouped(self.summary.unknown_links);
            note(format_args!("{name}: {count} packets of a link type that is not known"));
            if let Some(first) = &self.summary.first_unknown_link {
                note(format_args!("  the first: {first}"));
            }
        }
        if let Some(first) = &self.summary.first_damaged {
            let count = grouped(self.summary.damaged);
            note(format_args!("{name}: {count} damaged places, the first at {first}"));
        }
    }
}
