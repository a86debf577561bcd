//! Addresses, looked up by the programs in the kernel and by the oracle.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_core::{Hop, Lookup, Routes};

use fibula_router::forward::Side;
use fibula_router::port::xdp::{FastPath, Trial};
use fibula_router::{Paths, View};
use fibula_simd::Isa;
use fibula_testkit::fib::{FibSpec, HopModel};
use fibula_testkit::{Oracle, Rng, probes, tables};

use super::{engine, fast_path, stamp};

/// More hops than any group number would be given to.
const GROUPS_MAX: u32 = 1 << 22;

/// A table of each family in the kernel.
struct Bench {
    fast: FastPath,
    trial: Trial,
    number: u64,
    asked: u64,
}

impl Bench {
    fn new() -> Option<Self> {
        let fast = fast_path(1, 0)?;
        let trial = fast.trial(0, [2, 0, 0, 0, 0, 1], &[], false).unwrap();
        Some(Self { fast, trial, number: 0, asked: 0 })
    }

    /// Looks up all boundaries of the routes, addresses in them and others.
    fn check(&mut self, name: &str, v4: &Routes<u32>, v6: &Routes<u128>) {
        // Another number than the hop's, to detect reads of a wrong place.
        let groups = |hops: u32| -> Vec<u32> { (0..hops).map(|hop| hop ^ 0x5a5a_0000).collect() };
        assert!(v4.hop_count() <= GROUPS_MAX && v6.hop_count() <= GROUPS_MAX);
        let (groups4, groups6) = (groups(v4.hop_count()), groups(v6.hop_count()));
        let (engine4, engine6) = (engine(v4), engine(v6));
        let paths = Paths::default();
        let view = View {
            v4: Side { engine: &*engine4, groups: &groups4 },
            v6: Side { engine: &*engine6, groups: &groups6 },
            egress: &paths,
        };
        self.number += 1;
        assert!(self.fast.publish(stamp(self.number), &view).unwrap());
        let mut rng = Rng::new(self.number);
        let (oracle4, oracle6) = (Oracle::new(v4), Oracle::new(v6));
        let group = |hop: Hop, groups: &[u32]| hop.index().map(|hop| groups[hop as usize]);
        let random: Vec<u32> = (0..2000).map(|_| rng.addr()).collect();
        let within = v4.iter().map(|route| rng.addr_in(route.prefix)).collect::<Vec<u32>>();
        for addr in probes::boundary(v4).chain(within).chain(random) {
            let (ip, expected) = (Ipv4Addr::from(addr).into(), oracle4.lookup(addr));
            self.ask(name, ip, group(expected, &groups4));
        }
        let random: Vec<u128> = (0..2000).map(|_| rng.addr()).collect();
        let within = v6.iter().map(|route| rng.addr_in(route.prefix)).collect::<Vec<u128>>();
        for addr in probes::boundary(v6).chain(within).chain(random) {
            let (ip, expected) = (Ipv6Addr::from(addr).into(), oracle6.lookup(addr));
            self.ask(name, ip, group(expected, &groups6));
        }
    }

    fn ask(&mut self, name: &str, address: IpAddr, expected: Option<u32>) {
        self.asked += 1;
        assert_eq!(self.trial.group(address).unwrap(), expected, "{name}: {address}");
    }
}

#[test]
fn every_boundary_of_hard_tables() {
    let Some(mut bench) = Bench::new() else { return };
    bench.check("empty", &Routes::default(), &Routes::default());
    for ((name, v4), (_, v6)) in tables::edge().into_iter().zip(tables::edge()) {
        if v4.hop_count() <= GROUPS_MAX && v6.hop_count() <= GROUPS_MAX {
            bench.check(name, &v4, &v6);
        }
    }
    for seed in 0..2 {
        bench.check("dense", &tables::dense(seed, 2000), &tables::dense(seed, 2000));
    }
    bench.check("crowded", &tables::crowded(), &tables::crowded());
    assert!(bench.asked > 50_000, "{}", bench.asked);
}

/// Codes of 8, 16 and 32 bits; tables that grow out of their arenas and shrink again.
#[test]
fn every_boundary_of_realistic_tables() {
    let Some(mut bench) = Bench::new() else { return };
    let specs = [
        (3000, HopModel::Near(20)),
        (8000, HopModel::Hash(4000)),
        (6000, HopModel::Hash(400_000)),
        (500, HopModel::Near(3)),
    ];
    for (prefixes, hops) in specs {
        let spec = FibSpec { year: 2024, prefixes, seed: 7, hops };
        bench.check(&spec.to_string(), &spec.generate(), &spec.generate());
    }
    bench.check("wide hops", &tables::wide_hops(80, 1500), &tables::wide_hops(80, 1500));
}

#[test]
fn engines_without_a_program_are_left_out() {
    let Some(mut bench) = Bench::new() else { return };
    let (v4, v6) = (tables::dense(1, 500), tables::dense(1, 500));
    bench.check("with", &v4, &v6);
    assert_eq!(bench.fast.families(), (true, true));
    let groups: Vec<u32> = (0..1000).collect();
    let (other, engine6) = (
        fibula_engines::Registry::product()
            .find::<u32>("radix")
            .unwrap()
            .build(&v4, Isa::detect())
            .unwrap(),
        engine(&v6),
    );
    let view = View {
        v4: Side { engine: &*other, groups: &groups },
        v6: Side { engine: &*engine6, groups: &groups },
        egress: &Paths::default(),
    };
    assert!(bench.fast.publish(stamp(1000), &view).unwrap());
    assert_eq!(bench.fast.families(), (false, true));
    for addr in probes::boundary(&v4).take(50) {
        assert_eq!(bench.trial.group(Ipv4Addr::from(addr).into()).unwrap(), None);
    }
    // Known tables are not written again.
    assert!(!bench.fast.publish(stamp(1000), &view).unwrap());
    bench.check("with again", &v4, &v6);
}
