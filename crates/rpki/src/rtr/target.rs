//! The VRPs and ASPAs of a cache, to which its answers are applied as a whole or not at all.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use fibula_core::AnyPrefix;
use rpki::rtr::client::{PayloadError, PayloadTarget, PayloadUpdate};
use rpki::rtr::payload::{Action, Aspa, Payload, RouteOrigin, Timing};

use crate::{Aspas, LiveVrps, Vrp, Vrps};

/// The data of the cache that was whole last.
pub(super) struct Target {
    held: Held,
    vrps: Arc<LiveVrps>,
    most: usize,
    pub(super) timing: Timing,
    /// About the answer that was applied last.
    pub(super) applied: Applied,
}

#[derive(Clone, Default)]
struct Held {
    vrps: HashSet<Vrp>,
    /// The providers of each customer.
    aspas: HashMap<u32, Vec<u32>>,
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
    /// Customers with their providers; `None` if the ASPA is withdrawn.
    aspas: Vec<(u32, Option<Vec<u32>>)>,
    /// Number of customers and providers in it.
    ases: usize,
    most: usize,
    ignored: u64,
}

impl Target {
    pub(super) fn new(vrps: Arc<LiveVrps>, most: usize) -> Self {
        let timing = Timing::default();
        Self { held: Held::default(), vrps, most, timing, applied: Applied::default() }
    }

    /// Number of VRPs, and of customers with ASPAs.
    pub(super) fn len(&self) -> (usize, usize) {
        (self.held.vrps.len(), self.held.aspas.len())
    }

    /// Forgets the data, because it has expired.
    pub(super) fn expire(&mut self) {
        let gone = std::mem::take(&mut self.held);
        self.vrps.replace(None, gone.vrps.iter().map(|vrp| vrp.prefix()));
    }
}

impl PayloadUpdate for Answer {
    fn push_update(&mut self, action: Action, payload: Payload) -> Result<(), PayloadError> {
        match payload {
            Payload::Origin(origin) => {
                // Of the changes since a serial number, each VRP may be withdrawn and announced.
                if self.changes.len() >= 2 * self.most {
                    return Err(PayloadError::Corrupt);
                }
                self.changes.push((action, vrp(&origin)?));
            }
            Payload::Aspa(aspa) => self.push_aspa(action, &aspa)?,
            Payload::RouterKey(_) => self.ignored += 1,
        }
        Ok(())
    }
}

impl Answer {
    fn push_aspa(&mut self, action: Action, aspa: &Aspa) -> Result<(), PayloadError> {
        let providers = match action {
            Action::Withdraw => None,
            // It would say that nobody is a provider of this AS. An ASPA says so by AS 0.
            Action::Announce if aspa.providers.is_empty() => return Err(PayloadError::Corrupt),
            Action::Announce => {
                let mut providers: Vec<u32> =
                    aspa.providers.iter().map(|asn| asn.into_u32()).collect();
                providers.sort_unstable();
                providers.dedup();
                Some(providers)
            }
        };
        self.ases += 1 + providers.as_ref().map_or(0, Vec::len);
        if self.ases > 2 * self.most {
            return Err(PayloadError::Corrupt);
        }
        self.aspas.push((aspa.customer.into_u32(), providers));
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

impl Held {
    fn apply(&mut self, answer: &Answer) -> Result<(), PayloadError> {
        // In order: what an answer withdraws, it may announce again.
        for &(action, vrp) in &answer.changes {
            match action {
                Action::Announce if !self.vrps.insert(vrp) => {
                    return Err(PayloadError::DuplicateAnnounce);
                }
                Action::Withdraw if !self.vrps.remove(&vrp) => {
                    return Err(PayloadError::UnknownWithdraw);
                }
                _ => {}
            }
        }
        // An ASPA takes the place of the one before of the same customer.
        for (customer, providers) in &answer.aspas {
            match providers {
                Some(providers) => drop(self.aspas.insert(*customer, providers.clone())),
                None if self.aspas.remove(customer).is_none() => {
                    return Err(PayloadError::UnknownWithdraw);
                }
                None => {}
            }
        }
        let ases = |(_, providers): (&u32, &Vec<u32>)| 1 + providers.len();
        match self.vrps.len().max(self.aspas.iter().map(ases).sum()) > answer.most {
            true => Err(PayloadError::Corrupt),
            false => Ok(()),
        }
    }
}

impl PayloadTarget for Target {
    type Update = Answer;

    fn start(&mut self, reset: bool) -> Answer {
        let (changes, aspas) = (Vec::new(), Vec::new());
        Answer { is_reset: reset, changes, aspas, ases: 0, most: self.most, ignored: 0 }
    }

    fn apply(&mut self, answer: Answer, timing: Timing) -> Result<(), PayloadError> {
        let Answer { is_reset, ignored, .. } = answer;
        let mut next = if is_reset { Held::default() } else { self.held.clone() };
        next.apply(&answer)?;
        let changed: Vec<AnyPrefix> = if is_reset {
            next.vrps.symmetric_difference(&self.held.vrps).map(|vrp| vrp.prefix()).collect()
        } else {
            answer.changes.iter().map(|(_, vrp)| vrp.prefix()).collect()
        };
        let now = self.vrps.current();
        let same_aspas = next.aspas == self.held.aspas;
        if now.vrps.is_none() || !changed.is_empty() || !same_aspas {
            // What did not change is not made again.
            let vrps = match &now.vrps {
                Some(vrps) if changed.is_empty() => Arc::clone(vrps),
                _ => Arc::new(Vrps::new(next.vrps.iter().copied())),
            };
            let aspas = match same_aspas && now.vrps.is_some() {
                true => Arc::clone(&now.aspas),
                false => {
                    let all = next.aspas.iter().map(|(of, providers)| (*of, providers.clone()));
                    Arc::new(all.collect::<Aspas>())
                }
            };
            self.vrps.replace_with_aspas(vrps, aspas, changed);
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
