//! Counts packets by rule.

use std::io::Write as _;
use std::path::Path;

use fibula_classify::{Rule, RuleId};
use fibula_core::grouped;
use serde::Serialize;

use super::Hits;
use super::packets::Said;
use crate::failure::Failure;
use crate::output::{Grid, Output};
use crate::progress::{ms, note};

/// The results of a run.
pub struct Report<'a> {
    /// The packets and the classifier.
    pub hits: &'a Hits,
    /// Counts of packets and damage.
    pub said: &'a Said,
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

impl Report<'_> {
    /// The rules that were hit, with packets and bytes, in the order of the file.
    fn rules(&self) -> impl Iterator<Item = (&Rule, u64, u64)> {
        let hits = self.hits;
        let counted = move |(id, rule): (RuleId, _)| {
            let packets = hits.classifier.packets(Some(id));
            let bytes = hits.bytes.get(id.0 as usize).copied().unwrap_or(0);
            (packets > 0).then_some((rule, packets, bytes))
        };
        hits.classifier.rules().iter().filter_map(counted)
    }

    /// The counts as JSON.
    pub fn json(&self, output: &Path) -> Result<(), Failure> {
        let classifier = &self.hits.classifier;
        let counts = classifier.counts();
        let rule = |(rule, packets, bytes): (_, _, _)| {
            let rule: &Rule = rule;
            let (line, label) = (rule.line, rule.label.as_deref());
            let (text, action) = (rule.to_string(), rule.action.to_string());
            JsonRule { line, rule: text, action, label, packets, bytes }
        };
        let unmatched =
            Counted { packets: classifier.packets(None), bytes: self.hits.unmatched_bytes };
        let json = Json {
            packets: counts.packets,
            unmatched,
            rules: self.rules().map(rule).collect(),
            slow_path: counts.misses,
            megaflows: classifier.megaflows().count(),
            masks: classifier.subtables(),
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
        let unmatched = self.hits.classifier.packets(None);
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
        let (classifier, name) = (&self.hits.classifier, self.name.display());
        let counts = classifier.counts();
        let rate = counts.packets as f64 / self.hits.spent.as_secs_f64().max(1e-9);
        note(format_args!(
            "{name}: {} packets, {} of them without a rule; {} rules were hit, of {}",
            grouped(counts.packets),
            grouped(classifier.packets(None)),
            grouped(self.rules().count() as u64),
            grouped(classifier.rules().len() as u64),
        ));
        note(format_args!(
            "{} packets took the slow path; {} megaflows of {} masks; classified in {} ({} packets/s)",
            grouped(counts.misses),
            grouped(classifier.megaflows().count() as u64),
            grouped(classifier.subtables() as u64),
            ms(self.hits.spent),
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
