//! What lookups cost by a model of a processor, which is the same on every machine that runs the same code.
//!
//! The program starts itself in valgrind's callgrind. That writes its counts at each call of a function of the C
//! library, which the program makes between any two sets of addresses and nowhere else.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use fibula_core::{Addr, Routes};
use fibula_papers::lookups::Named;
use fibula_papers::out::{Cell, Failure, note};
use fibula_simd::Isa;
use fibula_testkit::measure::{fold, rounded};

use crate::pools::{Mode, Pool};

/// The function at whose calls callgrind writes what it counted since the last one.
const MARK: &str = "--dump-before=*getppid";
/// The caches of the model: 48 KiB and 2 MiB, with lines of 64 bytes.
const MODEL: [&str; 5] = [
    "--cache-sim=yes",
    "--branch-sim=yes",
    "--I1=32768,8,64",
    "--D1=49152,12,64",
    "--LL=2097152,16,64",
];
/// The column of the table that has the costs of a set.
const COSTS: [&str; 4] = ["instructions", "lines", "far_lines", "mispredicted"];
/// Events of callgrind that make each of them.
const EVENTS: [&[&str]; 4] = [&["Ir"], &["D1mr", "D1mw"], &["DLmr", "DLmw"], &["Bcm", "Bim"]];

/// A set of addresses that an engine looked up in a mode.
struct Counted {
    engine: String,
    mode: String,
    set: String,
    /// Those of `COSTS`, of a lookup.
    costs: [f64; COSTS.len()],
}

/// Looks all sets up, and says which of them each mark ends: what callgrind counts.
///
/// # Errors
/// If an engine is wrong.
pub fn look_up<A: Addr>(engines: &[Named<'_, A>], pools: &[Pool<A>]) -> Result<(), Failure> {
    let mark = |ended: &str| {
        #[cfg(unix)]
        let _ = std::os::unix::process::parent_id();
        println!("{ended}");
    };
    for (name, engine) in engines {
        for mode in Mode::ALL {
            mark("");
            for pool in pools {
                let sum = mode.look_up(&**engine, &pool.keys);
                mark(&format!("{name},{},{},{}", mode.name(), pool.name, pool.keys.len()));
                if sum != fold(&pool.hops) {
                    return Err(format!("{name} is wrong for the set {}", pool.name).into());
                }
            }
        }
    }
    Ok(())
}

/// The rows of all engines: for each mode and cost the set that costs the most.
///
/// # Errors
/// If valgrind cannot be started or fails, or the program in it.
pub fn of<A: Addr>(
    table: &str,
    routes: &Routes<A>,
    args: &[&str],
) -> Result<Vec<Vec<Cell>>, Failure> {
    let folder = std::env::temp_dir().join(format!("fibula-worst-{}", std::process::id()));
    fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let counted = run(&folder, args);
    // Thousands of files.
    fs::remove_dir_all(&folder)?;
    let (isa, counted) = counted?;
    let mut rows = Vec::new();
    for of in counted.chunk_by(|a, b| (&a.engine, &a.mode) == (&b.engine, &b.mode)) {
        for (at, cost) in COSTS.iter().enumerate() {
            let most = of.iter().max_by(|a, b| a.costs[at].total_cmp(&b.costs[at]));
            let Some(most) = most else { continue };
            let number = |number: f64| rounded(number).to_string();
            let set = |name: &str| {
                let of = of.iter().find(|of| of.set == name);
                of.map_or(String::new(), |of| number(of.costs[at]))
            };
            rows.push(vec![
                ("table", table.to_owned()),
                ("family", A::FAMILY.name().to_owned()),
                ("prefixes", routes.len().to_string()),
                ("isa", isa.clone()),
                ("engine", most.engine.clone()),
                ("mode", most.mode.clone()),
                ("cost", (*cost).to_owned()),
                ("most", number(most.costs[at])),
                ("worst", most.set.clone()),
                ("rnd", set("RND")),
                ("pfx", set("PFX")),
                ("deepest", set("WORST")),
            ]);
        }
    }
    Ok(rows)
}

/// The instruction set that the model has, and the costs of all sets in order.
fn run(folder: &Path, args: &[&str]) -> Result<(String, Vec<Counted>), Failure> {
    let out = folder.join("counts");
    let log = folder.join("log");
    let file = |option: &str, path: &Path| {
        let mut option = OsStr::new(option).to_owned();
        option.push(path);
        option
    };
    let done = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", "--dump-line=no", MARK])
        .args(MODEL)
        .arg(file("--callgrind-out-file=", &out))
        // Its remarks about the caches of this machine, which the model does not have.
        .arg(file("--log-file=", &log))
        .arg(std::env::current_exe()?)
        .args(args)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| {
            format!("valgrind, which counts, cannot be started: {error}; install it")
        })?;
    let said = String::from_utf8(done.stdout)?;
    if !done.status.success() {
        let log = fs::read_to_string(&log).unwrap_or_default();
        return Err(format!("the program in valgrind ended with {}\n{log}", done.status).into());
    }
    let mut lines = said.lines();
    let isa = lines.next().ok_or("the program in valgrind said nothing")?.to_owned();
    let mut counted = Vec::new();
    for (number, line) in (1..).zip(lines) {
        if line.is_empty() {
            continue;
        }
        let path = out.with_extension(number.to_string());
        let text = fs::read_to_string(&path).map_err(|error| {
            format!("callgrind wrote no counts ({}: {error}); is it 3.19 or newer?", path.display())
        })?;
        let cells: Vec<&str> = line.split(',').collect();
        let &[engine, mode, set, lookups] = &*cells else {
            return Err(format!("the program in valgrind said {line:?}").into());
        };
        let costs = costs(&text).ok_or("callgrind's file has no totals")?;
        let lookups: f64 = lookups.parse()?;
        counted.push(Counted {
            engine: engine.to_owned(),
            mode: mode.to_owned(),
            set: set.to_owned(),
            costs: costs.map(|cost| cost / lookups.max(1.0)),
        });
    }
    if counted.is_empty() {
        note("no engine takes the table");
    }
    Ok((isa, counted))
}

/// The instruction set of this processor, or of the model in which the program runs: the first line of the output.
pub fn say_isa() {
    println!("{}", Isa::detect().name());
}

/// The sums of the events of each cost in a file of callgrind.
fn costs(text: &str) -> Option<[f64; COSTS.len()]> {
    let after = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let names: Vec<&str> = after("events:")?.split_whitespace().collect();
    // Zeros at the end are not written.
    let totals: Vec<f64> =
        after("totals:")?.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let total = |event: &&str| {
        let at = names.iter().position(|name| name == event)?;
        Some(totals.get(at).copied().unwrap_or(0.0))
    };
    let mut costs = [0.0; COSTS.len()];
    for (cost, events) in costs.iter_mut().zip(EVENTS) {
        *cost = events.iter().map(total).sum::<Option<f64>>()?;
    }
    Some(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read() {
        let text = "version: 1\nevents: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim\n\
                    fn=(1)\n0 5\n\ntotals: 100 20 10 9 8 7 6 5 4 30 3 2 1\n";
        assert_eq!(costs(text), Some([100.0, 15.0, 9.0, 4.0]));
        let fewer = text.replace("totals: 100 20 10 9 8 7 6 5 4 30 3 2 1", "totals: 100 20 10 9 8");
        assert_eq!(costs(&fewer), Some([100.0, 8.0, 0.0, 0.0]));
        for broken in ["", "events: Ir\n", "events: Ir\ntotals: 1\n", "totals: 1 2 3\n"] {
            assert_eq!(costs(broken), None, "{broken}");
        }
        assert_eq!(costs(&text.replace("totals: 100", "totals: x")), None);
    }
}
