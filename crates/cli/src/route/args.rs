//! The arguments of `fibula route`, and the configuration that they make.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use fibula_daemon::config::{Offloading, PortConfig, PortKind, RouteConfig, RouterConfig, Threads};

use crate::failure::Failure;
use crate::same;
use crate::serve::flags::{Flags, socket_address};
use crate::source::{self, ReadArgs};

const EXAMPLES: &str = "\
Examples:
  fibula route --fpm --port afxdp:eth1 --port afxdp:eth2
                                     FRR: `zebra -M dplane_fpm_nl`, `fpm address 127.0.0.1`
  fibula route --kernel --port afpacket:eth1 --port afpacket:eth2 --http 127.0.0.1:8080
  fibula route --table rib.bz2 --next-hops hops.txt \\
      --port pcap:in.pcap:out.pcap,address=192.0.2.1/24
  fibula route --fpm --port afxdp:eth1 --port afxdp:eth2 --shape 1-2-1 --cores 1,2,3,4
  fibula route --config /etc/fibula/route.toml --check

Ports:
  afxdp:NAME     an XDP socket on an interface; packets for this machine stay with the kernel
  xdp:NAME       the same, and a program in the kernel forwards ordinary packets
  afpacket:NAME  a packet socket on an interface: works with any interface, slower
  tap:NAME       a TAP device; the kernel is at its other end
  pcap:IN:OUT    reads and writes captures, either of which may be empty
  dpdk:DEVICE    a device of DPDK (in builds with feature dpdk): net_af_xdp0,iface=eth1 or
                 0000:01:00.0
  memory         generates packets to random addresses
Settings of pcap, memory, tap and dpdk follow the name, separated by commas: interface=3 (the
index in routes), mac=, mtu=, address=192.0.2.1/24, neighbour=192.0.2.9=02:00:00:00:00:09, times
(pcap: packets arrive at the intervals of their timestamps). Any port may have vrf=fpm/100:
packets that arrive there are forwarded by that table. For afxdp, xdp and afpacket, the kernel's
settings of the interface are used, and the kernel finds the neighbours.

Packets whose route leads over an interface that is no port are given to the kernel, which
forwards them. SIGTERM ends the router within a second, with a summary on standard output.
docs/router.md has all details.";

/// Forward packets by a table from routing daemons, the kernel or a file
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub(super) flags: Flags,
    /// Forward by a table that does not change: a snapshot, table files, gen:v4:2024:900000:1
    #[arg(long, short, value_name = "TABLE,...")]
    table: Vec<String>,
    /// A file with the next hops of each value of the table: `64500 via 192.0.2.1`
    #[arg(long, value_name = "FILE")]
    next_hops: Option<PathBuf>,
    /// Drop and mark packets, or choose their tables, by the rules of this file (see `fibula classify --help`)
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// A port of the router; may be repeated
    #[arg(long, value_name = "KIND:NAME")]
    port: Vec<PortConfig>,
    /// Arguments of DPDK's environment [default: --no-huge --no-shconf -m 64]
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true)]
    eal: Option<String>,
    /// Turn GRO, LRO and VLAN stripping of the interfaces of afxdp and xdp ports off while the router runs
    #[arg(long, value_name = "off", value_parser = ["off"])]
    offloads: Option<String>,
    /// Threads: fused or fused:2 (threads that do all the work), or 1-2-1 (threads that receive, look up and send)
    /// [default: fused]
    #[arg(long, value_name = "SHAPE")]
    shape: Option<Threads>,
    /// The cores of the threads, in order [default: those that share an L3 cache]
    #[arg(long, value_delimiter = ',', value_name = "CORE,...")]
    cores: Option<Vec<usize>>,
    /// Number of packets processed together, 1 to 256 [default: 64]
    #[arg(long, value_name = "PACKETS")]
    burst: Option<usize>,
    /// Answer HTTP requests at this address, as `fibula serve` does, with metrics of packets
    #[arg(long, visible_alias = "metrics", value_name = "ADDRESS",
          num_args = 0..=1, default_missing_value = "127.0.0.1:8080", value_parser = socket_address)]
    http: Option<SocketAddr>,
    /// Forward nothing until all sources have sent their tables, but wait at most SECONDS
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    pub(super) wait: Option<u64>,
    /// Stop after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) seconds: Option<f64>,
    /// Print the summary as a JSON object
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) read: ReadArgs,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..1e9).contains(&seconds) => Ok(seconds),
        _ => Err(format!("{text:?} is not a number of seconds")),
    }
}

impl Args {
    /// The file's configuration, with what the flags add.
    pub(super) fn config(&self) -> Result<RouteConfig, Failure> {
        let mut config = match &self.flags.config {
            Some(path) => RouteConfig::read(path)?,
            None => RouteConfig::default(),
        };
        self.flags.add_to(&mut config.feeds, None);
        if let Some(listen) = self.http {
            config.feeds.http.get_or_insert_default().listen_on(listen);
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
        if self.offloads.is_some() {
            pipeline.offloads = Offloading::Off;
        }
        if self.cores.is_some() {
            pipeline.cores.clone_from(&self.cores);
        }
        let config = config.checked()?;
        self.refuse_outputs(&config)?;
        Ok(config)
    }

    /// Refuses a capture that would be written over a file that is read.
    fn refuse_outputs(&self, config: &RouteConfig) -> Result<(), Failure> {
        let tables = source::parse_list(&config.router.table, &self.read)?;
        let RouterConfig { next_hops, rules, .. } = &config.router;
        let files = [self.flags.config.as_ref(), next_hops.as_ref(), rules.as_ref()];
        let captures = config.ports.iter().map(|port| match &port.port {
            PortKind::Pcap { input, output } => (input.as_ref(), output.as_ref()),
            _ => (None, None),
        });
        for output in captures.clone().filter_map(|(_, output)| output) {
            same::refuse_tables(&tables, output)?;
            let inputs = files.into_iter().chain(captures.clone().map(|(input, _)| input));
            inputs.flatten().try_for_each(|input| same::refuse(input, output))?;
        }
        Ok(())
    }
}
