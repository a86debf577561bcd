//! The summary of a router: as text, or as JSON.

use std::io::Write;
use std::time::Duration;

use fibula_core::grouped;
use fibula_daemon::route::figures::{both, flows, stages};
use fibula_daemon::route::{RouteFigures, RuleFigures};
use fibula_router::pipeline::{Loss, PortCounts, WorkerCounts};
use fibula_router::port::xdp::Why;
use serde_json::{Map, Value as Json, json};

use crate::failure::Failure;

/// Prints the summary.
pub fn print(
    figures: &RouteFigures,
    out: &mut dyn Write,
    time: Duration,
    is_json: bool,
) -> Result<(), Failure> {
    if is_json {
        writeln!(out, "{}", json(figures, time))?;
        return Ok(());
    }
    writeln!(out, "{:.1} s", time.as_secs_f64())?;
    for port in &figures.ports() {
        write!(out, "{}:", port.name)?;
        let shown = flows(port).into_iter().enumerate();
        for (_, (direction, flow)) in shown.filter(|(at, (_, flow))| *at < 2 || flow.packets > 0) {
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
    for (reason, packets, _) in figures.reasons().into_iter().filter(|(_, packets, _)| *packets > 0)
    {
        writeln!(out, "{:>20}  {}", reason.name(), grouped(packets))?;
    }
    if let Some(fast) = &figures.fast {
        let sent = both(figures.forwarded_in_kernel()).packets;
        writeln!(out, "{:>20}  {} by programs in the kernel", "fast path", grouped(sent))?;
        for why in Why::ALL {
            let count: u64 = (0..fast.ports()).map(|port| fast.passed(port, why)).sum();
            if count > 0 {
                writeln!(out, "{:>20}  {}", format!("passed: {}", why.name()), grouped(count))?;
            }
        }
    }
    for RuleFigures { line, rule, packets, bytes } in figures.rules() {
        let (packets, bytes) = (grouped(*packets), grouped(*bytes));
        let what = if *line == 0 { "no rule".to_owned() } else { format!("rule {line}") };
        writeln!(out, "{what:>20}  {packets} packets {bytes} bytes  {rule}")?;
    }
    for loss in Loss::ALL.into_iter().filter(|loss| figures.packets.lost(*loss) > 0) {
        writeln!(out, "{:>20}  {}", loss.name(), grouped(figures.packets.lost(loss)))?;
    }
    if !figures.packets.latency.is_empty() {
        let [p50, p99, most] = [0.5, 0.99, 1.0].map(|quantile| figures.latency(quantile));
        writeln!(out, "latency p50 {p50:?}, p99 {p99:?}, longest {most:?}")?;
    }
    Ok(())
}

fn fast_json(figures: &RouteFigures) -> Json {
    let Some(fast) = &figures.fast else { return Json::Null };
    let passed = |why| (0..fast.ports()).map(|port| fast.passed(port, why)).sum::<u64>();
    let passed: Map<String, Json> =
        Why::ALL.map(|why| (why.name().to_owned(), passed(why).into())).into_iter().collect();
    let sent = figures.forwarded_in_kernel();
    json!({
        "forwarded_v4": sent.v4.0,
        "forwarded_v6": sent.v6.0,
        "passed": passed,
        "written": { "v4": fast.written[0], "v6": fast.written[1], "egress": fast.written[2] },
    })
}

fn json(figures: &RouteFigures, time: Duration) -> Json {
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
    let reasons: Map<String, Json> = figures
        .reasons()
        .into_iter()
        .map(|(r, packets, _)| (r.name().to_owned(), packets.into()))
        .collect();
    let losses: Map<String, Json> = Loss::ALL
        .into_iter()
        .map(|loss| (loss.name().to_owned(), figures.packets.lost(loss).into()))
        .collect();
    let latency = |quantile| figures.latency(quantile).as_nanos() as u64;
    let rule = |RuleFigures { line, rule, packets, bytes }: &RuleFigures| json!({ "line": line, "rule": rule, "packets": packets, "bytes": bytes });
    json!({
        "seconds": time.as_secs_f64(),
        "ports": figures.ports().iter().map(port).collect::<Vec<_>>(),
        "fast": fast_json(figures),
        "reasons": reasons,
        "rules": figures.rules().map(rule).collect::<Vec<_>>(),
        "lost": losses,
        "workers": figures.packets.workers.iter().map(worker).collect::<Vec<_>>(),
        "latency_ns": { "p50": latency(0.5), "p99": latency(0.99), "p999": latency(0.999), "max": latency(1.0) },
        "control": {
            "published": figures.control.published,
            "next_hop_sets": figures.control.groups,
            "host": figures.control.host_groups,
            "dead": figures.control.dead_groups,
            "gateways": figures.control.gateways,
            "unresolved": figures.control.unresolved,
            "neighbours": figures.control.neighbours,
        },
    })
}
