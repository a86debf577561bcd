//! Engines that follow changes of the routes: the cost of a changed prefix.
//!
//! All engines follow the same changes, burst by burst and one after the other. The clock runs while
//! an engine brings its tables up to date, not while the routes change. Afterwards every engine is
//! compared with the oracle at all prefixes that changed.

use std::io::Write;
use std::time::Instant;

use fibula_core::{Addr, Patched, Prefix, Routes, grouped};

use fibula_testkit::check::check;
use fibula_testkit::{Oracle, RouteChurn};
use serde::Serialize;

use crate::engines::Built;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Grid};
use crate::progress::note;
use fibula_testkit::measure::{median, rounded};

/// Changes of a run, at least; a run has no fewer than [`BURSTS`] bursts either.
const CHANGES: usize = 2048;
const BURSTS: usize = 8;
/// Number of random addresses that are compared with the oracle in addition to those of the changed prefixes.
const RANDOM: usize = 100_000;

/// A measurement. The names and the order of the fields are relied on by scripts.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    engine: String,
    isa: &'static str,
    family: &'static str,
    table: String,
    prefixes: usize,
    burst: usize,
    us_per_change: f64,
    us_p50: f64,
    us_p99: f64,
    changes_per_s: f64,
    rebuilds: usize,
    bytes: usize,
    build_ms: f64,
}

/// An engine under way.
struct Follower<A: Addr> {
    built: Built<A>,
    /// Microseconds a change, of each burst.
    bursts: Vec<f64>,
    /// The same, of each run.
    runs: Vec<f64>,
    rebuilds: usize,
}

impl<A: Addr> Follower<A> {
    /// Updates the engine. Returns the seconds that its patch took. A patch that requires a build counts, the build
    /// does not: it has its own column.
    fn follow(&mut self, routes: &Routes<A>, changed: &[Prefix<A>]) -> Result<f64, Failure> {
        let started = Instant::now();
        let patched = self.built.engine.follow(routes, changed)?;
        let time = started.elapsed().as_secs_f64();
        if patched == Patched::Rebuild {
            self.rebuilds += 1;
            let entry = fibula_baselines::registry()
                .find::<A>(self.built.name)
                .expect("it was built before");
            self.built.engine = entry.build(routes, self.built.isa)?;
        }
        Ok(time)
    }
}

/// Measures bursts of this many changes. The engines are left as the last change has made them.
pub struct Updates<A: Addr> {
    routes: Routes<A>,
    churn: RouteChurn<A>,
    built: Vec<Built<A>>,
}

impl<A: Addr> Updates<A> {
    /// Of the engines that can be patched, over this table.
    pub fn new(routes: &Routes<A>, built: Vec<Built<A>>, seed: u64) -> Result<Self, Failure> {
        let mut this =
            Self { routes: routes.clone(), churn: RouteChurn::new(seed), built: Vec::new() };
        for mut built in built {
            // An engine that is built anew even if nothing has changed is always built anew.
            match built.engine.follow(routes, &[])? {
                Patched::Applied => this.built.push(built),
                Patched::Rebuild => note(format_args!(
                    "{} is not patched but built anew, in {:.0} ms",
                    built.label,
                    built.time.as_secs_f64() * 1e3
                )),
            }
        }
        Ok(this)
    }

    /// The rows of one size of bursts.
    pub fn measure(
        &mut self,
        table: &str,
        burst: usize,
        runs: u32,
        outcome: &mut Outcome,
    ) -> Result<Vec<Row>, Failure> {
        let prefixes = self.routes.len();
        let burst_of = grouped(burst as u64);
        if self.built.is_empty() {
            note(format_args!("bursts of {burst_of}: no engine here is patched, skipped"));
            return Ok(Vec::new());
        }
        if prefixes < 2 * burst {
            let least = grouped(2 * burst as u64);
            note(format_args!(
                "bursts of {burst_of}: {table} has fewer than {least} prefixes, skipped"
            ));
            return Ok(Vec::new());
        }
        let bursts = CHANGES.div_ceil(burst).max(BURSTS);
        let follower = |built| Follower { built, bursts: vec![], runs: vec![], rebuilds: 0 };
        let mut followers: Vec<_> = self.built.drain(..).map(follower).collect();
        let mut all = Vec::new();
        for _ in 0..runs {
            let mut totals = vec![0.0; followers.len()];
            for _ in 0..bursts {
                let changes = self.churn.burst(&self.routes, burst);
                let changed: Vec<Prefix<A>> = changes.iter().map(|change| change.prefix).collect();
                self.routes.apply(&changes);
                for (follower, total) in followers.iter_mut().zip(&mut totals) {
                    let time = follower.follow(&self.routes, &changed)?;
                    follower.bursts.push(time * 1e6 / burst as f64);
                    *total += time;
                }
                all.extend(changed);
            }
            let changes = (bursts * burst) as f64;
            followers.iter_mut().zip(totals).for_each(|(f, t)| f.runs.push(t * 1e6 / changes));
        }
        let oracle = Oracle::new(&self.routes);
        let mut rows = Vec::new();
        for mut follower in followers {
            let edges = all.iter().flat_map(|prefix| [prefix.first(), prefix.last()]);
            let beside = all.iter().filter_map(|prefix| prefix.last().successor());
            let random = self.churn.addrs(RANDOM);
            let mut keys = edges.chain(beside).chain(random);
            let report = check(&follower.built.engine, &oracle, &mut keys, 5);
            let Built { label, isa, time, engine, .. } = &follower.built;
            if !report.is_ok() {
                *outcome = Outcome::Negative;
                note(format_args!("{label} ({isa}) is wrong once patched, left out: {report}"));
                continue;
            }
            let mean = median(&mut follower.runs);
            follower.bursts.sort_by(f64::total_cmp);
            let at = |percent: usize| follower.bursts[(follower.bursts.len() - 1) * percent / 100];
            rows.push(Row {
                engine: label.clone(),
                isa: isa.name(),
                family: A::FAMILY.name(),
                table: table.to_owned(),
                prefixes,
                burst,
                us_per_change: rounded(mean),
                us_p50: rounded(at(50)),
                us_p99: rounded(at(99)),
                changes_per_s: (1e6 / mean).round(),
                rebuilds: follower.rebuilds,
                bytes: engine.memory().total(),
                build_ms: rounded(time.as_secs_f64() * 1e3),
            });
            self.built.push(follower.built);
        }
        Ok(rows)
    }
}

/// Prints the measurements of one table and size of bursts.
pub fn group(rows: &[Row]) -> Result<(), Failure> {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut out = output::stdout();
    let (prefixes, burst) = (grouped(first.prefixes as u64), grouped(first.burst as u64));
    write!(out, "\n{}, IP{}, {prefixes} prefixes, ", first.table, first.family)?;
    let es = if first.burst == 1 { "" } else { "es" };
    writeln!(out, "{burst} changed prefix{es} a patch")?;
    let mut grid = Grid::new(&[
        "engine",
        "isa",
        ">us/prefix",
        ">median",
        ">99 %",
        ">prefixes/s",
        ">rebuilds",
        ">memory",
        ">build ms",
    ]);
    for row in rows {
        grid.row([
            row.engine.clone(),
            row.isa.to_owned(),
            format!("{:.2}", row.us_per_change),
            format!("{:.2}", row.us_p50),
            format!("{:.2}", row.us_p99),
            grouped(row.changes_per_s as u64),
            row.rebuilds.to_string(),
            output::size(row.bytes as u64),
            format!("{:.0}", row.build_ms),
        ]);
    }
    grid.write_aligned(&mut out)?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::built;
    use fibula_testkit::liar::{BYTES, Liar, Lie};
    use fibula_testkit::tables;

    /// A patched engine that answers as before is left out, and the others are measured.
    #[test]
    fn an_engine_that_is_wrong_once_patched_is_left_out() {
        let routes = tables::dense::<u32>(4, 3000);
        let all =
            [Lie::Stale, Lie::Honest, Lie::Rebuilt].map(|lie| built(Liar::new(&routes, lie, 0)));
        let mut updates = Updates::new(&routes, all.into(), 1).unwrap();
        let (burst, runs) = (1000, 3);
        let mut outcome = Outcome::Done;
        let rows = updates.measure("a table", burst, runs, &mut outcome).unwrap();
        assert_eq!(outcome, Outcome::Negative);
        let engines: Vec<&str> = rows.iter().map(|row| &*row.engine).collect();
        assert_eq!(engines, ["Honest", "Rebuilt"]);
        let [honest, rebuilt] = &rows[..] else { panic!("two rows") };
        assert_eq!((honest.rebuilds, honest.bytes), (0, BYTES));
        // Each patch requires a build, and so do those of the new engine.
        assert_eq!(rebuilt.rebuilds, runs as usize * BURSTS);
        assert_ne!(rebuilt.bytes, BYTES, "it is another engine by now");
        for row in &rows {
            assert_eq!((row.prefixes, row.burst, row.build_ms), (routes.len(), burst, 3.0));
            assert!(row.us_p50 <= row.us_p99);
        }
        // The one that was wrong is gone for the next size of bursts, too.
        let mut outcome = Outcome::Done;
        let rows = updates.measure("a table", 10, 1, &mut outcome).unwrap();
        assert_eq!((rows.len(), outcome), (2, Outcome::Done));
        // A table that is too small for the bursts is not measured at all.
        assert!(updates.measure("a table", 2000, 1, &mut outcome).unwrap().is_empty());
    }
}
