//! Sessions that send their tables again, and tables that are read again.

use std::time::Duration;

use fibula_alarms::{AlarmKind, AlarmLimits, AlarmRule, Occasion, RouteChange};

use crate::{Desk, SECOND, path};

const OURS: &str = "192.0.2.0/24";

fn rules() -> Vec<AlarmRule> {
    let ours = || [OURS.parse().unwrap()];
    let second = Duration::from_secs;
    vec![
        AlarmRule::new("origin", AlarmKind::UnexpectedOrigin { origins: vec![64500] }).on(ours()),
        AlarmRule::new("gone", AlarmKind::Withdrawn { after: second(10) }).on(ours()),
        AlarmRule::new("flaps", AlarmKind::Flapping { changes: 3, within: second(60) }).on(ours()),
    ]
}

/// The wrong route comes first and the right one after it, as at a start: nothing is reported.
#[test]
fn a_table_that_is_resent_is_judged_at_its_end() {
    let mut desk = Desk::new(rules());
    for second in 0..20 {
        let route = if second % 2 == 0 { path("64666") } else { path("64500") };
        desk.at(second, OURS, route, Occasion::Resent).settle(second, true);
    }
    assert!(desk.alarms.is_waiting());
    desk.settle(21, false);
    assert!(desk.lines().is_empty());
    assert!(!desk.alarms.is_waiting());
    // One that is wrong at the end is reported then, with the time of its change.
    desk.at(30, OURS, path("64666"), Occasion::Resent).settle(35, true);
    assert!(desk.lines().is_empty());
    desk.settle(40, false);
    assert_eq!(desk.events[0].alarm.begin, 30 * SECOND);
    assert_eq!(desk.lines(), ["+ origin 192.0.2.0/24: origin AS64666"]);
    // It comes again as it was, and then right.
    desk.at(50, OURS, path("64666"), Occasion::Resent).settle(51, true).settle(52, false);
    desk.at(60, OURS, path("64500"), Occasion::Resent).settle(61, true);
    assert!(desk.lines().is_empty());
    desk.settle(62, false);
    assert_eq!(desk.lines(), ["- origin 192.0.2.0/24"]);
}

#[test]
fn a_session_that_never_finishes_is_judged_after_a_while() {
    let limits = AlarmLimits { quiet: Duration::from_secs(30), ..AlarmLimits::default() };
    let mut desk = Desk::with(rules(), limits);
    for second in 0..30 {
        desk.at(second, OURS, path("64666"), Occasion::Resent).settle(second, true);
    }
    assert!(desk.lines().is_empty());
    desk.settle(30, true);
    assert_eq!(desk.lines(), ["+ origin 192.0.2.0/24: origin AS64666"]);
}

/// A change of a session that is up is judged at once, although another one is not.
#[test]
fn news_does_not_wait() {
    let mut desk = Desk::new(rules());
    desk.at(1, OURS, path("64500"), Occasion::Resent);
    desk.change(2, OURS, path("64666"));
    assert_eq!(desk.lines(), ["+ origin 192.0.2.0/24: origin AS64666"]);
}

/// The session was lost with its routes, and sends them when the time is just over.
#[test]
fn a_withdrawn_route_waits_for_the_table_that_is_being_resent() {
    let mut desk = Desk::new(rules());
    desk.change(0, OURS, path("64500")).at(100, OURS, None, Occasion::Resent);
    desk.settle(111, true);
    assert!(desk.lines().is_empty());
    desk.at(112, OURS, path("64500"), Occasion::Resent).settle(113, false);
    assert!(desk.lines().is_empty());
    desk.at(200, OURS, None, Occasion::Resent).settle(211, true).settle(212, false);
    assert_eq!(desk.lines(), ["+ gone 192.0.2.0/24: withdrawn, and not back after 10s"]);
}

#[test]
fn what_a_scan_does_not_find_is_gone() {
    let mut desk = Desk::new(rules());
    desk.change(0, OURS, path("64666"));
    assert_eq!(desk.lines().len(), 1);
    desk.alarms.begin_scan();
    desk.at(1, OURS, path("64666"), Occasion::Resent);
    desk.alarms.end_scan(SECOND, &mut desk.events);
    assert!(desk.settle(1, false).lines().is_empty());
    desk.alarms.begin_scan();
    desk.alarms.end_scan(2 * SECOND, &mut desk.events);
    assert_eq!(desk.settle(2, false).lines(), ["- origin 192.0.2.0/24"]);
    assert_eq!(
        desk.settle(12, false).lines(),
        ["+ gone 192.0.2.0/24: withdrawn, and not back after 10s"]
    );
    // A scan that finds it ends the alarm.
    desk.alarms.begin_scan();
    let change = RouteChange {
        time: 13 * SECOND,
        table: "bgp",
        prefix: OURS.parse().unwrap(),
        session: None,
        route: path("64500"),
        occasion: Occasion::Resent,
    };
    desk.alarms.change(&change, &mut desk.events);
    desk.alarms.end_scan(13 * SECOND, &mut desk.events);
    assert_eq!(desk.settle(13, false).lines(), ["- gone 192.0.2.0/24"]);
}
