//! Alarms: each kind by itself, the bounds, and all of them against an oracle.

mod bounds;
mod kinds;
mod oracle;
mod quiet;

use fibula_alarms::{
    AlarmEvent, AlarmLimits, AlarmRule, Alarms, Occasion, RouteChange, WatchedRoute,
};

/// A second, in the unit of times.
const SECOND: u64 = 1_000_000;

/// Alarms of these rules, and the events that were not looked at.
struct Desk {
    alarms: Alarms,
    events: Vec<AlarmEvent>,
}

impl Desk {
    fn new(rules: impl IntoIterator<Item = AlarmRule>) -> Self {
        Self::with(rules, AlarmLimits::default())
    }

    fn with(rules: impl IntoIterator<Item = AlarmRule>, limits: AlarmLimits) -> Self {
        Self { alarms: Alarms::new(rules.into_iter().collect(), limits, 1), events: Vec::new() }
    }

    fn change(&mut self, second: u64, prefix: &str, route: Option<WatchedRoute<'_>>) -> &mut Self {
        self.at(second, prefix, route, Occasion::Live)
    }

    /// A change of the session `s`.
    fn at(
        &mut self,
        second: u64,
        prefix: &str,
        route: Option<WatchedRoute<'_>>,
        occasion: Occasion,
    ) -> &mut Self {
        let change = RouteChange {
            time: second * SECOND,
            table: "bgp",
            prefix: prefix.parse().unwrap(),
            session: Some("s"),
            route,
            occasion,
        };
        self.alarms.change(&change, &mut self.events);
        self
    }

    fn settle(&mut self, second: u64, is_resending: bool) -> &mut Self {
        self.alarms.settle(second * SECOND, |_| is_resending, &mut self.events);
        self
    }

    /// The events so far, as `+ RULE PREFIX: SEEN` and `- RULE PREFIX`, each once.
    fn lines(&mut self) -> Vec<String> {
        let line = |event: AlarmEvent| {
            let alarm = &event.alarm;
            match event.is_begin() {
                true => format!("+ {} {}: {}", alarm.rule, alarm.prefix, alarm.seen),
                false => format!("- {} {}", alarm.rule, alarm.prefix),
            }
        };
        self.events.drain(..).map(line).collect()
    }
}

/// A route with this path, whose last AS is its origin.
fn path(as_path: &str) -> Option<WatchedRoute<'_>> {
    let origin = as_path.rsplit(' ').next().and_then(|asn| asn.parse().ok());
    Some(WatchedRoute::bgp("AS64501 (192.0.2.1)", origin, as_path))
}
