//! The differences between what was recorded last and a table that was read.

use std::sync::Arc;

use fibula_rib::{AttributeSet, Peer};

use crate::error::HistoryError;
use crate::merge::LastStates;
use crate::record::{RouteKey, RouteRecord};

/// A route of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRoute {
    /// Its prefix.
    pub key: RouteKey,
    /// Its peer.
    pub peer: Option<Arc<Peer>>,
    /// Its attributes.
    pub best: AttributeSet,
}

/// Compares all tables, read in parts and in the order of keys, with the last routes that were recorded.
pub struct Resync {
    states: LastStates,
    ahead: Option<(RouteKey, RouteRecord)>,
}

impl Resync {
    pub(crate) fn new(mut states: LastStates) -> Result<Self, HistoryError> {
        let ahead = states.pop()?;
        Ok(Self { states, ahead })
    }

    /// What differs between the keys up to `upto`, or to the end, and the routes that were found there at this time.
    /// Keys that have `changed` since [`HistoryFolder::resync`](crate::HistoryFolder::resync) are left out: their
    /// changes were written.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn compare(
        &mut self,
        upto: Option<&RouteKey>,
        found: Vec<FoundRoute>,
        time: u64,
        changed: impl Fn(&RouteKey) -> bool,
    ) -> Result<Vec<(RouteKey, RouteRecord)>, HistoryError> {
        let mut found = found.into_iter().peekable();
        let mut differences = Vec::new();
        loop {
            let ahead = self.ahead.as_ref().map(|(key, _)| key);
            let ahead = ahead.filter(|&key| upto.is_none_or(|upto| key <= upto));
            let order = match (found.peek(), ahead) {
                (None, None) => return Ok(differences),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(found), Some(ahead)) => found.key.cmp(ahead),
            };
            let new = if order.is_le() { found.next() } else { None };
            let old = match order.is_ge() {
                true => std::mem::replace(&mut self.ahead, self.states.pop()?),
                false => None,
            };
            let difference = match (new, old) {
                (Some(FoundRoute { key, peer, best }), old) => {
                    let new = RouteRecord::found(time, peer, Some(best));
                    let is_new = old.is_none_or(|(_, old)| !old.is_same(&new));
                    is_new.then_some((key, new))
                }
                (None, old) => {
                    old.map(|(key, old)| (key, RouteRecord::found(time, old.peer, None)))
                }
            };
            differences.extend(difference.filter(|(key, _)| !changed(key)));
        }
    }
}
