//! The columns with the five fields of a flow, by their names.

/// The names of the columns of rules that are added to a row.
pub(crate) const ADDED: [&str; 3] = ["rule_line", "rule_action", "rule_label"];

/// The accepted names of columns, by field: source, destination, protocol, source port, destination port.
const NAMES: [&[&str]; 5] = [
    &["src", "src_ip", "source", "source_ip", "saddr", "srcaddr", "id.orig_h"],
    &["dst", "dst_ip", "destination", "destination_ip", "daddr", "dstaddr", "id.resp_h"],
    &["protocol", "proto", "ip_proto"],
    &["src_port", "source_port", "sport", "srcport", "sp", "spt", "id.orig_p"],
    &["dst_port", "destination_port", "dport", "dstport", "dp", "dpt", "id.resp_p"],
];

/// How the columns of flows are chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowChoice {
    /// Whether columns are added to the rows, which must not have columns of these names already.
    pub(crate) adds: bool,
}

impl FlowChoice {
    /// The positions of source, destination and protocol, and of both ports unless there are none. Fails if a column is
    /// missing, or one that is added is there.
    pub(crate) fn of_names(&self, names: &[impl AsRef<str>]) -> Result<Vec<usize>, String> {
        let position = |known: &&[&str]| {
            let is_known = |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
            names.iter().position(|name| is_known(name.as_ref().trim()))
        };
        let found = NAMES.map(|known| position(&known));
        if let Some((_, known)) = found.iter().zip(NAMES).take(3).find(|(at, _)| at.is_none()) {
            return Err(format!("no column is called {}", known[0]));
        }
        if found[3].is_some() != found[4].is_some() {
            return Err("one column of ports is there, the other is missing".to_owned());
        }
        let taken = |added: &&str| names.iter().any(|name| name.as_ref() == *added);
        match ADDED.into_iter().find(taken).filter(|_| self.adds) {
            Some(added) => {
                Err(format!("the input already has a column {added}: was it classified before?"))
            }
            None => Ok(found.into_iter().flatten().collect()),
        }
    }

    /// All accepted names.
    pub(crate) fn all_names(self) -> Vec<String> {
        NAMES.into_iter().flatten().map(|name| (*name).to_owned()).collect()
    }

    /// The names that rows must not have.
    pub(crate) fn added(self) -> Vec<String> {
        let added = if self.adds { &ADDED[..] } else { &[] };
        added.iter().map(|name| (*name).to_owned()).collect()
    }
}
