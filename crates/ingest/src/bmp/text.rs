//! The remarks: a router's information about itself and its sessions, as text.

use std::fmt::Write;

use super::header::PerPeer;
use crate::Sink;
use crate::bgp::{Cursor, DecodeFault};

/// The next type-length-value entry (RFC 7854, 4.4).
pub(super) fn entry<'a>(cursor: &mut Cursor<'a>) -> Result<(u16, Cursor<'a>), DecodeFault> {
    const NAME: &str = "information";
    let (kind, len) = (cursor.u16(NAME)?, cursor.u16(NAME)?);
    Ok((kind, cursor.part(len.into(), NAME)?))
}

/// Readable text of bytes that a router gave.
pub(super) fn text(bytes: &[u8]) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    String::from_utf8_lossy(bytes).chars().map(plain).collect::<String>().trim().to_owned()
}

/// Initiation (RFC 7854, 4.3).
pub(super) fn initiation(mut body: Cursor<'_>, sink: &mut dyn Sink) -> Result<(), DecodeFault> {
    while !body.is_empty() {
        let (kind, value) = entry(&mut body)?;
        let key = match kind {
            0 => "information",
            1 => "system description",
            2 => "system name",
            _ => continue,
        };
        sink.remark(key, &text(value.rest()));
    }
    Ok(())
}

/// Termination (RFC 7854, 4.5).
pub(super) fn termination(mut body: Cursor<'_>, sink: &mut dyn Sink) -> Result<(), DecodeFault> {
    while !body.is_empty() {
        let (kind, mut value) = entry(&mut body)?;
        match kind {
            0 => sink.remark("termination", &text(value.rest())),
            1 => {
                let reason = match value.u16("termination reason")? {
                    0 => "the session was closed by its administrator".to_owned(),
                    2 => "the router is out of resources".to_owned(),
                    3 => "the connection is redundant".to_owned(),
                    4 => "the session was closed by its administrator, for good".to_owned(),
                    1 => "unspecified reason".to_owned(),
                    other => format!("unknown reason {other}"),
                };
                sink.remark("termination", &reason);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Why a session went down (RFC 7854, 4.9; RFC 9069, 5.3).
pub(super) fn down_reason(mut body: Cursor<'_>) -> Result<String, DecodeFault> {
    let reason = body.u8("reason")?;
    let notification = |by: &str| {
        // The notification is a BGP message, with a header of 19 bytes.
        let Some(&[code, subcode, ..]) = body.rest().get(19..) else {
            return format!("{by} with a NOTIFICATION");
        };
        let name = match code {
            1 => "Message Header Error",
            2 => "OPEN Message Error",
            3 => "UPDATE Message Error",
            4 => "Hold Timer Expired",
            5 => "Finite State Machine Error",
            6 => "Cease",
            7 => "ROUTE-REFRESH Message Error",
            _ => "unknown error",
        };
        format!("{by} with NOTIFICATION {code}/{subcode} ({name})")
    };
    Ok(match reason {
        1 => notification("closed by the router"),
        2 => {
            let event = body.u16("event").unwrap_or(0);
            format!("closed by the router after event {event} of RFC 4271, 8.1")
        }
        3 => notification("closed by the peer"),
        4 => "closed by the peer without a NOTIFICATION".to_owned(),
        5 => "no longer monitored".to_owned(),
        6 => "closed by the router".to_owned(),
        other => format!("unknown reason {other}"),
    })
}

/// A statistics report (RFC 7854, 4.8), as one remark: its counters are of one peer.
pub(super) fn statistics(
    mut body: Cursor<'_>,
    of: &PerPeer,
    sink: &mut dyn Sink,
) -> Result<(), DecodeFault> {
    let count = body.u32("number of counters")?;
    let mut out = of.peer_name();
    let mut before = ": ";
    for _ in 0..count {
        let (kind, value) = entry(&mut body)?;
        // Names come from the registry of RFC 7854, 10.3; the later ones stay numbers.
        let _ = match COUNTERS.get(usize::from(kind)) {
            Some(name) => write!(out, "{before}{name}"),
            None => write!(out, "{before}counter {kind}"),
        };
        out.push_str(&counter(value.rest()));
        before = ", ";
    }
    sink.remark("statistics", &out);
    Ok(())
}

/// A counter's value of four or eight bytes, some with their family before it.
fn counter(value: &[u8]) -> String {
    let (family, number) = match *value {
        [high, low, safi, ref number @ ..] if number.len() == 8 => {
            let afi = u16::from_be_bytes([high, low]);
            let family = match (afi, safi) {
                (1, 1) => " of IPv4".to_owned(),
                (2, 1) => " of IPv6".to_owned(),
                (1, 128) => " of IPv4 in VPNs".to_owned(),
                (2, 128) => " of IPv6 in VPNs".to_owned(),
                _ => format!(" of family {afi}/{safi}"),
            };
            (family, number)
        }
        ref number => (String::new(), number),
    };
    match number.len() {
        4 | 8 => {
            let number = number.iter().fold(0, |sum: u64, &byte| sum << 8 | u64::from(byte));
            format!("{family} {number}")
        }
        len => format!(" in {len} bytes"),
    }
}

const COUNTERS: [&str; 18] = [
    "prefixes rejected by inbound policy",
    "duplicate announcements",
    "duplicate withdrawals",
    "updates with a CLUSTER_LIST loop",
    "updates with an AS_PATH loop",
    "updates with its own ORIGINATOR_ID",
    "updates with a confederation loop",
    "routes in Adj-RIB-In",
    "routes in Loc-RIB",
    "routes in Adj-RIB-In",
    "routes in Loc-RIB",
    "updates treated as withdrawals",
    "prefixes treated as withdrawn",
    "duplicate updates",
    "routes in pre-policy Adj-RIB-Out",
    "routes in post-policy Adj-RIB-Out",
    "routes in pre-policy Adj-RIB-Out",
    "routes in post-policy Adj-RIB-Out",
];
