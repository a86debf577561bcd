//! The crate prefix-trie: `PrefixMap::get_lpm` with prefixes as integers and lengths.
#![forbid(unsafe_code)]

use std::io;

use bench_peer::{Built, Route, Single, serve, version};
use prefix_trie::{Prefix, PrefixMap};

fn main() -> io::Result<()> {
    let version = version(include_str!("../Cargo.lock"), "prefix-trie");
    serve("prefix-trie", version, build::<u32>, build::<u128>)
}

fn build<K: Copy + Send + Sync + 'static>(routes: &[Route<K>]) -> Built<K>
where
    (K, u8): Prefix,
{
    let map: PrefixMap<(K, u8), u32> =
        routes.iter().map(|&(key, len, hop)| ((key, len), hop)).collect();
    let bits = (size_of::<K>() * 8) as u8;
    Ok(Box::new(Single(move |key: K| map.get_lpm(&(key, bits)).map(|(_, hop)| *hop))))
}
