//! A policy by the rules of a packet filter.

use std::time::Instant;

use fibula_classify::{Action, Batch, Classifier, Context, RuleId, Table};
use fibula_packet::{Frame, LinkType};

use super::{Policy, Verdict};
use crate::Packet;

/// Megaflows without packets go after so many milliseconds.
const IDLE: u64 = 10_000;

/// Packets are dropped, marked and looked up in tables as rules say. A packet that no rule matches is forwarded.
///
/// Rules judge IPv4 and IPv6. Other frames pass, so that a filter that ends with `any -> drop` leaves ARP alone. Neighbour discovery is
/// IPv6, and needs rules that allow it. Rules see the port that a packet came in by as `in_port`.
#[derive(Clone, Debug)]
pub struct ByRules {
    classifier: Classifier,
    /// What each rule's action is here, by its number.
    answers: Vec<Answer>,
    /// The tables of ports, for packets whose rule names none.
    by_port: Vec<u16>,
    batch: Batch,
    /// The packets of the batch.
    packets: Vec<usize>,
    found: Vec<Option<RuleId>>,
    began: Option<Instant>,
    expired: u64,
}

/// A rule's action, with the number of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Drop,
    /// With the mark, by the table, or by that of the port.
    Forward(u16, Option<u16>),
}

impl ByRules {
    /// A policy by the classifier's rules. `table` gives the number of a table that a rule names, and `by_port` that of the packets of
    /// each port whose rules name none; other ports have table 0.
    ///
    /// # Errors
    ///
    /// What `table` says of a table that there is not.
    pub fn new<E>(
        classifier: Classifier,
        by_port: impl Into<Vec<u16>>,
        mut table: impl FnMut(&Table) -> Result<u16, E>,
    ) -> Result<Self, E> {
        const PASS: Answer = Answer::Forward(0, None);
        let mut answers = Vec::new();
        for (id, rule) in classifier.rules().iter() {
            answers.resize(id.0 as usize, PASS);
            answers.push(match &rule.action {
                Action::Drop => Answer::Drop,
                Action::Allow { mark, table: Table::Default } => Answer::Forward(*mark, None),
                Action::Allow { mark, table: named } => Answer::Forward(*mark, Some(table(named)?)),
            });
        }
        Ok(Self {
            batch: Batch::new(classifier.form()),
            classifier,
            answers,
            by_port: by_port.into(),
            packets: Vec::new(),
            found: Vec::new(),
            began: None,
            expired: 0,
        })
    }

    /// The rules, and what they counted.
    pub fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    fn classify(&mut self, now: u64, burst: &[Packet<'_>], verdicts: &mut [Verdict]) {
        self.found.clear();
        self.found.resize(self.batch.len(), None);
        self.classifier.classify(now, &self.batch, &mut self.found);
        for (&packet, found) in self.packets.iter().zip(&self.found) {
            let answer =
                found.map_or(Answer::Forward(0, None), |rule| self.answers[rule.0 as usize]);
            verdicts[packet] = match answer {
                Answer::Drop => Verdict::Drop,
                Answer::Forward(mark, table) => {
                    let table = table.unwrap_or_else(|| self.table_of(burst[packet].port));
                    Verdict::Forward { table, mark }
                }
            };
        }
        self.batch.clear();
        self.packets.clear();
    }

    fn table_of(&self, port: u16) -> u16 {
        self.by_port.get(usize::from(port)).copied().unwrap_or(0)
    }
}

impl Policy for ByRules {
    fn judge(&mut self, now: Instant, burst: &[Packet<'_>], verdicts: &mut [Verdict]) {
        let began = *self.began.get_or_insert(now);
        let now = now.saturating_duration_since(began).as_millis() as u64;
        if now >= self.expired + IDLE / 10 {
            self.classifier.expire(now.saturating_sub(IDLE));
            self.expired = now;
        }
        for (number, packet) in burst.iter().enumerate() {
            let frame = Frame::parse(LinkType::Ethernet, packet.bytes());
            if frame.network().is_none() {
                verdicts[number] = Verdict::Forward { table: self.table_of(packet.port), mark: 0 };
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
