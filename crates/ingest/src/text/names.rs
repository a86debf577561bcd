//! Common names of address columns: in lower case, with `_` for blanks and hyphens, the likeliest first.

/// The place of a name among those of a kind, if it is one of them.
pub(crate) fn rank(name: &str, names: &[&str]) -> Option<usize> {
    let name = name.trim().bytes().map(|byte| match byte {
        b' ' | b'-' => b'_',
        byte => byte.to_ascii_lowercase(),
    });
    names.iter().position(|known| name.clone().eq(known.bytes()))
}

pub(crate) const PREFIX_NAMES: &[&str] = &[
    "prefix",
    "network",
    "network_address",
    "destination",
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
    "startip",
    "ip_range_start",
    "network_start_ip",
    "network_start_integer",
    "startipnum",
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
    "endip",
    "ip_range_end",
    "network_last_ip",
    "network_last_integer",
    "endipnum",
];

/// Of netmasks and prefix lengths.
pub(crate) const LENGTH_NAMES: &[&str] = &[
    "netmask",
    "mask",
    "genmask",
    "subnet_mask",
    "network_mask",
    "prefix_length",
    "prefixlength",
    "prefix_len",
    "prefixlen",
    "masklen",
    "mask_length",
    "length",
    "len",
    "bits",
    // These hold networks more often, but may occur next to a column of addresses.
    "cidr",
    "prefix",
];
