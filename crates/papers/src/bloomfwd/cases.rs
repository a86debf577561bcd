//! Subjects, their workloads, and measurements of them.

use std::time::Duration;

use fibula_core::{Addr, Hop, Lookup, Routes};
use fibula_simd::Isa;
use fibula_testkit::Oracle;
use fibula_testkit::measure::{
    LookupMode, TrafficInput, answers, differences, fold, median, rate, rounded,
};

use crate::Experiment;
use crate::out::{Cell, Failure, note, read};

/// An engine over a table.
pub struct Subject<A: Addr> {
    /// The columns that distinguish it from the others.
    pub cells: Vec<Cell>,
    prefixes: usize,
    /// `None` if the engine refused the table.
    built: Option<(Box<dyn Lookup<A>>, Duration)>,
}

/// The keys of each thread, and the oracle's answers.
pub struct Workload<A> {
    pub keys: Vec<Vec<A>>,
    expected: Vec<Vec<Hop>>,
}

/// A subject with its workload and results: a number for each run, none if it was refused.
pub struct Case<'a, A: Addr> {
    pub cells: Vec<Cell>,
    pub subject: &'a Subject<A>,
    pub workload: &'a Workload<A>,
    mlps: Vec<f64>,
    /// A wrong answer, if there was one.
    wrong: Option<String>,
}

impl Experiment<'_> {
    pub fn workload<A: Addr>(
        &self,
        routes: &Routes<A>,
        traffic: &TrafficInput,
        threads: u32,
    ) -> Result<Workload<A>, Failure> {
        let (count, seed) = (self.args.keys as usize, self.args.seed);
        let keys = traffic.keys(routes, count, threads as usize, seed, read)?;
        if keys.is_empty() {
            return Err(format!("{traffic}: no IP{} addresses", A::FAMILY).into());
        }
        let oracle = Oracle::new(routes);
        let expected = keys.iter().map(|keys| answers(&oracle, keys)).collect();
        Ok(Workload { keys, expected })
    }

    /// Checks all answers, then times the cases, turn by turn. Wrong ones are left out.
    pub fn measure<A: Addr>(&mut self, cases: &mut Vec<Case<'_, A>>) {
        let batch = self.args.batch as usize;
        for case in &mut *cases {
            let Some((engine, _)) = &case.subject.built else { continue };
            let pairs = case.workload.keys.iter().zip(&case.workload.expected);
            let mut wrong = pairs.flat_map(|(keys, right)| differences(engine, keys, right, batch));
            case.wrong = wrong.next();
        }
        self.leave_wrong_out(cases);
        for _ in 0..self.args.runs {
            for case in &mut *cases {
                let Some((engine, _)) = &case.subject.built else { continue };
                let Workload { keys, expected } = case.workload;
                let keys: Vec<&[A]> = keys.iter().map(Vec::as_slice).collect();
                let run = fibula_testkit::measure::run(
                    engine,
                    &keys,
                    LookupMode::Batch(batch),
                    &self.cores,
                );
                let sums = expected.iter().map(|hops| fold(hops));
                if run.checksum != sums.fold(0, u32::wrapping_add) {
                    case.wrong = Some("other hops when timed than before".to_owned());
                }
                case.mlps.push(rate(keys.iter().map(|keys| keys.len()).sum(), run.time));
            }
        }
        self.leave_wrong_out(cases);
    }

    fn leave_wrong_out<A: Addr>(&mut self, cases: &mut Vec<Case<'_, A>>) {
        for case in cases.extract_if(.., |case| case.wrong.is_some()) {
            self.is_wrong = true;
            let cells = case.cells.iter().map(|(_, text)| text.as_str());
            let (cells, wrong) = (cells.collect::<Vec<_>>().join(" "), case.wrong);
            note(format_args!("{cells} is wrong and left out: {}", wrong.unwrap_or_default()));
        }
    }

    pub fn write<A: Addr>(&mut self, table: &str, cases: Vec<Case<'_, A>>) -> Result<(), Failure> {
        for mut case in cases {
            let (rate, built) = (case.median(), case.subject.built.as_ref());
            let bytes = built.map(|(engine, _)| engine.memory().total().to_string());
            let mut cells = vec![
                ("table", table.to_owned()),
                ("family", A::FAMILY.name().to_owned()),
                ("prefixes", case.subject.prefixes.to_string()),
                ("isa", Isa::detect().name().to_owned()),
            ];
            cells.extend(case.cells);
            cells.extend([
                ("mlps", number(rate)),
                ("mlps_min", number(case.mlps.first().copied())),
                ("mlps_max", number(case.mlps.last().copied())),
                ("memory_bytes", bytes.unwrap_or_default()),
                ("build_ms", number(built.map(|(_, time)| time.as_secs_f64() * 1e3))),
            ]);
            self.csv.row(&cells)?;
        }
        Ok(())
    }
}

impl<A: Addr> Subject<A> {
    pub fn new(
        cells: Vec<Cell>,
        routes: &Routes<A>,
        built: Option<(impl Lookup<A> + 'static, Duration)>,
    ) -> Self {
        let boxed = |engine| Box::new(engine) as Box<dyn Lookup<A>>;
        let built = built.map(|(engine, time)| (boxed(engine), time));
        Self { cells, prefixes: routes.len(), built }
    }
}

impl<A> Workload<A> {
    /// The share of keys that have a route.
    pub fn matching(&self) -> f64 {
        let hops = || self.expected.iter().flatten();
        hops().filter(|hop| **hop != Hop::NONE).count() as f64 / hops().count().max(1) as f64
    }
}

impl<'a, A: Addr> Case<'a, A> {
    pub fn new(subject: &'a Subject<A>, workload: &'a Workload<A>, more: &[Cell]) -> Self {
        let cells = subject.cells.iter().chain(more).cloned().collect();
        Self { cells, subject, workload, mlps: Vec::new(), wrong: None }
    }

    /// The rate; sorts those of the runs.
    pub fn median(&mut self) -> Option<f64> {
        (!self.mlps.is_empty()).then(|| median(&mut self.mlps))
    }
}

/// A cell of a number that may not be there.
pub fn number(number: Option<f64>) -> String {
    number.map_or(String::new(), |number| rounded(number).to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use fibula_testkit::liar::{BYTES, Liar, Lie};
    use fibula_testkit::tables;
    use fibula_testkit::traffic::Traffic;

    use super::*;
    use crate::Args;
    use crate::out::Csv;

    /// Engines that answer wrongly, when checked or when timed, are left out of the results.
    #[test]
    fn a_wrong_engine_is_left_out() {
        const KEYS: usize = 300;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("figure.csv");
        let words = format!("bloomfwd --figure 6 --runs 3 --keys {KEYS}");
        let args = Args::parse_from(words.split_whitespace());
        let csv = Csv::create(&path).unwrap();
        let mut experiment = Experiment { args: &args, cores: Vec::new(), csv, is_wrong: false };
        let routes = tables::dense::<u32>(5, 500);
        let workload =
            experiment.workload(&routes, &TrafficInput::Pattern(Traffic::Rnd), 1).unwrap();
        let subject = |lie: Lie| {
            let liar = Liar::new(&routes, lie, workload.keys[0][KEYS - 1]);
            let cells = vec![("engine", format!("{lie:?}"))];
            Subject::new(cells, &routes, Some((liar, Duration::from_millis(3))))
        };
        let lies = [Lie::Honest, Lie::Singly, Lie::InBatches, Lie::After(2 * KEYS)];
        let subjects = lies.map(subject);
        let mut cases: Vec<_> =
            subjects.iter().map(|subject| Case::new(subject, &workload, &[])).collect();
        experiment.measure(&mut cases);
        assert!(experiment.is_wrong);
        assert_eq!(cases.len(), 1);
        assert_eq!((cases[0].cells[0].1.as_str(), cases[0].mlps.len()), ("Honest", 3));

        experiment.is_wrong = false;
        let honest = subject(Lie::Honest);
        experiment.measure(&mut vec![Case::new(&honest, &workload, &[])]);
        assert!(!experiment.is_wrong);

        experiment.write("a table", cases).unwrap();
        experiment.csv.finish().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let row: Vec<&str> = text.lines().nth(1).unwrap().split(',').collect();
        assert_eq!([row[0], row[1], row[2], row[4]], ["a table", "v4", "500", "Honest"]);
        assert_eq!(row[8..], [BYTES.to_string().as_str(), "3"]);
    }
}
