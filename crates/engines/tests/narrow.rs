//! Every engine answers alike into 16 bits, at every length and for as many hops as they can hold.

use fibula_core::{Addr, Hop, Hops16, Lookup, Routes};
use fibula_engines::Isa;
use fibula_testkit::{probes, tables};

use crate::engines;

/// A dense table whose hops reach up to the largest of so many.
fn routes<A: Addr>(hops: u32) -> Routes<A> {
    let spread = |hop: Hop| Hop::new(hops - 1 - hop.to_bits() % 100);
    tables::dense::<A>(3, 500).iter().map(|route| (route.prefix, spread(route.hop))).collect()
}

/// Up to the largest hop that fits, and fewer: engines have codes of other widths for them.
fn alike<A: Addr>() {
    for hops in [100, 10_000, Hops16::<()>::HOPS_MAX] {
        alike_with::<A>(hops);
    }
}

fn alike_with<A: Addr>(hops: u32) {
    let routes = routes::<A>(hops);
    let addrs: Vec<A> = probes::boundary(&routes).take(1000).collect();
    for entry in engines::<A>() {
        let Ok(engine) = entry.build(&routes, Isa::detect()) else { continue };
        let engine: Box<dyn Lookup<A>> = Box::new(engine);
        let wide: Vec<Hop> = addrs.iter().map(|&addr| engine.lookup(addr)).collect();
        let narrow = Hops16::new(engine, routes.hop_count()).expect("so many hops fit");
        for len in [0, 1, 17, 255, 256, 257, addrs.len()] {
            let mut hops = vec![0; len];
            narrow.lookup_batch(&addrs[..len], &mut hops);
            for (&got, hop) in hops.iter().zip(&wide) {
                let expected = hop.index().map_or(Hops16::<()>::NONE, |index| index as u16);
                assert_eq!(got, expected, "{} {len}", entry.name);
            }
        }
    }
}

#[test]
fn ipv4() {
    alike::<u32>();
}

#[test]
fn ipv6() {
    alike::<u128>();
}

#[test]
fn more_hops_are_refused() {
    assert!(Hops16::new((), Hops16::<()>::HOPS_MAX).is_some());
    assert!(Hops16::new((), Hops16::<()>::HOPS_MAX + 1).is_none());
}
