//! Common names of address columns: in lower case, the likeliest first. Case, blanks, hyphens and underscores of a name
//! do not matter.

/// The place of a name among those of a kind, if it is one of them.
pub(crate) fn rank(name: &str, names: &[&str]) -> Option<usize> {
    names.iter().position(|known| letters(known).eq(letters(name)))
}

fn letters(name: &str) -> impl Iterator<Item = u8> {
    let bytes =
        name.bytes().filter(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b'-' | b'_'));
    bytes.map(|byte| byte.to_ascii_lowercase())
}

/// Two columns that are a range by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The second has the number of addresses and not the last one.
    pub(crate) counts: bool,
}

/// The pairs of names that make a range, the likeliest first: first and last address, network and broadcast address,
/// first address and number of addresses.
pub(crate) fn pairs<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<Pair> {
    let ranked = |known: &[&str]| {
        let mut found: Vec<(usize, usize)> = names
            .clone()
            .enumerate()
            .filter_map(|(at, name)| Some((rank(name, known)?, at)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, at)| at).collect::<Vec<_>>()
    };
    let mut pairs = Vec::new();
    for (starts, ends, counts) in [
        (START_NAMES, END_NAMES, false),
        (NETWORK_NAMES, BROADCAST_NAMES, false),
        (COUNTED_NAMES, COUNT_NAMES, true),
    ] {
        let ends = ranked(ends);
        for start in ranked(starts) {
            pairs.extend(ends.iter().map(|&end| Pair { start, end, counts }));
        }
    }
    pairs
}

pub(crate) const PREFIX_NAMES: &[&str] = &[
    "prefix",
    "network",
    "network_address",
    "destination",
    "dst",
    "cidr",
    "subnet",
    "route",
    "netblock",
    "inetnum",
    "ip_prefix",
    "ip_network",
    "ip_range",
    "range",
    "net",
    "ip",
    "address",
    "addr",
    "ip_address",
    "host",
];
pub(crate) const START_NAMES: &[&str] = &[
    "start",
    "first",
    "start_ip",
    "ip_start",
    "ip_from",
    "from",
    "range_start",
    "first_ip",
    "begin",
    "low",
    "start_address",
    "ip_range_start",
    "network_start_ip",
    "network_start_integer",
    "start_ip_num",
];
pub(crate) const END_NAMES: &[&str] = &[
    "end",
    "last",
    "end_ip",
    "ip_end",
    "ip_to",
    "to",
    "range_end",
    "last_ip",
    "finish",
    "high",
    "end_address",
    "ip_range_end",
    "network_last_ip",
    "network_last_integer",
    "end_ip_num",
];
const NETWORK_NAMES: &[&str] = &["network", "network_address", "subnet", "net"];
const BROADCAST_NAMES: &[&str] = &["broadcast", "broadcast_address"];
/// Not `from` and `first`: the number beside them may count something else.
const COUNTED_NAMES: &[&str] =
    &["start", "start_ip", "ip_start", "range_start", "start_address", "ip_range_start"];
const COUNT_NAMES: &[&str] =
    &["count", "size", "addresses", "num_addresses", "number_of_addresses", "num_ips", "ip_count"];

/// Of netmasks and prefix lengths.
pub(crate) const LENGTH_NAMES: &[&str] = &[
    "netmask",
    "genmask",
    "subnet_mask",
    "network_mask",
    "wildcard",
    "wildcard_mask",
    "prefix_length",
    "prefix_len",
    "masklen",
    "mask_length",
    "mask",
    "length",
    "len",
    "bits",
    // These hold networks more often, but may occur next to a column of addresses.
    "cidr",
    "prefix",
];

/// How many of [`LENGTH_NAMES`] mean nothing but a netmask or a length: a value that is none is damage.
pub(crate) const SURE_LENGTH_NAMES: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_case_and_marks() {
        for name in ["start_ip", "Start IP", " START-IP ", "StartIp"] {
            assert_eq!(rank(name, START_NAMES), Some(2), "{name}");
        }
        assert_eq!(rank("start.ip", START_NAMES), None);
        assert_eq!(
            LENGTH_NAMES[SURE_LENGTH_NAMES - 1..=SURE_LENGTH_NAMES],
            ["mask_length", "mask"]
        );
    }

    #[test]
    fn pairs_by_name() {
        let found = |names: &[&str]| pairs(names.iter().copied()).first().copied();
        let pair = |start, end, counts| Some(Pair { start, end, counts });
        assert_eq!(found(&["end", "x", "start"]), pair(2, 0, false));
        assert_eq!(found(&["Broadcast", "Network"]), pair(1, 0, false));
        assert_eq!(found(&["start", "count"]), pair(0, 1, true));
        assert_eq!(found(&["from", "count"]), None);
        assert_eq!(found(&["start", "count", "end"]), pair(0, 2, false));
    }
}
