//! `fibula verify`: every engine against the oracle, on every instruction set of this machine.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args as ClapArgs;
use fibula_core::{Addr, BuildError, Family, Hop, Lookup, Memory, Routes, grouped};
use fibula_fib::{EngineChoice, Fib, IndexedRoutes, Pod, SEARCH};
use fibula_rib::Snapshot;
use fibula_simd::Isa;
use fibula_testkit::check::check_all;
use fibula_testkit::{Oracle, probes};
use serde::Serialize;

use crate::bench::{IsaChoice, isas, parse_isa};
use crate::engines;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Grid};
use crate::progress::note;
use crate::source::{self, ReadArgs, Source, parse_family};
use crate::table::{self, Loaded};

const EXAMPLES: &str = "\
Examples:
  fibula verify --table table.fib
  fibula verify --table rib.gz,updates.gz --engines dxr,planb --random 10000000
  fibula verify --table gen:v6:2024:200000:1 --json
  fibula verify --snapshot table.fib --digest 2d0b0a30b6a2522428e6c38971ae8b61

The oracle is a plain binary trie. Probes: for every prefix both of its ends and their neighbours,
both ends of the address space, and random addresses: a third over the whole space, a third over
the space in use, a third inside the table's prefixes. Each is looked up singly and in batches of 1
to 130 addresses.

The stored engines of a snapshot (snapshot:NAME) and the search for the matched prefix
(snapshot:routes) are verified, too. An engine that cannot hold the table is skipped, with a note
on standard error. Exit code 1 if any answer is wrong, 2 if no engine was verified.

With --snapshot, one line says whether the file is sound, which digest it has, and whether its
stored engines and its search give the answers of its routes. Exit code 1 if the digest differs
from that of --digest or an answer is wrong, 2 if the file is damaged. The digest covers all data
that answers depend on. It detects accidental damage; it does not prove who wrote the file.";

/// Compare engines with the oracle, a linear search
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The table: a snapshot, table files, URLs, fetch:NAME, gen:v4:2024:900000:1, embedded (default: FIBULA_TABLE,
    /// else that of the configuration, else embedded)
    #[arg(long, short, value_name = "TABLE,...")]
    table: Vec<String>,
    /// A snapshot to check as a whole, in one line, instead of a table and engines
    #[arg(long, value_name = "FILE", conflicts_with_all = ["table", "engines"])]
    snapshot: Option<PathBuf>,
    /// The digest that the snapshot must have, as build and stats print it
    #[arg(long, value_name = "HEX", requires = "snapshot", value_parser = parse_digest)]
    digest: Option<u128>,
    /// Engines: names, auto, all
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...", default_value = "all")]
    engines: Vec<String>,
    /// Address family (default: those that the table has)
    #[arg(long, short, value_name = "v4|v6", value_parser = parse_family)]
    family: Option<Family>,
    /// Random addresses for each family, in addition to the boundary probes
    #[arg(long, value_name = "N", default_value = "1000000")]
    random: u64,
    /// Instruction sets: scalar, avx2, avx512, neon, all (default: all of this machine)
    #[arg(long, value_delimiter = ',', value_name = "ISA,...", value_parser = parse_isa)]
    isa: Vec<IsaChoice>,
    /// Seed of the random addresses
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Print an array of JSON objects
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// The result for one engine. Scripts depend on the names of the fields.
#[derive(Clone, Serialize)]
struct Row {
    engine: String,
    isa: &'static str,
    family: &'static str,
    probes: u64,
    wrong: u64,
}

/// Differences printed for each engine.
const KEEP: usize = 10;

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let loaded = match &args.snapshot {
        Some(path) => {
            let source = (path.display().to_string(), Source::Snapshot(path.clone()));
            table::load(&[source], &ReadArgs { load: args.read.load, ..ReadArgs::automatic() })?
        }
        None => {
            engines::choose::<u32>(&args.engines)?;
            table::load_aloud(&source::tables(&args.table, &args.read)?, &args.read)?
        }
    };
    let mut rows = Vec::new();
    // A family without routes is verified as well: every answer must be "none".
    let wanted = |family: Family| match args.family {
        Some(wanted) => wanted == family,
        None => loaded.families().contains(&family) || loaded.families().is_empty(),
    };
    if wanted(Family::V4) {
        family::<u32>(args, &loaded, &mut rows)?;
    }
    if wanted(Family::V6) {
        family::<u128>(args, &loaded, &mut rows)?;
    }
    if rows.is_empty() {
        return Err(Failure::new("nothing was verified").hint(
            "engines of the other family are skipped; notes name the others that were skipped",
        ));
    }
    let wrong = rows.iter().any(|row| row.wrong > 0);
    if let Some(snapshot) = &loaded.snapshot {
        snapshot.unchanged()?;
        if args.snapshot.is_some() {
            return whole(args, &loaded, snapshot, &rows);
        }
    }
    if args.json {
        output::json(&rows)?;
    } else {
        print(&loaded, &rows)?;
    }
    Ok(if wrong { Outcome::Negative } else { Outcome::Done })
}

/// Something that answers lookups, to be compared with the oracle.
struct Candidate<'a, A: Addr> {
    engine: String,
    isa: Isa,
    lookup: Box<dyn Lookup<A> + 'a>,
}

fn family<A: Addr + Pod>(args: &Args, loaded: &Loaded, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let routes = loaded.table.routes::<A>();
    let candidates = candidates::<A>(args, routes, loaded.snapshot.as_ref())?;
    let engines: Vec<&dyn Lookup<A>> = candidates.iter().map(|one| &*one.lookup as _).collect();
    let random = probes::random(routes, args.random, args.seed);
    let mut probes = probes::boundary(routes).chain(random);
    let reports = check_all(&engines, &Oracle::new(routes), &mut probes, KEEP);
    for (candidate, report) in candidates.into_iter().zip(reports) {
        let Candidate { engine, isa, .. } = candidate;
        let family = A::FAMILY;
        if report.wrong > 0 {
            note(format_args!("{engine} ({isa}, IP{family}): {report}"));
        }
        let (isa, family) = (isa.name(), family.name());
        rows.push(Row { engine, isa, family, probes: report.probes, wrong: report.wrong });
    }
    Ok(())
}

fn candidates<'a, A: Addr + Pod>(
    args: &Args,
    routes: &Routes<A>,
    snapshot: Option<&'a Arc<Snapshot>>,
) -> Result<Vec<Candidate<'a, A>>, Failure> {
    // FIBULA_ISA limits the choice to the forced instruction set.
    let all = if Isa::forced()?.is_some() { vec![Isa::detect()] } else { Isa::available() };
    let isas = isas(&args.isa, all);
    let mut candidates = Vec::new();
    let mut add = |engine: String, isa, lookup| {
        candidates.push(Candidate { engine, isa, lookup });
    };
    // The engines that are stored with a snapshot.
    let asked = if args.snapshot.is_some() { Vec::new() } else { engines::choose(&args.engines)? };
    for choice in asked {
        for isa in choice.forms(&isas) {
            match choice.build(routes, isa) {
                Ok(built) => add(built.label, built.isa, built.engine as Box<dyn Lookup<A>>),
                Err(error @ BuildError::Limit { .. }) => {
                    note(format_args!("skipped for IP{}: {error}", A::FAMILY));
                    break; // the limits are the scheme's, not the form's
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    let Some(snapshot) = snapshot else { return Ok(candidates) };
    let mut forms = Vec::new();
    for isa in isas {
        let stored = [EngineChoice::Stored, EngineChoice::Search];
        let options = engines::options(stored).isa(isa);
        let fib = Fib::of_snapshot(Arc::clone(snapshot), &options)?;
        let (name, form) = (fib.family::<A>().engine_name(), fib.family::<A>().isa());
        if name != SEARCH && !forms.contains(&form) {
            forms.push(form);
            add(format!("snapshot:{name}"), form, Box::new(Opened(fib)));
        }
    }
    let name = snapshot.family::<A>().engine_name();
    if forms.is_empty() && !name.is_empty() {
        note(format_args!(
            "skipped: this program does not know the stored engine {name:?}, or not the form of its tables"
        ));
    }
    let routes: &IndexedRoutes<A> = snapshot.family::<A>();
    add("snapshot:routes".to_owned(), Isa::Scalar, Box::new(routes));
    Ok(candidates)
}

/// The engine of an open table.
struct Opened(Fib);

impl<A: Addr + Pod> Lookup<A> for Opened {
    fn lookup(&self, addr: A) -> Hop {
        self.0.family::<A>().engine().lookup(addr)
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        self.0.lookup_batch(addrs, hops);
    }

    fn memory(&self) -> Memory {
        self.0.family::<A>().memory()
    }
}

fn parse_digest(text: &str) -> Result<u128, String> {
    let is_digest = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let digest = is_digest.then(|| u128::from_str_radix(text, 16).ok()).flatten();
    digest.ok_or_else(|| "a digest has 32 hexadecimal digits".to_owned())
}

/// The result of `--snapshot`.
#[derive(Serialize)]
struct Whole {
    file: String,
    digest: String,
    expected_digest: Option<String>,
    agrees: bool,
    answers: Vec<Row>,
}

/// Reports whether the digest and the answers of a snapshot with correct checksums are correct.
fn whole(
    args: &Args,
    loaded: &Loaded,
    snapshot: &Snapshot,
    rows: &[Row],
) -> Result<Outcome, Failure> {
    use std::io::Write as _;
    let hex = |digest: u128| format!("{digest:032x}");
    let (digest, expected) = (snapshot.digest(), args.digest.map(hex));
    let wrong: u64 = rows.iter().map(|row| row.wrong).sum();
    let is_expected = args.digest.is_none_or(|expected| expected == digest);
    let agrees = is_expected && wrong == 0;
    let file = loaded.name.clone();
    if args.json {
        let (digest, answers) = (hex(digest), rows.to_vec());
        output::json(&Whole { file, digest, expected_digest: expected, agrees, answers })?;
    } else {
        let verdict = match (expected, is_expected) {
            (None, _) => String::new(),
            (Some(_), true) => ", as expected".to_owned(),
            (Some(expected), false) => format!(", EXPECTED {expected}"),
        };
        let probes: u64 = rows.iter().map(|row| row.probes).sum();
        let answers = match wrong {
            0 => format!("all {} answers agree with its routes", grouped(probes)),
            wrong => format!("{} of {} answers are WRONG", grouped(wrong), grouped(probes)),
        };
        let mut out = output::stdout();
        writeln!(out, "{file}: checksums agree, digest {}{verdict}, {answers}", hex(digest))?;
        out.flush()?;
    }
    Ok(if agrees { Outcome::Done } else { Outcome::Negative })
}

fn print(loaded: &Loaded, rows: &[Row]) -> Result<(), Failure> {
    use std::io::Write as _;
    let mut out = output::stdout();
    let table = &loaded.table;
    let (v4, v6) = (grouped(table.v4.len() as u64), grouped(table.v6.len() as u64));
    writeln!(out, "{}: {v4} IPv4, {v6} IPv6 routes", loaded.name)?;
    let mut grid = Grid::new(&["engine", "isa", "family", ">probes", ">wrong"]);
    for row in rows {
        let (isa, family) = (row.isa.to_owned(), row.family.to_owned());
        grid.row([row.engine.clone(), isa, family, grouped(row.probes), grouped(row.wrong)]);
    }
    grid.write_aligned(&mut out)?;
    let wrong = rows.iter().filter(|row| row.wrong > 0).count();
    match (rows.len(), wrong) {
        (n, 0) => writeln!(out, "all {n} agree with the oracle")?,
        (n, wrong) => writeln!(out, "{wrong} of {n} are WRONG")?,
    }
    out.flush()?;
    Ok(())
}
