//! Extended communities as text (RFC 4360, RFC 5668, RFC 5701).

use std::fmt::Write;
use std::net::Ipv4Addr;

/// The kinds that have names: route targets and sites of origin.
const NAMES: [(u8, &str); 2] = [(2, "rt"), (3, "soo")];

/// Writes those of eight bytes, then those of twenty, with blanks between them: `rt:64500:1`, `soo:192.0.2.1:7`, and
/// the bytes of the others as `0x030c000000000008`.
pub(super) fn write(eight: &[u8], twenty: &[u8], out: &mut String) {
    let between = |out: &mut String| out.push_str(if out.is_empty() { "" } else { " " });
    for community in eight.as_chunks::<8>().0 {
        between(out);
        one(*community, out);
    }
    for community in twenty.as_chunks::<20>().0 {
        between(out);
        hex(community, out);
    }
}

fn one(bytes: [u8; 8], out: &mut String) {
    let [kind, code, a, b, c, d, e, f] = bytes;
    let name = NAMES.iter().find(|(known, _)| *known == code).map(|(_, name)| name);
    let (first, both) = (u16::from_be_bytes([a, b]), u32::from_be_bytes([a, b, c, d]));
    let last = u16::from_be_bytes([e, f]);
    // Writing to a string cannot fail.
    let _ = match (kind, name) {
        (0, Some(name)) => write!(out, "{name}:{first}:{}", u32::from_be_bytes([c, d, e, f])),
        (1, Some(name)) => write!(out, "{name}:{}:{last}", Ipv4Addr::from(both)),
        (2, Some(name)) => write!(out, "{name}:{both}:{last}"),
        _ => return hex(&bytes, out),
    };
}

fn hex(bytes: &[u8], out: &mut String) {
    out.push_str("0x");
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::write;

    #[test]
    fn named_and_others() {
        let text = |eight: &[u8], twenty: &[u8]| {
            let mut out = String::new();
            write(eight, twenty, &mut out);
            out
        };
        let eight = [
            [0, 2, 0xfb, 0xf4, 0, 1, 0, 0],
            [1, 3, 192, 0, 2, 1, 0, 7],
            [2, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            [0x40, 2, 0, 1, 0, 0, 0, 1], // not transitive: another one than rt:1:1
            [3, 12, 0, 0, 0, 0, 0, 8],
        ];
        assert_eq!(
            text(&eight.concat(), &[]),
            "rt:64500:65536 soo:192.0.2.1:7 rt:4294967295:65535 0x4002000100000001 0x030c000000000008"
        );
        let six = [&[0, 2][..], &[0x20, 1, 0xd, 0xb8], &[0; 12], &[0, 9]].concat();
        let expected = format!("rt:1:1 0x000220010db8{}0009", "00".repeat(12));
        assert_eq!(text(&[0, 2, 0, 1, 0, 0, 0, 1], &six), expected);
        // What is left of a table's damaged attribute is no community.
        assert_eq!(text(&[0, 2, 0], &[1; 19]), "");
    }
}
