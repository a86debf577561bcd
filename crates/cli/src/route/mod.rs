//! `fibula route`: packets in, longest-prefix match, packets out.
//!
//! It assembles: ports, threads and forwarding are `router`'s, sources are those of `fibula serve`, answers over HTTP are
//! `server`'s. Next hops of a table file are read here ([`next_hops`]).

mod config;
mod dpdk;
mod fast;
mod kind;
mod next_hops;
mod port;
mod report;
mod rules;
mod run;
mod tables;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::failure::{Failure, Outcome};
use crate::output::stdout;
use crate::serve::flags::{Flags, check_sources, socket_address};
use crate::source::ReadArgs;
use config::{Config, Shape};
use port::PortConfig;

const EXAMPLES: &str = "\
Examples:
  fibula route --fpm --port afxdp:eth1 --port afxdp:eth2
                                     FRR: `zebra -M dplane_fpm_nl`, `fpm address 127.0.0.1`
  fibula route --kernel --port afpacket:eth1 --port afpacket:eth2 --http 127.0.0.1:8080
  fibula route --table rib.bz2 --next-hops hops.txt --port pcap:in.pcap:out.pcap,address=192.0.2.1/24
  fibula route --fpm --port afxdp:eth1 --port afxdp:eth2 --shape 1-2-1 --cores 1,2,3,4
  fibula route --config /etc/fibula/route.toml --check

Ports:
  afxdp:NAME     an XDP socket on an interface; what is for this machine goes on to the kernel
  xdp:NAME       the same, and plain packets are forwarded by a program in the kernel
  afpacket:NAME  a packet socket on an interface: any interface, slower
  tap:NAME       a TAP device, at whose other end is the kernel
  pcap:IN:OUT    captures, either of which may be empty
  dpdk:DEVICE    a device of DPDK (in builds with feature dpdk): net_af_xdp0,iface=eth1 or 0000:01:00.0
  memory         packets that are generated, to random addresses
Settings of pcap, memory, tap and dpdk follow, with commas between: interface=3 (as routes call it), mac=,
mtu=, address=192.0.2.1/24, neighbour=192.0.2.9=02:00:00:00:00:09, times (pcap: packets come as far
apart as their times say). Any port may have vrf=fpm/100: what comes in there is forwarded by that
table. afxdp, xdp and afpacket have what the kernel says of their interfaces, and the
kernel finds their neighbours.

A route over an interface that is no port of the router goes to the kernel, which forwards it.
SIGTERM ends within a second, with a summary on standard output. docs/router.md has the rest.";

/// Forward packets by a table that routing daemons, the kernel or a file fill
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Forward by a table that does not change: a snapshot, table files, gen:v4:2024:900000:1
    #[arg(long, short, value_name = "TABLE,...")]
    table: Vec<String>,
    /// What the table's values mean: a file with a line for each, `64500 via 192.0.2.1`
    #[arg(long, value_name = "FILE")]
    next_hops: Option<PathBuf>,
    /// Drop and mark packets, or choose their tables, by the rules of this file (see `fibula classify --help`)
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// A port of the router; repeat it
    #[arg(long, value_name = "KIND:NAME")]
    port: Vec<PortConfig>,
    /// Arguments of DPDK's environment [default: --no-huge --no-shconf -m 64]
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true)]
    eal: Option<String>,
    /// Threads: fused, fused:2, or those that receive, look up and send: 1-2-1 [default: fused]
    #[arg(long, value_name = "SHAPE")]
    shape: Option<Shape>,
    /// The cores of the threads, in order [default: those that share an L3 cache]
    #[arg(long, value_delimiter = ',', value_name = "CORE,...")]
    cores: Option<Vec<usize>>,
    /// Packets that are worked on at once, 1 to 256 [default: 64]
    #[arg(long, value_name = "PACKETS")]
    burst: Option<usize>,
    /// Answer over HTTP there: what `fibula serve` answers, and metrics of packets
    #[arg(long, visible_alias = "metrics", value_name = "ADDRESS",
          num_args = 0..=1, default_missing_value = "127.0.0.1:8080", value_parser = socket_address)]
    http: Option<SocketAddr>,
    /// Wait until the sources have said everything before the first packet is taken, at most so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    wait: Option<u64>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<f64>,
    /// Print the summary as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..1e9).contains(&seconds) => Ok(seconds),
        _ => Err(format!("{text:?} is no number of seconds")),
    }
}

impl Args {
    /// The file's configuration, with what the flags add.
    fn config(&self) -> Result<Config, Failure> {
        let mut config = match &self.flags.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        self.flags.add_to(&mut config.feeds, None);
        if let Some(listen) = self.http {
            config.feeds.http.get_or_insert_default().listen = listen;
        }
        config.router.table.extend(self.table.iter().cloned());
        if self.next_hops.is_some() {
            config.router.next_hops.clone_from(&self.next_hops);
        }
        if self.rules.is_some() {
            config.router.rules.clone_from(&self.rules);
        }
        config.ports.extend(self.port.iter().cloned());
        let pipeline = &mut config.pipeline;
        pipeline.shape = self.shape.unwrap_or(pipeline.shape);
        pipeline.burst = self.burst.unwrap_or(pipeline.burst);
        if self.eal.is_some() {
            pipeline.eal.clone_from(&self.eal);
        }
        if self.cores.is_some() {
            pipeline.cores.clone_from(&self.cores);
        }
        config.checked()
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let config = args.config()?;
    crate::engines::choose::<u32>(&config.feeds.tables.engine)?;
    if args.flags.check {
        for port in config.ports.iter().filter(|port| matches!(port.port, kind::Kind::Xdp(_))) {
            fibula_router::port::xdp::check_built()
                .map_err(|error| Failure::new(format_args!("--port {}: {error}", port.port)))?;
        }
        let mut out = stdout();
        check_sources(&config.feeds, &mut out)?;
        if let Some(rules) = rules::read(&config)? {
            writeln!(out, "rules: {}", rules.len())?;
        }
        for table in &config.router.table {
            writeln!(out, "table: {table}")?;
        }
        for (number, port) in config.ports.iter().enumerate() {
            let vrf = port.vrf.as_ref().map_or(String::new(), |vrf| format!(", forwards by {vrf}"));
            writeln!(out, "port {number}: {}{vrf}", port.port)?;
        }
        if let Some(http) = &config.feeds.http {
            writeln!(out, "answers on {}", http.listen)?;
        }
        out.flush()?;
        return Ok(Outcome::Done);
    }
    args.flags.begin_log();
    run::run(args, &config)
}
