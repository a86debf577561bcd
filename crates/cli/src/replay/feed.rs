//! What happens to a table, in order: from files, generated tables and generated churn, to whoever
//! listens. Two listeners hear the same: the live table, and afterwards the plain one that checks it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fibula_core::{Addr, AnyPrefix, Attributes, Change, Prefix, Update, Value};
use fibula_ingest::{Consumer, Damage, PeerInfo, SourceInfo};
use fibula_rib::Peer;
use fibula_testkit::Rng;

use crate::failure::Failure;
use crate::progress::Bar;
use crate::source::{ReadArgs, Source};
use crate::table;

/// Who hears what happens.
pub trait Hearer {
    /// A peer with this number will speak; peers are numbered from 0 as they appear.
    fn peer(&mut self, number: u32, peer: &Peer);
    /// A peer, by its number, says something.
    fn update(&mut self, update: &Update<'_>) -> Result<(), Failure>;
    /// The session with a peer ended.
    fn down(&mut self, peer: u32) -> Result<(), Failure>;
    /// The prefixes with routes, sorted.
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
                Failure::io(name, &error).hint("updates are MRT files, or churn:COUNT:SEED")
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

/// Plays tables and updates to a hearer.
pub struct Player<'a> {
    read: &'a ReadArgs,
    numbers: HashMap<Peer, u32>,
    /// Says what is damaged, at the first hearing.
    pub aloud: bool,
    /// Records that were damaged and skipped.
    pub damaged: u64,
}

impl<'a> Player<'a> {
    pub fn new(read: &'a ReadArgs, aloud: bool) -> Self {
        Self { read, numbers: HashMap::new(), aloud, damaged: 0 }
    }

    /// These peers have their numbers already, the hearer knows them.
    pub fn know(&mut self, peers: &[Peer]) {
        self.numbers = peers.iter().cloned().zip(0..).collect();
    }

    fn number(&mut self, peer: Peer, hearer: &mut dyn Hearer) -> u32 {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(peer.clone()).or_insert(next);
        if number == next {
            hearer.peer(number, &peer);
        }
        number
    }

    /// The peer that stands for sources without peers.
    fn nobody(&mut self, hearer: &mut dyn Hearer) -> u32 {
        self.number(Peer { address: None, asn: 0 }, hearer)
    }

    pub fn table(&mut self, source: &Source, hearer: &mut dyn Hearer) -> Result<(), Failure> {
        if let Source::Feed(path) = source {
            return self.file(path, hearer);
        }
        let loaded = table::load(&[(String::new(), source.clone())], self.read)?;
        let (table, peer) = (&loaded.table, self.nobody(hearer));
        let v4 = table.v4.iter().map(|route| (route.prefix.into(), route.hop));
        let v6 = table.v6.iter().map(|route| (route.prefix.into(), route.hop));
        for (prefix, hop) in v4.chain(v6) {
            let values: Vec<Value<'_>> = table::row(&table.columns, hop).collect();
            let change = Change::Announce(Attributes::Values(&values));
            hearer.update(&Update { peer, ..Update::new(prefix, change) })?;
        }
        Ok(())
    }

    pub fn updates(&mut self, updates: &Updates, hearer: &mut dyn Hearer) -> Result<(), Failure> {
        match updates {
            Updates::File(path) => self.file(path, hearer),
            Updates::Churn(count, seed) => {
                let peer = self.nobody(hearer);
                churn(*count, *seed, peer, hearer)
            }
        }
    }

    fn file(&mut self, path: &Path, hearer: &mut dyn Hearer) -> Result<(), Failure> {
        let spec = self.read.spec(path);
        let mut listener = Listener {
            player: self,
            hearer,
            indices: HashMap::new(),
            failed: None,
            damage: Vec::new(),
        };
        let report = {
            let bar = Bar::new(&spec.name());
            let mut show = |progress| bar.show(progress);
            let mut options = listener.player.read.decoder()?;
            options.progress = Some(&mut show);
            fibula_ingest::read(&spec, &mut options, &mut listener)?
        };
        let Listener { failed, damage, .. } = listener;
        if let Some(failed) = failed {
            return Err(failed);
        }
        self.damaged += report.damaged;
        if self.aloud {
            table::say_report(&spec.name(), &report, &damage);
        }
        Ok(())
    }
}

/// Between a decoder and a hearer.
struct Listener<'a, 'b, 'c> {
    player: &'a mut Player<'b>,
    hearer: &'c mut dyn Hearer,
    /// The file's indices of peers as their numbers.
    indices: HashMap<u32, u32>,
    /// The first failure; what comes behind it is not heard.
    failed: Option<Failure>,
    damage: Vec<Damage>,
}

impl Listener<'_, '_, '_> {
    fn number(&mut self, index: u32) -> u32 {
        match self.indices.get(&index) {
            Some(&number) => number,
            None => self.player.nobody(self.hearer),
        }
    }
}

impl Consumer for Listener<'_, '_, '_> {
    fn begin(&mut self, _: &SourceInfo) {}

    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        // Without an address, the AS alone does not make two peers the same; the index has to.
        let asn = if peer.address.is_none() && peer.asn == 0 { index } else { peer.asn };
        let number = self.player.number(Peer { address: peer.address, asn }, self.hearer);
        self.indices.insert(index, number);
    }

    fn peer_down(&mut self, index: u32, _time: u64) {
        let peer = self.number(index);
        if self.failed.is_none() {
            self.failed = self.hearer.down(peer).err();
        }
    }

    fn update(&mut self, update: &Update<'_>) {
        let peer = self.number(update.peer);
        if self.failed.is_none() {
            self.failed = self.hearer.update(&Update { peer, ..*update }).err();
        }
    }

    fn damage(&mut self, damage: &Damage) {
        if self.damage.len() < table::SHOWN {
            self.damage.push(damage.clone());
        }
    }
}

/// Values that churn gives to routes.
const VALUES: u64 = 256;

/// Generated updates: 85 of a hundred give a route another value, 5 announce one inside another, 10
/// withdraw. It depends on the table and the seed alone. What comes is no longer than what feeds
/// carry: a table of long routes would be another table.
fn churn(count: u64, seed: u64, peer: u32, hearer: &mut dyn Hearer) -> Result<(), Failure> {
    let prefixes = hearer.prefixes();
    if prefixes.is_empty() {
        return Err(
            Failure::new("churn needs a table that is not empty").hint("name one with --table")
        );
    }
    let mut rng = Rng::new(seed);
    for _ in 0..count {
        let prefix = prefixes[rng.below(prefixes.len() as u64) as usize];
        let kind = rng.below(100);
        let values = [Value::Int(rng.below(VALUES))];
        let prefix = if kind >= 95 { inside(prefix, &mut rng) } else { prefix };
        let change = match kind {
            0..10 => Change::Withdraw,
            _ => Change::Announce(Attributes::Values(&values)),
        };
        hearer.update(&Update { peer, ..Update::new(prefix, change) })?;
    }
    Ok(())
}

/// A prefix one or two bits longer, if that is no longer than /24 or /48.
fn inside(prefix: AnyPrefix, rng: &mut Rng) -> AnyPrefix {
    fn longer<A: Addr>(prefix: Prefix<A>, rng: &mut Rng) -> Prefix<A> {
        let longest = if A::BITS == 32 { 24 } else { 48 };
        let len = (prefix.len() + 1 + rng.below(2) as u8).min(longest).max(prefix.len());
        Prefix::masked(rng.addr_in(prefix), len).unwrap_or(prefix)
    }
    match prefix {
        AnyPrefix::V4(prefix) => AnyPrefix::V4(longer(prefix, rng)),
        AnyPrefix::V6(prefix) => AnyPrefix::V6(longer(prefix, rng)),
    }
}
