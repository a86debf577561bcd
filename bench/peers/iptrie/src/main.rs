//! The crate iptrie: its Patricia trie (`patricia`), and the LC-trie that it compresses that one into (`lc`).
#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, Ipv6Addr};
use std::{env, io};

use bench_peer::{Built, NO_HOP, Route, Single, serve, version};
use iptrie::{Ipv4Prefix, Ipv4RTrieMap, Ipv6Prefix, Ipv6RTrieMap};

fn main() -> io::Result<()> {
    let version = version(include_str!("../Cargo.lock"), "iptrie");
    serve("iptrie", version, v4, v6)
}

fn is_compressed() -> bool {
    env::args().nth(1).as_deref() == Some("lc")
}

/// A map always has a root: without a default route, its hop is [`NO_HOP`].
fn v4(routes: &[Route<u32>]) -> Built<u32> {
    let mut map = Ipv4RTrieMap::with_root(NO_HOP);
    for &(key, len, hop) in routes {
        let prefix = Ipv4Prefix::new(Ipv4Addr::from_bits(key), len).map_err(|e| e.to_string())?;
        map.insert(prefix, hop);
    }
    if is_compressed() {
        let map = map.compress();
        return Ok(Box::new(Single(move |key| Some(*map.lookup(&Ipv4Addr::from_bits(key)).1))));
    }
    Ok(Box::new(Single(move |key| Some(*map.lookup(&Ipv4Addr::from_bits(key)).1))))
}

/// As [`v4`].
fn v6(routes: &[Route<u128>]) -> Built<u128> {
    let mut map = Ipv6RTrieMap::with_root(NO_HOP);
    for &(key, len, hop) in routes {
        let prefix = Ipv6Prefix::new(Ipv6Addr::from_bits(key), len).map_err(|e| e.to_string())?;
        map.insert(prefix, hop);
    }
    if is_compressed() {
        let map = map.compress();
        return Ok(Box::new(Single(move |key| Some(*map.lookup(&Ipv6Addr::from_bits(key)).1))));
    }
    Ok(Box::new(Single(move |key| Some(*map.lookup(&Ipv6Addr::from_bits(key)).1))))
}
