//! The harness: measures lookups of contestants that are processes of their own. `bench/README.md` explains it.

mod chart;
mod compare;
mod definition;
mod hunt;
mod lines;
mod measure;
mod peer;
mod plot;
mod process;
mod record;
mod report;
mod scale;
mod sweep;
mod table;
mod updates;
mod workload;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use definition::{Definition, FamilyName};
use fibula_core::Addr;
use measure::{Measured, Options, note, write};
use record::Record;

/// Measures lookups of contestants that are processes of their own
#[derive(Parser)]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List definitions, peers, and what peers lack on this machine
    List(Places),
    /// Measure definitions, and write a record of each: .md, .json, .csv and .svg
    Run {
        /// Names of definitions
        #[arg(required = true)]
        definitions: Vec<String>,
        /// The folder for records; without it, the text goes to standard output and nothing is written
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        #[command(flatten)]
        choice: Choice,
        #[command(flatten)]
        places: Places,
    },
    /// Compare the answers of all contestants with the oracle's, on the small tables; ends with 1 if one is wrong
    Check {
        /// Names of definitions (default: all)
        definitions: Vec<String>,
        #[command(flatten)]
        choice: Choice,
        #[command(flatten)]
        places: Places,
    },
    /// Look for a small table that a contestant answers wrongly, among hard ones; ends with 1 if there is one
    Hunt {
        /// Contestants: PEER or PEER:VARIANT
        #[arg(required = true)]
        contestants: Vec<String>,
        /// Random tables of each family, beside those that every engine is tested with
        #[arg(long, value_name = "N", default_value_t = 1000)]
        tables: u64,
        #[command(flatten)]
        places: Places,
    },
    /// Print the checksums of the right answers, for a definition's tables [answers] and [small.answers]
    Answers {
        /// The name of a definition
        definition: String,
        #[command(flatten)]
        places: Places,
    },
    /// Compare two records of a definition; ends with 1 if a rate is lower beyond the spread of the rounds
    Compare {
        /// The older record, .json
        old: PathBuf,
        /// The newer record
        new: PathBuf,
    },
    /// Print a record's medians as a table
    Table {
        /// The record, .json
        record: PathBuf,
    },
    /// Draw a record
    Plot {
        /// The record, .json
        record: PathBuf,
        /// The picture, .svg
        picture: PathBuf,
    },
    /// Draw a figure of a paper
    Chart {
        /// What is drawn, .json: bench/papers/run.py writes it
        chart: PathBuf,
        /// The picture, .svg
        picture: PathBuf,
    },
    /// Draw what `fibula bench --updates --json` printed
    Updates {
        /// Its output, .json
        record: PathBuf,
        /// The picture, .svg
        picture: PathBuf,
    },
    /// Print the folder for records of this processor: vendor, family, model
    Folder,
}

#[derive(Args)]
struct Choice {
    /// Only these contestants or peers, beside the baseline
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    only: Vec<String>,
    /// Other numbers of rounds than the definitions'
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
}

#[derive(Args)]
struct Places {
    /// The folder with definitions and peers
    #[arg(long, value_name = "FOLDER", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/.."))]
    bench: PathBuf,
    /// Where peers are compiled (default: target in that folder)
    #[arg(long, value_name = "FOLDER")]
    target: Option<PathBuf>,
    /// The command that reads tables of files
    #[arg(long, value_name = "FILE", default_value = "fibula")]
    fibula: PathBuf,
}

impl Places {
    fn options(self, only: Vec<String>, is_check: bool) -> Result<Options, String> {
        let absolute =
            |path: &Path| std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()));
        let bench = self.bench.canonicalize();
        let bench = bench.map_err(|error| format!("{}: {error}", self.bench.display()))?;
        let target = absolute(&self.target.unwrap_or_else(|| bench.join("target")))?;
        let built = RefCell::default();
        Ok(Options { bench, target, fibula: self.fibula, only, is_check, built })
    }
}

fn main() -> ExitCode {
    match run(Command::parse().what) {
        Ok(is_right) => ExitCode::from(u8::from(!is_right)),
        Err(error) => {
            eprintln!("bench-harness: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether what was asked for is as it should be.
fn run(what: What) -> Result<bool, String> {
    match what {
        What::List(places) => list(&places.options(Vec::new(), true)?).map(|()| true),
        What::Run { definitions, out, choice, places } => {
            let options = places.options(choice.only, false)?;
            let mut is_right = true;
            for name in definitions {
                let mut definition = read(&options, &name)?;
                definition.rounds = choice.rounds.unwrap_or(definition.rounds);
                is_right &= measured(&definition, &options, out.as_deref())?;
            }
            Ok(is_right)
        }
        What::Check { definitions, choice, places } => {
            let options = places.options(choice.only, true)?;
            check(definitions, &options)
        }
        What::Hunt { contestants, tables, places } => {
            let options = places.options(Vec::new(), true)?;
            let mut is_right = true;
            for name in contestants {
                is_right &= hunted::<u32>(&name, FamilyName::V4, tables, &options)?;
                is_right &= hunted::<u128>(&name, FamilyName::V6, tables, &options)?;
            }
            Ok(is_right)
        }
        What::Answers { definition, places } => {
            let options = places.options(Vec::new(), true)?;
            answers(&read(&options, &definition)?, &options).map(|()| true)
        }
        What::Compare { old, new } => {
            let (old, new) = (record::read(&old)?, record::read(&new)?);
            if old.len() != new.len() {
                let (old, new) = (old.len(), new.len());
                return Err(format!("different sweeps: {old} and {new} points"));
            }
            let mut worse = 0;
            for (old, new) in old.iter().zip(&new) {
                let found = compare::compare(old, new)?;
                print!("{}", found.text);
                worse += found.worse;
            }
            Ok(worse == 0)
        }
        What::Table { record } => {
            match &record::read(&record)?[..] {
                [record] => print!("{}", report::summary(record)),
                points => print!("{}", sweep::text(points)),
            }
            Ok(true)
        }
        What::Plot { record, picture } => {
            write(&picture, &drawn(&record::read(&record)?)?).map(|()| true)
        }
        What::Chart { chart, picture } => {
            let said = |error: String| format!("{}: {error}", chart.display());
            let text = std::fs::read(&chart).map_err(|error| said(error.to_string()))?;
            let what = serde_json::from_slice(&text).map_err(|error| said(error.to_string()))?;
            write(&picture, &chart::svg(&what)?).map(|()| true)
        }
        What::Updates { record, picture } => {
            let said = |error: String| format!("{}: {error}", record.display());
            let text = std::fs::read(&record).map_err(|error| said(error.to_string()))?;
            let updates: updates::Updates =
                serde_json::from_slice(&text).map_err(|error| said(error.to_string()))?;
            write(&picture, &updates.svg().map_err(said)?).map(|()| true)
        }
        What::Folder => {
            println!("{}", fibula_testkit::measure::Stamp::take().processor.folder());
            Ok(true)
        }
    }
}

fn read(options: &Options, name: &str) -> Result<Definition, String> {
    Definition::read(&options.bench.join("definitions"), name)
}

fn list(options: &Options) -> Result<(), String> {
    for name in definition::names(&options.bench.join("definitions")) {
        let Definition { title, table, traffic, sweep, .. } = read(options, &name)?;
        let tables = if table.is_empty() { sweep.tables.join(", ") } else { table };
        println!("{name}: {title}; {tables}; {}", traffic.join(", "));
    }
    println!();
    for (name, peer) in peer::all(&options.bench.join("peers"))? {
        let variants: Vec<&str> = peer.variants.keys().map(String::as_str).collect();
        let variants = match variants[..] {
            [] => String::new(),
            _ => format!(" ({})", variants.join(", ")),
        };
        let lacks = peer.lacks().map_or("can take part".to_owned(), |why| format!("absent: {why}"));
        println!("{name}{variants}: {}; {lacks}", peer.about);
    }
    Ok(())
}

/// Measures a definition; whether all that was timed was right.
fn measured(
    definition: &Definition,
    options: &Options,
    out: Option<&Path>,
) -> Result<bool, String> {
    let mut records = Vec::new();
    for point in definition.points(process::cores().len()) {
        match measure::measure(&point, options)? {
            Measured::Record(record) => records.push(*record),
            Measured::Skipped(why) => note(&format!("{}: skipped: {why}", definition.name)),
        }
    }
    if records.is_empty() {
        return Ok(true);
    }
    let text = match &records[..] {
        [record] => report::text(record),
        points => sweep::text(points),
    };
    print!("{text}");
    if let Some(folder) = out {
        let file = |ending: &str| folder.join(format!("{}.{ending}", definition.name));
        write(&file("md"), &text)?;
        write(&file("json"), &record::json(&records))?;
        write(&file("csv"), &record::csv(&records))?;
        write(&file("svg"), &drawn(&records)?)?;
        note(&format!("recorded in {}", file("md").display()));
    }
    Ok(records.iter().flat_map(|record| &record.rows).all(|row| row.wrong.is_none()))
}

/// A record, or those of a sweep, as a picture.
fn drawn(records: &[Record]) -> Result<String, String> {
    match records {
        [record] => plot::svg(record),
        points => sweep::svg(points),
    }
}

fn check(mut names: Vec<String>, options: &Options) -> Result<bool, String> {
    if names.is_empty() {
        names = definition::names(&options.bench.join("definitions"));
    }
    let mut is_right = true;
    for name in names {
        let definition = read(options, &name)?.into_small();
        let Measured::Record(record) = measure::measure(&definition, options)? else {
            return Err(format!("{name}: its small table is not there"));
        };
        let (wrong, right): (Vec<_>, Vec<_>) =
            record.rows.iter().partition(|row| row.wrong.is_some());
        for row in &wrong {
            let why = row.wrong.as_deref().unwrap_or_default();
            println!("{name}: {}, {}: {why}", row.contestant, row.traffic);
        }
        println!(
            "{name}: {} contestants with traffic are right, {} wrong; {} contestants are absent",
            right.len(),
            wrong.len(),
            record.absent.len()
        );
        // Ours are always there.
        let has_baseline = record.rows.iter().any(|row| row.contestant == record.baseline);
        is_right &= wrong.is_empty() && has_baseline;
    }
    Ok(is_right)
}

/// Whether a contestant answers all small tables of a family rightly.
fn hunted<A: Addr>(
    name: &str,
    family: FamilyName,
    tables: u64,
    options: &Options,
) -> Result<bool, String> {
    let contestant = match measure::contestant(name, family, 1, options)? {
        Ok(contestant) => contestant,
        Err(reason) => {
            println!("{name}, IP{}: absent: {reason}", family.name());
            return Ok(true);
        }
    };
    let folder = options.target.join("work").join(format!("hunt-{}", std::process::id()));
    let found = hunt::hunt::<A>(&contestant, tables, &folder);
    // What is left there is in the way of nobody.
    let _ = std::fs::remove_dir_all(&folder);
    let family = family.name();
    match found? {
        hunt::Hunted::Right { right, refused: 0, .. } => {
            println!("{name}, IP{family}: right on {right} tables");
        }
        hunt::Hunted::Right { right, refused, reason } => {
            println!("{name}, IP{family}: right on {right} tables, refused {refused}: {reason}");
        }
        hunt::Hunted::Wrong(hunt::Found { table, wrong }) => {
            println!("{name}, IP{family}: {wrong}, with the routes\n{table}");
            return Ok(false);
        }
    }
    Ok(true)
}

fn answers(definition: &Definition, options: &Options) -> Result<(), String> {
    let mut forms: Vec<(String, Definition)> = Vec::new();
    for point in definition.points(usize::MAX) {
        let title = match definition.sweep.is_none() {
            true => "answers".to_owned(),
            false => format!("sweep.answers.{:?}", point.point_name(&definition.sweep)),
        };
        forms.push((title, point));
    }
    forms.push(("small.answers".to_owned(), definition.clone().into_small()));
    for (title, mut form) in forms {
        form.answers.clear();
        println!("[{title}]");
        for (traffic, checksum) in measure::checksums(&form, options)? {
            println!("{traffic} = \"{checksum}\"");
        }
    }
    Ok(())
}
