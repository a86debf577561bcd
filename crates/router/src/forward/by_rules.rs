//! A policy with the rules of a packet filter.

use std::sync::Arc;
use std::time::Instant;

use fibula_classify::{Batch, Classifier, Context, RuleId, Table};
use fibula_packet::{Frame, LinkType};

use super::rule_set::{Answer, Mailbox, RuleCounts, RuleSet, RulesHandle};
use super::{Policy, Verdict};
use crate::Packet;

/// Megaflows without packets go after so many milliseconds.
const IDLE: u64 = 10_000;

/// Drops packets, marks them and chooses their table by rules. A packet that no rule matches is forwarded.
///
/// Rules apply to IPv4 and IPv6. Other frames pass, so a filter that ends with `any -> drop` does not affect ARP.
/// Neighbour discovery is IPv6, and needs rules that allow it. In rules, the port that received a packet is
/// `in_port`.
///
/// Other threads can read its counters and replace its rules ([`ByRules::handle`]). The replacement takes effect
/// between two bursts.
#[derive(Debug)]
pub struct ByRules {
    rules: Box<RuleSet>,
    mailbox: Arc<Mailbox>,
    batch: Batch,
    /// The packets of the batch.
    packets: Vec<usize>,
    found: Vec<Option<RuleId>>,
    began: Option<Instant>,
    expired: u64,
}

impl From<RuleSet> for ByRules {
    fn from(rules: RuleSet) -> Self {
        Self {
            batch: Batch::new(),
            rules: Box::new(rules),
            mailbox: Arc::default(),
            packets: Vec::new(),
            found: Vec::new(),
            began: None,
            expired: 0,
        }
    }
}

impl ByRules {
    /// Makes a policy with the classifier's rules; see [`RuleSet::new`].
    ///
    /// # Errors
    ///
    /// Errors of `table`, for a table that does not exist.
    pub fn new<E>(
        classifier: Classifier,
        by_port: impl Into<Vec<u16>>,
        table: impl FnMut(&Table) -> Result<u16, E>,
    ) -> Result<Self, E> {
        RuleSet::new(classifier, by_port, table).map(Self::from)
    }

    /// The rules, and the counters of the cache.
    pub fn classifier(&self) -> &Classifier {
        &self.rules.classifier
    }

    /// The counters of the rules. Packets that wait for a neighbour count at each attempt.
    pub fn counts(&self) -> Arc<RuleCounts> {
        Arc::clone(&self.rules.counts)
    }

    /// A handle with which another thread can replace the rules.
    pub fn handle(&self) -> RulesHandle {
        RulesHandle(Arc::clone(&self.mailbox))
    }

    fn classify(&mut self, now: u64, burst: &[Packet<'_>], verdicts: &mut [Verdict]) {
        let Self { rules, batch, packets, found, .. } = self;
        found.clear();
        found.resize(batch.len(), None);
        rules.classifier.classify(now, batch, found);
        for (&packet, &found) in packets.iter().zip(&*found) {
            rules.counts.count(found, burst[packet].bytes().len());
            verdicts[packet] = match rules.answer(found) {
                Answer::Drop => Verdict::Drop,
                Answer::Forward(mark, table) => {
                    let table = table.unwrap_or_else(|| rules.table_of(burst[packet].port));
                    Verdict::Forward { table, mark }
                }
            };
        }
        batch.clear();
        packets.clear();
    }
}

impl Policy for ByRules {
    fn judge(&mut self, now: Instant, burst: &[Packet<'_>], verdicts: &mut [Verdict]) {
        if self.mailbox.take(&mut self.rules) {
            self.batch = Batch::new();
        }
        let began = *self.began.get_or_insert(now);
        let now = now.saturating_duration_since(began).as_millis() as u64;
        if now >= self.expired + IDLE / 10 {
            self.rules.classifier.expire(now.saturating_sub(IDLE));
            self.expired = now;
        }
        for (number, packet) in burst.iter().enumerate() {
            let frame = Frame::parse(LinkType::Ethernet, packet.bytes());
            if frame.network().is_none() {
                verdicts[number] =
                    Verdict::Forward { table: self.rules.table_of(packet.port), mark: 0 };
                continue;
            }
            let context = Context { in_port: packet.port.into(), ..Context::default() };
            self.batch.push_frame(&frame, &context);
            self.packets.push(number);
            if self.batch.len() == Batch::MAX {
                self.classify(now, burst, verdicts);
            }
        }
        if !self.batch.is_empty() {
            self.classify(now, burst, verdicts);
        }
    }
}
