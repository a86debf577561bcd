//! IPv4-mapped IPv6 addresses and prefixes.

use std::net::{IpAddr, Ipv4Addr};

use crate::common::{Kinds, table};
use fibula_core::{AnyPrefix, Hop, Routes};

fn routes<A: fibula_core::Addr>(list: &[(&str, u32)]) -> Routes<A> {
    list.iter().map(|&(prefix, hop)| (prefix.parse().unwrap(), Hop::new(hop))).collect()
}

fn kinds() -> Kinds {
    Kinds::new(&table(
        routes(&[("10.0.0.0/8", 1), ("10.1.0.0/16", 2), ("0.0.0.0/1", 0)]),
        routes(&[("::/0", 7), ("::ffff:0:0/96", 8), ("::ffff:10.1.0.0/112", 9)]),
    ))
}

fn prefix(text: &str) -> AnyPrefix {
    text.parse().unwrap()
}

#[test]
fn a_mapped_address_is_the_ipv4_address() {
    let kinds = kinds();
    for (kind, fib) in kinds.all() {
        for (v4, value) in [
            ([10, 1, 2, 3], Some("value=2")),
            ([10, 255, 0, 0], Some("value=1")),
            ([127, 255, 255, 255], Some("value=0")),
            ([255, 255, 255, 255], None), // not that of ::/0 or of ::ffff:0:0/96
        ] {
            let v4 = Ipv4Addr::from(v4);
            let ask = |ip: IpAddr| fib.lookup(ip).map(|found| found.to_string());
            let found = ask(v4.to_ipv6_mapped().into());
            assert_eq!(found, ask(v4.into()), "{kind} {v4}");
            assert_eq!(found.as_deref().map(|text| text.rsplit(' ').next().unwrap()), value);
        }
        // IPv4-compatible addresses and the block's neighbours are IPv6.
        for ip in ["::10.1.2.3", "::fffe:10.1.2.3", "::1:ffff:10.1.2.3", "64:ff9b::10.1.2.3"] {
            let found = fib.lookup(ip.parse().unwrap()).unwrap().to_string();
            assert!(found.ends_with("value=7"), "{kind} {ip}: {found}");
        }
        // A batch of one family stays in it.
        let mut hops = [Hop::NONE; 2];
        fib.lookup_batch(&[0xffff_0a01_0203_u128, 0xffff_ffff_ffff], &mut hops);
        assert!(hops.iter().all(|hop| !hop.is_none()) && hops[0] != hops[1], "{kind}");
    }
}

#[test]
fn a_mapped_prefix_is_the_ipv4_prefix() {
    let kinds = kinds();
    for fib in [&kinds.file, &kinds.built] {
        let covering = |text: &str| -> Vec<String> {
            fib.covering(prefix(text)).unwrap().map(|found| found.to_string()).collect()
        };
        let v4 = ["10.1.0.0/16 value=2", "10.0.0.0/8 value=1", "0.0.0.0/1 value=0"];
        assert_eq!(covering("::ffff:10.1.0.0/112"), v4);
        assert_eq!(covering("::ffff:10.1.2.3/128"), v4);
        assert_eq!(covering("::fffe:0:0/95"), ["::/0 value=7"]);
        let covered = |text: &str| fib.covered(prefix(text)).unwrap().count();
        assert_eq!((covered("::ffff:0:0/96"), covered("::/0")), (3, 3));
        let exact = |text: &str| fib.exact(prefix(text)).unwrap().map(|found| found.to_string());
        assert_eq!(exact("::ffff:10.0.0.0/104").as_deref(), Some("10.0.0.0/8 value=1"));
        // The IPv4 table has no route to 0.0.0.0/0, and the IPv6 one is not searched.
        assert_eq!(exact("::ffff:0:0/96"), None);
        assert_eq!(exact("::/0").as_deref(), Some("::/0 value=7"));
    }
}
