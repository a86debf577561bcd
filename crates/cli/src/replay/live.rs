//! The live side of a replay: what is heard goes into the RIB at first, then into the live table, at
//! the speed that was asked for.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fibula_core::{AnyPrefix, PerFamily, Routes, Update};
use fibula_engines::{EngineFamily, Entry};
use fibula_rib::{Live, Maker, Peer, Rib, SnapshotError};
use fibula_simd::Isa;

use super::feed::Hearer;
use super::reader::AllHints;
use crate::engines::AUTO;
use crate::failure::Failure;

/// How fast updates are played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// As fast as they are taken.
    Max,
    /// So many times as fast as they once came.
    Times(f64),
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "max" => Ok(Self::Max),
            _ => match text.parse() {
                Ok(times) if times > 0.0 && f64::is_finite(times) => Ok(Self::Times(times)),
                _ => Err("a speed is max, or how many times real time: 1, 10".to_owned()),
            },
        }
    }
}

/// Holds updates back until it is their time.
pub struct Clock {
    speed: Speed,
    /// Updates a second, at most.
    rate: Option<u64>,
    started: Instant,
    /// The time of the first update that has one, in microseconds.
    first: Option<u64>,
    count: u64,
}

/// Shorter waits are not worth a call of the system.
const NAP: Duration = Duration::from_millis(1);

impl Clock {
    pub fn new(speed: Speed, rate: Option<u64>) -> Self {
        Self { speed, rate, started: Instant::now(), first: None, count: 0 }
    }

    fn wait(&mut self, time: u64) {
        self.count += 1;
        let mut due = Duration::ZERO;
        if let Some(rate) = self.rate {
            due = Duration::from_secs_f64(self.count as f64 / rate as f64);
        }
        if let Speed::Times(times) = self.speed
            && time > 0
        {
            let since = time.saturating_sub(*self.first.get_or_insert(time));
            due = due.max(Duration::from_secs_f64(since as f64 / 1e6 / times));
        }
        if due > Duration::ZERO {
            let early = due.saturating_sub(self.started.elapsed());
            if early > NAP {
                thread::sleep(early);
            }
        }
    }
}

/// Puts what it hears into a RIB.
pub struct Loader<'a>(pub &'a mut Rib);

fn check_peer(number: u32, known: u32) {
    assert_eq!(number, known, "the RIB numbers peers as they appear, too");
}

/// All prefixes of the global VRF, sorted.
fn prefixes(rib: &Rib) -> Vec<AnyPrefix> {
    let v4 = rib.iter::<u32>(0).map(|(prefix, _)| AnyPrefix::V4(prefix));
    v4.chain(rib.iter::<u128>(0).map(|(prefix, _)| AnyPrefix::V6(prefix))).collect()
}

impl Hearer for Loader<'_> {
    fn peer(&mut self, number: u32, peer: &Peer) {
        check_peer(number, self.0.peer(peer.clone()));
    }
    fn update(&mut self, update: &Update<'_>) -> Result<(), Failure> {
        self.0.apply(update, &mut ())?;
        Ok(())
    }
    fn down(&mut self, peer: u32) -> Result<(), Failure> {
        self.0.peer_down(peer, &mut ());
        Ok(())
    }
    fn prefixes(&self) -> Vec<AnyPrefix> {
        prefixes(self.0)
    }
}

/// Puts what it hears into a live table.
pub struct Feeder<'a> {
    pub live: &'a Live,
    pub clock: Clock,
    /// What a checkpoint has taken in already.
    pub skip: u64,
    /// Updates that were applied.
    pub updates: u64,
    pub hints: &'a PerFamily<AllHints>,
    pub checkpoints: Option<Checkpoints>,
}

impl Feeder<'_> {
    fn is_known(&mut self) -> bool {
        let known = self.skip > 0;
        self.skip = self.skip.saturating_sub(1);
        known
    }
}

impl Hearer for Feeder<'_> {
    fn peer(&mut self, number: u32, peer: &Peer) {
        check_peer(number, self.live.peer(peer.clone()));
    }
    fn update(&mut self, update: &Update<'_>) -> Result<(), Failure> {
        if self.is_known() {
            return Ok(());
        }
        self.clock.wait(update.time);
        self.live.apply(update)?;
        self.updates += 1;
        match update.prefix {
            AnyPrefix::V4(prefix) => self.hints.v4.add(prefix, self.updates),
            AnyPrefix::V6(prefix) => self.hints.v6.add(prefix, self.updates),
        }
        match &mut self.checkpoints {
            Some(checkpoints) => checkpoints.tick(self.live),
            None => Ok(()),
        }
    }
    fn down(&mut self, peer: u32) -> Result<(), Failure> {
        if !self.is_known() {
            self.live.peer_down(peer);
        }
        Ok(())
    }
    fn prefixes(&self) -> Vec<AnyPrefix> {
        self.live.with_rib(prefixes)
    }
}

/// Writes checkpoints while the feed goes on.
pub struct Checkpoints {
    path: PathBuf,
    every: Duration,
    /// The feed's position where the tables end.
    position: String,
    last: Instant,
    writer: Option<JoinHandle<Result<(), SnapshotError>>>,
    /// How many were begun.
    pub count: u64,
}

impl Checkpoints {
    pub fn new(path: &Path, every: Duration, position: String) -> Self {
        let path = path.to_owned();
        Self { path, every, position, last: Instant::now(), writer: None, count: 0 }
    }

    fn tick(&mut self, live: &Live) -> Result<(), Failure> {
        if self.last.elapsed() < self.every {
            return Ok(());
        }
        self.last = Instant::now();
        // One at a time: on a slow disk, some are left out.
        if self.writer.as_ref().is_some_and(|writer| !writer.is_finished()) {
            return Ok(());
        }
        self.wait()?;
        let (checkpoint, path) = (live.checkpoint(&self.position), self.path.clone());
        self.writer = Some(thread::spawn(move || checkpoint.write(&path)));
        self.count += 1;
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Failure> {
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => Err(error.into()),
            Some(Err(_)) => Err(Failure::new("the thread that writes checkpoints panicked")),
            _ => Ok(()),
        }
    }

    /// Writes the last one.
    pub fn finish(mut self, live: &Live) -> Result<u64, Failure> {
        self.wait()?;
        live.checkpoint(&self.position).write(&self.path)?;
        Ok(self.count + 1)
    }
}

/// The engines for a compiler: the one that was asked for, or what suits the table, and behind it those
/// that take any table.
pub fn makers<A: EngineFamily>(names: &[String], rib: &Rib) -> Result<Vec<Maker<A>>, Failure> {
    let mut entries: Vec<&'static Entry<A>> = Vec::new();
    for name in names {
        if name == AUTO {
            entries.push(fibula_engines::auto(&rib.routes::<A>(0), Isa::detect()).entry);
        } else {
            // Names that the other family alone has are none of this one's.
            crate::engines::choose::<A>(std::slice::from_ref(name))?;
            entries.extend(fibula_engines::find::<A>(name));
        }
    }
    if entries.is_empty() {
        entries.push(fibula_engines::auto(&Routes::default(), Isa::detect()).entry);
    }
    entries.extend(["dxr18", "planb", "radix"].iter().filter_map(|n| fibula_engines::find::<A>(n)));
    let mut seen = Vec::new();
    entries.retain(|entry| {
        let new = !seen.contains(&entry.name);
        seen.push(entry.name);
        new
    });
    let maker = |entry: &'static Entry<A>| {
        Maker::new(entry.name, |routes: &Routes<A>| (entry.build)(routes, Isa::detect()))
    };
    Ok(entries.into_iter().map(maker).collect())
}
