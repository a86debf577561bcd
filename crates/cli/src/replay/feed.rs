//! The played sources of the command line, from `fibula-feeds`. Two listeners get the same updates: the live table and,
//! afterwards, the plain one that checks it.

use std::path::{Path, PathBuf};

use fibula_core::{AnyPrefix, PerFamily, Vrf};
use fibula_feeds::{Instances, LiveFeed};
use fibula_rib::{FeedEvent, Listener, Live, Peer, TableError};

use super::reader::AllHints;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::source::{ReadArgs, Source};
use crate::table;

/// A table that updates are played into.
pub trait Played: Listener {
    /// The prefixes with routes, sorted, for generated updates.
    fn prefixes(&self) -> Vec<AnyPrefix>;
}

/// Where updates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Updates {
    /// A file of updates.
    File(PathBuf),
    /// `churn:200000:1`: so many generated ones, by this seed, about the routes that there are.
    Churn(u64, u64),
}

impl Updates {
    /// The updates of this name.
    pub fn parse(name: &str) -> Result<Self, Failure> {
        let Some(spec) = name.strip_prefix("churn:") else {
            if name == "-" {
                return Err(Failure::new(
                    "updates cannot come from standard input: they are read twice",
                )
                .hint("write them to a file; the second reading checks the first"));
            }
            // Found out now, not after the table was read.
            let meta = std::fs::metadata(name).map_err(|error| {
                Failure::io(name, &error)
                    .hint("updates are MRT, BMP or FPM files, or churn:COUNT:SEED")
            })?;
            if !meta.is_file() {
                return Err(Failure::new(format_args!("{name}: not a regular file"))
                    .hint("updates are read twice: the second reading checks the first"));
            }
            return Ok(Self::File(name.into()));
        };
        let numbers = spec.split_once(':').unwrap_or((spec, "1"));
        match (numbers.0.parse(), numbers.1.parse()) {
            (Ok(count), Ok(seed)) => Ok(Self::Churn(count, seed)),
            _ => Err(Failure::new(format_args!("{name}: not churn:COUNT:SEED"))
                .hint("for example churn:200000:1")),
        }
    }
}

/// Plays tables and updates to a listener.
pub struct Player<'a> {
    read: &'a ReadArgs,
    /// The parts of the files to follow.
    pub instances: Instances,
    /// Whether to report damage: only in the first pass.
    pub aloud: bool,
    /// Records that were damaged and skipped.
    pub damaged: u64,
}

impl<'a> Player<'a> {
    pub fn new(read: &'a ReadArgs, vrf: Option<&str>, aloud: bool) -> Self {
        Self { read, instances: Instances::new(vrf), aloud, damaged: 0 }
    }

    pub fn table(&mut self, source: &Source, to: &mut dyn Listener) -> Result<(), Failure> {
        if let Source::Feed(path) = source {
            return self.file(path, false, to);
        }
        let loaded = table::load(&[(String::new(), source.clone())], self.read)?;
        Ok(fibula_feeds::table(&loaded.table, to)?)
    }

    pub fn updates(&mut self, updates: &Updates, to: &mut dyn Played) -> Result<(), Failure> {
        match updates {
            Updates::File(path) => self.file(path, true, to),
            Updates::Churn(count, seed) => {
                Ok(fibula_feeds::churn(*count, *seed, &to.prefixes(), to)?)
            }
        }
    }

    fn file(
        &mut self,
        path: &Path,
        only_updates: bool,
        to: &mut dyn Listener,
    ) -> Result<(), Failure> {
        let spec = self.read.spec(path);
        let report = {
            let bar = Bar::new(&spec.name());
            let mut show = |progress| bar.show(progress);
            let mut options = self.read.decoder()?;
            options.only_updates = only_updates;
            options.progress = Some(&mut show);
            fibula_feeds::file(&spec, &mut options, &mut self.instances.follow(to))?
        };
        self.damaged += report.read.damaged;
        if self.aloud {
            table::report_read(&spec.name(), &report.read, &report.damage);
        }
        Ok(())
    }
}

/// A live table, whose reader is notified where something changes.
pub struct Hinted<'a> {
    pub live: &'a Live,
    pub feed: LiveFeed<'a>,
    pub hints: &'a PerFamily<AllHints>,
}

impl Listener for Hinted<'_> {
    fn peer(&mut self, peer: &Peer) -> u32 {
        self.feed.peer(peer)
    }
    fn value_places(&mut self, columns: &[&str]) -> Vec<usize> {
        self.feed.value_places(columns)
    }
    fn vrf(&mut self, name: &str) -> Vrf {
        self.feed.vrf(name)
    }
    fn event(&mut self, event: FeedEvent<'_>) -> Result<(), TableError> {
        let before = self.feed.applied();
        self.feed.event(event)?;
        let applied = self.feed.applied();
        if let FeedEvent::Update(update) = event
            && applied > before
        {
            match update.prefix {
                AnyPrefix::V4(prefix) => self.hints.v4.add(prefix, applied),
                AnyPrefix::V6(prefix) => self.hints.v6.add(prefix, applied),
            }
        }
        Ok(())
    }
}

impl Played for Hinted<'_> {
    fn prefixes(&self) -> Vec<AnyPrefix> {
        self.live.with_rib(|rib| fibula_feeds::prefixes(rib, 0))
    }
}
