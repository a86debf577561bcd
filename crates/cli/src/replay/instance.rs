//! One routing instance of a feed: the table that a replay follows.

use std::collections::BTreeMap;

use fibula_core::{Update, Vrf, grouped};
use fibula_feeds::{FeedError, Listener};
use fibula_rib::Peer;

/// How many updates there were, by the name of their routing instance.
pub type Counts = BTreeMap<String, u64>;

/// The routing instances of all files, by number: first the source's own table, which has no name.
#[derive(Debug)]
pub struct Instances {
    names: Vec<String>,
    counts: Vec<u64>,
    followed: Vrf,
}

impl Instances {
    /// Follows this one, or the source's own table.
    pub fn new(wanted: Option<&str>) -> Self {
        let mut all = Self { names: vec![String::new()], counts: vec![0], followed: 0 };
        all.followed = all.number(wanted.unwrap_or_default());
        all
    }

    fn number(&mut self, name: &str) -> Vrf {
        let known = self.names.iter().position(|known| known == name);
        let at = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.counts.push(0);
            self.names.len() - 1
        });
        at as Vrf
    }

    /// Updates of the instance that is followed.
    pub fn followed(&self) -> u64 {
        self.counts[self.followed as usize]
    }

    /// Those of all others.
    pub fn left_out(&self) -> Counts {
        let others = (0..).zip(&self.names).zip(&self.counts);
        let others = others.filter(|((at, _), count)| *at != self.followed && **count > 0);
        others.map(|((_, name), count)| (name.clone(), *count)).collect()
    }
}

/// What was left out, in a sentence.
pub fn sentence(left_out: &Counts) -> String {
    let name =
        |name: &str| if name.is_empty() { "the main one".to_owned() } else { name.to_owned() };
    let each = |(of, count): (&String, &u64)| format!("{} {}", name(of), grouped(*count));
    left_out.iter().map(each).collect::<Vec<_>>().join(", ")
}

/// Passes the followed instance's updates on, and counts the others.
pub struct Follow<'a> {
    pub to: &'a mut dyn Listener,
    pub instances: &'a mut Instances,
}

impl Listener for Follow<'_> {
    fn peer(&mut self, peer: &Peer) -> u32 {
        self.to.peer(peer)
    }
    fn value_places(&mut self, columns: &[&str]) -> Vec<usize> {
        self.to.value_places(columns)
    }
    fn vrf(&mut self, name: &str) -> Vrf {
        self.instances.number(name)
    }
    fn update(&mut self, update: &Update<'_>) -> Result<(), FeedError> {
        let Instances { counts, followed, .. } = &mut *self.instances;
        if let Some(count) = counts.get_mut(update.vrf as usize) {
            *count += 1;
        }
        match update.vrf == *followed {
            true => self.to.update(&Update { vrf: 0, ..*update }),
            false => Ok(()),
        }
    }
    fn down(&mut self, peer: u32) -> Result<(), FeedError> {
        self.to.down(peer)
    }
    fn mark_stale(&mut self, peer: u32) -> Result<(), FeedError> {
        self.to.mark_stale(peer)
    }
    fn sweep(&mut self, peer: u32) -> Result<(), FeedError> {
        self.to.sweep(peer)
    }
}
