//! The experiments of the paper on AVX-512 in Open vSwitch (its sections 3.2 and 4.2), each as a CSV.
#![forbid(unsafe_code)]

mod ovs;
mod parts;
mod sets;
mod timing;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use fibula_papers::forms::steps::{Step, Visit, repeat};
use fibula_papers::forms::{Batch, Cache, Form, Searcher};
use fibula_papers::out::{Cell, Csv, Failure, ended, note};
use fibula_simd::Isa;
use fibula_testkit::Rng;
use fibula_testkit::measure::{median, rounded};

use sets::{Set, extract, run};
use timing::take_turns;

const EXAMPLES: &str = "\
Examples:
  hpbf --figure 8 --csv hpbf-fig8.csv
  hpbf --figure 9 --tables 1,8,30 --batch 32,256
  hpbf --figure ovs
  hpbf --figure ovs --export ovs-files
  hpbf --figure parts --tables 8 --hits 50

Figures:
  table1  share of time of hashing, finding and comparing: 59 subtables of 2,000 megaflows, 30 for a packet
  8       nanoseconds for the hashes of one batch in a subtable, by packets left
  9       throughput by subtables that a packet traverses on average
  ovs     whole lookups where Open vSwitch was measured: 1,840 megaflows of 16 masks, 4,096 packets
  parts   whole lookups with one part of our search after the other, by subtables and packets that have a megaflow;
          not in the paper

In figure parts, each step has the parts of those before it: crc (no vectors), transposed (the paper's: hashes in
vectors), columns (of the flow's words), hash (sums of products), batch (256 packets together), filters, packing (of
the packets that are left), lanes (subtables in the lanes); then all without one of them. gain is the time of the
step before over this one's, for the last two that of all over theirs.

Figures 9, ovs and parts begin with the bytes of frames in memory: parsed, extracted, searched for in batches, all on
one core, with no exact-match cache. Packets belong to megaflows of all subtables alike, so that N
subtables on average are 2 N - 1 in all. extract_ns is what it takes without the search.

Every form finds a megaflow of each packet before it is timed; a wrong one is left out, and the exit code is
1. All forms take turns in each run, and figures are medians. The bloom filters of the same paper are measured
by `fibula bench filter`.";

/// Repeat the experiments with the megaflow cache
#[derive(Parser, Debug)]
#[command(name = "hpbf", after_help = EXAMPLES, max_term_width = 100)]
struct Args {
    /// The experiment
    #[arg(long, value_enum, value_name = "table1|8|9|ovs|parts")]
    figure: Figure,
    /// Subtables for a packet, on average, of figure 9 (default: 1,2,3,4,5,6,8,10,15,20,25,30) and parts (1,4,8,15,30)
    #[arg(long, value_delimiter = ',', value_name = "N,...",
          value_parser = clap::value_parser!(u16).range(1..=200))]
    tables: Vec<u16>,
    /// Megaflows of each subtable (default: the paper's 2,000; figure 8: 100; ovs: 115)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    rules: Option<u32>,
    /// Figures 9 and ovs: packets in a batch, the first for the paper's forms, all for ours (default: 32,256)
    #[arg(long, value_delimiter = ',', value_name = "N,...",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    batch: Vec<u16>,
    /// Figure parts: packets of 100 that have a megaflow (default: 100,90,50,0)
    #[arg(long, value_delimiter = ',', value_name = "N,...",
          value_parser = clap::value_parser!(u8).range(0..=100))]
    hits: Vec<u8>,
    /// Packets of a run, but in figure 8 (default: 16,384; table1: 2,048; ovs: 4,096)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(32..=1 << 22))]
    packets: Option<u32>,
    /// Packets of 100 that have a VLAN tag, and so another bitmap
    #[arg(long, value_name = "N", default_value = "0",
          value_parser = clap::value_parser!(u8).range(0..=100))]
    tagged: u8,
    /// Timed runs
    #[arg(long, value_name = "N", default_value = "9",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Figures 9 and ovs: gigahertz of the machine's time stamp counter, adds its cycles for a packet
    #[arg(long, value_name = "GHZ", value_parser = parse_ghz)]
    ghz: Option<f64>,
    /// ovs: write the megaflows and packets into this folder, as files for Open vSwitch, and measure nothing
    #[arg(long, value_name = "FOLDER")]
    export: Option<PathBuf>,
    /// Seed of megaflows and packets
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Where to write, - for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    csv: PathBuf,
}

fn parse_ghz(text: &str) -> Result<f64, String> {
    let ghz = text.parse().ok().filter(|ghz| (0.001..=100.0).contains(ghz));
    ghz.ok_or_else(|| "0.001 to 100 are possible".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Figure {
    #[value(name = "table1")]
    Shares,
    #[value(name = "8")]
    Hashes,
    #[value(name = "9")]
    Tables,
    #[value(name = "ovs")]
    Ovs,
    #[value(name = "parts")]
    Parts,
}

/// The paper's burst.
const BURST: usize = 32;
/// The default measurements.
const TABLES: [u16; 12] = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30];
const BATCHES: [u16; 2] = [32, 256];

fn main() -> ExitCode {
    ended("hpbf", measure(&Args::parse()))
}

/// Whether something was wrong.
fn measure(args: &Args) -> Result<bool, Failure> {
    args.check()?;
    if let Some(folder) = &args.export {
        ovs::write(folder, &args.set(16, 115, 4096))?;
        return Ok(false);
    }
    let mut csv = Csv::create(&args.csv)?;
    let mut is_wrong = false;
    match args.figure {
        Figure::Shares => is_wrong = shares(args, &mut csv)?,
        Figure::Hashes => is_wrong = hashes(args, &mut csv)?,
        Figure::Tables => {
            let tables = if args.tables.is_empty() { &TABLES[..] } else { &args.tables };
            for tables in tables {
                is_wrong |= lookups(args, &mut csv, 2 * usize::from(*tables) - 1, 2000, 1 << 14)?;
            }
        }
        Figure::Ovs => is_wrong = lookups(args, &mut csv, 16, 115, 4096)?,
        Figure::Parts => is_wrong = parts::measure(args, &mut csv)?,
    }
    csv.finish()?;
    Ok(is_wrong)
}

impl Args {
    /// Options that a figure does not use are mistakes.
    fn check(&self) -> Result<(), Failure> {
        use Figure::{Ovs, Parts, Shares, Tables};
        let only = |is_given: bool, option, figures: &[Figure], names| {
            if is_given && !figures.contains(&self.figure) {
                return Err(format!("{option} is for --figure {names}"));
            }
            Ok(())
        };
        only(!self.tables.is_empty(), "--tables", &[Tables, Parts], "9 and parts")?;
        only(!self.hits.is_empty(), "--hits", &[Parts], "parts")?;
        only(!self.batch.is_empty(), "--batch", &[Tables, Ovs], "9 and ovs")?;
        let packets = [Shares, Tables, Ovs, Parts];
        only(self.packets.is_some(), "--packets", &packets, "table1, 9, ovs and parts")?;
        only(self.ghz.is_some(), "--ghz", &[Tables, Ovs], "9 and ovs")?;
        only(self.export.is_some(), "--export", &[Ovs], "ovs")?;
        if self.export.is_some() && self.csv.as_os_str() != "-" {
            return Err("--export measures nothing: leave --csv out".into());
        }
        Ok(())
    }

    /// The set with so many masks, and with the options' numbers of megaflows and packets; these are the defaults.
    fn set(&self, masks: usize, rules: usize, packets: usize) -> Set {
        let rules = self.rules.map_or(rules, |rules| rules as usize);
        let packets = self.packets.map_or(packets, |packets| packets as usize);
        Set::new(masks, rules, packets, self.tagged.into(), self.seed)
    }
}

fn number(number: f64) -> String {
    rounded(number).to_string()
}

/// The cells that all experiments begin with.
fn head(form: Form, cache: &Cache) -> Vec<Cell> {
    vec![("form", form.name().to_owned()), ("isa", cache.isa().name().to_owned())]
}

/// The forms, each with these lengths of batches or the first of them, that find a megaflow of each packet; one
/// that does not is named and left out.
fn right(
    set: &Set,
    forms: impl IntoIterator<Item = Form>,
    batches: &[u16],
    is_wrong: &mut bool,
) -> Vec<Case> {
    let mut cases = Vec::new();
    for form in forms {
        let batches = if form == Form::Packed { batches } else { &batches[..1] };
        for together in batches.iter().map(|together| usize::from(*together)) {
            let cache = set.cache(form, Isa::detect());
            let mut searcher = Searcher::new();
            if let Some(packet) = set.check(&cache, &mut searcher, together) {
                note(format_args!("{form} is wrong for packet {packet}, and left out"));
                *is_wrong = true;
                continue;
            }
            cases.push(Case { cache, together, searcher });
        }
    }
    cases
}

/// Figure 8.
fn hashes(args: &Args, csv: &mut Csv) -> Result<bool, Failure> {
    const TIMES: usize = 5000;
    let set = args.set(2, 100, BURST);
    let mut is_wrong = false;
    let cases = right(&set, Form::ALL, &[BURST as u16], &mut is_wrong);
    let batch = |case: &Case| set.batch(case.cache.form(), 0..BURST);
    let batches: Vec<Batch> = cases.iter().map(batch).collect();
    for left in 1..=BURST {
        // Those that are left lie anywhere; ours packs them.
        let mut random = Rng::new(args.seed);
        let mut live = 0u32;
        while (live.count_ones() as usize) < left {
            live |= 1 << random.below(BURST as u64);
        }
        let times = take_turns(args.runs, cases.len(), |i| {
            repeat(&cases[i].cache, &batches[i], &[(1, live)], Step::Hash, TIMES);
        });
        for (Case { cache, .. }, mut times) in cases.iter().zip(times) {
            let mut cells = head(cache.form(), cache);
            cells.push(("left", left.to_string()));
            cells.push(("hash_ns", number(1e9 * median(&mut times) / TIMES as f64)));
            csv.row(&cells)?;
        }
    }
    Ok(is_wrong)
}

/// Table 1.
fn shares(args: &Args, csv: &mut Csv) -> Result<bool, Failure> {
    const MASKS: usize = 59;
    let mut set = args.set(MASKS, 2000, 2048);
    // Whole bursts: the times are divided by the packets.
    set.frames.truncate(set.frames.len() / BURST * BURST);
    let rules = set.megaflows.len() / MASKS;
    let mut is_wrong = false;
    for form in Form::ALL.into_iter().filter(|form| *form != Form::Packed) {
        let case = right(&set, [form], &[BURST as u16], &mut is_wrong).pop();
        let Some(Case { cache, mut searcher, .. }) = case else { continue };
        let mut numbers = vec![0; set.frames.len()];
        run(&cache, &mut searcher, &set.frames, BURST, &mut numbers);
        // In which subtables the packets of each burst are searched for, in the order of insertion.
        let bursts: Vec<(Batch, Vec<Visit>)> = (0..set.frames.len() / BURST)
            .map(|i| {
                let found = &numbers[i * BURST..(i + 1) * BURST];
                let live = |at| {
                    let behind = found.iter().map(|number| *number as usize / rules >= at);
                    behind.enumerate().fold(0, |bits, (i, is)| bits | u32::from(is) << i)
                };
                let visits = (0..MASKS).map(|at| (at, live(at))).filter(|visit| visit.1 != 0);
                (set.batch(form, i * BURST..(i + 1) * BURST), visits.collect())
            })
            .collect();
        let steps = [Step::Hash, Step::Find, Step::Compare];
        let mut times = take_turns(args.runs, 4, |i| match steps.get(i) {
            Some(step) => {
                bursts.iter().for_each(|(batch, visits)| repeat(&cache, batch, visits, *step, 1));
            }
            None => run(&cache, &mut searcher, &set.frames, BURST, &mut numbers),
        });
        let ns = |times: &mut Vec<f64>| 1e9 * median(times) / set.frames.len() as f64;
        let [hash, find, compare, whole] = &mut times[..] else { continue };
        let (hash, find, compare, whole) = (ns(hash), ns(find), ns(compare), ns(whole));
        let percent = |part: f64| number(100.0 * part / whole);
        let counts = searcher.counts();
        let mut cells = head(form, &cache);
        cells.extend([
            ("subtables", MASKS.to_string()),
            ("megaflows", cache.len().to_string()),
            ("traversed", number(counts.subtables as f64 / counts.packets as f64)),
            ("lookup_ns", number(whole)),
            ("hash_percent", percent(hash)),
            ("find_percent", percent(find - hash)),
            ("compare_percent", percent(compare - find)),
        ]);
        csv.row(&cells)?;
    }
    Ok(is_wrong)
}

/// A form with a length of batches.
struct Case {
    cache: Cache,
    together: usize,
    searcher: Searcher,
}

/// Figure 9 and the setting of Open vSwitch: whole lookups over so many masks.
fn lookups(
    args: &Args,
    csv: &mut Csv,
    masks: usize,
    rules: usize,
    packets: usize,
) -> Result<bool, Failure> {
    let set = args.set(masks, rules, packets);
    let mut numbers = vec![0; set.frames.len()];
    let mut is_wrong = false;
    let batches = if args.batch.is_empty() { &BATCHES[..] } else { &args.batch };
    let mut cases = right(&set, Form::ALL, batches, &mut is_wrong);
    let n = cases.len();
    let times = take_turns(args.runs, 2 * n, |i| {
        let Case { cache, together, searcher } = &mut cases[i % n];
        if i < n {
            run(cache, searcher, &set.frames, *together, &mut numbers);
        } else {
            extract(cache.form(), &set.frames, *together);
        }
    });
    let of_packet = |seconds: f64| 1e9 * seconds / set.frames.len() as f64;
    let least = |times: &[f64]| of_packet(times.iter().copied().fold(f64::INFINITY, f64::min));
    let least: Vec<f64> = times.iter().map(|times| least(times)).collect();
    let ns: Vec<f64> = times.into_iter().map(|mut times| of_packet(median(&mut times))).collect();
    for (i, case) in cases.iter().enumerate() {
        let counts = case.searcher.counts();
        let mut cells = head(case.cache.form(), &case.cache);
        cells.extend([
            ("batch", case.together.to_string()),
            ("subtables", case.cache.subtables().to_string()),
            ("megaflows", case.cache.len().to_string()),
            ("traversed", number(counts.subtables as f64 / counts.packets as f64)),
            ("mpps", number(1e3 / ns[i])),
            ("lookup_ns", number(ns[i])),
            ("lookup_ns_min", number(least[i])),
            ("extract_ns", number(ns[n + i])),
            ("bytes_per_megaflow", number(case.cache.memory() as f64 / case.cache.len() as f64)),
        ]);
        if let Some(ghz) = args.ghz {
            cells.push(("lookup_cycles", number(ns[i] * ghz)));
        }
        csv.row(&cells)?;
    }
    Ok(is_wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A form that does not find a megaflow of each packet is left out.
    #[test]
    fn a_wrong_form_is_left_out() {
        let mut set = Set::new(3, 20, 64, 0, 1);
        let mut is_wrong = false;
        assert_eq!(right(&set, Form::ALL, &[32], &mut is_wrong).len(), Form::ALL.len());
        assert!(!is_wrong);
        // A packet of another network belongs to none of them.
        set.frames[40] = Set::new(1, 1, 1, 0, 2).frames[0];
        assert!(right(&set, Form::ALL, &[32], &mut is_wrong).is_empty());
        assert!(is_wrong);
    }
}
