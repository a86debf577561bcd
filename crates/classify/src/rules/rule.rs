//! One rule: conditions on fields, and an action.

use std::fmt;
use std::sync::Arc;

use super::{Action, Range};
use crate::{Field, Flow, Mask, Match};

/// A condition on a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The field has this value.
    Is(u128),
    /// The first bits of the field are those of the value. Its other bits must be 0.
    Prefix(u128, u32),
    /// The field agrees with the value in the bits of the mask. Its other bits must be 0.
    Masked(u128, u128),
    /// The field is at least the first and at most the last value.
    Range(u128, u128),
}

/// A rule: packets that meet all its conditions get its action.
///
/// A field that a packet does not have is 0, and other fields show whether the packet has it ([`Flow`]). A condition on
/// a field therefore adds conditions on these fields: `Ipv4Src` adds `IpVersion` = 4; a port adds `Transport` = 1 (TCP,
/// UDP, DCCP, SCTP, UDP-Lite, with the header in the packet, so no later fragments); type and code of ICMP add
/// `Transport` = 2; TCP's flags add `Protocol` = 6 and `Transport` = 1.
///
/// ```
/// use fibula_classify::{Action, Condition, Field, Flow, Rule};
///
/// let rule = Rule::new(Action::Drop)
///     .when(Field::Ipv4Dst, Condition::Prefix(0xc000_0200, 24))?
///     .when(Field::DstPort, Condition::Range(1024, 65535))?;
/// let mut flow = Flow::default();
/// for (field, value) in [
///     (Field::IpVersion, 4), (Field::Ipv4Dst, 0xc000_0207), (Field::Transport, 1), (Field::DstPort, 8080),
/// ] {
///     flow.set(field, value);
/// }
/// assert!(rule.matches(&flow));
/// flow.set(Field::DstPort, 80);
/// assert!(!rule.matches(&flow));
/// # Ok::<(), fibula_classify::RuleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule with the largest priority wins; among equal priorities, the rule inserted first.
    pub priority: u32,
    /// The action for its packets.
    pub action: Action,
    /// A text for reports.
    pub label: Option<Arc<str>>,
    /// The line of the file that it was read from, counted from 1; 0 if it was not read from a file.
    pub line: u32,
    matched: Match,
    ranges: Vec<Range>,
}

/// The reason why a condition was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleError {
    /// The value needs more bits than the field has.
    Width(Field),
    /// Bits of the value are set outside the prefix or mask.
    HostBits(Field),
    /// The range's last value is below its first.
    Order(Field),
    /// No packet can meet this condition together with the others.
    Never(Field),
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Width(field) => write!(f, "{field} has {} bits only", field.bits()),
            Self::HostBits(field) => {
                write!(f, "{field}: bits are set that the prefix or mask leaves out")
            }
            Self::Order(field) => write!(f, "{field}: the range ends before it starts"),
            Self::Never(field) => {
                write!(f, "no packet can meet this condition on {field} and those before it")
            }
        }
    }
}

impl std::error::Error for RuleError {}

/// The conditions under which a packet has a field.
fn prerequisites(field: Field) -> &'static [(Field, u128)] {
    match field {
        Field::Ipv4Src | Field::Ipv4Dst => &[(Field::IpVersion, 4)],
        Field::Ipv6Src | Field::Ipv6Dst => &[(Field::IpVersion, 6)],
        Field::SrcPort | Field::DstPort => &[(Field::Transport, 1)],
        Field::TcpFlags => &[(Field::Protocol, 6), (Field::Transport, 1)],
        Field::IcmpType | Field::IcmpCode => &[(Field::Transport, 2)],
        _ => &[],
    }
}

impl Rule {
    /// A rule of priority 0 that matches every packet.
    pub fn new(action: Action) -> Self {
        Self {
            priority: 0,
            action,
            label: None,
            line: 0,
            matched: Match::default(),
            ranges: Vec::new(),
        }
    }

    /// The rule with an additional condition, and the conditions that it requires.
    ///
    /// # Errors
    ///
    /// The value does not fit the field, or the conditions contradict each other.
    pub fn when(mut self, field: Field, condition: Condition) -> Result<Self, RuleError> {
        self.add(field, condition)?;
        for &(field, value) in prerequisites(field) {
            self.add(field, Condition::Is(value))?;
        }
        match field {
            // There is a tag: its EtherType is not 0.
            Field::Vlan | Field::VlanDei | Field::VlanPcp => {
                self.add_range(Field::VlanTpid, 1, ones(Field::VlanTpid))?;
            }
            Field::InnerVlan | Field::InnerVlanDei | Field::InnerVlanPcp => {
                self.add_range(Field::InnerVlanTpid, 1, ones(Field::InnerVlanTpid))?;
            }
            // Every IP header has them, of either version.
            Field::Protocol | Field::Dscp | Field::Ecn | Field::Fragment => {
                self.add_range(Field::IpVersion, 4, 7)?;
            }
            _ => {}
        }
        match self.has_protocol() {
            true => Ok(self),
            false => Err(RuleError::Never(field)),
        }
    }

    /// Whether some protocol meets the conditions on it and has the header of [`Field::Transport`].
    fn has_protocol(&self) -> bool {
        let (flow, mask) = (self.matched.flow(), self.matched.mask());
        let (value, bits) = (flow.get(Field::Protocol), mask.get(Field::Protocol));
        let with_header: &[u128] = match flow.get(Field::Transport) {
            _ if mask.get(Field::Transport) != ones(Field::Transport) => return true,
            1 => &[6, 17, 33, 132, 136],
            2 => &[1, 58],
            _ => return true,
        };
        let range = self.range_of(Field::Protocol);
        with_header.iter().any(|protocol| {
            (protocol ^ value) & bits == 0 && range.is_none_or(|range| range.contains(*protocol))
        })
    }

    fn range_of(&self, field: Field) -> Option<&Range> {
        self.ranges.iter().find(|range| range.field == field)
    }

    fn add(&mut self, field: Field, condition: Condition) -> Result<(), RuleError> {
        let all = ones(field);
        let (value, mask) = match condition {
            Condition::Is(value) => (value, all),
            Condition::Prefix(value, len) => (value, Mask::prefix(field, len).get(field)),
            Condition::Masked(value, mask) => (value, mask),
            Condition::Range(first, last) => return self.add_range(field, first, last),
        };
        if value & !all != 0 || mask & !all != 0 {
            return Err(RuleError::Width(field));
        }
        if value & !mask != 0 {
            return Err(RuleError::HostBits(field));
        }
        self.narrow(field, value, mask)?;
        self.check(field)
    }

    /// A range of aligned values is a mask. Of others the bits that all values have in common go into the mask.
    fn add_range(&mut self, field: Field, first: u128, last: u128) -> Result<(), RuleError> {
        if last & !ones(field) != 0 {
            return Err(RuleError::Width(field));
        }
        if first > last {
            return Err(RuleError::Order(field));
        }
        let old = self.ranges.iter().position(|range| range.field == field);
        let (first, last) = match old.map(|at| self.ranges.remove(at)) {
            Some(old) => (old.first.max(first), old.last.min(last)),
            None => (first, last),
        };
        if first > last {
            return Err(RuleError::Never(field));
        }
        let differ = 128 - (first ^ last).leading_zeros();
        let low = if differ == 128 { u128::MAX } else { (1 << differ) - 1 };
        self.narrow(field, first & !low, ones(field) & !low)?;
        if first & low != 0 || last & low != low {
            self.ranges.push(Range { field, first, last });
            self.ranges.sort_by_key(|range| range.field);
        }
        self.check(field)
    }

    /// Adds bits to the mask.
    fn narrow(&mut self, field: Field, value: u128, mask: u128) -> Result<(), RuleError> {
        let (mut flow, old) = (*self.matched.flow(), *self.matched.mask());
        let (had, was) = (old.get(field), flow.get(field));
        if (value ^ was) & mask & had != 0 {
            return Err(RuleError::Never(field));
        }
        flow.set(field, was | value);
        self.matched = Match::new(flow, old | Mask::bits(field, mask));
        Ok(())
    }

    /// Checks that some value of the field meets both mask and range. Removes a range that is no longer needed.
    fn check(&mut self, field: Field) -> Result<(), RuleError> {
        let Some(at) = self.ranges.iter().position(|range| range.field == field) else {
            return Ok(());
        };
        let (value, mask) = (self.matched.flow().get(field), self.matched.mask().get(field));
        let range = &self.ranges[at];
        if !range.meets(value, mask) {
            return Err(RuleError::Never(field));
        }
        let largest = value | ones(field) & !mask;
        if range.first <= value && largest <= range.last {
            self.ranges.remove(at);
        }
        Ok(())
    }

    /// The bits that all its packets have in common. A packet that matches these also has to be in the rule's ranges.
    pub fn mask_match(&self) -> &Match {
        &self.matched
    }

    /// Ranges that cannot be expressed as masks, by field.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Whether the packet meets all conditions.
    pub fn matches(&self, flow: &Flow) -> bool {
        self.matched.matches(flow)
            && self.ranges.iter().all(|range| range.contains(flow.get(range.field)))
    }

    /// The fields whose conditions the packet does not meet.
    pub fn failing<'a>(&'a self, flow: &'a Flow) -> impl Iterator<Item = Field> + 'a {
        let differs = move |field: &Field| {
            let mask = self.matched.mask().get(*field);
            (flow.get(*field) ^ self.matched.flow().get(*field)) & mask != 0
                || self.range_of(*field).is_some_and(|range| !range.contains(flow.get(*field)))
        };
        Field::ALL.into_iter().filter(differs)
    }

    /// Whether some packet meets all conditions and also lies in the other set.
    pub fn meets(&self, other: &Match) -> bool {
        let (mine, theirs) = (&self.matched, other);
        let both = mine.mask().words().iter().zip(theirs.mask().words());
        let values = mine.flow().words().iter().zip(theirs.flow().words());
        both.zip(values).all(|((a, b), (x, y))| (x ^ y) & a & b == 0)
            && self.ranges.iter().all(|range| {
                let field = range.field;
                let mask = mine.mask().get(field) | theirs.mask().get(field);
                let value = mine.flow().get(field) | theirs.flow().get(field);
                range.meets(value, mask)
            })
    }
}

/// A one in each bit of the field.
pub(crate) fn ones(field: Field) -> u128 {
    u128::MAX >> (128 - field.bits())
}
