//! The fields of the lines that [`bgpdump`](super::bgpdump) reads.

use std::borrow::Cow;

use super::excerpt;

const BGPDUMP: [&str; 5] = ["TABLE_DUMP", "TABLE_DUMP2", "BGP4MP", "BGP4MP_ET", "BGP"];
/// The header of bgpkit-parser's `--psv`, which has the origin AS numbers in a field of their own.
const BGPKIT_HEADER: &str = "type|timestamp|peer_ip|peer_asn|prefix|";
/// The states of a session as bgpreader prints them, from 0.
const STATES: [&str; 9] = [
    "UNKNOWN",
    "IDLE",
    "CONNECT",
    "ACTIVE",
    "OPENSENT",
    "OPENCONFIRM",
    "ESTABLISHED",
    "CLEARING",
    "DELETED",
];

/// A line.
pub(super) struct Element<'a> {
    pub(super) time: &'a str,
    /// Address and AS number.
    pub(super) peer: (&'a str, &'a str),
    pub(super) action: Action<'a>,
}

/// What a line says. Prefixes may be several, with blanks or commas between them; a path identifier follows.
pub(super) enum Action<'a> {
    State(u16, u16),
    Withdraw(&'a str, u32),
    Announce(&'a str, u32, RouteText<'a>),
}

/// The attributes of a route, as they are written.
pub(super) struct RouteText<'a> {
    pub(super) path: &'a str,
    pub(super) origin: &'a str,
    pub(super) next_hop: &'a str,
    pub(super) local_pref: &'a str,
    pub(super) med: &'a str,
    pub(super) communities: &'a str,
    /// AS and address, with a blank between them.
    pub(super) aggregator: (&'a str, &'a str),
}

pub(super) fn is_line(line: &str) -> bool {
    let fields: Vec<&str> = line.split('|').collect();
    let is_time = |text: &str| {
        text.bytes().next().is_some_and(|b| b.is_ascii_digit())
            && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    let is_prefix = |text: &str| text.contains('/') && text.contains(['.', ':']);
    match fields[..] {
        [kind, _, "A" | "B" | "W" | "STATE", ..]
            if BGPDUMP.contains(&kind.strip_suffix("_AP").unwrap_or(kind)) =>
        {
            true
        }
        ["A" | "W", time, _, asn, prefix, _, ..] => {
            is_time(time) && is_time(asn) && is_prefix(prefix)
        }
        ["R" | "U", "R" | "A" | "W" | "S" | "E", time, _, _, ..] => {
            is_time(time) && fields.len() >= 14
        }
        ["=" | "+" | "-", prefixes, _, _, _, _, _, _, _, time, ..] => {
            is_prefix(prefixes) && is_time(time)
        }
        _ => line.starts_with(BGPKIT_HEADER),
    }
}

/// Reads a line; `None` if it says nothing about routes or sessions.
pub(super) fn element(line: &str) -> Result<Option<Element<'_>>, Cow<'static, str>> {
    let fields: Vec<&str> = line.split('|').collect();
    match fields[..] {
        _ if line.starts_with(BGPKIT_HEADER) => Ok(None),
        [what @ ("A" | "W"), ref rest @ ..] => bgpkit(line, what, rest).map(Some),
        ["R" | "U", what, ref rest @ ..] => bgpreader(line, what, rest),
        [what @ ("=" | "+" | "-"), ref rest @ ..] => bgpscanner(line, what, rest).map(Some),
        // Its other messages: opens, notifications, keep-alives.
        ["#" | ">" | "!" | "@" | "^", _, ..] => Ok(None),
        _ => bgpdump(line, &fields).map(Some),
    }
}

#[cold]
fn wrong(what: &str, text: &str) -> Cow<'static, str> {
    format!("{what}: {}", excerpt(text)).into()
}

fn fewer(line: &str) -> Cow<'static, str> {
    wrong("fewer fields than a route has", line)
}

fn in_one_field(aggregator: Option<&str>) -> (&str, &str) {
    aggregator.and_then(|text| text.split_once(' ')).unwrap_or_default()
}

fn bgpdump<'a>(line: &str, fields: &[&'a str]) -> Result<Element<'a>, Cow<'static, str>> {
    let [kind, time, what, address, asn, ref rest @ ..] = *fields else {
        return Err(wrong("not a line of bgpdump -m", line));
    };
    let peer = (address, asn);
    if what == "STATE" {
        let state = |at: usize| rest.get(at).and_then(|text| text.parse().ok());
        let (old, new) = state(0).zip(state(1)).ok_or_else(|| wrong("not two states", line))?;
        return Ok(Element { time, peer, action: Action::State(old, new) });
    }
    let [prefix, ref rest @ ..] = *rest else { return Err("no prefix".into()) };
    let (path_id, rest) = match (kind.ends_with("_AP"), rest) {
        (true, [id, rest @ ..]) => {
            (id.parse().map_err(|_| wrong("not a path identifier", id))?, rest)
        }
        (true, []) => return Err("no path identifier".into()),
        (false, rest) => (0, rest),
    };
    let action = match (what, rest) {
        ("W", _) => Action::Withdraw(prefix, path_id),
        ("A" | "B", &[path, origin, next_hop, local_pref, med, ref rest @ ..]) => {
            let (communities, rest) = match *rest {
                // Of BGP messages of 1999 without communities, the field is not there.
                ["AG" | "NAG", ..] => ("", rest),
                [communities, ref rest @ ..] => (communities, rest),
                [] => return Err(fewer(line)),
            };
            let aggregator = in_one_field(rest.get(1).copied());
            let route =
                RouteText { path, origin, next_hop, local_pref, med, communities, aggregator };
            Action::Announce(prefix, path_id, route)
        }
        ("A" | "B", _) => return Err(fewer(line)),
        _ => return Err(wrong("none of A, B, W and STATE", what)),
    };
    Ok(Element { time, peer, action })
}

fn bgpkit<'a>(
    line: &str,
    what: &str,
    fields: &[&'a str],
) -> Result<Element<'a>, Cow<'static, str>> {
    let [time, address, asn, prefix, ref rest @ ..] = *fields else { return Err(fewer(line)) };
    let action = match *rest {
        _ if what == "W" => Action::Withdraw(prefix, 0),
        [path, ref rest @ ..] => {
            let is_origin = |text: &&str| matches!(*text, "IGP" | "EGP" | "INCOMPLETE");
            let rest = if rest.get(1).is_some_and(is_origin) { &rest[1..] } else { rest };
            let [origin, next_hop, local_pref, med, communities, ref rest @ ..] = *rest else {
                return Err(fewer(line));
            };
            let field = |at: usize| rest.get(at).copied().unwrap_or_default();
            let aggregator = (field(1), field(2));
            let route =
                RouteText { path, origin, next_hop, local_pref, med, communities, aggregator };
            Action::Announce(prefix, 0, route)
        }
        [] => return Err(fewer(line)),
    };
    Ok(Element { time, peer: (address, asn), action })
}

fn bgpreader<'a>(
    line: &str,
    what: &str,
    fields: &[&'a str],
) -> Result<Option<Element<'a>>, Cow<'static, str>> {
    // Version 2 has the router's name and address before the peer, version 1 has not.
    let is_new = fields.len() > 12;
    let [time, _, _, ref rest @ ..] = *fields else { return Err(fewer(line)) };
    let rest = if is_new { rest.get(2..).unwrap_or_default() } else { rest };
    let [asn, address, prefix, next_hop, path, _, communities, old, new, ..] = *rest else {
        return Err(fewer(line));
    };
    let state = |text: &str| STATES.iter().position(|state| *state == text).map(|at| at as u16);
    let action = match what {
        "R" | "A" => {
            let none = "";
            Action::Announce(
                prefix,
                0,
                RouteText {
                    path,
                    origin: none,
                    next_hop,
                    local_pref: none,
                    med: none,
                    communities,
                    aggregator: (none, none),
                },
            )
        }
        "W" => Action::Withdraw(prefix, 0),
        "S" => {
            let (old, new) =
                state(old).zip(state(new)).ok_or_else(|| wrong("not two states", line))?;
            Action::State(old, new)
        }
        "E" => return Ok(None),
        _ => return Err(wrong("none of R, A, W, S and E", what)),
    };
    Ok(Some(Element { time, peer: (address, asn), action }))
}

fn bgpscanner<'a>(
    line: &str,
    what: &str,
    fields: &[&'a str],
) -> Result<Element<'a>, Cow<'static, str>> {
    let [prefixes, path, next_hop, origin, _, aggregator, communities, source, time, ..] = *fields
    else {
        return Err(fewer(line));
    };
    let mut source = source.split(' ');
    let peer = (source.next().unwrap_or_default(), source.next().unwrap_or_default());
    let action = match what {
        "-" => Action::Withdraw(prefixes, 0),
        _ => Action::Announce(
            prefixes,
            0,
            RouteText {
                path,
                origin,
                next_hop,
                local_pref: "",
                med: "",
                communities,
                aggregator: in_one_field(Some(aggregator)),
            },
        ),
    };
    Ok(Element { time, peer, action })
}
