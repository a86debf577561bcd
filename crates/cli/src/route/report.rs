//! What the router counted: for Prometheus, and as a summary at the end.

use std::io::Write;
use std::time::Duration;

use fibula_core::grouped;
use fibula_router::control::ControlFigures;
use fibula_router::forward::Reason;
use fibula_router::pipeline::{FlowCounts, Loss, PortCounts, Snapshot, StageCounts, WorkerCounts};
use fibula_router::port::xdp::{FastCounts, Sent, Why};
use fibula_server::MetricsText;
use serde_json::{Map, Value as Json, json};

use super::rules::Counted as Rule;
use crate::failure::Failure;

/// Everything that was counted at one moment.
pub struct Counted {
    pub packets: Snapshot,
    pub control: ControlFigures,
    /// What the programs of xdp ports counted, which is part of no other count.
    pub fast: Option<FastCounts>,
    /// What rules counted, if there are some.
    pub rules: Option<Vec<Rule>>,
}

/// Packets and bytes of both families.
fn both(sent: Sent) -> FlowCounts {
    FlowCounts { packets: sent.v4.0 + sent.v6.0, bytes: sent.v4.1 + sent.v6.1 }
}

/// A port's flows, with the direction that they have as labels.
fn flows(port: &PortCounts) -> [(&'static str, FlowCounts); 4] {
    [
        ("in", port.received),
        ("out", port.sent),
        ("to_host", port.to_host),
        ("from_host", port.from_host),
    ]
}

fn stages(worker: &WorkerCounts) -> [(&'static str, StageCounts); 3] {
    [("receive", worker.receive), ("lookup", worker.lookup), ("transmit", worker.transmit)]
}

impl Counted {
    /// Packets and bytes by reason, of all lookup threads.
    fn reasons(&self) -> Vec<(Reason, u64, u64)> {
        let sum = |reason| {
            let of = |counters: &std::sync::Arc<fibula_router::forward::Counters>| {
                (counters.packets(reason), counters.bytes(reason))
            };
            let all = self.packets.reasons.iter().map(of);
            let fast = match reason {
                Reason::ForwardedV4 => self.fast().v4,
                Reason::ForwardedV6 => self.fast().v6,
                _ => (0, 0),
            };
            let (packets, bytes) = all.fold(fast, |a, b| (a.0 + b.0, a.1 + b.1));
            (reason, packets, bytes)
        };
        Reason::ALL.into_iter().map(sum).collect()
    }

    /// What the programs forwarded.
    fn fast(&self) -> Sent {
        let Some(fast) = &self.fast else { return Sent::default() };
        let all = 0..fast.ports();
        fast.sum(all.clone().flat_map(|from| all.clone().map(move |to| (from, to))))
    }

    /// The ports' counts, with what the programs forwarded. Bytes are those of frames as they came in.
    fn ports(&self) -> Vec<PortCounts> {
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

    /// Rules without packets are left out: a file may have many.
    fn rules(&self) -> impl Iterator<Item = &Rule> {
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
            for Rule { line, rule, packets, bytes } in self.rules() {
                let labels = [("line", &*line.to_string()), ("rule", rule)];
                text.sample(name, &labels, [packets, bytes][which]);
            }
        }
    }

    fn of_ports(&self, text: &mut MetricsText) {
        let ports = &self.ports();
        /// A metric's name, what it counts, and where that is.
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
            text.head(name, "counter", "What became of packets, by reason.");
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

    fn latency(&self, quantile: f64) -> Duration {
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
        let help = "Times that the kernel was asked for a neighbour.";
        text.one("router_neighbour_questions_total", "counter", help, control.asked);
        let watched = control.watched;
        let name = "router_links_total";
        text.head(
            name,
            "counter",
            "What happened on the kernel's socket for links and neighbours.",
        );
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

    /// The summary.
    pub fn print(&self, out: &mut dyn Write, time: Duration, is_json: bool) -> Result<(), Failure> {
        if is_json {
            writeln!(out, "{}", self.json(time))?;
            return Ok(());
        }
        writeln!(out, "{:.1} s", time.as_secs_f64())?;
        for port in &self.ports() {
            write!(out, "{}:", port.name)?;
            let shown = flows(port).into_iter().enumerate();
            for (_, (direction, flow)) in
                shown.filter(|(at, (_, flow))| *at < 2 || flow.packets > 0)
            {
                let (packets, bytes) = (grouped(flow.packets), grouped(flow.bytes));
                write!(out, "  {} {packets} packets {bytes} bytes", direction.replace('_', " "))?;
            }
            for (what, lost) in [("lost in", port.lost_in), ("lost out", port.lost_out)] {
                if lost > 0 {
                    write!(out, "  {what} {}", grouped(lost))?;
                }
            }
            writeln!(out)?;
        }
        for (reason, packets, _) in
            self.reasons().into_iter().filter(|(_, packets, _)| *packets > 0)
        {
            writeln!(out, "{:>20}  {}", reason.name(), grouped(packets))?;
        }
        if let Some(fast) = &self.fast {
            let sent = both(self.fast()).packets;
            writeln!(out, "{:>20}  {} by programs in the kernel", "fast path", grouped(sent))?;
            for why in Why::ALL {
                let count: u64 = (0..fast.ports()).map(|port| fast.passed(port, why)).sum();
                if count > 0 {
                    writeln!(out, "{:>20}  {}", format!("passed: {}", why.name()), grouped(count))?;
                }
            }
        }
        for Rule { line, rule, packets, bytes } in self.rules() {
            let (packets, bytes) = (grouped(*packets), grouped(*bytes));
            let what = if *line == 0 { "no rule".to_owned() } else { format!("rule {line}") };
            writeln!(out, "{what:>20}  {packets} packets {bytes} bytes  {rule}")?;
        }
        for loss in Loss::ALL.into_iter().filter(|loss| self.packets.lost(*loss) > 0) {
            writeln!(out, "{:>20}  {}", loss.name(), grouped(self.packets.lost(loss)))?;
        }
        if !self.packets.latency.is_empty() {
            let [p50, p99, most] = [0.5, 0.99, 1.0].map(|quantile| self.latency(quantile));
            writeln!(out, "latency p50 {p50:?}, p99 {p99:?}, longest {most:?}")?;
        }
        Ok(())
    }

    fn fast_json(&self) -> Json {
        let Some(fast) = &self.fast else { return Json::Null };
        let passed = |why| (0..fast.ports()).map(|port| fast.passed(port, why)).sum::<u64>();
        let passed: Map<String, Json> =
            Why::ALL.map(|why| (why.name().to_owned(), passed(why).into())).into_iter().collect();
        let sent = self.fast();
        json!({
            "forwarded_v4": sent.v4.0,
            "forwarded_v6": sent.v6.0,
            "passed": passed,
            "written": { "v4": fast.written[0], "v6": fast.written[1], "egress": fast.written[2] },
        })
    }

    fn json(&self, time: Duration) -> Json {
        let port = |port: &PortCounts| {
            let mut object = Map::new();
            object.insert("port".to_owned(), port.name.clone().into());
            for (direction, flow) in flows(port) {
                let value = json!({ "packets": flow.packets, "bytes": flow.bytes });
                object.insert(direction.to_owned(), value);
            }
            object.insert("lost_in".to_owned(), port.lost_in.into());
            object.insert("lost_out".to_owned(), port.lost_out.into());
            Json::Object(object)
        };
        let worker = |worker: &WorkerCounts| {
            let mut object = Map::new();
            object.insert("worker".to_owned(), worker.name.clone().into());
            object.insert("core".to_owned(), worker.core.map_or(Json::Null, Json::from));
            for (stage, counts) in stages(worker) {
                let nanos = counts.nanos_per_packet();
                let value = json!({ "packets": counts.packets, "bursts": counts.bursts, "ns_per_packet": nanos });
                object.insert(stage.to_owned(), value);
            }
            Json::Object(object)
        };
        let reasons: Map<String, Json> = self
            .reasons()
            .into_iter()
            .map(|(r, packets, _)| (r.name().to_owned(), packets.into()))
            .collect();
        let losses: Map<String, Json> = Loss::ALL
            .into_iter()
            .map(|loss| (loss.name().to_owned(), self.packets.lost(loss).into()))
            .collect();
        let latency = |quantile| self.latency(quantile).as_nanos() as u64;
        let rule = |Rule { line, rule, packets, bytes }: &Rule| json!({ "line": line, "rule": rule, "packets": packets, "bytes": bytes });
        json!({
            "seconds": time.as_secs_f64(),
            "ports": self.ports().iter().map(port).collect::<Vec<_>>(),
            "fast": self.fast_json(),
            "reasons": reasons,
            "rules": self.rules().map(rule).collect::<Vec<_>>(),
            "lost": losses,
            "workers": self.packets.workers.iter().map(worker).collect::<Vec<_>>(),
            "latency_ns": { "p50": latency(0.5), "p99": latency(0.99), "p999": latency(0.999), "max": latency(1.0) },
            "control": {
                "published": self.control.published,
                "next_hop_sets": self.control.groups,
                "host": self.control.host_groups,
                "dead": self.control.dead_groups,
                "gateways": self.control.gateways,
                "unresolved": self.control.unresolved,
                "neighbours": self.control.neighbours,
            },
        })
    }
}
