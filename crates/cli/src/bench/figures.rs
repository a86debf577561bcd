//! The engines that are checked and timed.

use fibula_core::{Addr, Hop, Lookup};

use fibula_testkit::measure::{LookupMode, differences, rate};

use super::{Bench, Spread};
use crate::engines::Built;
use crate::failure::Outcome;
use crate::progress::note;

impl Bench<'_> {
    /// The engines that answer every key as the oracle does, both ways.
    pub fn right<'e, A: Addr>(
        &mut self,
        built: &'e [Built<A>],
        keys: &[Vec<A>],
        expected: &[Vec<Hop>],
        mode: LookupMode,
    ) -> Vec<&'e Built<A>> {
        let batch = match mode {
            LookupMode::Batch(batch) => batch,
            LookupMode::Dependent => 1,
        };
        let mut right = Vec::new();
        for engine in built {
            let wrong: Vec<String> = keys
                .iter()
                .zip(expected)
                .flat_map(|(keys, expected)| differences(&*engine.engine, keys, expected, batch))
                .collect();
            if wrong.is_empty() {
                right.push(engine);
            } else {
                self.outcome = Outcome::Negative;
                note(format_args!("{} ({}) is wrong and not timed:", engine.label, engine.isa));
                wrong.iter().take(5).for_each(|text| note(format_args!("  {text}")));
            }
        }
        right
    }

    /// Times the engines, taking turns within each run so that whatever else the machine does hits
    /// all alike.
    pub fn measure<'e, A: Addr>(
        &mut self,
        built: &[&'e Built<A>],
        keys: &[Vec<A>],
        expected: &[Vec<Hop>],
        mode: LookupMode,
    ) -> Vec<Figures<'e, A>> {
        let keys: Vec<&[A]> = keys.iter().map(Vec::as_slice).collect();
        let count: usize = keys.iter().map(|keys| keys.len()).sum();
        let checksum = expected
            .iter()
            .fold(0u32, |sum, hops| sum.wrapping_add(fibula_testkit::measure::fold(hops)));
        let chain = &keys[0][..keys[0].len().min(CHAIN)];
        let mut figures: Vec<_> = built
            .iter()
            .map(|built| Figures {
                built,
                mlps: Vec::new(),
                alone: Vec::new(),
                dependent: Vec::new(),
                wrong: false,
            })
            .collect();
        for _ in 0..self.args.runs {
            for figures in &mut figures {
                let engine: &dyn Lookup<A> = &figures.built.engine;
                let run = match (self.args.spread, mode) {
                    (Spread::Dispatch, LookupMode::Batch(batch)) => {
                        fibula_testkit::measure::dispatch(engine, &keys, batch, &self.cores)
                    }
                    _ => fibula_testkit::measure::run(engine, &keys, mode, &self.cores),
                };
                figures.wrong |= run.checksum != checksum;
                figures.mlps.push(rate(count, run.time));
                let alone = if keys.len() == 1 && self.args.spread == Spread::Own {
                    run
                } else {
                    fibula_testkit::measure::run(engine, &keys[..1], mode, &self.cores)
                };
                figures.alone.push(rate(keys[0].len(), alone.time));
                let chained = fibula_testkit::measure::run(
                    engine,
                    &[chain],
                    LookupMode::Dependent,
                    &self.cores,
                );
                figures.dependent.push(chained.time.as_secs_f64() * 1e9 / chain.len() as f64);
            }
        }
        for wrong in figures.extract_if(.., |figures| figures.wrong) {
            self.outcome = Outcome::Negative;
            let Built { label, isa, .. } = wrong.built;
            note(format_args!("{label} ({isa}): other hops when timed than before, left out"));
        }
        figures
    }
}

/// Keys of the dependent chain: enough to visit the whole table, few enough for slow engines.
const CHAIN: usize = 1 << 20;

/// The measurements of an engine, a number for each run.
pub struct Figures<'e, A: Addr> {
    pub built: &'e Built<A>,
    pub mlps: Vec<f64>,
    /// The rate of one thread with its own keys, alone.
    pub alone: Vec<f64>,
    pub dependent: Vec<f64>,
    /// Whether a timed run gave other hops than the oracle.
    wrong: bool,
}
