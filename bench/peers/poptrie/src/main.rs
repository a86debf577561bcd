//! The crate poptrie: `Poptrie::lookup` with prefixes as integers and lengths.
#![forbid(unsafe_code)]

use std::io;

use bench_peer::{Built, Route, Single, serve, version};
use poptrie::Poptrie;

fn main() -> io::Result<()> {
    let version = version(include_str!("../Cargo.lock"), "poptrie");
    serve("poptrie", version, v4, v6)
}

fn v4(routes: &[Route<u32>]) -> Built<u32> {
    let trie: Poptrie<(u32, u8), u32> =
        routes.iter().map(|&(key, len, hop)| ((key, len), hop)).collect();
    Ok(Box::new(Single(move |key: u32| trie.lookup(key).copied())))
}

fn v6(routes: &[Route<u128>]) -> Built<u128> {
    let trie: Poptrie<(u128, u8), u32> =
        routes.iter().map(|&(key, len, hop)| ((key, len), hop)).collect();
    Ok(Box::new(Single(move |key: u128| trie.lookup(key).copied())))
}
