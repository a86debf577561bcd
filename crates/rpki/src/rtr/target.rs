//! The set of VRPs of a cache, to which its answers are applied as a whole or not at all.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use fibula_core::AnyPrefix;
use rpki::rtr::client::{PayloadError, PayloadTarget, PayloadUpdate};
use rpki::rtr::payload::{Action, Payload, RouteOrigin, Timing};

use crate::{LiveVrps, Vrp, Vrps};

/// The VRPs of the cache that was whole last.
pub(super) struct Target {
    held: HashSet<Vrp>,
    vrps: Arc<LiveVrps>,
    most: usize,
    pub(super) timing: Timing,
    /// About the answer that was applied last.
    pub(super) applied: Applied,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Applied {
    pub(super) is_reset: bool,
    pub(super) ignored: u64,
}

/// The changes of an answer.
pub(super) struct Answer {
    pub(super) is_reset: bool,
    changes: Vec<(Action, Vrp)>,
    most: usize,
    ignored: u64,
}

impl Target {
    pub(super) fn new(vrps: Arc<LiveVrps>, most: usize) -> Self {
        let timing = Timing::default();
        Self { held: HashSet::new(), vrps, most, timing, applied: Applied::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Forgets the set, because it has expired.
    pub(super) fn expire(&mut self) {
        let gone = std::mem::take(&mut self.held);
        self.vrps.replace(None, gone.iter().map(|vrp| vrp.prefix()));
    }
}

impl PayloadUpdate for Answer {
    fn push_update(&mut self, action: Action, payload: Payload) -> Result<(), PayloadError> {
        let Some(origin) = payload.to_origin() else {
            self.ignored += 1;
            return Ok(());
        };
        // Of the changes since a serial number, each VRP may be withdrawn and announced.
        if self.changes.len() >= 2 * self.most {
            return Err(PayloadError::Corrupt);
        }
        self.changes.push((action, vrp(&origin)?));
        Ok(())
    }
}

fn vrp(origin: &RouteOrigin) -> Result<Vrp, PayloadError> {
    let address: IpAddr = origin.prefix.addr();
    let prefix = AnyPrefix::new(address, origin.prefix.prefix_len());
    let max_len = origin.prefix.resolved_max_len();
    let vrp =
        prefix.ok().and_then(|prefix| Vrp::new(prefix, max_len.into(), origin.asn.into_u32()).ok());
    vrp.ok_or(PayloadError::Corrupt)
}

impl PayloadTarget for Target {
    type Update = Answer;

    fn start(&mut self, reset: bool) -> Answer {
        Answer { is_reset: reset, changes: Vec::new(), most: self.most, ignored: 0 }
    }

    fn apply(&mut self, answer: Answer, timing: Timing) -> Result<(), PayloadError> {
        let Answer { is_reset, changes, ignored, .. } = answer;
        // In order: what an answer withdraws, it may announce again.
        let mut next = if is_reset { HashSet::new() } else { self.held.clone() };
        for &(action, vrp) in &changes {
            match action {
                Action::Announce if !next.insert(vrp) => {
                    return Err(PayloadError::DuplicateAnnounce);
                }
                Action::Withdraw if !next.remove(&vrp) => {
                    return Err(PayloadError::UnknownWithdraw);
                }
                _ => {}
            }
        }
        if next.len() > self.most {
            return Err(PayloadError::Corrupt);
        }
        let changed: Vec<AnyPrefix> = if is_reset {
            next.symmetric_difference(&self.held).map(|vrp| vrp.prefix()).collect()
        } else {
            changes.iter().map(|(_, vrp)| vrp.prefix()).collect()
        };
        let is_first = self.vrps.current().vrps.is_none();
        if is_first || !changed.is_empty() {
            self.vrps.replace(Some(Vrps::new(next.iter().copied())), changed);
        }
        self.held = next;
        self.timing = bounded(timing);
        self.applied = Applied { is_reset, ignored };
        Ok(())
    }
}

/// The times of a cache, within the bounds of RFC 8210, section 6.
fn bounded(timing: Timing) -> Timing {
    Timing {
        refresh: timing.refresh.clamp(1, 86_400),
        expire: timing.expire.clamp(600, 172_800),
        ..timing
    }
}
