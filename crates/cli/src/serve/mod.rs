//! `fibula serve`: follows routing daemons, and answers over HTTP.
//!
//! It assembles: sources are `feeds`' ([`sources`]), the table is `rib`'s, answers are `server`'s. One thread
//! owns the sockets of the feeds, others answer, and each table has its compilers; this module starts
//! them, waits for signals and stops them in order.

pub mod config;
pub mod log;
pub mod run;
pub mod sources;
mod time;

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args as ClapArgs;
use tracing_subscriber::filter::LevelFilter;

use crate::failure::{Failure, Outcome};
use crate::output::stdout;
use config::{Bgp, Checkpoint, Config, Kernel, Mrt, Neighbour, Ris, Stream};
use log::LogFormat;
use time::Time;

const EXAMPLES: &str = "\
Examples:
  fibula serve --fpm                          FRR: `zebra -M dplane_fpm_nl`, `fpm address 127.0.0.1`
  fibula serve --bmp 192.0.2.7:11019          any daemon that speaks BMP; the page is http://127.0.0.1:8080/
  fibula serve --kernel --checkpoint /var/lib/fibula/rib.fib
  fibula serve --bgp --bgp-as 64512 --bgp-id 192.0.2.9 --bgp-neighbour 192.0.2.1,64500
  curl -sN RIS-LIVE-STREAM | fibula serve --ris -
  fibula serve --config /etc/fibula/serve.toml --check

Each source feeds a table of its own, called as the source: fpm, bmp/post-policy, bgp, kernel. A file of
configuration has all that flags have, several sources of a kind, and limits, tokens and TLS;
docs/serve.md describes it. SIGHUP reads it again: sessions that are configured as before go on.
SIGTERM ends within a second, with a last checkpoint.

Everything listens on loopback unless an address says otherwise. Who can connect to a feed's port can
change its table: name the daemons (`allow` in the file), or keep the port within the machine.";

/// Follow routing daemons and answer over HTTP
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
    /// Take BMP connections of routers there
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:11019")]
    bmp: Option<SocketAddr>,
    /// Take BGP sessions of neighbours there
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:179",
          requires_all = ["bgp_as", "bgp_id", "bgp_neighbour"])]
    bgp: Option<SocketAddr>,
    /// Our AS in BGP sessions
    #[arg(long, value_name = "AS", requires = "bgp")]
    bgp_as: Option<u32>,
    /// Our BGP identifier, an IPv4 address
    #[arg(long, value_name = "ADDRESS", requires = "bgp")]
    bgp_id: Option<std::net::Ipv4Addr>,
    /// Who may open a BGP session, and its AS if only one is right
    #[arg(long, value_name = "ADDRESS[,AS]", requires = "bgp", value_parser = parse_neighbour)]
    bgp_neighbour: Vec<(IpAddr, Option<u32>)>,
    /// Follow the kernel's own forwarding tables
    #[arg(long)]
    kernel: bool,
    /// Receive buffer of the kernel's socket, in bytes
    #[arg(long, value_name = "BYTES", requires = "kernel")]
    kernel_buffer: Option<usize>,
    /// Read RIS Live JSON lines from a pipe, a file, or - for standard input
    #[arg(long, value_name = "PATH")]
    ris: Option<PathBuf>,
    /// Read MRT files as they appear in this folder
    #[arg(long, value_name = "FOLDER")]
    mrt: Option<PathBuf>,
    /// Answer over HTTP there [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Keep the table in this file, and go on from it after a restart
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// How often [default: 60s]
    #[arg(long, value_name = "TIME", requires = "checkpoint")]
    checkpoint_every: Option<Time>,
    /// Engines in order of preference
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...")]
    engine: Vec<String>,
    /// How log lines look
    #[arg(long, value_enum, default_value_t)]
    log: LogFormat,
    /// What is logged: error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LevelFilter,
}

fn parse_neighbour(text: &str) -> Result<(IpAddr, Option<u32>), String> {
    let (address, asn) = match text.split_once(',') {
        Some((address, asn)) => (address, Some(asn)),
        None => (text, None),
    };
    let asn = asn
        .map(|asn| asn.trim_start_matches("AS").parse().map_err(|_| format!("{asn:?} is no AS")));
    let address = address.parse().map_err(|_| format!("{address:?} is no address"))?;
    Ok((address, asn.transpose()?))
}

impl Args {
    /// The file's configuration, with what the flags add.
    fn config(&self) -> Result<Config, Failure> {
        let mut config = match &self.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        config.fpm.extend(self.fpm.map(Stream::at));
        config.bmp.extend(self.bmp.map(Stream::at));
        if let (Some(listen), Some(local_as), Some(router_id)) =
            (self.bgp, self.bgp_as, self.bgp_id)
        {
            let neighbour =
                self.bgp_neighbour.iter().map(|&(address, asn)| Neighbour::at(address, asn));
            config.bgp.push(Bgp::at(listen, local_as, router_id, neighbour.collect()));
        }
        if self.kernel {
            config.kernel.push(Kernel { buffer: self.kernel_buffer, ..Kernel::default() });
        }
        config.ris.extend(self.ris.clone().map(Ris::of));
        config.mrt.extend(self.mrt.clone().map(Mrt::of));
        if let Some(listen) = self.http {
            config.http.get_or_insert_default().listen = listen;
        }
        if let Some(file) = &self.checkpoint {
            config.checkpoint = Some(Checkpoint::at(file.clone()));
        }
        if let (Some(checkpoint), Some(every)) = (&mut config.checkpoint, self.checkpoint_every) {
            checkpoint.every = every;
        }
        if !self.engine.is_empty() {
            config.tables.engine.clone_from(&self.engine);
        }
        if config.sources().is_empty() {
            return Err(Failure::new("there is no source to follow")
                .hint("name one: --fpm, --bmp, --bgp, --kernel, --ris, --mrt, or --config FILE"));
        }
        config.checked()
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let config = args.config()?;
    crate::engines::choose::<u32>(&config.tables.engine)?;
    if args.check {
        // What files say is checked as well: passwords, tokens, certificates.
        sources::all(&config, |_| None)?;
        run::server_options(&config)?;
        let mut out = stdout();
        for source in config.sources() {
            writeln!(out, "{}: {}, into table {}", source.name, source.what, source.table)?;
        }
        writeln!(out, "answers on {}", config.http.unwrap_or_default().listen)?;
        out.flush()?;
        return Ok(Outcome::Done);
    }
    log::begin(args.log, args.log_level);
    run::run(args, config)
}
