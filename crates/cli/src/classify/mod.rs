//! `fibula classify`: finds the rule of a set that each packet hits, and its action.

mod columns;
mod explain;
mod five;
mod packets;
mod report;

use std::io::Write as _;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use fibula_annotate::RuleTotals;
use fibula_classify::text::{RuleFileProblem, RuleFormat, RuleOptions, RuleText, read_file};
use fibula_classify::{Action, Batch, Classifier, ClassifierOptions, Flow, Rule, RuleId};

use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::Output;
use crate::progress::note;
use crate::same;

const EXAMPLES: &str = "\
Examples:
  fibula classify rules.txt capture.pcapng > hits.csv
  fibula classify rules.txt flows.csv -o hits.csv
  fibula classify rules.txt flows.parquet -o hits.parquet
  fibula classify --summary acl1.filters capture.pcap
  iptables-save | fibula classify --chain INPUT - capture.pcap --json
  fibula classify rules.txt --explain 10.0.0.1,192.0.2.7,tcp,40000,22

Rules, one a line; the first that matches wins, unless a later one has a larger priority:
  src 10.0.0.0/8 dst 192.0.2.0/24 tcp dport 22 -> allow
  priority 9 udp sport 1024-65535 dport 53 -> mark 7 vrf blue
  any -> drop label \"the rest\"

Other formats of rules: filters of ClassBench, the output of iptables-save and nft list ruleset
(one chain of it), prefix lists. A text with something that rules cannot express is refused, with
its line. docs/classify.md has the whole syntax.

Packets: a capture (pcap, pcapng), or CSV, TSV, JSON, Parquet or Arrow with the columns src, dst,
protocol, src_port and dst_port, in any order among other columns. In Parquet and Arrow, addresses
are text, bytes, or numbers for IPv4. Each row of the output has the line of the rule in its file, its action and its
label. Rows are read as `fibula annotate` reads them, with the same quotes and delimiters.

Exit codes: 0 success; 1 no rule matches (with --explain); 2 wrong usage, or an I/O error.";

/// Find the rule of a packet filter that each packet hits
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The rules; - for standard input
    #[arg(value_name = "RULES")]
    rules: PathBuf,
    /// The packets: a capture, CSV, TSV, JSON, Parquet or Arrow; - for standard input
    #[arg(value_name = "CAPTURE|FLOWS", required_unless_present = "explain")]
    packets: Option<PathBuf>,
    /// Format of the rules: rules, classbench, iptables, nftables, prefixes (default: by the content)
    #[arg(long, short, value_name = "FORMAT")]
    format: Option<RuleFormat>,
    /// The chain of iptables, or the hook of nftables
    #[arg(long, value_name = "NAME", default_value = "FORWARD")]
    chain: String,
    /// Match the prefixes of a list with the source address instead of the destination
    #[arg(long)]
    source: bool,
    /// Action for prefixes of a list that have none
    #[arg(long, value_name = "drop|allow", default_value = "drop")]
    action: Listed,
    /// Where to write, - for standard output. For Parquet or Arrow input and a name in .parquet, the output has all columns of
    /// the input, followed by the columns of the rules
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Print only counts: packets and bytes of each rule that was hit
    #[arg(long)]
    summary: bool,
    /// Print the counts as JSON
    #[arg(long)]
    json: bool,
    /// Maximum number of megaflows in the cache
    #[arg(long, value_name = "N", default_value_t = ClassifierOptions::default().megaflows)]
    megaflows: usize,
    /// Stop at the first damaged place of a capture, and at the first row that does not fit the first, instead of counting them
    #[arg(long)]
    strict: bool,
    /// Number of threads for captures, csv, tsv and json. The output does not depend on it (default: one for each core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print nothing on standard error
    #[arg(long, short)]
    quiet: bool,
    /// Explain why one packet hits its rule: SRC,DST,PROTOCOL and, where it has ports, SRC_PORT,DST_PORT
    #[arg(long, value_name = "PACKET", conflicts_with_all = ["packets", "summary", "output"])]
    explain: Option<five::Five>,
}

/// The value of `--action`.
#[derive(Clone, Debug)]
struct Listed(Action);

impl FromStr for Listed {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "drop" => Ok(Self(Action::Drop)),
            "allow" => Ok(Self(Action::ALLOW)),
            _ => Err("drop or allow"),
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    if args
        .packets
        .as_ref()
        .is_some_and(|packets| packets == &args.rules && packets.as_os_str() == "-")
    {
        return Err(Failure::new("rules and packets cannot both come from standard input")
            .hint("put the rules into a file"));
    }
    for input in [Some(&args.rules), args.packets.as_ref()].into_iter().flatten() {
        same::refuse(input, &args.output)?;
    }
    let RuleText { rules, notes } = rules(args)?;
    if !args.quiet {
        notes.iter().for_each(|what| note(format_args!("{}: {what}", args.rules.display())));
    }
    if let Some(five) = &args.explain {
        return explain::explain(&rules, &five.0, args.json);
    }
    let mut options = ClassifierOptions::default();
    options.megaflows = args.megaflows;
    if args.output.extension().is_some_and(|end| end == "arrow" || end == "feather") {
        return Err(Failure::new(format_args!(
            "{}: Arrow is read, not written",
            args.output.display()
        ))
        .hint("give the output another name, for CSV or Parquet"));
    }
    let counts_only = args.summary || args.json;
    let mut hits = Hits {
        batch: Batch::new(),
        classifier: Classifier::new(rules, &options),
        rows: Vec::new(),
        bytes: Vec::new(),
        unmatched_bytes: 0,
        found: Vec::new(),
        out: None,
        collects: false,
        collected: Vec::new(),
        spent: Duration::ZERO,
        strict: args.strict,
        threads: args.threads,
        rows_counted: None,
    };
    let path = args.packets.as_deref().unwrap_or(std::path::Path::new("-"));
    let to_parquet = args.output.extension().is_some_and(|end| end == "parquet") && !counts_only;
    hits.collects = to_parquet;
    if !counts_only && !to_parquet {
        hits.out = Some(Output::create(&args.output)?);
    }
    let parquet = to_parquet.then_some(args.output.as_path());
    let said = packets::each(path, &mut hits, parquet)?;
    hits.flush()?;
    if let Some(out) = hits.out.take() {
        out.finish()?;
    }
    if said.without_ports && !args.quiet {
        let what = "no columns of ports: the packets are taken as packets without";
        note(format_args!("{}: {what}", path.display()));
    }
    let report =
        report::ClassifyReport { counts: hits.counts(), hits: &hits, said: &said, name: path };
    match (counts_only, args.json) {
        (true, true) => report.json(&args.output)?,
        (true, false) => report.table(&args.output)?,
        _ if args.quiet => {}
        _ => report.note(),
    }
    Ok(Outcome::Done)
}

fn rules(args: &Args) -> Result<RuleText, Failure> {
    let mut options = RuleOptions::default();
    (options.chain, options.source) = (args.chain.clone(), args.source);
    options.action = args.action.0.clone();
    let (data, file) = (input::open(&args.rules)?, args.rules.display());
    read_file(data, file, args.format, &options).map_err(|error| match error.problem() {
        RuleFileProblem::Unreadable(problem) => Failure::io(error.file(), problem),
        _ => match error.hint() {
            Some(hint) => {
                Failure::new(&error).hint(format_args!("{hint}; --format names another format"))
            }
            None => Failure::new(&error),
        },
    })
}

/// The batch of packets to classify next, and the results so far.
struct Hits {
    classifier: Classifier,
    batch: Batch,
    /// The start of each packet's row, to which the rule is added, and the packet's length.
    rows: Vec<(Vec<u8>, u64)>,
    found: Vec<Option<RuleId>>,
    /// Bytes by rule.
    bytes: Vec<u64>,
    unmatched_bytes: u64,
    out: Option<Output>,
    /// Whether the results are also kept in `collected`, for Parquet output.
    collects: bool,
    collected: Vec<Option<RuleId>>,
    /// Time spent classifying, without reading and writing.
    spent: Duration,
    /// Whether damage is an error.
    strict: bool,
    threads: Option<u16>,
    /// The counts of rows that were classified elsewhere, on several threads.
    rows_counted: Option<RuleTotals>,
}

impl Hits {
    /// The packets by rule, and the counts of the cache.
    fn counts(&self) -> RuleTotals {
        if let Some(counts) = &self.rows_counted {
            return counts.clone();
        }
        let classifier = &self.classifier;
        let cache = classifier.counts();
        let mut counts = RuleTotals::default();
        for (id, _) in classifier.rules().iter() {
            let at = id.0 as usize;
            counts.packets.resize(counts.packets.len().max(at + 1), 0);
            counts.packets[at] = classifier.packets(Some(id));
        }
        counts.unmatched = classifier.packets(None);
        (counts.slow_path, counts.evicted) = (cache.misses, cache.evicted);
        counts.megaflows = classifier.megaflows().count();
        counts.masks = classifier.subtables();
        counts.spent = self.spent;
        counts
    }

    /// Writes a line unchanged.
    fn line(&mut self, line: &[u8]) -> Result<(), Failure> {
        if let Some(out) = &mut self.out {
            out.write_all(line)?;
        }
        Ok(())
    }

    /// Adds a packet: its header fields, its length, and the start of its row.
    fn packet(
        &mut self,
        flow: &Flow,
        length: u64,
        row: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Failure> {
        self.batch.push(flow);
        let mut text = Vec::new();
        if self.out.is_some() {
            row(&mut text);
        }
        self.rows.push((text, length));
        if self.batch.len() == Batch::MAX { self.flush() } else { Ok(()) }
    }

    /// Classifies the packets of the batch.
    fn flush(&mut self) -> Result<(), Failure> {
        self.found.clear();
        self.found.resize(self.batch.len(), None);
        let began = Instant::now();
        self.classifier.classify(0, &self.batch, &mut self.found);
        self.spent += began.elapsed();
        if self.collects {
            self.collected.extend(&self.found);
        }
        self.batch.clear();
        for ((row, length), found) in self.rows.drain(..).zip(&self.found) {
            match found {
                Some(id) => {
                    let at = id.0 as usize;
                    if at >= self.bytes.len() {
                        self.bytes.resize(at + 1, 0);
                    }
                    self.bytes[at] += length;
                }
                None => self.unmatched_bytes += length,
            }
            if let Some(out) = &mut self.out {
                let rule = found.and_then(|id| self.classifier.rules().get(id));
                out.write_all(&row)?;
                write_rule(out, rule)?;
            }
        }
        Ok(())
    }
}

/// The columns of the rule, at the end of a row.
const COLUMNS: &str = "rule_line,rule_action,rule_label";

fn write_rule(out: &mut impl std::io::Write, rule: Option<&Rule>) -> std::io::Result<()> {
    let Some(rule) = rule else { return out.write_all(b",,,\n") };
    write!(out, ",{},", rule.line)?;
    write_cell(out, &rule.action.to_string())?;
    out.write_all(b",")?;
    write_cell(out, rule.label.as_deref().unwrap_or_default())?;
    out.write_all(b"\n")
}

/// Writes a CSV cell, quoted if necessary.
fn write_cell(out: &mut impl std::io::Write, text: &str) -> std::io::Result<()> {
    match text.contains([',', '"', '\n', '\r']) {
        true => write!(out, "\"{}\"", text.replace('"', "\"\"")),
        false => out.write_all(text.as_bytes()),
    }
}
