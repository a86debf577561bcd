//! Next-hop objects and groups, and the routes that use them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use fibula_core::{Attributes, Change, Update};
use proptest::prelude::*;

use super::super::wire::kind;
use super::*;
use crate::{Damage, Sink};

#[test]
fn routes_use_next_hop_objects_and_groups() {
    let uses = |id| route(V4, &[number(30, id)]);
    let sink = fpm(&[
        gateway(1, 1),
        gateway(2, 2),
        group(3, &[(2, 1), (1, 300)]),
        next_hop(kind::NEWNEXTHOP, 4, &[attribute(4, &[])]),
        group(5, &[(4, 1)]),
        uses(1),
        uses(3),
        uses(4),
        uses(5),
    ]);
    expect_lines(
        &sink,
        &[
            "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3",
            "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3 weight 300, via 10.9.0.2 interface 3 weight 1",
            "+ 0 10.1.0.0/16 blackhole",
            "+ 0 10.1.0.0/16 blackhole",
        ],
    );
}

#[test]
fn a_replaced_object_announces_its_routes_again() {
    let sink = fpm(&[
        gateway(1, 1),
        gateway(2, 2),
        group(3, &[(1, 1), (2, 1)]),
        route(V4, &[number(30, 1)]),
        route(V6, &[number(30, 3)]),
        // Twice, with nothing between: once. The same as before: not at all.
        gateway(1, 7),
        gateway(1, 8),
        gateway(2, 2),
        route(V4, &[number(30, 2)]),
        // Only the group uses it now.
        gateway(1, 9),
    ]);
    expect_lines(
        &sink,
        &[
            "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3",
            "+ 0 2001:db8::/32 via 10.9.0.1 interface 3, via 10.9.0.2 interface 3",
            "+ 0 10.1.0.0/16 via 10.9.0.8 interface 3",
            "+ 0 2001:db8::/32 via 10.9.0.2 interface 3, via 10.9.0.8 interface 3",
            "+ 0 10.1.0.0/16 via 10.9.0.2 interface 3",
            "+ 0 2001:db8::/32 via 10.9.0.2 interface 3, via 10.9.0.9 interface 3",
        ],
    );
}

#[test]
fn a_deleted_object_takes_its_routes_along() {
    let delete_object = |id| next_hop(kind::DELNEXTHOP, id, &[]);
    let sink = fpm(&[
        gateway(1, 1),
        gateway(2, 2),
        group(3, &[(1, 1), (2, 1)]),
        route(V4, &[number(30, 1)]),
        route(V6, &[number(30, 3)]),
        delete_object(1),
        delete_object(9),
        // The object is new: of the routes only the group's uses it.
        gateway(1, 5),
        route(V4, &[number(4, 3)]),
        delete_object(2),
        delete_object(1),
    ]);
    expect_lines(
        &sink,
        &[
            "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3",
            "+ 0 2001:db8::/32 via 10.9.0.1 interface 3, via 10.9.0.2 interface 3",
            "- 0 10.1.0.0/16",
            "+ 0 2001:db8::/32 via 10.9.0.2 interface 3, via 10.9.0.5 interface 3",
            "+ 0 10.1.0.0/16 on the link interface 3",
            // A group without members.
            "- 0 2001:db8::/32",
        ],
    );
}

/// A kernel calls the routes of a blackhole object blackholes, and drops them with it all the same.
#[test]
fn a_blackhole_object_takes_its_routes_along() {
    let used = message(kind::NEWROUTE, &body(V4, 6, &[number(30, 4)]));
    let sink = kernel(&[
        next_hop(kind::NEWNEXTHOP, 4, &[attribute(4, &[])]),
        used.clone(),
        next_hop(kind::DELNEXTHOP, 4, &[]),
        used,
    ]);
    expect_lines(
        &sink,
        &["+ 0 10.1.0.0/16 blackhole", "- 0 10.1.0.0/16", "+ 0 10.1.0.0/16 blackhole"],
    );
}

#[test]
fn a_route_of_an_unknown_object_waits_for_it() {
    let sink = fpm(&[route(V4, &[number(30, 6)]), gateway(6, 1)]);
    assert_eq!(sink.lines, ["- 0 10.1.0.0/16", "+ 0 10.1.0.0/16 via 10.9.0.1 interface 3"]);
    let what = &sink.damage[0].what;
    assert!(what.starts_with("the route's next hop was never announced"), "{what}");
    // A kernel sends the next hops beside the object's number.
    expect_lines(
        &kernel(&[route(V4, &[number(30, 6), number(4, 8)])]),
        &["+ 0 10.1.0.0/16 on the link interface 8"],
    );
}

proptest! {
    /// The table after any changes equals that of a plain map of objects and routes.
    #[test]
    fn replaced_objects_agree_with_a_plain_map(
        steps in prop::collection::vec((0..5u8, 0..4u32, 0..6u8), 0..60)
    ) {
        let (mut decoder, mut table) = (FpmDecoder::default(), Latest::default());
        let (mut objects, mut routes) = (BTreeMap::new(), BTreeMap::new());
        let prefix = |n: u8| attribute(1, &[10, n, 0, 0]);
        for (step, id, n) in steps {
            let id = id + 1;
            let message = match step {
                0 => {
                    objects.insert(id, n);
                    gateway(id, n)
                }
                1 => {
                    if objects.remove(&id).is_some() {
                        routes.retain(|_, used| *used != id);
                    }
                    next_hop(kind::DELNEXTHOP, id, &[])
                }
                2 => {
                    routes.remove(&n);
                    delete(V4, &[prefix(n)])
                }
                _ => {
                    routes.insert(n, id);
                    route(V4, &[prefix(n), number(30, id)])
                }
            };
            decoder.decode(&frame(&[message]), Tail::More, &mut table).unwrap();
        }
        decoder.flush(&mut table);
        let expected: BTreeMap<String, String> = routes
            .iter()
            .filter_map(|(n, id)| {
                let last = objects.get(id)?;
                Some((format!("10.{n}.0.0/16"), format!("via 10.9.0.{last} interface 3")))
            })
            .collect();
        prop_assert_eq!(table.0, expected);
    }
}

/// The table as it is now.
#[derive(Default)]
struct Latest(BTreeMap<String, String>);

impl Sink for Latest {
    fn update(&mut self, update: &Update<'_>) {
        match update.change {
            Change::Announce(Attributes::NextHops(hops)) => {
                self.0.insert(update.prefix.to_string(), hops.to_string());
            }
            _ => {
                self.0.remove(&update.prefix.to_string());
            }
        }
    }
    fn damage(&mut self, _: &Damage) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
