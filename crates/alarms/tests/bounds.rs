//! What a stranger can send takes a bounded amount of memory, and what is not kept is counted.

use std::time::Duration;

use fibula_alarms::{AlarmKind, AlarmLimits, AlarmRule};

use crate::{Desk, path};

fn limits(routes: usize, counters: usize) -> AlarmLimits {
    AlarmLimits { routes, counters, ..AlarmLimits::default() }
}

#[test]
fn routes_beyond_the_limit_raise_no_alarm() {
    let kind = AlarmKind::MoreSpecific { max_len: None, origins: vec![] };
    let rule = AlarmRule::new("r", kind).on(["10.0.0.0/8".parse().unwrap()]);
    let mut desk = Desk::with([rule], limits(3, 0));
    for third in 0..10 {
        desk.change(1, &format!("10.0.{third}.0/24"), path("64666"));
    }
    assert_eq!((desk.lines().len(), desk.alarms.forgotten()), (3, 7));
    // One that ends makes room.
    desk.change(2, "10.0.0.0/24", None).change(3, "10.0.9.0/24", path("64666"));
    assert_eq!(desk.lines(), ["- r 10.0.0.0/24", "+ r 10.0.9.0/24: /24, origin AS64666"]);
    assert_eq!(desk.alarms.counts()[0].active, 3);
}

#[test]
fn a_listed_prefix_beyond_the_limit_is_not_watched() {
    let kind = AlarmKind::Withdrawn { after: Duration::from_secs(1) };
    let list = ["10.0.0.0/8", "11.0.0.0/8"].map(|prefix| prefix.parse().unwrap());
    let mut desk = Desk::with([AlarmRule::new("r", kind).on(list)], limits(1, 0));
    desk.change(1, "10.0.0.0/8", path("1")).change(1, "11.0.0.0/8", path("1"));
    desk.change(2, "10.0.0.0/8", None).change(2, "11.0.0.0/8", None).settle(9, false);
    assert_eq!((desk.lines().len(), desk.alarms.forgotten()), (1, 2));
}

#[test]
fn the_calmest_counter_makes_room_and_what_flaps_stays() {
    let kind = AlarmKind::Flapping { changes: 2, within: Duration::from_secs(100) };
    let mut desk = Desk::with([AlarmRule::new("r", kind)], limits(0, 3));
    desk.change(1, "1.0.0.0/8", path("1")).change(1, "1.0.0.0/8", path("2"));
    desk.change(2, "2.0.0.0/8", path("1")).change(3, "3.0.0.0/8", path("1"));
    desk.change(4, "4.0.0.0/8", path("1"));
    assert_eq!(desk.alarms.forgotten(), 1);
    // 2/8 was forgotten and begins anew, in the place of 3/8; 4/8 was not.
    desk.change(5, "2.0.0.0/8", path("2")).change(6, "4.0.0.0/8", path("2"));
    assert_eq!(desk.lines(), ["+ r 1.0.0.0/8: 2 changes in 0ns", "+ r 4.0.0.0/8: 2 changes in 2s"]);
    assert_eq!(desk.alarms.forgotten(), 2);
    // All flap: there is no room.
    desk.change(7, "2.0.0.0/8", path("3")).change(8, "5.0.0.0/8", path("1"));
    assert_eq!(desk.lines(), ["+ r 2.0.0.0/8: 2 changes in 2s"]);
    assert_eq!(desk.alarms.forgotten(), 3);
    desk.settle(1000, false);
    assert_eq!(desk.lines().len(), 3);
}

/// A long path is cut, so that an alarm has a bounded size.
#[test]
fn an_alarm_has_a_bounded_size() {
    let kind = AlarmKind::UnexpectedOrigin { origins: (1..100_000).collect() };
    let rule = AlarmRule::new("r", kind).on(["10.0.0.0/8".parse().unwrap()]);
    let mut desk = Desk::new([rule]);
    desk.change(1, "10.0.0.0/8", path("4200000000 ".repeat(9999).trim_end()));
    let alarm = &desk.events[0].alarm;
    assert!(alarm.to_string().len() < 1000, "{alarm}");
    assert_eq!(alarm.expected, "origin AS1 or AS2 or AS3 or AS4 or AS5 or 99994 more");
}
