//! Rules, and tables of rules.

mod action;
mod range;
mod rule;

use std::fmt;

pub(crate) use action::Quoted;
pub use action::{Action, Table};
pub use range::Range;
pub(crate) use rule::ones;
pub use rule::{Condition, Rule, RuleError};

use crate::Flow;

/// The number of a rule in its table, from 0 in order of insertion. Numbers are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u32);

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which of two rules wins: the one with the larger precedence. That is the larger priority, and among equal ones the
/// rule that was inserted first, so that in a file without priorities the first rule that matches wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Precedence(u64);

impl Precedence {
    /// That of no rule: every rule wins against it. The number that it would need is never given.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn new(priority: u32, id: RuleId) -> Self {
        Self(u64::from(priority) << 32 | u64::from(!id.0))
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) fn id(self) -> RuleId {
        RuleId(!(self.0 as u32))
    }
}

/// A table of rules.
///
/// It has no fast lookups: [`SlowPath`](crate::SlowPath) has them, and [`Classifier`](crate::Classifier) combines
/// both.
///
/// ```
/// use fibula_classify::{Action, Rule, Rules};
///
/// let mut rules = Rules::new();
/// let first = rules.insert(Rule::new(Action::Drop)).unwrap();
/// rules.insert(Rule::new(Action::ALLOW)).unwrap();
/// assert_eq!(rules.first_match(&Default::default()).unwrap().0, first);
/// rules.remove(first);
/// assert_eq!(rules.len(), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// By number. A removed rule leaves a hole.
    rules: Vec<Option<Box<Rule>>>,
    len: usize,
}

/// A table already had 2^32 - 1 rules, so no number is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoNumber;

impl fmt::Display for NoNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table has had 2^32 - 1 rules: copy its rules into a new one")
    }
}

impl std::error::Error for NoNumber {}

impl Rules {
    /// Makes an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule, after rules of the same priority.
    ///
    /// # Errors
    ///
    /// If no number is left.
    pub fn insert(&mut self, rule: Rule) -> Result<RuleId, NoNumber> {
        let number = u32::try_from(self.rules.len()).ok().filter(|number| *number < u32::MAX);
        let id = RuleId(number.ok_or(NoNumber)?);
        self.rules.push(Some(Box::new(rule)));
        self.len += 1;
        Ok(id)
    }

    /// Removes a rule, if it exists.
    pub fn remove(&mut self, id: RuleId) -> Option<Rule> {
        let rule = self.rules.get_mut(id.0 as usize)?.take()?;
        self.len -= 1;
        Some(*rule)
    }

    /// The rule with this number, if it exists.
    #[inline]
    pub fn get(&self, id: RuleId) -> Option<&Rule> {
        self.rules.get(id.0 as usize)?.as_deref()
    }

    /// Number of rules.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The rules by number, which is their order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (RuleId, &Rule)> {
        self.rules
            .iter()
            .enumerate()
            .filter_map(|(number, rule)| Some((RuleId(number as u32), rule.as_deref()?)))
    }

    /// The rule that wins for a flow, found by trying all rules. Tests compare the fast lookups with it.
    pub fn first_match(&self, flow: &Flow) -> Option<(RuleId, &Rule)> {
        self.iter()
            .filter(|(_, rule)| rule.matches(flow))
            .max_by_key(|(id, rule)| Precedence::new(rule.priority, *id))
    }
}
