//! `fibula route`: packets in, longest-prefix match, packets out.
//!
//! It assembles: ports, threads and forwarding are `router`'s, sources are those of `fibula serve`, answers over HTTP are
//! `server`'s. Next hops of a table file are read here ([`next_hops`]).

mod config;
mod fast;
mod next_hops;
mod port;
mod report;
mod run;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use tracing_subscriber::filter::LevelFilter;

use crate::failure::{Failure, Outcome};
use crate::output::stdout;
use crate::serve::config::{Kernel, Stream};
use crate::serve::log::{self, LogFormat};
use crate::serve::{run as serve_run, sources};
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
  memory         packets that are generated, to random addresses
Settings of pcap, memory and tap follow, with commas between: interface=3 (as routes call it), mac=,
mtu=, address=192.0.2.1/24, neighbour=192.0.2.9=02:00:00:00:00:09, times (pcap: packets come as far
apart as their times say). afxdp, xdp and afpacket have what the kernel says of their interfaces, and
the kernel finds their neighbours.

A route over an interface that is no port of the router goes to the kernel, which forwards it.
SIGTERM ends within a second, with a summary on standard output. docs/router.md has the rest.";

/// Forward packets by a table that routing daemons, the kernel or a file fill
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file of configuration (TOML); flags add to it
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the configuration, say what would be done, and end
    #[arg(long)]
    check: bool,
    /// Take FPM connections of FRR's zebra there
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:2620")]
    fpm: Option<SocketAddr>,
    /// Follow the kernel's own forwarding table
    #[arg(long)]
    kernel: bool,
    /// Forward by a table that does not change: a snapshot, table files, gen:v4:2024:900000:1
    #[arg(long, short, value_name = "TABLE,...")]
    table: Vec<String>,
    /// What the table's values mean: a file with a line for each, `64500 via 192.0.2.1`
    #[arg(long, value_name = "FILE")]
    next_hops: Option<PathBuf>,
    /// A port of the router; repeat it
    #[arg(long, value_name = "KIND:NAME")]
    port: Vec<PortConfig>,
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
          num_args = 0..=1, default_missing_value = "127.0.0.1:8080")]
    http: Option<SocketAddr>,
    /// Engines in order of preference
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...")]
    engine: Vec<String>,
    /// Wait until the sources have said everything before the first packet is taken, at most so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    wait: Option<u64>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<f64>,
    /// Print the summary as a JSON object
    #[arg(long)]
    json: bool,
    /// How log lines look
    #[arg(long, value_enum, default_value_t)]
    log: LogFormat,
    /// What is logged: error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LevelFilter,
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
        let mut config = match &self.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        config.feeds.fpm.extend(self.fpm.map(Stream::at));
        if self.kernel {
            config.feeds.kernel.push(Kernel::default());
        }
        if let Some(listen) = self.http {
            config.feeds.http.get_or_insert_default().listen = listen;
        }
        if !self.engine.is_empty() {
            config.feeds.tables.engine.clone_from(&self.engine);
        }
        config.router.table.extend(self.table.iter().cloned());
        if self.next_hops.is_some() {
            config.router.next_hops.clone_from(&self.next_hops);
        }
        config.ports.extend(self.port.iter().cloned());
        let pipeline = &mut config.pipeline;
        pipeline.shape = self.shape.unwrap_or(pipeline.shape);
        pipeline.burst = self.burst.unwrap_or(pipeline.burst);
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
    if args.check {
        for port in config.ports.iter().filter(|port| matches!(port.port, port::Kind::Xdp(_))) {
            fibula_router::port::xdp::check_built()
                .map_err(|error| Failure::new(format_args!("--port {}: {error}", port.port)))?;
        }
        sources::all(&config.feeds, |_| None)?;
        serve_run::server_options(&config.feeds)?;
        let mut out = stdout();
        for source in config.feeds.sources() {
            writeln!(out, "{}: {}, into table {}", source.name, source.what, source.table)?;
        }
        for table in &config.router.table {
            writeln!(out, "table: {table}")?;
        }
        for (number, port) in config.ports.iter().enumerate() {
            writeln!(out, "port {number}: {}", port.port)?;
        }
        if let Some(http) = &config.feeds.http {
            writeln!(out, "answers on {}", http.listen)?;
        }
        out.flush()?;
        return Ok(Outcome::Done);
    }
    log::begin(args.log, args.log_level);
    run::run(args, &config)
}
