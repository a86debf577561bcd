//! Finds addresses within lines.

use crate::address::Address;

/// The ranges of the addresses in a line, in order.
///
/// An address is text that [`Address::parse`] accepts, without a letter, digit or underscore directly before or after
/// it. An IPv4 address has no dot before it, and no dot with a digit after it. A colon or a dot at the end of an
/// address is punctuation; a colon and digits after an IPv4 address are a port. An IPv6 address needs a digit, because
/// `a::b` is more likely a name.
pub(super) fn within(line: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < line.len() {
            let len = run(&line[at..]);
            if len == 0 {
                at += 1;
                continue;
            }
            if let Some((from, to)) = v6(line, at, at + len).or_else(|| v4(line, at, at + len)) {
                at = to;
                return Some((from, to));
            }
            at += len;
        }
        None
    })
}

/// The length of the longest prefix of the text that has only characters of addresses.
fn run(text: &[u8]) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len())
}

fn is_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii())
}

fn before(line: &[u8], at: usize) -> Option<&u8> {
    at.checked_sub(1).and_then(|at| line.get(at))
}

/// The IPv6 address that is the whole run, except for a label with a colon before it, and punctuation after it.
fn v6(line: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
    let (mut from, mut to) = (start, end);
    let is_named = is_word(before(line, from));
    if is_named || line[from] == b':' && line.get(from + 1) != Some(&b':') {
        // The run of `src:2001:db8::1` begins at `c`, so skip to the first colon. `std::string` has no address.
        from += line[from..to].iter().position(|byte| *byte == b':')? + 1;
        if line.get(from) == Some(&b':') {
            return None;
        }
    }
    // One colon at the end is punctuation; two belong to the address.
    let is_sign = |text: &[u8]| {
        text.ends_with(b".")
            || text.ends_with(b":::")
            || text.ends_with(b":") && !text.ends_with(b"::")
    };
    while is_sign(&line[from..to]) {
        to -= 1;
    }
    let text = &line[from..to];
    let is_v6 = text.iter().filter(|byte| **byte == b':').count() >= 2
        && text.iter().any(u8::is_ascii_digit)
        && !(to == end && is_word(line.get(end)))
        && Address::parse(text).is_some();
    is_v6.then_some((from, to))
}

/// The first IPv4 address in the run.
fn v4(line: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
    let mut at = start;
    while at < end {
        if !line[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let len = line[at..].iter().position(|byte| !is_part(byte)).unwrap_or(line.len() - at);
        let dots = line[at..at + len].iter().rev().take_while(|byte| **byte == b'.').count();
        let (from, to) = (at, at + len - dots);
        let previous = before(line, from);
        let is_apart =
            !is_word(previous) && previous != Some(&b'.') && !(dots == 0 && is_word(line.get(to)));
        if is_apart && Address::parse(&line[from..to]).is_some() {
            return Some((from, to));
        }
        at += len;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(line: &str) -> Vec<&str> {
        within(line.as_bytes()).map(|(from, to)| &line[from..to]).collect()
    }

    #[test]
    fn lines_of_logs() {
        for (line, expected) in [
            ("", &[][..]),
            (
                "Nov 23 04:17:41 gw sshd[811]: Failed password for root from 192.0.2.7 port 4711 ssh2",
                &["192.0.2.7"],
            ),
            (
                "<134>1 2026-11-23T04:17:41.123Z fw - - SRC=10.0.0.1 DST=192.0.2.9 LEN=60",
                &["10.0.0.1", "192.0.2.9"],
            ),
            ("connect 10.0.0.1:443 -> [2001:db8::1]:8443", &["10.0.0.1", "2001:db8::1"]),
            ("inet addr:10.0.0.1  Bcast:10.0.0.255", &["10.0.0.1", "10.0.0.255"]),
            ("inet6 addr: fe80::1%eth0, and src:2001:db8::7.", &["fe80::1", "2001:db8::7"]),
            (
                "::ffff:10.0.0.1, ::1 and 2001:db8::: not alone",
                &["::ffff:10.0.0.1", "::1", "2001:db8::"],
            ),
            (
                "10.0.0.1-10.0.0.9/24 (10.1.1.1), \"10.2.2.2\".",
                &["10.0.0.1", "10.0.0.9", "10.1.1.1", "10.2.2.2"],
            ),
            ("the end: 10.0.0.1.", &["10.0.0.1"]),
            ("client 10.0.0.1: timeout", &["10.0.0.1"]),
            (
                "version 1.2.3.4.5, x10.0.0.1, 10.0.0.1x, 10.0.0.1_a, _10.0.0.1, 010.0.0.1, 10.0.0.256",
                &[],
            ),
            ("std::string a::b 12:34:56 00:1a:2b:3c:4d:5e caf\u{e9}10.0.0.1 :: 1.2.3", &[]),
            ("1.2.3.4", &["1.2.3.4"]),
        ] {
            assert_eq!(found(line), expected, "{line:?}");
        }
    }

    proptest! {
        /// Addresses between words and signs are found, in order, and nothing else.
        #[test]
        fn planted_addresses(
            parts in prop::collection::vec((any::<u32>(), any::<u128>(), 0..4u8, 0..8u8), 0..8),
        ) {
            let (mut line, mut expected) = (String::new(), Vec::new());
            for (v4, v6, kind, sign) in parts {
                line += ["port ", " = ", "(", "to=", "-", "x[3]; ", "\"", "Nov 23 "][usize::from(sign)];
                let v6 = v6 | 1 << 64 | 0x2001 << 112; // with a digit
                let (text, rest) = match kind {
                    0 => (std::net::Ipv4Addr::from(v4).to_string(), ""),
                    1 => (std::net::Ipv4Addr::from(v4).to_string(), ":8080"),
                    2 => (std::net::Ipv6Addr::from(v6).to_string(), "/64"),
                    _ => {
                        line.push('[');
                        (std::net::Ipv6Addr::from(v6).to_string(), "]:53")
                    }
                };
                line += &text;
                line += rest;
                line += [" ", ", ", ")", ";"][usize::from(sign) / 2];
                expected.push(text);
            }
            prop_assert_eq!(found(&line), expected);
        }

        #[test]
        fn whatever_the_line_places_are_addresses_in_order(line in "[0-9a-f:. x\\[\\]_%]{0,60}") {
            let mut last = 0;
            for (from, to) in within(line.as_bytes()) {
                prop_assert!(last <= from && from < to);
                prop_assert!(line[from..to].parse::<std::net::IpAddr>().is_ok());
                last = to;
            }
        }
    }
}
