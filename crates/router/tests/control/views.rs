//! Views of a table that changes, while it changes.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fibula_core::{
    AnyPrefix, Attributes, BgpAttributes, Change, Hop, NextHop, NextHops, RouteKind, Routes, Update,
};
use fibula_fib::{Fib, FibOptions};
use fibula_ingest::netlink::{LinkMessage, NeighbourState};
use fibula_rib::{Live, LiveOptions, Pacing, Peer, Rib, Table};
use fibula_router::View;
use fibula_router::control::{Control, ControlOptions, StaticViews};
use fibula_router::egress::{Egress, Group, Member};
use fibula_router::pipeline::Views;

use super::{address, hops, interface, ip, neighbour, ports};

const LIMIT: Duration = Duration::from_secs(20);

/// A control of one port, on interface 3 with `172.16.0.1/16` and `2001:db8::1/32`.
fn control() -> Control {
    let fixed = vec![
        interface(3, true),
        LinkMessage::Address(address(3, "172.16.0.1/16")),
        LinkMessage::Address(address(3, "2001:db8::1/32")),
        neighbour(3, "172.16.0.9", NeighbourState::Permanent, 9),
    ];
    let options = ControlOptions { kernel: false, fixed, ..ControlOptions::default() };
    Control::start(ports(&[3]), options, |_| {}).expect("a control")
}

fn live() -> (Live, u32) {
    let pacing = Pacing { bucket: Duration::from_millis(1), ..Pacing::default() };
    let options = LiveOptions { pacing, ..LiveOptions::default() };
    let live = Live::start(Rib::default(), &[0], FibOptions::default(), options, |_| {}).unwrap();
    let peer = live.peer(Peer::new(None, 0));
    (live, peer)
}

fn prefix(route: u8, is_v6: bool) -> AnyPrefix {
    match is_v6 {
        false => format!("10.{route}.0.0/16").parse().unwrap(),
        true => format!("2001:db8:{route:x}::/48").parse().unwrap(),
    }
}

/// A gateway that only this route has, of 200.
fn gateway(route: u8, which: u8) -> IpAddr {
    [172, 16, route, which].into()
}

fn via(gateways: &[IpAddr]) -> NextHops {
    NextHops { hops: gateways.iter().copied().map(NextHop::via).collect(), ..NextHops::default() }
}

fn group<'a>(view: &View<'a>, route: u8, is_v6: bool) -> Option<&'a Group> {
    let (hop, groups) = match is_v6 {
        false => (view.v4.engine.lookup(u32::from_be_bytes([10, route, 1, 2])), view.v4.groups),
        true => {
            let address = Ipv6Addr::new(0x2001, 0xdb8, route.into(), 1, 0, 0, 0, 2);
            (view.v6.engine.lookup(address.into()), view.v6.groups)
        }
    };
    let group = *groups.get(hop.index()? as usize)?;
    Some(&view.egress.description().groups[group as usize])
}

/// The gateways that packets of a route take; `None` without a route.
fn gateways(view: &View<'_>, route: u8, is_v6: bool) -> Option<Vec<IpAddr>> {
    let Group::Forward(members) = group(view, route, is_v6)? else { panic!("not forwarded") };
    let of = |member: &Member| match *member {
        Member::Gateway(at) => view.egress.description().adjacencies[at as usize].gateway,
        Member::OnLink(_) => panic!("no route is on the link"),
    };
    Some(members.iter().map(of).collect())
}

const ROUTES: u8 = 24;

/// Routes change their next hops and go, so that the numbers of sets and of groups are used again for those of other
/// routes. Whatever a worker sees is a next hop that this route had.
#[test]
fn a_route_never_has_the_next_hops_of_another() {
    let (control, (live, peer)) = (control(), live());
    let is_over = AtomicBool::new(false);
    let looks = AtomicU64::new(0);
    let workers = [control.views(&live, 0).unwrap(), control.views(&live, 0).unwrap()];
    let mut last = vec![[None, None]; ROUTES.into()];
    thread::scope(|scope| {
        for mut views in workers {
            let (is_over, looks) = (&is_over, &looks);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let view = views.view();
                    for route in 0..ROUTES {
                        for is_v6 in [false, true] {
                            let all = gateways(&view, route, is_v6).unwrap_or_default();
                            let is_own = |way: &IpAddr| matches!(way, IpAddr::V4(way) if way.octets()[2] == route);
                            assert!(all.iter().all(is_own), "route {route} has {all:?}");
                        }
                    }
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut random = 7u32;
        let mut next = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % below
        };
        for step in 0..6_000 {
            let (route, is_v6) = (next(ROUTES.into()) as u8, next(2) == 1);
            let which = next(200) as u8;
            let ways =
                via(&[gateway(route, which), gateway(route, which + 50)][..1 + next(2) as usize]);
            let change = match next(4) {
                0 => Change::Withdraw,
                _ => Change::Announce(Attributes::NextHops(&ways)),
            };
            last[usize::from(route)][usize::from(is_v6)] =
                (change != Change::Withdraw).then(|| ways.clone());
            live.apply(&Update { peer, ..Update::new(prefix(route, is_v6), change) }).unwrap();
            if step % 20 == 0 {
                thread::sleep(Duration::from_millis(2));
            }
        }
        live.flush().unwrap();
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(looks.load(Ordering::Relaxed) > 100);
    // Thousands of sets came and went, and their numbers were used again.
    let figures = control.figures();
    assert!(figures.groups < 1500, "{figures:?}");
    // In the end every route has its last next hops.
    let mut views = control.views(&live, 0).unwrap();
    let began = Instant::now();
    for (route, families) in (0..ROUTES).zip(&last) {
        for (is_v6, wanted) in [false, true].into_iter().zip(families) {
            let wanted = wanted
                .as_ref()
                .map(|w| w.hops.iter().filter_map(|h| h.gateway).collect::<Vec<_>>());
            while gateways(&views.view(), route, is_v6) != wanted {
                assert!(began.elapsed() < LIMIT, "route {route}: {wanted:?}");
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

#[test]
fn a_new_route_is_usable_and_kinds_and_bgp_are_known() {
    let (control, (live, peer)) = (control(), live());
    let mut views = control.views(&live, 0).unwrap();
    let mut is = |attributes: &Attributes<'_>, group_is: &dyn Fn(&Egress, &Group) -> bool| {
        let change = Change::Announce(*attributes);
        live.apply(&Update { peer, ..Update::new(prefix(1, false), change) }).unwrap();
        let began = Instant::now();
        loop {
            let view = views.view();
            let description = view.egress.description();
            if group(&view, 1, false).is_some_and(|group| group_is(description, group)) {
                return;
            }
            assert!(began.elapsed() < LIMIT, "{:?}", group(&view, 1, false));
            thread::sleep(Duration::from_micros(200));
        }
    };
    let adjacency = |egress: &Egress, group: &Group| match group {
        Group::Forward(members) => match members[..] {
            [Member::Gateway(at)] => Some(egress.adjacencies[at as usize]),
            _ => None,
        },
        _ => None,
    };
    is(&Attributes::NextHops(&hops("via 172.16.0.9")), &|description, group| {
        adjacency(description, group).is_some_and(|way| way.mac == Some(super::mac(9, 9)))
    });
    for (kind, expected) in
        [(RouteKind::Blackhole, Group::Blackhole), (RouteKind::Prohibit, Group::Prohibit)]
    {
        let next_hops = NextHops { kind, hops: Vec::new() };
        is(&Attributes::NextHops(&next_hops), &|_, group| *group == expected);
    }
    is(&Attributes::NextHops(&hops("dev 3")), &|_, group| {
        *group == Group::Forward(vec![Member::OnLink(0)])
    });
    let bgp = BgpAttributes { next_hop: Some(ip("172.16.7.7")), ..BgpAttributes::default() };
    is(&Attributes::Bgp(&bgp), &|description, group| {
        adjacency(description, group).is_some_and(|way| way.gateway == ip("172.16.7.7"))
    });
    // Attributes without a next hop lead nowhere.
    is(&Attributes::Values(&[]), &|_, group| *group == Group::Forward(vec![]));
}

#[test]
fn each_vrf_has_views_of_its_own() {
    let (control, (live, peer)) = (control(), live());
    let red = live.vrf("red");
    for (vrf, which) in [(0, 5), (red, 6)] {
        let ways = via(&[gateway(1, which)]);
        let change = Change::Announce(Attributes::NextHops(&ways));
        live.apply(&Update { peer, vrf, ..Update::new(prefix(1, false), change) }).unwrap();
    }
    live.flush().unwrap();
    for (vrf, which) in [(0, 5), (red, 6)] {
        let mut views = control.views(&live, vrf).unwrap();
        assert_eq!(gateways(&views.view(), 1, false), Some(vec![gateway(1, which)]));
    }
    assert!(control.views(&live, 99).is_err());
}

#[test]
fn a_table_that_does_not_change_has_views_too() {
    let routes = [("10.1.0.0/16", 1), ("10.2.0.0/16", 0)];
    let routes: Routes<u32> =
        routes.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect();
    let table = Table::from_routes(routes, Routes::default());
    let fib = Fib::of_table(table, &FibOptions::default()).unwrap();
    let control = control();
    let next_hops = [hops("dev 3"), via(&[gateway(1, 1)])];
    let mut views = control.static_views(&fib, next_hops).unwrap();
    assert_eq!(gateways(&views.view(), 1, false), Some(vec![gateway(1, 1)]));
    assert_eq!(group(&views.view(), 2, false), Some(&Group::Forward(vec![Member::OnLink(0)])));
    assert_eq!(group(&views.clone().view(), 3, false), None);
    let groups = vec![Group::Blackhole, Group::Local];
    let paths = fibula_router::Paths::new(Egress { groups, ..Egress::default() });
    let mut views = StaticViews::new(fib, [1, 0], paths.into());
    assert_eq!(group(&views.view(), 1, false), Some(&Group::Blackhole));
    assert_eq!(group(&views.view(), 2, false), Some(&Group::Local));
}
