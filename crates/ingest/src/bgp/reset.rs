//! Malformed UPDATE messages that end a session (RFC 7606), because not all their routes are known.

use std::collections::BTreeSet;

use super::attributes::attribute;
use super::code::{self, is_unrecognized};
use super::cursor::{Afi, Cursor, DecodeFault};
use super::message::{HEADER, PeerEncoding};

/// Subcodes of "UPDATE Message Error".
const MALFORMED_ATTRIBUTE_LIST: u8 = 1;
const UNRECOGNIZED_WELL_KNOWN: u8 = 2;
const OPTIONAL_ATTRIBUTE_ERROR: u8 = 9;
const INVALID_NETWORK_FIELD: u8 = 10;

/// The reason why a session has to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// The subcode of the NOTIFICATION, whose code is 3, "UPDATE Message Error".
    pub subcode: u8,
    /// The data of the NOTIFICATION.
    pub data: Vec<u8>,
    /// The error.
    pub fault: DecodeFault,
}

/// Whether an UPDATE that [`Messages::decode`](super::Messages::decode) found malformed ends the session. It does if
/// some of its routes are unknown and cannot be withdrawn, or if it has an attribute that is marked well-known and is
/// unknown. After any other error the session continues.
///
/// ```
/// use fibula_ingest::bgp::{PeerEncoding, reset};
///
/// let update = |body: &[u8]| [&[0xff; 16][..], &[0, 19 + body.len() as u8, 2], body].concat();
/// // ORIGIN has no value, but 10.0.0.0/8 can be read; a prefix of 33 bits cannot.
/// assert_eq!(reset(&update(&[0, 0, 0, 3, 0x40, 1, 0, 8, 10]), PeerEncoding::default()), None);
/// let why = reset(&update(&[0, 0, 0, 3, 0x40, 1, 0, 33, 10, 0, 0, 0, 0]), PeerEncoding::default()).unwrap();
/// assert_eq!((why.subcode, why.fault.to_string().as_str()), (10, "byte 26: prefix length 33 exceeds 32"));
/// ```
pub fn reset(message: &[u8], from: PeerEncoding) -> Option<Reset> {
    let plain = |subcode| move |fault| Reset { subcode, data: Vec::new(), fault };
    let mut cursor = Cursor::new(message);
    let read = (|| {
        cursor.bytes(HEADER, "BGP header")?;
        let len = cursor.u16("withdrawn routes' length")?;
        let withdrawn = cursor.part(len.into(), "withdrawn routes")?;
        let len = cursor.u16("attributes' length")?;
        Ok((withdrawn, cursor.part(len.into(), "path attributes")?, cursor))
    })();
    match read.map_err(plain(MALFORMED_ATTRIBUTE_LIST)) {
        Err(reset) => Some(reset),
        Ok((withdrawn, attributes, announced)) => {
            let routes = [withdrawn, announced].into_iter();
            let mut routes = routes.map(|list| routes_of(list, Afi::V4, from));
            match routes.find_map(Result::err) {
                Some(fault) => Some(plain(INVALID_NETWORK_FIELD)(fault)),
                None => attributes_reset(attributes, !announced.is_empty(), from),
            }
        }
    }
}

fn attributes_reset(
    mut attributes: Cursor<'_>,
    mut has_routes: bool,
    from: PeerEncoding,
) -> Option<Reset> {
    let mut seen = BTreeSet::new();
    while !attributes.is_empty() {
        let start = attributes;
        let Ok((flags, code, value)) = attribute(&mut attributes) else {
            // The bytes after it are lost; they may be the routes.
            seen.insert(0);
            break;
        };
        let bytes =
            |end: &Cursor<'_>| start.rest()[..start.rest().len() - end.rest().len()].to_vec();
        if is_unrecognized(flags, code) {
            let fault =
                start.fault(format!("attribute {code} is marked well-known and is unknown"));
            let data = bytes(&attributes);
            return Some(Reset { subcode: UNRECOGNIZED_WELL_KNOWN, data, fault });
        }
        if !matches!(code, code::MP_REACH_NLRI | code::MP_UNREACH_NLRI) {
            seen.insert(code);
            continue;
        }
        if !seen.insert(code) {
            // RFC 7606, 3.g
            let fault = start.fault(format!("attribute {code} comes twice"));
            return Some(Reset { subcode: MALFORMED_ATTRIBUTE_LIST, data: Vec::new(), fault });
        }
        has_routes |= code == code::MP_REACH_NLRI;
        if let Err(fault) = multiprotocol(code, value, from) {
            let data = bytes(&attributes);
            return Some(Reset { subcode: OPTIONAL_ATTRIBUTE_ERROR, data, fault });
        }
    }
    // RFC 7606, 5.2: a fault in attributes that no route is seen to have.
    seen.remove(&code::MP_UNREACH_NLRI);
    (!has_routes && !seen.is_empty()).then(|| Reset {
        subcode: MALFORMED_ATTRIBUTE_LIST,
        data: Vec::new(),
        fault: attributes.fault("attributes are malformed, and of no route"),
    })
}

/// Reads MP_REACH_NLRI or MP_UNREACH_NLRI.
fn multiprotocol(code: u8, mut value: Cursor<'_>, from: PeerEncoding) -> Result<(), DecodeFault> {
    let (afi, safi) = (value.u16("address family")?, value.u8("address family")?);
    let is_reach = code == code::MP_REACH_NLRI;
    let (start, mut next_hop) = (value, 0);
    if is_reach {
        next_hop = value.u8("next hop's length")?;
        value.bytes(next_hop.into(), "next hop")?;
        value.u8("reserved byte")?;
    }
    let Some(afi) = Afi::from_code(afi).filter(|_| safi == 1) else { return Ok(()) };
    // RFC 7606, 7.11; RFC 8950 permits addresses of IPv6 for IPv4.
    if is_reach && ![4, 16, 32].contains(&next_hop) {
        return Err(start.fault(format!("a next hop has {next_hop} bytes")));
    }
    routes_of(value, afi, from)
}

/// Whether a list of routes can be read.
fn routes_of(mut list: Cursor<'_>, afi: Afi, from: PeerEncoding) -> Result<(), DecodeFault> {
    while !list.is_empty() {
        if from.add_path(afi, false) == super::AddPath::Present {
            list.u32("path identifier")?;
        }
        list.prefix(afi)?;
    }
    Ok(())
}
