//! The forwarder in a pipeline: the same packets leave, whatever the shape.

use fibula_core::{Addr, Hop, Lookup};
use fibula_router::egress::{Adjacency, Egress, EgressPort, Group, Member};
use fibula_router::forward::{Forwarder, Reason, Side, View};
use fibula_router::pipeline::{Routing, Views};
use fibula_router::{ForwardOptions, Paths};
use fibula_testkit::traffic::{Traffic, keys};
use fibula_testkit::{Oracle, tables};

use super::*;

/// Tables that do not change: two ports, the groups of which are the hops' parity.
struct Tables {
    v4: Oracle<u32>,
    v6: Oracle<u128>,
    groups: Vec<u32>,
    paths: Paths,
}

impl Tables {
    fn new() -> (Self, Vec<u32>, Vec<u128>) {
        let (v4, v6) = (tables::dense::<u32>(3, 2000), tables::dense::<u128>(4, 2000));
        let asked = (keys(&v4, Traffic::Pfx, 3000, 1), keys(&v6, Traffic::Pfx, 3000, 1));
        let hops = v4.iter().map(|route| route.hop).chain(v6.iter().map(|route| route.hop));
        let most = hops.filter_map(Hop::index).max().unwrap();
        let adjacency = |port: u16| Adjacency {
            port,
            gateway: [192, 0, port as u8, 1].into(),
            mac: Some([6, 0, 0, 0, 0, port as u8]),
        };
        // Both have the address that the generated packets are for.
        let port = EgressPort { mac: [2, 0, 0, 0, 0, 1], mtu: 1500, ..Default::default() };
        let egress = Egress {
            groups: (0..2).map(|to| Group::Forward(vec![Member::Gateway(to)])).collect(),
            adjacencies: (0..2).map(adjacency).collect(),
            ports: vec![port; 2],
            ..Egress::default()
        };
        let tables = Self {
            v4: Oracle::new(&v4),
            v6: Oracle::new(&v6),
            groups: (0..=most).map(|hop| hop % 2).collect(),
            paths: Paths::new(egress),
        };
        (tables, asked.0, asked.1)
    }

    /// The port that an address leaves by, by the rules of the test.
    fn port<A: Addr>(&self, oracle: &Oracle<A>, address: A) -> Option<u32> {
        oracle.lookup(address).index().map(|hop| self.groups[hop as usize])
    }
}

struct View2<'a>(&'a Tables);

impl Views for View2<'_> {
    fn view(&mut self) -> View<'_> {
        let Tables { v4, v6, groups, paths } = self.0;
        View { v4: Side { engine: v4, groups }, v6: Side { engine: v6, groups }, egress: paths }
    }
}

#[test]
fn the_same_packets_leave_in_every_shape() {
    let (tables, v4, v6) = Tables::new();
    let udp = |addresses: Vec<std::net::IpAddr>| {
        Arc::new(Flows::udp([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 1], 64, addresses))
    };
    // This test only has packets that a router may forward.
    let may = |address: std::net::IpAddr| {
        if address.is_multicast() {
            return false;
        }
        let flows = Flows::udp([2; 6], [2; 6], 64, [address]);
        let pool = Pool::new(1, 512);
        let (mut port, _) = memory::open("m", &pool, &memory_options(1, &Arc::new(flows), Some(1)));
        let mut burst = Vec::new();
        port.queues[0].receive.receive(&pool, &mut burst, 1).unwrap();
        let frame =
            fibula_packet::Frame::parse(fibula_packet::LinkType::Ethernet, burst[0].bytes());
        let may = frame.check_forward().is_ok();
        pool.give(burst);
        may
    };
    let v4: Vec<u32> = v4.into_iter().filter(|key| may(key.to_ip())).collect();
    let v6: Vec<u128> = v6.into_iter().filter(|key| may(key.to_ip())).collect();
    let ports = v4.iter().map(|key| tables.port(&tables.v4, *key));
    let ports: Vec<Option<u32>> =
        ports.chain(v6.iter().map(|key| tables.port(&tables.v6, *key))).collect();
    let by = |port: u32| ports.iter().filter(|out| **out == Some(port)).count() as u64;
    assert!(by(0) > 500 && by(1) > 500);

    let mut sums = Vec::new();
    for shape in SHAPES {
        let pool = Pool::new(1 << 14, 512);
        let open = |name, keys: Vec<std::net::IpAddr>| {
            let count = keys.len() as u64;
            memory::open(name, &pool, &memory_options(1, &udp(keys), Some(count)))
        };
        let (left, sent_left) = open("left", v4.iter().map(|key| key.to_ip()).collect());
        let (right, sent_right) = open("right", v6.iter().map(|key| key.to_ip()).collect());
        let stage = || {
            let options = ForwardOptions { icmp: false, ..ForwardOptions::default() };
            Routing::new(View2(&tables), Forwarder::new(options))
        };
        let ports = vec![left.into(), right.into()];
        let end = run(&pool, ports, options(shape), stage).unwrap();
        assert_conserved(&pool, &end);
        assert_eq!(end.losses.iter().sum::<u64>(), 0);
        let counted =
            |reason| end.reasons.iter().map(|reasons| reasons.packets(reason)).sum::<u64>();
        assert_eq!((sent_left.packets(), sent_right.packets()), (by(0), by(1)), "{shape:?}");
        assert_eq!(counted(Reason::ForwardedV4) + counted(Reason::ForwardedV6), by(0) + by(1));
        assert_eq!(counted(Reason::NoRoute), end.dropped);
        sums.push([&sent_left, &sent_right].map(|sent| (sent.packets(), sent.checksum())));
    }
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
}
