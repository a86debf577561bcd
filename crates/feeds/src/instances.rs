//! One routing instance of a feed.

use std::collections::BTreeMap;

use fibula_core::{Update, Vrf};
use fibula_rib::{FeedEvent, Listener, Peer, TableError};

/// The routing instances of a feed by number, with the counts of their updates. The first is the source's own table,
/// which has no name.
///
/// ```
/// use fibula_feeds::Instances;
/// use fibula_rib::Listener;
///
/// let mut instances = Instances::new(Some("100"));
/// # struct Table(u64);
/// # impl Listener for Table {
/// #     fn peer(&mut self, _: &fibula_rib::Peer) -> u32 { 0 }
/// #     fn value_places(&mut self, _: &[&str]) -> Vec<usize> { Vec::new() }
/// #     fn vrf(&mut self, _: &str) -> u32 { 0 }
/// #     fn event(&mut self, _: fibula_rib::FeedEvent<'_>) -> Result<(), fibula_rib::TableError> { self.0 += 1; Ok(()) }
/// # }
/// # let mut table = Table(0);
/// let mut follow = instances.follow(&mut table);
/// let (other, followed) = (follow.vrf("200"), follow.vrf("100"));
/// # let mut update = fibula_core::Update::new("10.0.0.0/8".parse()?, fibula_core::Change::Withdraw);
/// for vrf in [other, followed, other] {
///     # update.vrf = vrf;
///     follow.update(&update)?;
/// }
/// assert_eq!((instances.followed(), instances.left_out()["200"], table.0), (1, 2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Instances {
    names: Vec<String>,
    counts: Vec<u64>,
    followed: Vrf,
}

impl Instances {
    /// Follows the instance with this name, or the source's own table.
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

    /// Passes the updates of the followed instance on as those of the main table.
    pub fn follow<'a>(&'a mut self, to: &'a mut dyn Listener) -> FollowInstance<'a> {
        FollowInstance { to, instances: self }
    }

    /// The number of updates of the instance that is followed.
    pub fn followed(&self) -> u64 {
        self.counts[self.followed as usize]
    }

    /// The numbers of updates of the other instances that have some, by name.
    pub fn left_out(&self) -> BTreeMap<String, u64> {
        let others = (0..).zip(&self.names).zip(&self.counts);
        let others = others.filter(|((at, _), count)| *at != self.followed && **count > 0);
        others.map(|((_, name), count)| (name.clone(), *count)).collect()
    }
}

/// Passes on the updates of one instance, and counts the updates of the others.
pub struct FollowInstance<'a> {
    to: &'a mut dyn Listener,
    instances: &'a mut Instances,
}

impl Listener for FollowInstance<'_> {
    fn peer(&mut self, peer: &Peer) -> u32 {
        self.to.peer(peer)
    }
    fn is_full_for(&self, peer: &Peer) -> Option<usize> {
        self.to.is_full_for(peer)
    }
    fn value_places(&mut self, columns: &[&str]) -> Vec<usize> {
        self.to.value_places(columns)
    }
    fn vrf(&mut self, name: &str) -> Vrf {
        self.instances.number(name)
    }
    fn event(&mut self, event: FeedEvent<'_>) -> Result<(), TableError> {
        let FeedEvent::Update(update) = event else { return self.to.event(event) };
        let Instances { counts, followed, .. } = &mut *self.instances;
        if let Some(count) = counts.get_mut(update.vrf as usize) {
            *count += 1;
        }
        match update.vrf == *followed {
            true => self.to.update(&Update { vrf: 0, ..*update }),
            false => Ok(()),
        }
    }
}
