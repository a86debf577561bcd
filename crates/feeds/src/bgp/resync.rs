//! The families that a neighbour has not completely announced again.

use std::time::Duration;

use fibula_ingest::bgp::AfiSafi;

/// From the beginning of a session, or of an announced refresh, until every family has its end mark. A table
/// is marked and swept by peer, not by family, so all families of a session end together.
#[derive(Debug)]
pub(super) struct Resync {
    /// The families without an end mark.
    awaited: Vec<AfiSafi>,
    /// The families whose refresh has begun (BoRR) and not ended.
    refreshing: Vec<AfiSafi>,
    began: Duration,
    /// The time of the last UPDATE.
    last: Duration,
    /// The neighbour sends end marks, so silence does not complete its table.
    has_ends: bool,
}

impl Resync {
    pub(super) fn new(families: &[AfiSafi], has_ends: bool, now: Duration) -> Self {
        let awaited = families.to_vec();
        Self { awaited, refreshing: Vec::new(), began: now, last: now, has_ends }
    }

    pub(super) fn update_received(&mut self, now: Duration) {
        self.last = now;
    }

    /// End-of-RIB.
    pub(super) fn end(&mut self, family: AfiSafi) {
        self.awaited.retain(|awaited| *awaited != family);
    }

    /// BoRR.
    pub(super) fn begin_refresh(&mut self, family: AfiSafi) {
        if !self.refreshing.contains(&family) {
            self.refreshing.push(family);
        }
    }

    /// EoRR; one without a BoRR is ignored (RFC 7313, 4).
    pub(super) fn end_refresh(&mut self, family: AfiSafi) {
        let before = self.refreshing.len();
        self.refreshing.retain(|refreshing| *refreshing != family);
        if self.refreshing.len() < before {
            self.end(family);
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.awaited.is_empty()
    }

    /// The time when the table counts as complete without the missing marks.
    pub(super) fn deadline(&self, quiet: Duration, longest: Duration) -> Duration {
        let longest = self.began.saturating_add(longest);
        match self.has_ends {
            true => longest,
            false => longest.min(self.last.saturating_add(quiet)),
        }
    }
}
