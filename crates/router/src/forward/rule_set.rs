//! The rules of one thread with their counters, and their replacement by another thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fibula_classify::{Action, Classifier, RuleId, Table};

/// A rule's action, with the number of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Drop,
    /// With the mark, by the table, or by that of the port.
    Forward(u16, Option<u16>),
}

/// Rules, with their actions translated for this router.
#[derive(Debug)]
pub struct RuleSet {
    pub(super) classifier: Classifier,
    /// The action of each rule in the router, by the rule's number.
    answers: Vec<Answer>,
    /// The tables of ports, for packets whose rule names none.
    by_port: Vec<u16>,
    pub(super) counts: Arc<RuleCounts>,
}

impl RuleSet {
    /// Makes a set of the classifier's rules. `table` gives the number of a table named in a rule. `by_port` has the
    /// table of each port for packets whose rules name none; other ports have table 0.
    ///
    /// # Errors
    ///
    /// Errors of `table`, for a table that does not exist.
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
        let counts = Arc::new(RuleCounts::new(answers.len()));
        Ok(Self { classifier, answers, by_port: by_port.into(), counts })
    }

    /// The counters of the rules. Packets that wait for a neighbour count at each attempt.
    pub fn counts(&self) -> Arc<RuleCounts> {
        Arc::clone(&self.counts)
    }

    pub(super) fn answer(&self, found: Option<RuleId>) -> Answer {
        found.map_or(Answer::Forward(0, None), |rule| self.answers[rule.0 as usize])
    }

    pub(super) fn table_of(&self, port: u16) -> u16 {
        self.by_port.get(usize::from(port)).copied().unwrap_or(0)
    }
}

/// Packets and bytes by rule. One thread counts, and any thread reads.
#[derive(Debug)]
pub struct RuleCounts {
    /// Packets and bytes by the rules' numbers; the last entry is for packets that no rule matched.
    counts: Box<[[AtomicU64; 2]]>,
}

impl RuleCounts {
    fn new(rules: usize) -> Self {
        Self { counts: (0..=rules).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect() }
    }

    pub(super) fn count(&self, rule: Option<RuleId>, bytes: usize) {
        let at = rule.map_or(self.counts.len() - 1, |rule| rule.0 as usize);
        for (count, more) in self.counts[at].iter().zip([1, bytes as u64]) {
            // Nobody else writes.
            count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
    }

    /// Packets and bytes of a rule; with `None`, of packets that no rule matched. A rule that does not exist has
    /// none.
    pub fn of(&self, rule: Option<RuleId>) -> (u64, u64) {
        let at = rule.map_or(self.counts.len() - 1, |rule| rule.0 as usize);
        let [packets, bytes] = match self.counts.get(at) {
            Some(counts) => counts.each_ref().map(|count| count.load(Ordering::Relaxed)),
            None => [0; 2],
        };
        (packets, bytes)
    }
}

/// The state that a worker shares with the threads that replace its rules.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    is_new: AtomicBool,
    next: Mutex<Option<Box<RuleSet>>>,
    /// The rules before, which the thread that judges does not free.
    old: Mutex<Option<Box<RuleSet>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mailbox {
    /// Takes rules that came, if any did.
    pub(super) fn take(&self, rules: &mut Box<RuleSet>) -> bool {
        if !self.is_new.load(Ordering::Acquire) {
            return false;
        }
        let mut next = lock(&self.next);
        let set = next.take();
        self.is_new.store(false, Ordering::Release);
        let Some(set) = set else { return false };
        *lock(&self.old) = Some(std::mem::replace(rules, set));
        true
    }
}

/// Replaces the rules of a [`ByRules`](super::ByRules) in another thread.
#[derive(Clone, Debug)]
pub struct RulesHandle(pub(super) Arc<Mailbox>);

impl RulesHandle {
    /// Replaces the rules from the policy's next burst on. Earlier rules that were not in use yet are discarded.
    pub fn replace(&self, rules: RuleSet) {
        let lost = lock(&self.0.next).replace(Box::new(rules));
        // Freed behind the lock.
        drop(lost);
        self.0.is_new.store(true, Ordering::Release);
    }

    /// Waits until the policy uses its new rules, up to a maximum time, and frees the old ones. A thread without
    /// packets does not change its rules; then the memory stays until the next call. Call this again before the next
    /// [`replace`](Self::replace).
    pub fn settle(&self, longest: Duration) -> bool {
        let began = Instant::now();
        while self.0.is_new.load(Ordering::Acquire) && began.elapsed() < longest {
            thread::sleep(Duration::from_millis(1));
        }
        // Freed behind the lock.
        let old = lock(&self.0.old).take();
        drop(old);
        !self.0.is_new.load(Ordering::Acquire)
    }
}
