//! What a history costs: bytes and time of a change, and the time of a question.
//!
//! ```text
//! cargo run --release -p fibula-history --example history_costs -- rib.gz,updates.gz FOLDER CHANGES PER_SECOND
//! ```
//!
//! The files have MRT dumps and updates. The table at their end is what the history begins with. CHANGES are then drawn
//! from them: half are of 20,000 prefixes, the others of all; each prefix has four attribute sets of the files in turn,
//! or none. They are written at PER_SECOND of a clock that is not waited for.

use std::error::Error;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fibula_core::{Addr, AnyPrefix, Vrf};
use fibula_history::{
    HistoryBreak, HistoryFolder, HistoryOptions, HistoryQuestion, RouteKey, RouteRecord,
};
use fibula_ingest::{ReadOptions, SourceSpec};
use fibula_rib::{Change, Changes, FeedEvent, Listener, Peer, Rib, TableError};

/// Collects the changes of a table.
#[derive(Default)]
struct Collected {
    rib: Rib,
    all: Vec<(AnyPrefix, u32, Option<fibula_rib::AttributeSet>)>,
}

struct Sink<'a>(&'a mut Vec<(AnyPrefix, u32, Option<fibula_rib::AttributeSet>)>);

impl Changes for Sink<'_> {
    fn changed<A: Addr>(&mut self, _: Vrf, change: Change<A>) {
        self.0.push((A::any(change.prefix), change.peer, change.best.map(|(_, set)| set)));
    }
}

impl Listener for Collected {
    fn peer(&mut self, peer: &Peer) -> u32 {
        self.rib.peer(peer.clone())
    }
    fn value_places(&mut self, columns: &[&str]) -> Vec<usize> {
        self.rib.value_places(columns)
    }
    fn vrf(&mut self, name: &str) -> Vrf {
        self.rib.vrf(name)
    }
    fn event(&mut self, event: FeedEvent<'_>) -> Result<(), TableError> {
        self.rib.apply_event(event, &mut Sink(&mut self.all))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, folder, count, rate] = &args[..] else { return Err("see the file's head".into()) };
    let (count, rate): (u64, u64) = (count.parse()?, rate.parse()?);
    let mut collected = Collected::default();
    for file in file.split(',') {
        fibula_feeds::file(&SourceSpec::new(file), &mut ReadOptions::default(), &mut collected)?;
    }
    let Collected { rib, all } = collected;
    let peers: Vec<_> =
        (0..rib.peers().len() as u32).map(|n| rib.peers().get(n).cloned().map(Arc::new)).collect();
    let peer = |number: u32| peers[number as usize].clone();
    let table: Arc<str> = "bgp".into();
    let key = |prefix| RouteKey { table: Arc::clone(&table), prefix };
    // The first route of each prefix is none of the changes that are repeated.
    let mut seen = std::collections::HashSet::new();
    let changes: Vec<_> = all.iter().filter(|(prefix, ..)| !seen.insert(*prefix)).collect();
    println!("{} prefixes, {} changes of them, {} peers", seen.len(), changes.len(), peers.len());
    let mut sets: Vec<_> =
        changes.iter().filter_map(|(_, of, set)| Some((*of, set.clone()?))).collect();
    sets.sort_by(|a, b| a.1.as_bytes().cmp(b.1.as_bytes()));
    sets.dedup();
    let prefixes: Vec<AnyPrefix> = seen.into_iter().collect();
    let busy = prefixes.len().min(20_000);
    println!("changes are drawn from {} attribute sets", sets.len());
    let mut dice = Dice(7);
    let mut draw = || {
        let place = match dice.below(2) {
            0 => dice.below(busy as u64),
            _ => dice.below(prefixes.len() as u64),
        };
        let turn = dice.below(5);
        let (of, set) = &sets[(place * 7 + turn) as usize % sets.len()];
        (prefixes[place as usize], *of, (turn > 0).then(|| set.clone()))
    };

    let mut history = HistoryFolder::open(Path::new(folder), HistoryOptions::default())?;
    let mut now = 1_790_000_000_000_000u64;
    let (begun, cpu) = (Instant::now(), cpu_time());
    let mut routes: Vec<_> =
        all.iter().map(|(prefix, of, set)| (key(*prefix), *of, set.clone())).collect();
    routes.reverse();
    routes.sort_by(|a, b| a.0.cmp(&b.0));
    routes.dedup_by(|a, b| a.0 == b.0);
    routes.retain(|(.., set)| set.is_some());
    for part in routes.chunks(1024) {
        let found = |(key, of, set): &(RouteKey, u32, Option<fibula_rib::AttributeSet>)| {
            (key.clone(), RouteRecord::found(now, peer(*of), set.clone()))
        };
        history.write(&part.iter().map(found).collect::<Vec<_>>())?;
        history.tend(now)?;
    }
    history.begin(now, HistoryBreak::Begin)?;
    println!(
        "{} routes: {} bytes, {:.1?}, CPU {:.1?}",
        routes.len(),
        history.bytes(),
        begun.elapsed(),
        cpu_time() - cpu
    );

    let (begun, cpu, first) = (Instant::now(), cpu_time(), now);
    let batch = (rate / 5).max(1);
    let (mut written, mut longest) = (0, Duration::ZERO);
    while written < count {
        let part: Vec<_> = (written..written + batch)
            .map(|at| {
                let (prefix, of, set) = draw();
                (
                    key(prefix),
                    RouteRecord::new(now + (at - written) * 1_000_000 / rate, peer(of), set),
                )
            })
            .collect();
        let one = Instant::now();
        history.write(&part)?;
        now += batch * 1_000_000 / rate;
        history.cover(now);
        // The clock of the changes runs faster than that of the disk, which would be asked to sync each second.
        if written / 20_000 != (written + batch) / 20_000 {
            history.tend(now)?;
        }
        longest = longest.max(one.elapsed());
        written += batch;
        for note in history.notes() {
            println!("{note}");
        }
    }
    for _ in 0..50 {
        history.tend(now)?;
        std::thread::sleep(Duration::from_millis(100));
    }
    let (wall, cpu) = (begun.elapsed(), cpu_time() - cpu);
    let bytes = history.bytes();
    println!(
        "{written} changes of {:.1} days: {bytes} bytes in {} files, {:.1} bytes a change; wall {wall:.1?}, CPU {:.2} us a \
         change, the longest write {longest:.1?}",
        (now - first) as f64 / 86_400e6,
        history.files(),
        bytes as f64 / written as f64,
        cpu.as_secs_f64() * 1e6 / written as f64,
    );

    let reader = history.reader();
    let mut dice = Dice(8);
    for (name, is_address, is_changing) in
        [("prefix", false, false), ("changing prefix", false, true), ("address", true, false)]
    {
        let mut times = Vec::new();
        for _ in 0..200 {
            let prefix = match is_changing {
                true => prefixes[dice.below(busy as u64) as usize],
                false => routes[dice.below(routes.len() as u64) as usize].0.prefix,
            };
            let question = match (is_address, prefix) {
                (false, prefix) => HistoryQuestion::Prefix(prefix),
                (true, AnyPrefix::V4(prefix)) => {
                    HistoryQuestion::Address(IpAddr::V4(prefix.first().into()))
                }
                (true, AnyPrefix::V6(prefix)) => {
                    HistoryQuestion::Address(IpAddr::V6(prefix.first().into()))
                }
            };
            let at = first + dice.below((now - first) / 1000) * 1000;
            let one = Instant::now();
            let answer = reader.at(question, at, None)?;
            times.push(one.elapsed());
            assert_eq!(answer.tables.len(), 1);
        }
        times.sort();
        println!(
            "{name}: median {:.1?}, 99 % {:.1?}, most {:.1?}",
            times[100], times[198], times[199]
        );
    }
    let begun = Instant::now();
    history.close()?;
    let mut history = HistoryFolder::open(Path::new(folder), HistoryOptions::default())?;
    let opened = begun.elapsed();
    let mut resync = history.resync()?;
    let gone = resync.compare(None, Vec::new(), now, |_| false)?.len();
    println!(
        "opened in {opened:.1?}; the last state of {gone} routes read in {:.1?}",
        begun.elapsed() - opened
    );
    Ok(())
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// The CPU time of this process.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // utime and stime, in hundredths of a second.
    let hundredths =
        |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis(10 * (hundredths(11) + hundredths(12)))
}
