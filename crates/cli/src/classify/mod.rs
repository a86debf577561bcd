//! `fibula classify`: finds the rule of a set that each packet hits, and its action.

mod explain;
mod five;
mod packets;
mod report;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args as ClapArgs;
use fibula_annotate::AnnotateOptions;
use fibula_classify::text::{RuleFileProblem, RuleFormat, RuleOptions, RuleText, read_file};
use fibula_classify::{Action, Classifier, ClassifierOptions};

use self::packets::PacketFile;
use self::report::ClassifyReport;
use crate::failure::{Failure, Outcome};
use crate::input;
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
    action: PrefixAction,
    /// Where to write, - for standard output. For Parquet or Arrow input and a name in .parquet, and for Arrow input
    /// and a name in .arrow, the output has all columns of the input, followed by the columns of the rules
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
    /// Stop at the first damaged place of a capture, and at the first row that does not fit the first, instead of
    /// counting them
    #[arg(long)]
    strict: bool,
    /// Number of threads. The output does not depend on it (default: one for each core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print nothing on standard error
    #[arg(long, short)]
    quiet: bool,
    /// Explain why one packet hits its rule: SRC,DST,PROTOCOL and, where it has ports, SRC_PORT,DST_PORT
    #[arg(long, value_name = "PACKET", conflicts_with_all = ["packets", "summary", "output"])]
    explain: Option<five::ExplainedPacket>,
}

/// The value of `--action`.
#[derive(Clone, Debug)]
struct PrefixAction(Action);

impl FromStr for PrefixAction {
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
    same::refuse(&args.rules, &args.output)?;
    let RuleText { rules, notes } = rules(args)?;
    if !args.quiet {
        notes.iter().for_each(|what| note(format_args!("{}: {what}", args.rules.display())));
    }
    if let Some(five) = &args.explain {
        return explain::explain(&rules, &five.0, args.json);
    }
    let mut options = ClassifierOptions::default();
    options.megaflows = args.megaflows;
    let classifier = Classifier::new(rules, &options);
    let path = args.packets.as_deref().unwrap_or(Path::new("-"));
    let counts_only = args.summary || args.json;
    let mut options = AnnotateOptions::default();
    (options.strict, options.hold) = (args.strict, true);
    options.threads = args.threads.map_or(options.threads, usize::from);
    let (output, of_file) = (args.output.as_path(), classifier.clone());
    let file = PacketFile { path, output, counts_only, classifier: of_file, options };
    let (summary, totals) = file.classify()?;
    if summary.columns.len() == 3 && !args.quiet {
        let what = "no columns of ports: the packets are taken as packets without";
        note(format_args!("{}: {what}", path.display()));
    }
    let rules = classifier.rules();
    let report = ClassifyReport { totals: &totals, rules, summary: &summary, name: path };
    match (counts_only, args.json) {
        (true, true) => report.json(output)?,
        (true, false) => report.table(output)?,
        _ if args.quiet => {}
        _ => report.note(),
    }
    Ok(Outcome::Done)
}

fn rules(args: &Args) -> Result<RuleText, Failure> {
    let mut options = RuleOptions::default();
    (options.chain, options.source) = (args.chain.clone(), args.source);
    options.action = args.action.0.clone();
    let (data, file) = (input::open_whole(&args.rules)?, args.rules.display());
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
