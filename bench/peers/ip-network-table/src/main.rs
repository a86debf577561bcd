//! The crate ip_network_table: a tree bitmap, `longest_match_ipv4` and `longest_match_ipv6`.
#![forbid(unsafe_code)]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use bench_peer::{Built, Route, Single, serve, version};
use ip_network::{Ipv4Network, Ipv6Network};
use ip_network_table::IpNetworkTable;

fn main() -> io::Result<()> {
    let version = version(include_str!("../Cargo.lock"), "ip_network_table");
    serve("ip_network_table", version, v4, v6)
}

fn v4(routes: &[Route<u32>]) -> Built<u32> {
    let mut table = IpNetworkTable::with_capacity(routes.len(), 0);
    for &(key, len, hop) in routes {
        let network = Ipv4Network::new(Ipv4Addr::from_bits(key), len).map_err(|e| e.to_string())?;
        table.insert(network, hop);
    }
    let find = move |key| table.longest_match_ipv4(Ipv4Addr::from_bits(key)).map(|(_, hop)| *hop);
    Ok(Box::new(Single(find)))
}

fn v6(routes: &[Route<u128>]) -> Built<u128> {
    let mut table = IpNetworkTable::with_capacity(0, routes.len());
    for &(key, len, hop) in routes {
        let network = Ipv6Network::new(Ipv6Addr::from_bits(key), len).map_err(|e| e.to_string())?;
        table.insert(network, hop);
    }
    let find = move |key| table.longest_match_ipv6(Ipv6Addr::from_bits(key)).map(|(_, hop)| *hop);
    Ok(Box::new(Single(find)))
}
