//! Each kind of rule by itself.

use std::time::Duration;

use fibula_alarms::{AlarmKind, AlarmRule, Occasion, WatchedRoute};
use fibula_core::AnyPrefix;
use fibula_rpki::{PathValidity, Validity};

use crate::{Desk, SECOND, path};

fn prefixes(list: &[&str]) -> Vec<AnyPrefix> {
    list.iter().map(|prefix| prefix.parse().unwrap()).collect()
}

fn rule(kind: AlarmKind, list: &[&str]) -> AlarmRule {
    AlarmRule::new("r", kind).on(prefixes(list))
}

const OURS: &str = "192.0.2.0/24";

#[test]
fn unexpected_origin() {
    let kind = AlarmKind::UnexpectedOrigin { origins: vec![64500, 64510] };
    let mut desk = Desk::new([rule(kind, &[OURS])]);
    desk.change(1, OURS, path("64501 64500")).change(2, OURS, path("64502 64510"));
    desk.change(3, "192.0.2.0/25", path("64666")).change(4, "192.0.0.0/16", path("64666"));
    assert!(desk.lines().is_empty());
    desk.change(5, OURS, path("64501 64666"));
    // The hijacker announces it by another path: the same alarm.
    desk.change(6, OURS, path("64501 64502 64666"));
    let begun = desk.events[0].alarm.clone();
    assert_eq!((begun.begin, &*begun.as_path), (5 * SECOND, "64501 64666"));
    assert_eq!(begun.expected, "origin AS64500 or AS64510");
    assert_eq!(
        begun.to_string(),
        "r (unexpected-origin): bgp 192.0.2.0/24: expected origin AS64500 or AS64510, seen origin AS64666, by AS64501 (192.0.2.1), path 64501 64666"
    );
    assert_eq!(desk.lines(), ["+ r 192.0.2.0/24: origin AS64666"]);
    assert_eq!(desk.alarms.active().count(), 1);
    desk.change(7, OURS, path("64501 64500"));
    let ended = desk.events[0].alarm.clone();
    assert_eq!((ended.id, ended.begin, ended.end), (begun.id, 5 * SECOND, Some(7 * SECOND)));
    assert_eq!(desk.lines(), ["- r 192.0.2.0/24"]);
    assert_eq!(desk.alarms.active().count(), 0);
    // A set has no single origin; a route that is gone is no alarm.
    desk.change(8, OURS, path("64501 {64500,64510}")).change(9, OURS, None);
    assert_eq!(desk.lines(), ["+ r 192.0.2.0/24: no single origin", "- r 192.0.2.0/24"]);
    // A route of the kernel has no origin to judge.
    desk.change(10, OURS, Some(WatchedRoute::other("kernel")));
    assert!(desk.lines().is_empty());
    assert_eq!(desk.alarms.counts()[0].raised, 2);
}

#[test]
fn more_specific() {
    let none = AlarmKind::MoreSpecific { max_len: None, origins: vec![] };
    let mut desk = Desk::new([rule(none, &["10.0.0.0/8", "10.1.0.0/16"])]);
    desk.change(1, "10.0.0.0/8", path("1")).change(1, "10.1.0.0/16", path("1"));
    desk.change(1, "8.0.0.0/7", path("1")).change(1, "11.0.0.0/9", path("1"));
    assert!(desk.lines().is_empty(), "listed, shorter, beside");
    desk.change(2, "10.1.2.0/24", path("2 3")).change(2, "10.2.0.0/16", path("3"));
    let expected: Vec<String> = desk.events.iter().map(|e| e.alarm.expected.clone()).collect();
    assert_eq!(expected, ["no route inside 10.1.0.0/16", "no route inside 10.0.0.0/8"]);
    assert_eq!(
        desk.lines(),
        ["+ r 10.1.2.0/24: /24, origin AS3", "+ r 10.2.0.0/16: /16, origin AS3"]
    );
    desk.change(3, "10.1.2.0/24", None);
    assert_eq!(desk.lines(), ["- r 10.1.2.0/24"]);

    let some = AlarmKind::MoreSpecific { max_len: Some(48), origins: vec![64500] };
    let mut desk = Desk::new([rule(some, &["2001:db8::/32"])]);
    desk.change(1, "2001:db8:1::/48", path("1 64500"));
    assert!(desk.lines().is_empty());
    desk.change(2, "2001:db8:1::/48", path("1 64666")).change(2, "2001:db8:1::/64", path("64500"));
    assert_eq!(
        desk.lines(),
        ["+ r 2001:db8:1::/48: /48, origin AS64666", "+ r 2001:db8:1::/64: /64, origin AS64500"]
    );
}

#[test]
fn newly_invalid() {
    let of = |validity| {
        let route = WatchedRoute::bgp("p", Some(64666), "64501 64666");
        Some(WatchedRoute { validity, ..route })
    };
    let (valid, invalid) = (Some(Validity::Valid), Some(Validity::InvalidOrigin));
    let mut desk = Desk::new([AlarmRule::new("r", AlarmKind::NewlyInvalid)]);
    // What the first table has is not news.
    desk.at(1, "10.0.0.0/8", of(invalid), Occasion::First).settle(1, false);
    desk.change(2, "10.0.0.0/8", of(Some(Validity::InvalidLength)));
    desk.change(2, "11.0.0.0/8", of(valid)).change(2, "12.0.0.0/8", of(None));
    assert!(desk.lines().is_empty());
    desk.change(3, "11.0.0.0/8", of(invalid));
    desk.change(3, "12.0.0.0/8", of(Some(Validity::InvalidLength)));
    assert_eq!(
        desk.lines(),
        [
            "+ r 11.0.0.0/8: invalid-origin, origin AS64666",
            "+ r 12.0.0.0/8: invalid-length, length 8"
        ]
    );
    // The VRPs expire: nothing is invalid. The route of the first table is news when it comes back.
    desk.change(4, "11.0.0.0/8", of(None)).change(4, "10.0.0.0/8", of(valid));
    desk.change(5, "10.0.0.0/8", of(invalid));
    assert_eq!(desk.lines(), ["- r 11.0.0.0/8", "+ r 10.0.0.0/8: invalid-origin, origin AS64666"]);
}

#[test]
fn leak() {
    let of = |path_validity, origin| {
        let route = WatchedRoute::bgp("p", Some(origin), "64501 64500");
        Some(WatchedRoute { path_validity, ..route })
    };
    let [valid, invalid, unknown] = PathValidity::ALL.map(Some);
    let mut desk = Desk::new([rule(AlarmKind::Leak { origins: vec![64500] }, &["192.0.2.0/24"])]);
    for path_validity in [valid, unknown, None] {
        desk.change(1, OURS, of(path_validity, 64500));
    }
    desk.change(1, OURS, of(invalid, 64510)).change(1, "10.0.0.0/8", of(invalid, 64500));
    assert!(desk.lines().is_empty());
    desk.change(2, OURS, of(invalid, 64500)).change(2, "192.0.2.0/25", of(invalid, 64500));
    assert_eq!(desk.events[0].alarm.expected, "a path that is not invalid by the ASPAs");
    let seen = "an invalid one, origin AS64500";
    assert_eq!(
        desk.lines(),
        [format!("+ r 192.0.2.0/24: {seen}"), format!("+ r 192.0.2.0/25: {seen}")]
    );
    desk.change(3, OURS, of(unknown, 64500)).change(3, "192.0.2.0/25", None);
    assert_eq!(desk.lines(), ["- r 192.0.2.0/24", "- r 192.0.2.0/25"]);
}

#[test]
fn withdrawn() {
    let kind = AlarmKind::Withdrawn { after: Duration::from_secs(60) };
    let mut desk = Desk::new([rule(kind, &[OURS])]);
    // That it had a route was before the rule was there.
    desk.change(1, OURS, None).settle(60, false);
    assert!(desk.lines().is_empty());
    desk.settle(61, false).change(100, OURS, path("64501 64500"));
    assert_eq!(desk.lines().len(), 2);
    desk.change(101, OURS, path("64501 64500")).change(110, OURS, None).settle(169, false);
    desk.change(169, OURS, path("64501 64500")).settle(400, false);
    assert!(desk.lines().is_empty(), "it came back in time");
    assert_eq!(desk.alarms.next_due(), None);
    desk.change(500, OURS, None).change(510, OURS, None);
    assert_eq!(desk.alarms.next_due(), Some(560 * SECOND));
    desk.settle(559, false);
    assert!(desk.lines().is_empty());
    desk.settle(570, false);
    let alarm = desk.events[0].alarm.clone();
    assert_eq!((alarm.begin, &*alarm.as_path), (560 * SECOND, "64501 64500"));
    assert_eq!(desk.lines(), ["+ r 192.0.2.0/24: withdrawn, and not back after 60s"]);
    desk.change(580, "192.0.2.0/25", path("1")).settle(590, false);
    assert!(desk.lines().is_empty());
    desk.change(600, OURS, path("64502 64500"));
    assert_eq!(desk.lines(), ["- r 192.0.2.0/24"]);
    // It is watched further.
    desk.change(700, OURS, None).settle(800, false);
    assert_eq!(desk.lines().len(), 1);
}

#[test]
fn flapping() {
    let kind = AlarmKind::Flapping { changes: 4, within: Duration::from_secs(60) };
    let mut desk = Desk::new([rule(kind, &["192.0.0.0/16"])]);
    for second in [0, 20, 40, 60, 80] {
        desk.change(second, OURS, path("1"));
    }
    assert!(desk.lines().is_empty(), "three in each minute");
    desk.change(81, OURS, None);
    assert_eq!(desk.lines(), ["+ r 192.0.2.0/24: 4 changes in 41s"]);
    desk.change(82, OURS, path("1")).change(141, OURS, None).settle(200, false);
    assert!(desk.lines().is_empty());
    desk.settle(300, false);
    assert_eq!(desk.events[0].alarm.end, Some(201 * SECOND));
    assert_eq!(desk.lines(), ["- r 192.0.2.0/24"]);
    assert_eq!(desk.alarms.next_due(), None, "nothing is kept of it");
}

#[test]
fn paths() {
    let through = AlarmKind::PathThrough { ases: vec![64666], origins: vec![64500] };
    let without = AlarmKind::PathWithout { ases: vec![64501, 64502], origins: vec![] };
    let mut desk = Desk::new([
        AlarmRule::new("through", through),
        AlarmRule::new("without", without).on(prefixes(&[OURS])),
    ]);
    desk.change(1, OURS, path("64501 64500")).change(1, "10.0.0.0/8", path("64666 64510"));
    assert!(desk.lines().is_empty());
    desk.change(2, OURS, path("64502 64666 64500")).change(2, "10.0.0.0/8", path("64666 64500"));
    assert_eq!(desk.lines(), ["+ through 192.0.2.0/24: AS64666", "+ through 10.0.0.0/8: AS64666"]);
    desk.change(3, OURS, path("64503 64500"));
    assert_eq!(
        desk.lines(),
        ["+ without 192.0.2.0/24: a path without it", "- through 192.0.2.0/24"]
    );
    // An AS within a set is one that the path goes through.
    desk.change(4, OURS, Some(WatchedRoute::bgp("p", None, "64503 {64502,64504}")));
    assert_eq!(desk.lines(), ["- without 192.0.2.0/24"]);
}

#[test]
fn tables_are_apart() {
    let kind = AlarmKind::UnexpectedOrigin { origins: vec![64500] };
    let rule = rule(kind, &[OURS]).of_tables(["bmp".to_owned()]);
    let mut desk = Desk::new([rule]);
    desk.change(1, OURS, path("64666"));
    assert!(desk.lines().is_empty());
    for table in ["bmp", "bmp/post-policy", "bmp"] {
        let change = fibula_alarms::RouteChange {
            time: SECOND,
            table,
            prefix: OURS.parse().unwrap(),
            session: None,
            route: path("64666"),
            occasion: Occasion::Live,
        };
        desk.alarms.change(&change, &mut desk.events);
    }
    let tables: Vec<String> = desk.events.iter().map(|e| e.alarm.table.to_string()).collect();
    assert_eq!(tables, ["bmp", "bmp/post-policy"]);
}
