//! Attribute sets as bytes, with equal bytes for equal attributes. A [`Rib`](super::Rib) keeps them, a
//! [`TableBuilder`](crate::TableBuilder) collects them, and a checkpoint stores them.
//!
//! ```text
//! from BGP    0        1      2       3  4            8          12          16   20        36
//!             kind 0 | flags | origin | 0 | path length | origin AS | local pref | MED | next hop | text length, AS path, communities
//! values      kind 1, then for each: 0 | 1 and 8 bytes | 2, a length of 4 bytes and text
//! next hops   kind 2 | route kind, then for each, sorted:
//!             flags | 0 0 0 | interface | weight | gateway in 16 bytes
//! ```
//!
//! Numbers are little-endian. A field whose flag is not set is zero, so each set has only one encoding.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use fibula_core::{Attributes, BgpAttributes, NextHops, Value};

use super::next_hops;

const BGP: u8 = 0;
const VALUES: u8 = 1;
const NEXT_HOPS: u8 = 2;

// The two lowest flags of a BGP set are those of its next hop: `next_hops::pack`.
const HAS_ORIGIN_AS: u8 = 4;
const HAS_LOCAL_PREF: u8 = 8;
const HAS_MED: u8 = 16;
const HAS_ORIGIN: u8 = 32;

/// Bytes before the texts of a BGP set.
const HEAD: usize = 40;

/// The attributes of a route, immutable and shared: clones are references.
///
/// ```
/// use fibula_core::{Attributes, BgpAttributes, NextHop, NextHops, Value};
/// use fibula_rib::AttributeSet;
///
/// let bgp = BgpAttributes { origin_as: Some(64500), as_path_len: 3, ..Default::default() };
/// let set = AttributeSet::new(&Attributes::Bgp(&bgp));
/// assert_eq!(set.bgp(), Some(bgp));
/// assert_eq!(set.to_string(), "origin AS64500, AS path length 3");
/// assert_eq!(AttributeSet::new(&Attributes::Values(&[Value::Int(7)])).values(), [Value::Int(7)]);
///
/// let gateways = [9, 1].map(|last| NextHop::via([192, 0, 2, last].into()));
/// let next_hops = NextHops { hops: gateways.to_vec(), ..Default::default() };
/// let set = AttributeSet::new(&Attributes::NextHops(&next_hops));
/// assert_eq!(set.to_string(), "via 192.0.2.1, via 192.0.2.9");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AttributeSet(Arc<[u8]>);

impl AttributeSet {
    /// Makes a set that is not shared yet.
    pub fn new(attributes: &Attributes<'_>) -> Self {
        let mut bytes = Vec::new();
        encode(attributes, &mut bytes);
        Self(bytes.into())
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// The set of [`AttributeSet::as_bytes`]; `None` if no set has these bytes.
    ///
    /// ```
    /// use fibula_core::{Attributes, Value};
    /// use fibula_rib::AttributeSet;
    ///
    /// let set = AttributeSet::new(&Attributes::Values(&[Value::Int(7)]));
    /// assert_eq!(AttributeSet::from_bytes(set.as_bytes()), Some(set));
    /// assert_eq!(AttributeSet::from_bytes(b"\x09"), None);
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        is_sound(bytes).then(|| Self::of_bytes(bytes))
    }

    /// The attributes as bytes, for storing them: equal for equal attributes, and the same in later versions.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether both use the same memory. It is faster than equality, and implies it.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The BGP attributes; `None` for a set of another kind.
    pub fn bgp(&self) -> Option<BgpAttributes<'_>> {
        self.encoded().bgp()
    }

    /// The next hops of a forwarding table's route, sorted; `None` for a set of another kind.
    pub fn next_hops(&self) -> Option<NextHops> {
        self.encoded().next_hops()
    }

    /// The values of a set that is neither from BGP nor next hops, in the order of its source's columns.
    pub fn values(&self) -> Vec<Value<'_>> {
        self.encoded().values().collect()
    }

    /// The set, borrowed.
    pub(crate) fn encoded(&self) -> Encoded<'_> {
        Encoded(&self.0)
    }
}

/// The bytes of a set.
#[derive(Clone, Copy)]
pub(crate) struct Encoded<'a>(pub(crate) &'a [u8]);

impl<'a> Encoded<'a> {
    /// The BGP attributes; `None` for a set of another kind.
    pub(crate) fn bgp(self) -> Option<BgpAttributes<'a>> {
        decode_bgp(self.0)
    }

    /// The next hop of a set from BGP.
    pub(crate) fn next_hop(self) -> Option<IpAddr> {
        let head = self.0.first_chunk::<HEAD>().filter(|head| head[0] == BGP)?;
        next_hop(head)
    }

    /// The next hops, sorted; `None` for a set of another kind.
    pub(crate) fn next_hops(self) -> Option<NextHops> {
        self.0.strip_prefix(&[NEXT_HOPS]).and_then(next_hops::decode)
    }

    /// The values; empty for a set of another kind.
    pub(crate) fn values(self) -> impl Iterator<Item = Value<'a>> {
        let mut rest = self.0.strip_prefix(&[VALUES]).unwrap_or_default();
        std::iter::from_fn(move || next_value(&mut rest))
    }

    /// The values that the decision compares.
    pub(crate) fn rank(self) -> Rank {
        rank(self.0)
    }
}

impl fmt::Display for AttributeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(next_hops) = self.next_hops() {
            return write!(f, "{next_hops}");
        }
        let Some(bgp) = self.bgp() else {
            let text = |value: &Value<'_>| match value {
                Value::Null => "null".to_owned(),
                Value::Int(v) => v.to_string(),
                Value::Str(v) => (*v).to_owned(),
            };
            return f.write_str(&self.values().iter().map(text).collect::<Vec<_>>().join(", "));
        };
        if let Some(next_hop) = bgp.next_hop {
            write!(f, "next hop {next_hop}, ")?;
        }
        if let Some(asn) = bgp.origin_as {
            write!(f, "origin AS{asn}, ")?;
        }
        write!(f, "AS path length {}", bgp.as_path_len)?;
        if let Some(preference) = bgp.local_pref {
            write!(f, ", local preference {preference}")?;
        }
        if let Some(med) = bgp.med {
            write!(f, ", MED {med}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for AttributeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// The numbers that decide between paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    pub(super) local_pref: u32,
    pub(super) path_len: u32,
    pub(super) origin: u8,
    pub(super) med: u32,
}

/// The local preference of BGP if none is given.
const DEFAULT_LOCAL_PREF: u32 = 100;

fn rank(bytes: &[u8]) -> Rank {
    if bytes.len() < HEAD || bytes[0] != BGP {
        return Rank { local_pref: DEFAULT_LOCAL_PREF, path_len: 0, origin: 0, med: 0 };
    }
    let has_preference = bytes[1] & HAS_LOCAL_PREF != 0;
    Rank {
        local_pref: if has_preference { word(bytes, 12) } else { DEFAULT_LOCAL_PREF },
        path_len: word(bytes, 4),
        origin: bytes[2],
        med: word(bytes, 16),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b))
}

/// Appends the attributes to `out`.
pub(crate) fn encode(attributes: &Attributes<'_>, out: &mut Vec<u8>) {
    match attributes {
        Attributes::Bgp(bgp) => encode_bgp(bgp, out),
        Attributes::NextHops(next_hops) => {
            out.push(NEXT_HOPS);
            next_hops::encode(next_hops, out);
        }
        Attributes::Values(values) => encode_values(values.iter().copied(), out),
    }
}

/// Appends a set of values to `out`.
pub(crate) fn encode_values<'a>(values: impl Iterator<Item = Value<'a>>, out: &mut Vec<u8>) {
    out.push(VALUES);
    for value in values {
        match value {
            Value::Null => out.push(0),
            Value::Int(v) => {
                out.push(1);
                out.extend_from_slice(&v.to_le_bytes());
            }
            Value::Str(text) => {
                out.push(2);
                // A value with 4 GiB of text is not supported.
                let len = u32::try_from(text.len()).unwrap_or(0);
                out.extend_from_slice(&len.to_le_bytes());
                out.extend_from_slice(&text.as_bytes()[..len as usize]);
            }
        }
    }
}

fn encode_bgp(bgp: &BgpAttributes<'_>, out: &mut Vec<u8>) {
    let flag = |given: bool, flag: u8| if given { flag } else { 0 };
    let (next_hop, mut flags) = next_hops::pack(bgp.next_hop);
    flags |= flag(bgp.origin_as.is_some(), HAS_ORIGIN_AS)
        | flag(bgp.local_pref.is_some(), HAS_LOCAL_PREF)
        | flag(bgp.med.is_some(), HAS_MED)
        | flag(bgp.origin.is_some(), HAS_ORIGIN);
    out.extend_from_slice(&[BGP, flags, bgp.origin.unwrap_or(0), 0]);
    let numbers = [
        bgp.as_path_len,
        bgp.origin_as.unwrap_or(0),
        bgp.local_pref.unwrap_or(0),
        bgp.med.unwrap_or(0),
    ];
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    out.extend_from_slice(&next_hop);
    out.extend_from_slice(&u32::try_from(bgp.as_path.len()).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(bgp.as_path.as_bytes());
    out.extend_from_slice(bgp.communities.as_bytes());
}

fn decode_bgp(bytes: &[u8]) -> Option<BgpAttributes<'_>> {
    let (head, text) = bytes.split_first_chunk::<HEAD>()?;
    if head[0] != BGP {
        return None;
    }
    let flags = head[1];
    let given = |flag: u8, at: usize| (flags & flag != 0).then(|| word(bytes, at));
    let (as_path, communities) = text.split_at_checked(word(bytes, 36) as usize)?;
    Some(BgpAttributes {
        next_hop: next_hop(head),
        origin_as: given(HAS_ORIGIN_AS, 8),
        as_path_len: word(bytes, 4),
        as_path: std::str::from_utf8(as_path).ok()?,
        local_pref: given(HAS_LOCAL_PREF, 12),
        med: given(HAS_MED, 16),
        origin: (flags & HAS_ORIGIN != 0).then_some(head[2]),
        communities: std::str::from_utf8(communities).ok()?,
        ..BgpAttributes::default()
    })
}

fn next_hop(head: &[u8; HEAD]) -> Option<IpAddr> {
    let octets = head[20..36].first_chunk::<16>()?;
    next_hops::unpack(*octets, head[1])
}

/// Removes the first value; `None` at the end, and if the bytes are invalid.
fn next_value<'a>(rest: &mut &'a [u8]) -> Option<Value<'a>> {
    let (&tag, after) = rest.split_first()?;
    let (value, after) = match tag {
        0 => (Value::Null, after),
        1 => {
            let (int, after) = after.split_first_chunk()?;
            (Value::Int(u64::from_le_bytes(*int)), after)
        }
        2 => {
            let (len, after) = after.split_first_chunk()?;
            let (text, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            (Value::Str(std::str::from_utf8(text).ok()?), after)
        }
        _ => return None,
    };
    *rest = after;
    Some(value)
}

/// Whether these bytes are the encoding of a set, exactly as [`encode`] writes it.
pub(crate) fn is_sound(bytes: &[u8]) -> bool {
    let mut again = Vec::with_capacity(bytes.len());
    match bytes.first() {
        Some(&BGP) => match decode_bgp(bytes) {
            Some(bgp) => encode_bgp(&bgp, &mut again),
            None => return false,
        },
        Some(&VALUES) => {
            let mut rest = &bytes[1..];
            encode_values(std::iter::from_fn(|| next_value(&mut rest)), &mut again);
        }
        Some(&NEXT_HOPS) => match next_hops::decode(&bytes[1..]) {
            Some(next_hops) => encode(&Attributes::NextHops(&next_hops), &mut again),
            None => return false,
        },
        _ => return false,
    }
    again == bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    use fibula_core::{NextHop, RouteKind};

    #[test]
    fn next_hops_come_back_sorted() {
        let hop = |last: u8, interface, weight| NextHop {
            gateway: (last > 0).then(|| [192, 0, 2, last].into()),
            interface,
            weight,
        };
        let v6 = NextHop { gateway: Some(Ipv6Addr::LOCALHOST.into()), ..hop(0, Some(0), 9) };
        let mut hops = vec![v6, hop(9, None, 1), hop(1, Some(u32::MAX), u32::MAX), hop(0, None, 0)];
        let set = |kind, hops: &[NextHop]| {
            AttributeSet::new(&Attributes::NextHops(&NextHops { kind, hops: hops.to_vec() }))
        };
        let one = set(RouteKind::Unicast, &hops);
        hops.reverse();
        assert_eq!(one, set(RouteKind::Unicast, &hops), "the order of a feed makes no difference");
        hops.sort_unstable();
        assert_eq!(one.next_hops(), Some(NextHops { kind: RouteKind::Unicast, hops }));
        assert_eq!((one.bgp(), one.values()), (None, vec![]));
        for kind in RouteKind::ALL {
            let none = set(kind, &[]);
            assert_eq!(none.next_hops(), Some(NextHops { kind, hops: vec![] }));
            assert!(none != one && is_sound(none.as_bytes()) && is_sound(one.as_bytes()));
        }
        // Unsorted, of an unknown kind, cut, with a gateway that the flags deny.
        let bytes = one.as_bytes();
        let swapped = [&bytes[..2], &bytes[30..58], &bytes[2..30], &bytes[58..]].concat();
        let mut denied = bytes.to_vec();
        assert_eq!(denied[2], 0);
        denied[20] = 1;
        for bytes in [&swapped[..], &[2, 3], &bytes[..29], &[2], &denied] {
            assert!(!is_sound(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn attributes_come_back() {
        let sets = [
            BgpAttributes::default(),
            BgpAttributes {
                next_hop: Some([192, 0, 2, 1].into()),
                origin_as: Some(0),
                as_path_len: u32::MAX,
                as_path: "64500 {64501,64502}",
                local_pref: Some(0),
                med: Some(5),
                origin: Some(2),
                communities: "64500:1 64500:2",
                ..BgpAttributes::default()
            },
            BgpAttributes { next_hop: Some(Ipv6Addr::LOCALHOST.into()), ..Default::default() },
        ];
        for bgp in sets {
            let set = AttributeSet::new(&Attributes::Bgp(&bgp));
            assert_eq!(set.bgp(), Some(bgp));
            assert!(is_sound(set.as_bytes()) && set.values().is_empty());
        }
        let values = [Value::Null, Value::Int(u64::MAX), Value::Str(""), Value::Str("Zürich")];
        let set = AttributeSet::new(&Attributes::Values(&values));
        assert_eq!((set.values(), set.bgp()), (values.to_vec(), None));
        assert!(is_sound(set.as_bytes()));
    }

    #[test]
    fn invalid_sets_are_detected() {
        for bytes in
            [&[][..], &[7], &[0; 39], &[1, 3], &[1, 2, 9, 0, 0, 0], &[1, 2, 1, 0, 0, 0, 0xff]]
        {
            assert!(!is_sound(bytes), "{bytes:?}");
        }
        let mut denied = AttributeSet::new(&Attributes::Bgp(&BgpAttributes::default())).0.to_vec();
        denied[16] = 1; // a MED that the flags deny
        assert!(!is_sound(&denied));
    }
}
