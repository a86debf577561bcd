//! A definition, measured: contestants are compiled, loaded, compared with the oracle, and timed in turns.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fibula_core::Addr;
use fibula_testkit::measure::{Stamp, median};

use crate::definition::{Definition, FamilyName};
use crate::peer::{Contestant, Peer, Profile};
use crate::process::{Process, TableReport, cores};
use crate::record::{Absent, Rate, Record, Row};
use crate::table::{self, TableError};
use crate::workload::{Keys, Workload, checksum};

/// Where things are, and what to do.
pub struct Options {
    /// The folder with definitions and peers.
    pub bench: PathBuf,
    /// Where peers are compiled.
    pub target: PathBuf,
    /// The command that reads tables of files.
    pub fibula: PathBuf,
    /// Only contestants with one of these names, or peers; all if it is empty. The baseline is always one.
    pub only: Vec<String>,
    /// Compare answers and time nothing.
    pub is_check: bool,
    /// The peers that were compiled already, or why they cannot be.
    pub built: RefCell<BTreeMap<String, Result<(), String>>>,
}

/// A definition's result.
pub enum Measured {
    /// Its record.
    Record(Box<Record>),
    /// Its table is not on this machine.
    Skipped(String),
}

/// A contestant under way.
struct Turn {
    contestant: Contestant,
    process: Process,
    report: TableReport,
    batch: usize,
    /// Why it is not timed with any traffic.
    wrong: Option<String>,
}

/// Runs a definition.
pub fn measure(definition: &Definition, options: &Options) -> Result<Measured, String> {
    match definition.family {
        FamilyName::V4 => of_family::<u32>(definition, options),
        FamilyName::V6 => of_family::<u128>(definition, options),
    }
}

/// The checksums of the right answers, by traffic.
pub fn checksums(
    definition: &Definition,
    options: &Options,
) -> Result<Vec<(String, String)>, String> {
    fn of<A: Addr>(definition: &Definition, options: &Options) -> Result<Workload, String> {
        let routes = table::routes::<A>(&definition.table, &options.fibula);
        let routes = routes.map_err(|(TableError::Absent(why) | TableError::Wrong(why))| why)?;
        Workload::write(definition, &routes, work_folder(definition, options))
    }
    let workload = match definition.family {
        FamilyName::V4 => of::<u32>(definition, options),
        FamilyName::V6 => of::<u128>(definition, options),
    }?;
    let of = |(name, keys): &(String, Keys)| (name.clone(), checksum(&keys.right));
    Ok(workload.traffic.iter().map(of).collect())
}

fn work_folder(definition: &Definition, options: &Options) -> PathBuf {
    options.target.join("work").join(format!("{}-{}", definition.name, std::process::id()))
}

fn of_family<A: Addr>(definition: &Definition, options: &Options) -> Result<Measured, String> {
    let stamp = Stamp::take();
    let routes = match table::routes::<A>(&definition.table, &options.fibula) {
        Ok(routes) => routes,
        Err(TableError::Absent(why)) => return Ok(Measured::Skipped(why)),
        Err(TableError::Wrong(error)) => return Err(error),
    };
    let (found, mut absent) = contestants(definition, options)?;
    let workload = Workload::write(definition, &routes, work_folder(definition, options))?;
    drop(routes);
    let mut turns = Vec::new();
    for contestant in found {
        let name = contestant.name.clone();
        note(&format!("{}: {name} builds its table", definition.name));
        match Turn::load::<A>(contestant, definition, &workload) {
            Ok(turn) => turns.push(turn),
            Err(reason) => absent.push(Absent { contestant: name, reason }),
        }
    }
    let mut rows = Vec::new();
    for (traffic, keys) in &workload.traffic {
        note(&format!("{}: {traffic}", definition.name));
        rows.extend(rounds::<A>(definition, options, &workload, traffic, keys, &mut turns)?);
    }
    for absent in &absent {
        note(&format!("{}: {} is absent: {}", definition.name, absent.contestant, absent.reason));
    }
    Ok(Measured::Record(Box::new(Record {
        stamp,
        load_after: Stamp::take().load,
        definition: definition.name.clone(),
        title: definition.title.clone(),
        table: definition.table.clone(),
        family: definition.family.name().to_owned(),
        prefixes: workload.prefixes,
        keys: definition.keys,
        threads: definition.threads,
        rounds: if options.is_check { 0 } else { definition.rounds },
        baseline: definition.baseline.clone(),
        absent,
        rows,
    })))
}

/// The contestants that can take part, compiled, and the others.
fn contestants(
    definition: &Definition,
    options: &Options,
) -> Result<(Vec<Contestant>, Vec<Absent>), String> {
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    for name in &definition.contestants {
        let peer_name = name.split(':').next().unwrap_or_default();
        let is_wanted = |only: &String| only == name || only == peer_name;
        if !options.only.is_empty()
            && !options.only.iter().any(is_wanted)
            && *name != definition.baseline
        {
            continue;
        }
        match contestant(name, definition.family, definition.threads, options) {
            Ok(Ok(contestant)) => found.push(contestant),
            Ok(Err(reason)) => absent.push(Absent { contestant: name.clone(), reason }),
            Err(error) => return Err(format!("{}: {error}", definition.name)),
        }
    }
    Ok((found, absent))
}

/// A contestant, compiled, or the reason why it cannot take part. An unknown peer is an error.
pub fn contestant(
    name: &str,
    family: FamilyName,
    threads: usize,
    options: &Options,
) -> Result<Result<Contestant, String>, String> {
    let peers = crate::peer::all(&options.bench.join("peers"))?;
    let profile = if options.is_check { Profile::Answers } else { Profile::Release };
    let peer_name = name.split(':').next().unwrap_or_default();
    let peer = peers.get(peer_name).ok_or_else(|| {
        let known: Vec<&str> = peers.keys().map(String::as_str).collect();
        format!("no peer {peer_name}: {}", known.join(", "))
    })?;
    if let Some(reason) = peer.lacks() {
        return Ok(Err(reason));
    }
    let possible = peer.contestant(name, family, threads, (&options.target, profile));
    Ok(possible.and_then(|contestant| {
        let build = || {
            note(&format!("compiling {peer_name}"));
            Peer::build(peer, &options.target, profile)
        };
        let mut built = options.built.borrow_mut();
        built.entry(peer_name.to_owned()).or_insert_with(build).clone().map(|()| contestant)
    }))
}

impl Turn {
    /// Starts it, and compares its answers at the edges of prefixes.
    fn load<A: Addr>(
        contestant: Contestant,
        definition: &Definition,
        workload: &Workload,
    ) -> Result<Self, String> {
        let mut cores = cores();
        cores.truncate(definition.threads);
        let mut process = Process::start(&contestant, &cores, &workload.file(""))?;
        let report = process.load(definition.family.name(), &workload.table)?;
        let batch = contestant.batch.unwrap_or(definition.batch);
        let mut turn = Self { contestant, process, report, batch, wrong: None };
        let probes = match turn.contestant.slow {
            1 => None,
            slow => Some(workload.probes.share::<A>(slow)?),
        };
        turn.wrong = turn.differs::<A>(probes.as_ref().unwrap_or(&workload.probes), workload);
        Ok(turn)
    }

    /// What is wrong with its answers to these keys, or with itself.
    fn differs<A: Addr>(&mut self, keys: &Keys, workload: &Workload) -> Option<String> {
        let asked = self.process.keys(&keys.path, keys.threads, self.batch);
        match asked.and_then(|()| self.process.answers(&workload.file("answers"))) {
            Ok(hops) => keys.wrong::<A>(&hops),
            Err(error) => Some(error),
        }
    }

    fn row(&self, traffic: &str) -> Row {
        Row {
            contestant: self.contestant.name.clone(),
            version: self.process.version.clone(),
            note: self.report.note.clone(),
            traffic: traffic.to_owned(),
            batch: self.batch,
            build_ms: self.report.build_ns as f64 / 1e6,
            bytes: self.report.bytes,
            resident: self.report.resident,
            wrong: self.wrong.clone(),
            rate: None,
        }
    }
}

/// The rows of a kind of traffic: answers are compared, then those that are right take turns.
fn rounds<A: Addr>(
    definition: &Definition,
    options: &Options,
    workload: &Workload,
    traffic: &str,
    keys: &Keys,
    turns: &mut [Turn],
) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = turns.iter().map(|turn| turn.row(traffic)).collect();
    let mut shares: BTreeMap<usize, Keys> = BTreeMap::new();
    for turn in turns.iter().filter(|turn| turn.contestant.slow > 1) {
        let slow = turn.contestant.slow;
        shares.insert(slow, keys.share::<A>(slow)?);
    }
    let of = |turn: &Turn| shares.get(&turn.contestant.slow).unwrap_or(keys);
    for (turn, row) in turns.iter_mut().zip(&mut rows) {
        if row.wrong.is_none() {
            let keys = of(turn);
            row.wrong = turn.differs::<A>(keys, workload);
        }
    }
    if options.is_check {
        return Ok(rows);
    }
    let mut timed: Vec<Timed> = turns.iter().map(|_| Timed::default()).collect();
    for _ in 0..definition.rounds {
        for ((turn, row), timed) in turns.iter_mut().zip(&mut rows).zip(&mut timed) {
            if row.wrong.is_some() {
                continue;
            }
            let keys = of(turn);
            match turn.process.round() {
                Ok(round) if round.sum == keys.sum() => {
                    timed.add(keys.right.len(), definition.threads, round.wall_ns, round.cpu_ns);
                }
                Ok(_) => row.wrong = Some("other hops when timed than before".to_owned()),
                Err(error) => row.wrong = Some(error),
            }
        }
    }
    let baseline = rows.iter().position(|row| row.contestant == definition.baseline);
    let baseline = baseline.filter(|&at| rows[at].wrong.is_none()).map(|at| timed[at].mlps.clone());
    for (row, timed) in rows.iter_mut().zip(timed) {
        if row.wrong.is_none() {
            let busy = timed.wall as f64 / timed.cpu.max(1) as f64 * definition.threads as f64;
            row.rate = rate(timed.mlps, baseline.as_deref(), busy);
        }
    }
    Ok(rows)
}

/// The rounds of a contestant.
#[derive(Default)]
struct Timed {
    mlps: Vec<f64>,
    wall: u64,
    cpu: u64,
}

impl Timed {
    /// One thread's rate is by the time that it ran, that of several by the time until the last one's end.
    fn add(&mut self, keys: usize, threads: usize, wall_ns: u64, cpu_ns: u64) {
        let ns = if threads == 1 { cpu_ns } else { wall_ns };
        self.mlps.push(keys as f64 / ns.max(1) as f64 * 1e3);
        self.wall += wall_ns;
        self.cpu += cpu_ns;
    }
}

/// The rate of rounds; `None` if there are none.
pub fn rate(each: Vec<f64>, baseline: Option<&[f64]>, wall_by_cpu: f64) -> Option<Rate> {
    let mut sorted = each.clone();
    let mlps = median(&mut sorted);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let ratio = baseline.filter(|rounds| rounds.len() == each.len()).map(|rounds| {
        let mut ratios: Vec<f64> = each.iter().zip(rounds).map(|(own, of)| own / of).collect();
        median(&mut ratios)
    });
    Some(Rate { mlps, min, max, ratio, wall_by_cpu, each })
}

/// Writes a line for people.
pub fn note(text: &str) {
    eprintln!("{text}");
}

/// Writes a file, and its folder.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let rate = rate(vec![2.0, 8.0, 3.0], Some(&[1.0, 4.0, 1.0]), 1.0).unwrap();
        assert_eq!((rate.mlps, rate.min, rate.max, rate.ratio), (3.0, 2.0, 8.0, Some(2.0)));
        assert_eq!(super::rate(vec![], None, 1.0), None);
        assert_eq!(super::rate(vec![1.0], Some(&[]), 1.0).unwrap().ratio, None);
    }

    #[test]
    fn one_thread_is_measured_by_the_time_that_it_ran() {
        let mut timed = Timed::default();
        timed.add(1000, 1, 4000, 2000);
        timed.add(1000, 2, 4000, 8000);
        assert_eq!(timed.mlps, [500.0, 250.0]);
        assert_eq!((timed.wall, timed.cpu), (8000, 10_000));
    }
}
