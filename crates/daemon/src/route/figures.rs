//! The figures of a router, and their metrics.

use std::time::Duration;

use fibula_router::control::ControlFigures;
use fibula_router::forward::Reason;
use fibula_router::pipeline::{
    CounterValues, FlowCounts, Loss, PortCounts, StageCounts, WorkerCounts,
};
use fibula_router::port::xdp::{FastCounts, Sent, Why};
use fibula_server::MetricsText;

use super::RuleFigures;

/// Everything that was counted at one moment.
#[derive(Clone, Debug)]
pub struct RouteFigures {
    /// The counts of the pipeline.
    pub packets: CounterValues,
    /// The counts of the control.
    pub control: ControlFigures,
    /// The counts of the programs of xdp ports, which are part of no other count.
    pub fast: Option<FastCounts>,
    /// The counts of rules, if there are rules.
    pub rules: Option<Vec<RuleFigures>>,
}

/// The packets and bytes of both families.
pub fn both(sent: Sent) -> FlowCounts {
    FlowCounts { packets: sent.v4.0 + sent.v6.0, bytes: sent.v4.1 + sent.v6.1 }
}

/// The flows of a port by direction.
pub fn flows(port: &PortCounts) -> [(&'static str, FlowCounts); 4] {
    [
        ("in", port.received),
        ("out", port.sent),
        ("to_host", port.to_host),
        ("from_host", port.from_host),
    ]
}

/// The stages of a thread, by name.
pub fn stages(worker: &WorkerCounts) -> [(&'static str, StageCounts); 3] {
    [("receive", worker.receive), ("lookup", worker.lookup), ("transmit", worker.transmit)]
}

impl RouteFigures {
    /// Packets and bytes by reason, of all lookup threads.
    pub fn reasons(&self) -> Vec<(Reason, u64, u64)> {
        let sum = |reason| {
            let of = |counters: &std::sync::Arc<fibula_router::forward::ReasonCounters>| {
                (counters.packets(reason), counters.bytes(reason))
            };
            let all = self.packets.reasons.iter().map(of);
            let fast = match reason {
                Reason::ForwardedV4 => self.forwarded_in_kernel().v4,
                Reason::ForwardedV6 => self.forwarded_in_kernel().v6,
                _ => (0, 0),
            };
            let (packets, bytes) = all.fold(fast, |a, b| (a.0 + b.0, a.1 + b.1));
            (reason, packets, bytes)
        };
        Reason::ALL.into_iter().map(sum).collect()
    }

    /// The packets that programs in the kernel forwarded.
    pub fn forwarded_in_kernel(&self) -> Sent {
        let Some(fast) = &self.fast else { return Sent::default() };
        let all = 0..fast.ports();
        fast.sum(all.clone().flat_map(|from| all.clone().map(move |to| (from, to))))
    }

    /// The ports' counts, including packets that the programs in the kernel forwarded. Bytes are those of received
    /// frames.
    pub fn ports(&self) -> Vec<PortCounts> {
        let mut ports = self.packets.ports.clone();
        if let Some(fast) = &self.fast {
            for (number, port) in ports.iter_mut().enumerate() {
                let came = both(fast.sum((0..fast.ports()).map(|to| (number, to))));
                let left = both(fast.sum((0..fast.ports()).map(|from| (from, number))));
                for (flow, more) in [(&mut port.received, came), (&mut port.sent, left)] {
                    flow.packets += more.packets;
                    flow.bytes += more.bytes;
                }
            }
        }
        ports
    }

    fn of_fast(&self, text: &mut MetricsText) {
        let Some(fast) = &self.fast else { return };
        let name = "router_xdp_packets_total";
        text.head(name, "counter", "Packets that programs in the kernel forwarded.");
        for (number, port) in self.packets.ports.iter().enumerate() {
            let sent = fast.sum((0..fast.ports()).map(|to| (number, to)));
            for (family, count) in [("v4", sent.v4.0), ("v6", sent.v6.0)] {
                text.sample(name, &[("port", &port.name), ("family", family)], count);
            }
        }
        let name = "router_xdp_passed_total";
        text.head(name, "counter", "Packets that these programs passed on, by reason.");
        for (number, port) in self.packets.ports.iter().enumerate() {
            for why in Why::ALL {
                let labels = [("port", &*port.name), ("reason", why.name())];
                text.sample(name, &labels, fast.passed(number, why));
            }
        }
        let name = "router_xdp_tables_total";
        text.head(name, "counter", "Tables that were written into the kernel.");
        for (table, count) in ["v4", "v6", "egress"].iter().zip(fast.written) {
            text.sample(name, &[("table", *table)], count);
        }
    }

    /// Writes metrics.
    pub fn metrics(&self, text: &mut MetricsText) {
        self.of_ports(text);
        self.of_packets(text);
        self.of_fast(text);
        self.of_rules(text);
        self.of_control(text);
    }

    /// The counts of rules that have some: a file may have many rules without packets.
    pub fn rules(&self) -> impl Iterator<Item = &RuleFigures> {
        self.rules.iter().flatten().filter(|rule| rule.packets > 0)
    }

    fn of_rules(&self, text: &mut MetricsText) {
        if self.rules.is_none() {
            return;
        }
        for (name, help, which) in [
            ("router_rule_packets_total", "Packets by the rule that they hit.", 0),
            ("router_rule_bytes_total", "Bytes of frames by the rule that they hit.", 1),
        ] {
            text.head(name, "counter", help);
            for RuleFigures { line, rule, packets, bytes } in self.rules() {
                let labels = [("line", &*line.to_string()), ("rule", rule)];
                text.sample(name, &labels, [packets, bytes][which]);
            }
        }
    }

    fn of_ports(&self, text: &mut MetricsText) {
        let ports = &self.ports();
        /// A metric's name, its description and its field.
        type Flow = (&'static str, &'static str, fn(FlowCounts) -> u64);
        let both: [Flow; 2] = [
            ("router_port_packets_total", "Packets by port and direction.", |flow| flow.packets),
            ("router_port_bytes_total", "Bytes of frames by port and direction.", |flow| {
                flow.bytes
            }),
        ];
        for (name, help, of) in both {
            text.head(name, "counter", help);
            for port in ports {
                for (direction, flow) in flows(port) {
                    text.sample(name, &[("port", &port.name), ("direction", direction)], of(flow));
                }
            }
        }
        let name = "router_port_lost_total";
        text.head(name, "counter", "Packets that ports lost by themselves.");
        for port in ports {
            for (direction, lost) in [("in", port.lost_in), ("out", port.lost_out)] {
                text.sample(name, &[("port", &port.name), ("direction", direction)], lost);
            }
        }
        let name = "router_port_up";
        text.head(name, "gauge", "1 while a port takes packets.");
        for (port, is_up) in ports.iter().zip(&self.control.ports) {
            text.sample(name, &[("port", &port.name)], u8::from(*is_up));
        }
    }

    fn of_packets(&self, text: &mut MetricsText) {
        let reasons = self.reasons();
        let names = [("router_packets_total", 1), ("router_bytes_total", 2)];
        for (name, which) in names {
            text.head(name, "counter", "Packets by outcome.");
            for (reason, packets, bytes) in &reasons {
                let value = if which == 1 { packets } else { bytes };
                text.sample(name, &[("reason", reason.name())], value);
            }
        }
        let name = "router_lost_total";
        text.head(name, "counter", "Packets that were dropped between the stages.");
        for loss in Loss::ALL {
            text.sample(name, &[("reason", loss.name())], self.packets.lost(loss));
        }
        text.one("router_waiting", "gauge", "Packets that wait for neighbours.", self.packets.held);
        let name = "router_stage_packets_total";
        text.head(name, "counter", "Packets by thread and stage.");
        for worker in &self.packets.workers {
            for (stage, counts) in stages(worker) {
                text.sample(name, &[("worker", &worker.name), ("stage", stage)], counts.packets);
            }
        }
        let name = "router_stage_seconds_total";
        text.head(name, "counter", "Time that stages took; polling in vain is not in it.");
        for worker in &self.packets.workers {
            for (stage, counts) in stages(worker) {
                let labels = [("worker", &*worker.name), ("stage", stage)];
                text.sample(name, &labels, counts.time.as_secs_f64());
            }
        }
        let name = "router_latency_seconds";
        text.head(name, "summary", "From receiving a packet to having given it to a port.");
        for quantile in ["0.5", "0.99", "0.999", "1"] {
            let value = self.latency(quantile.parse().unwrap_or(1.0)).as_secs_f64();
            text.sample(name, &[("quantile", quantile)], value);
        }
        text.sample("router_latency_seconds_count", &[], self.packets.latency.len());
    }

    /// The time from receiving a packet to giving it to a port, which this share of the packets does not exceed.
    pub fn latency(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.packets.latency.value_at_quantile(quantile))
    }

    fn of_control(&self, text: &mut MetricsText) {
        let control = &self.control;
        let help = "Egress tables that were published.";
        text.one("router_paths_published_total", "counter", help, control.published);
        let help = "How long it took to make the last one.";
        text.one("router_paths_making_seconds", "gauge", help, control.making.as_secs_f64());
        let name = "router_next_hop_sets";
        text.head(name, "gauge", "Distinct sets of next hops, and those that no port serves.");
        text.sample(name, &[("state", "all")], control.groups);
        text.sample(name, &[("state", "host")], control.host_groups);
        text.sample(name, &[("state", "dead")], control.dead_groups);
        let name = "router_gateways";
        text.head(name, "gauge", "Gateways, and those without a MAC address.");
        text.sample(name, &[("state", "all")], control.gateways);
        text.sample(name, &[("state", "unresolved")], control.unresolved);
        let help = "Neighbours with a MAC address.";
        text.one("router_neighbours", "gauge", help, control.neighbours);
        let help = "Requests to the kernel for a neighbour.";
        text.one("router_neighbour_questions_total", "counter", help, control.asked);
        let watched = control.watched;
        let name = "router_links_total";
        text.head(name, "counter", "Events on the kernel's socket for links and neighbours.");
        for (what, count) in [
            ("dumps", watched.dumps),
            ("interrupted", watched.interrupted),
            ("damaged", watched.damaged),
            ("refused", watched.refused),
            ("overruns", control.overruns),
        ] {
            text.sample(name, &[("event", what)], count);
        }
    }
}
