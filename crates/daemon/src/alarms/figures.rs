//! The figures of rules, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use fibula_alarms::AlarmCounts;
use fibula_server::MetricsText;

use super::Shared;

impl Shared {
    /// Writes the metrics.
    pub(crate) fn metrics(&self, text: &mut MetricsText) {
        let (counts, forgotten) = {
            let state = self.state();
            (state.counts.clone(), state.forgotten)
        };
        let mut by_rule = |name, kind, help, of: fn(&AlarmCounts) -> u64| {
            text.head(name, kind, help);
            for (rule, counts) in self.rules.iter().zip(&counts) {
                let labels = [("rule", &*rule.name), ("kind", rule.kind.name())];
                text.sample(name, &labels, of(counts));
            }
        };
        by_rule("alarms_active", "gauge", "Alarms that have not ended.", |of| of.active as u64);
        by_rule("alarms_raised_total", "counter", "Alarms that began.", |of| of.raised);
        let help = "Changes of best routes that were judged by rules, or have none.";
        let changes = self.changes.load(Ordering::Relaxed);
        text.one("alarms_changes_total", "counter", help, changes);
        let help = "Changes that came too fast to be judged; the routes were read anew.";
        let lost = self.lost.load(Ordering::Relaxed);
        text.one("alarms_lost_changes_total", "counter", help, lost);
        let help = "Routes and counters of rules that were not kept, because there were too many.";
        text.one("alarms_forgotten_total", "counter", help, forgotten);
        let Some(sent) = &self.sent else { return };
        let mut of = |name, kind, help, count: &AtomicU64| {
            text.one(name, kind, help, count.load(Ordering::Relaxed));
        };
        of(
            "webhook_sent_total",
            "counter",
            "Begins and ends of alarms that were accepted.",
            &sent.sent,
        );
        let help =
            "Begins and ends of alarms that were refused, or not accepted after all attempts.";
        of("webhook_failed_total", "counter", help, &sent.failed);
        let help = "Begins and ends of alarms that did not fit into the queue.";
        of("webhook_dropped_total", "counter", help, &sent.dropped);
        of("webhook_repeated_total", "counter", "Attempts that were repeated.", &sent.repeated);
        of(
            "webhook_waiting",
            "gauge",
            "Begins and ends that wait or are being sent.",
            &sent.waiting,
        );
    }
}
