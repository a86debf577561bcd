//! The action of a rule.

use std::fmt;
use std::sync::Arc;

/// The action of a rule for the packets that it matches.
///
/// ```
/// use fibula_classify::{Action, Table};
///
/// let action = Action::Allow { mark: 7, table: Table::Name("blue".into()) };
/// assert_eq!(action.to_string(), "mark 7 vrf blue");
/// assert_eq!(Action::ALLOW.to_string(), "allow");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The packet is dropped.
    Drop,
    /// The packet is forwarded.
    Allow {
        /// The mark that it gets, 0 for none.
        mark: u16,
        /// The routing table that its destination is looked up in.
        table: Table,
    },
}

/// A routing table, named by a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Table {
    /// The table that is used without a rule.
    #[default]
    Default,
    /// The table with this number.
    Number(u16),
    /// The table of the VRF with this name.
    Name(Arc<str>),
}

impl Action {
    /// Allow, without a mark, with the ordinary table.
    pub const ALLOW: Self = Self::Allow { mark: 0, table: Table::Default };
}

/// Text in quotes, as files of rules have it.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

/// As rules are written.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Allow { mark, table } = self else { return f.write_str("drop") };
        let mut separator = "";
        if *mark != 0 {
            write!(f, "mark {mark}")?;
            separator = " ";
        }
        match table {
            Table::Default if *mark == 0 => f.write_str("allow"),
            Table::Default => Ok(()),
            Table::Number(number) => write!(f, "{separator}table {number}"),
            Table::Name(name) => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.:".contains(c);
                match !name.is_empty() && name.chars().all(is_plain) {
                    true => write!(f, "{separator}vrf {name}"),
                    false => write!(f, "{separator}vrf {}", Quoted(name)),
                }
            }
        }
    }
}
