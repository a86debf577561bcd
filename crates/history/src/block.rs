//! A number of records as bytes: of the log in the order of time, of other files in the order of keys.
//!
//! ```text
//! tables     count, then for each: length, name
//! peers      count, then for each: flags (1 IPv4 | 2 IPv6 | 4 source) | address | AS | length, source
//! sets       count, then for each: length, bytes of the attribute set
//! records    count, then for each: tag, unless it has the key of the one before: table, length of the prefix, its bytes;
//!            difference to the time of the one before; peer, if it has one; set, if it has one
//! ```
//!
//! Numbers have 1 to 10 bytes, 7 bits in each. Tables, peers and sets of records are places in the lists.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use fibula_core::{AnyPrefix, Prefix};
use fibula_rib::{AttributeSet, Peer};

use crate::bytes::{Flaw, Input, put, put_bytes, unzigzag, zigzag};
use crate::record::{RouteKey, RouteRecord};

const IS_V6: u8 = 1;
const SAME_KEY: u8 = 2;
const HAS_PEER: u8 = 4;
const HAS_BEST: u8 = 8;
const IS_FOUND: u8 = 16;
const IS_BASE: u8 = 32;

/// The most records, tables, peers or sets of a block: about how many bytes one has that is finished in time, so that a
/// forged block takes little memory.
const MOST: usize = 1 << 17;

const PEER_V4: u8 = 1;
const PEER_V6: u8 = 2;
const PEER_SOURCE: u8 = 4;

/// A list without repetitions.
struct Distinct<T> {
    places: HashMap<T, u64>,
    bytes: Vec<u8>,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self { places: HashMap::new(), bytes: Vec::new() }
    }
}

impl<T: Hash + Eq + Clone> Distinct<T> {
    /// The place of an item, which is written if it is new.
    fn place(&mut self, item: &T, write: impl FnOnce(&T, &mut Vec<u8>)) -> u64 {
        if let Some(&place) = self.places.get(item) {
            return place;
        }
        let place = self.places.len() as u64;
        write(item, &mut self.bytes);
        self.places.insert(item.clone(), place);
        place
    }

    fn end(&self, out: &mut Vec<u8>) {
        put(out, self.places.len() as u64);
        out.extend_from_slice(&self.bytes);
    }
}

/// Writes records.
#[derive(Default)]
pub(crate) struct BlockWriter {
    tables: Distinct<Arc<str>>,
    peers: Distinct<Arc<Peer>>,
    sets: Distinct<AttributeSet>,
    records: Vec<u8>,
    count: u64,
    last: Option<RouteKey>,
    time: u64,
}

impl BlockWriter {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// About how many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
            + self.sets.bytes.len()
            + self.peers.bytes.len()
            + self.tables.bytes.len()
    }

    pub(crate) fn push(&mut self, key: &RouteKey, record: &RouteRecord) {
        let is_same = self.last.as_ref() == Some(key);
        let flag = |is: bool, flag| if is { flag } else { 0 };
        let tag = flag(matches!(key.prefix, AnyPrefix::V6(_)), IS_V6)
            | flag(is_same, SAME_KEY)
            | flag(record.peer.is_some(), HAS_PEER)
            | flag(record.best.is_some(), HAS_BEST)
            | flag(record.is_found, IS_FOUND)
            | flag(record.is_base, IS_BASE);
        self.records.push(tag);
        if !is_same {
            let table = self.tables.place(&key.table, |name, out| put_bytes(out, name.as_bytes()));
            put(&mut self.records, table);
            put_prefix(&mut self.records, key.prefix);
            self.last = Some(key.clone());
        }
        put(&mut self.records, zigzag(record.time.wrapping_sub(self.time) as i64));
        self.time = record.time;
        if let Some(peer) = &record.peer {
            let place = self.peers.place(peer, |peer, out| put_peer(out, peer));
            put(&mut self.records, place);
        }
        if let Some(set) = &record.best {
            let place = self.sets.place(set, |set, out| put_bytes(out, set.as_bytes()));
            put(&mut self.records, place);
        }
        self.count += 1;
    }

    pub(crate) fn finish(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len() + 40);
        self.tables.end(&mut out);
        self.peers.end(&mut out);
        self.sets.end(&mut out);
        put(&mut out, self.count);
        out.extend_from_slice(&self.records);
        out
    }
}

fn put_peer(out: &mut Vec<u8>, peer: &Peer) {
    let of_address = match peer.address {
        None => 0,
        Some(IpAddr::V4(_)) => PEER_V4,
        Some(IpAddr::V6(_)) => PEER_V6,
    };
    out.push(of_address | if peer.source.is_some() { PEER_SOURCE } else { 0 });
    match peer.address {
        None => {}
        Some(IpAddr::V4(address)) => out.extend_from_slice(&address.octets()),
        Some(IpAddr::V6(address)) => out.extend_from_slice(&address.octets()),
    }
    put(out, peer.asn.into());
    if let Some(source) = &peer.source {
        put_bytes(out, source.as_bytes());
    }
}

fn peer(input: &mut Input<'_>) -> Result<Peer, Flaw> {
    let flags = input.byte()?;
    let octets = "a peer's address is cut";
    let address = match flags & (PEER_V4 | PEER_V6) {
        0 => None,
        PEER_V4 => Some(IpAddr::from(*input.take(4)?.first_chunk::<4>().ok_or(octets)?)),
        PEER_V6 => Some(IpAddr::from(*input.take(16)?.first_chunk::<16>().ok_or(octets)?)),
        _ => return Err("a peer has two addresses"),
    };
    let asn = u32::try_from(input.number()?).map_err(|_| "a peer's AS is too large")?;
    let source = match flags & PEER_SOURCE {
        0 => None,
        _ => Some(input.text()?.into()),
    };
    if flags > PEER_V4 | PEER_V6 | PEER_SOURCE {
        return Err("a peer has an unknown flag");
    }
    Ok(Peer { address, asn, source })
}

/// The length, then as many bytes as have bits of the prefix.
pub(crate) fn put_prefix(out: &mut Vec<u8>, prefix: AnyPrefix) {
    match prefix {
        AnyPrefix::V4(prefix) => {
            out.push(prefix.len());
            let count = usize::from(prefix.len().div_ceil(8));
            out.extend_from_slice(&prefix.addr().to_be_bytes()[..count]);
        }
        AnyPrefix::V6(prefix) => {
            out.push(prefix.len());
            let count = usize::from(prefix.len().div_ceil(8));
            out.extend_from_slice(&prefix.addr().to_be_bytes()[..count]);
        }
    }
}

/// Reads what [`put_prefix`] wrote.
pub(crate) fn prefix(input: &mut Input<'_>, is_v6: bool) -> Result<AnyPrefix, Flaw> {
    let length = input.byte()?;
    let bytes = input.take(usize::from(length.div_ceil(8)))?;
    let mut all = [0; 16];
    let wrong = "a prefix has a wrong length or bits behind it";
    all.get_mut(..bytes.len()).ok_or(wrong)?.copy_from_slice(bytes);
    if is_v6 {
        let prefix = Prefix::new(u128::from_be_bytes(all), length);
        return prefix.map(AnyPrefix::V6).map_err(|_| wrong);
    }
    let [a, b, c, d, ..] = all;
    let prefix = Prefix::new(u32::from_be_bytes([a, b, c, d]), length);
    prefix.map(AnyPrefix::V4).map_err(|_| wrong)
}

/// The records of a block.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<(RouteKey, RouteRecord)>, Flaw> {
    let mut input = Input(bytes);
    let tables = (0..count(&mut input)?).map(|_| Ok(Arc::from(input.text()?)));
    let tables: Vec<Arc<str>> = tables.collect::<Result<_, Flaw>>()?;
    let peers = (0..count(&mut input)?).map(|_| peer(&mut input).map(Arc::new));
    let peers: Vec<Arc<Peer>> = peers.collect::<Result<_, Flaw>>()?;
    let set = |input: &mut Input<'_>| {
        AttributeSet::from_bytes(input.bytes()?).ok_or("the attributes of a route are none")
    };
    let sets = (0..count(&mut input)?).map(|_| set(&mut input));
    let sets: Vec<AttributeSet> = sets.collect::<Result<_, Flaw>>()?;
    let count = count(&mut input)?;
    let mut records: Vec<(RouteKey, RouteRecord)> = Vec::with_capacity(count);
    let mut time = 0u64;
    for _ in 0..count {
        let tag = input.byte()?;
        if tag > 63 {
            return Err("a record has an unknown tag");
        }
        let key = match records.last() {
            Some((last, _)) if tag & SAME_KEY != 0 => last.clone(),
            None if tag & SAME_KEY != 0 => return Err("the first record has no prefix"),
            _ => {
                let table = at(&tables, &mut input, "a record is of no table")?;
                RouteKey { table, prefix: prefix(&mut input, tag & IS_V6 != 0)? }
            }
        };
        time = time.wrapping_add(unzigzag(input.number()?) as u64);
        let has = |flag| tag & flag != 0;
        let peer = has(HAS_PEER).then(|| at(&peers, &mut input, "a record is of no peer"));
        let peer = peer.transpose()?;
        let best = has(HAS_BEST).then(|| at(&sets, &mut input, "a record has no attributes"));
        let best = best.transpose()?;
        let (is_found, is_base) = (has(IS_FOUND), has(IS_BASE));
        records.push((key, RouteRecord { time, peer, best, is_found, is_base }));
    }
    input.end()?;
    Ok(records)
}

fn count(input: &mut Input<'_>) -> Result<usize, Flaw> {
    match input.count()? {
        count if count <= MOST => Ok(count),
        _ => Err("a block has too many parts"),
    }
}

fn at<T: Clone>(all: &[T], input: &mut Input<'_>, flaw: Flaw) -> Result<T, Flaw> {
    let place = usize::try_from(input.number()?).map_err(|_| flaw)?;
    all.get(place).cloned().ok_or(flaw)
}

#[cfg(test)]
mod tests {
    use fibula_core::{Attributes, BgpAttributes};

    use super::*;

    #[test]
    fn records_come_back_and_other_bytes_are_refused() {
        let set = |origin| {
            let bgp =
                BgpAttributes { origin_as: Some(origin), as_path: "1 2", ..Default::default() };
            AttributeSet::new(&Attributes::Bgp(&bgp))
        };
        let peers = [
            Peer::new(None, 0),
            Peer::new(Some([192, 0, 2, 1].into()), 64500),
            Peer { address: "2001:db8::1".parse().ok(), asn: u32::MAX, source: Some("bgp".into()) },
        ];
        let peers = peers.map(Arc::new);
        let mut all = Vec::new();
        for (at, text) in
            ["0.0.0.0/0", "10.0.0.0/9", "255.255.255.255/32", "::/0", "2001:db8::/33", "::1/128"]
                .into_iter()
                .enumerate()
        {
            let table = if at % 2 == 0 { "bgp" } else { "bmp/pre-policy" }.into();
            let key = RouteKey { table, prefix: text.parse().unwrap() };
            let peer = peers[at % 3].clone();
            let time = u64::MAX / 7 * at as u64;
            all.push((key.clone(), RouteRecord::new(time, Some(peer), Some(set(at as u32 % 2)))));
            all.push((
                key.clone(),
                RouteRecord { is_base: true, ..RouteRecord::new(1, None, None) },
            ));
            all.push((key, RouteRecord::found(u64::MAX, None, None)));
        }
        let mut writer = BlockWriter::default();
        all.iter().for_each(|(key, record)| writer.push(key, record));
        let bytes = writer.finish();
        assert_eq!(read(&bytes).unwrap(), all);
        assert!(bytes.len() < writer.len() + 40);
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length}");
        }
        // Whatever is changed, it is read or refused.
        let (mut refused, mut other) = (0, bytes.clone());
        for at in 0..bytes.len() {
            for value in 0..=255 {
                other[at] = value;
                refused += usize::from(read(&other).is_err());
            }
            other[at] = bytes[at];
        }
        assert!(refused > bytes.len() * 100, "{refused}");
    }
}
