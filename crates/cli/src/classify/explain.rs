//! `--explain`: the reason why one packet hits its rule.

use std::io::Write as _;

use fibula_classify::{Field, Flow, Rule, RuleId, Rules, Scratch, SlowPath};
use fibula_core::grouped;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{self, stdout};

/// Maximum number of rules to show of each kind.
const MOST: usize = 10;

#[derive(Serialize)]
struct ExplainedRule {
    line: u32,
    rule: String,
    /// The fields whose conditions the packet does not meet.
    fails: Vec<&'static str>,
}

#[derive(Serialize)]
struct Explanation {
    winner: Option<ExplainedRule>,
    /// Rules with a higher rank than the winner, which the packet misses by one field.
    near: Vec<ExplainedRule>,
    /// Rules that match too, with a lower rank than the winner.
    losers: Vec<ExplainedRule>,
    tried: usize,
    failing_first: Vec<(&'static str, usize)>,
    megaflow: String,
    megaflow_bits: u32,
    tuples: usize,
    tuples_considered: usize,
    tables_asked: usize,
}

fn explained(rule: &Rule, flow: &Flow) -> ExplainedRule {
    let fails = rule.failing(flow).map(Field::name).collect();
    ExplainedRule { line: rule.line, rule: rule.to_string(), fails }
}

/// Explains one packet. The outcome is negative if no rule matches.
pub fn explain(rules: &Rules, flow: &Flow, json: bool) -> Result<Outcome, Failure> {
    // Highest rank first.
    let mut order: Vec<(RuleId, &Rule)> = rules.iter().collect();
    order.sort_by_key(|(id, rule)| (std::cmp::Reverse(rule.priority), *id));
    let slow = SlowPath::of(rules);
    let mut scratch = Scratch::default();
    let found = slow.lookup(flow, &mut scratch);
    let effort = scratch.effort();
    let at = found.rule.and_then(|id| order.iter().position(|(other, _)| *other == id));
    let (before, behind) = order.split_at(at.unwrap_or(order.len()));
    let near = before.iter().filter(|(_, rule)| rule.failing(flow).take(2).count() == 1);
    let losers = behind.iter().skip(1).filter(|(_, rule)| rule.matches(flow));
    let mut failing: Vec<(&'static str, usize)> = Vec::new();
    for (_, rule) in before {
        let Some(first) = rule.failing(flow).next() else { continue };
        match failing.iter_mut().find(|(name, _)| *name == first.name()) {
            Some((_, count)) => *count += 1,
            None => failing.push((first.name(), 1)),
        }
    }
    failing.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let report = Explanation {
        winner: behind.first().map(|(_, rule)| explained(rule, flow)),
        near: near.take(MOST).map(|(_, rule)| explained(rule, flow)).collect(),
        losers: losers.take(MOST).map(|(_, rule)| explained(rule, flow)).collect(),
        tried: before.len(),
        failing_first: failing,
        megaflow: megaflow(flow, &found.mask),
        megaflow_bits: found.mask.count(),
        tuples: slow.tuples(),
        tuples_considered: effort.tuples,
        tables_asked: effort.probes,
    };
    match json {
        true => output::json(&report)?,
        false => print(&report)?,
    }
    Ok(if report.winner.is_some() { Outcome::Done } else { Outcome::Negative })
}

/// The megaflow: the fields and bits that decide. All packets that agree in them hit the same rule.
fn megaflow(flow: &Flow, mask: &fibula_classify::Mask) -> String {
    let mut text = String::new();
    for field in Field::ALL {
        let bits = mask.get(field);
        if bits != 0 {
            let value = flow.get(field) & bits;
            let _ = std::fmt::Write::write_fmt(
                &mut text,
                format_args!("{field} {value:#x}/{bits:#x} "),
            );
        }
    }
    text.trim_end().to_owned()
}

fn print(report: &Explanation) -> Result<(), Failure> {
    let mut out = stdout();
    match &report.winner {
        Some(rule) => writeln!(out, "rule of line {} wins: {}", rule.line, rule.rule)?,
        None => writeln!(out, "no rule matches")?,
    }
    writeln!(out, "\n{} rules would have won and do not match", grouped(report.tried as u64))?;
    for (field, count) in &report.failing_first {
        writeln!(out, "  {} of them have another {field}", grouped(*count as u64))?;
    }
    if !report.near.is_empty() {
        writeln!(out, "\nof these, the packet differs in one field from")?;
        for rule in &report.near {
            writeln!(out, "  line {} ({}): {}", rule.line, rule.fails.join(", "), rule.rule)?;
        }
    }
    if !report.losers.is_empty() {
        writeln!(out, "\nit also matches these, which lose")?;
        for rule in &report.losers {
            writeln!(out, "  line {}: {}", rule.line, rule.rule)?;
        }
    }
    writeln!(out, "\nmegaflow: {} bits decide: {}", report.megaflow_bits, report.megaflow)?;
    writeln!(
        out,
        "search: {} of {} masks could have a better rule; {} tables were looked into",
        grouped(report.tuples_considered as u64),
        grouped(report.tuples as u64),
        grouped(report.tables_asked as u64),
    )?;
    out.flush()?;
    Ok(())
}
