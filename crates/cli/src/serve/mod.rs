//! `fibula serve`: follows routing daemons, and answers over HTTP.
//!
//! The server is the crate `daemon`'s ([`Serve`]). This module has the arguments and maps signals to notices.

pub mod flags;
mod log;

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args as ClapArgs;
use fibula_daemon::config::{
    Bgp, Checkpoint, ConfigError, Mrt, Neighbour, Problem, Ris, Rpki, ServeConfig, Stream, Time,
};
use fibula_daemon::{Serve, ServeEnd, ServeOptions, systemd};
use fibula_fib::EngineChoice;

use crate::failure::{Failure, Outcome};
use crate::output::stdout;
use crate::signals;
use flags::{Flags, check_sources, socket_address};

const EXAMPLES: &str = "\
Examples:
  fibula serve --fpm                     FRR: `zebra -M dplane_fpm_nl`, `fpm address 127.0.0.1`
  fibula serve --bmp 192.0.2.7:11019     any daemon that speaks BMP
  fibula serve --kernel --checkpoint /var/lib/fibula/rib.fib
  fibula serve --bgp --bgp-as 64512 --bgp-id 192.0.2.9 --bgp-neighbour 192.0.2.1,64500
  fibula serve --bmp --rtr validator.example:3323
  curl -sN RIS-LIVE-STREAM | fibula serve --ris -
  fibula serve --config /etc/fibula/serve.toml --check

The looking glass is the page http://127.0.0.1:8080/.

Each source feeds a table of its own with the source's name: fpm, bmp/post-policy, bgp, kernel. A
configuration file can set everything that flags set, and also several sources of a kind, limits,
tokens and TLS; docs/serve.md describes it. On SIGHUP the server reads the file again; sessions
whose configuration is unchanged continue. SIGTERM ends the server within a second and writes a
last checkpoint.

The server listens on loopback unless an address is given. Any program that can connect to a feed's
port can change its table: name the daemons (`allow` in the file), or keep the port on loopback.";

/// Follow routing daemons and answer over HTTP
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Accept BMP connections of routers at this address; without one, 127.0.0.1:11019
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:11019",
          value_parser = socket_address)]
    bmp: Option<SocketAddr>,
    /// Accept BGP sessions of neighbours at this address; without one, 127.0.0.1:179
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:179",
          value_parser = socket_address, requires_all = ["bgp_as", "bgp_id", "bgp_neighbour"])]
    bgp: Option<SocketAddr>,
    /// Our AS in BGP sessions
    #[arg(long, value_name = "AS", requires = "bgp", value_parser = parse_as)]
    bgp_as: Option<u32>,
    /// Our BGP identifier, an IPv4 address
    #[arg(long, value_name = "ADDRESS", requires = "bgp")]
    bgp_id: Option<std::net::Ipv4Addr>,
    /// A neighbour that may open a BGP session, and the AS that it must have (any if not given)
    #[arg(long, value_name = "ADDRESS[,AS]", requires = "bgp", value_parser = parse_neighbour)]
    bgp_neighbour: Vec<(IpAddr, Option<u32>)>,
    /// Receive buffer of the kernel's socket, in bytes
    #[arg(long, value_name = "BYTES", requires = "kernel")]
    kernel_buffer: Option<usize>,
    /// Read RIS Live JSON lines from a pipe, a file, or - for standard input
    #[arg(long, value_name = "PATH")]
    ris: Option<PathBuf>,
    /// Read MRT files as they appear in this folder
    #[arg(long, value_name = "FOLDER")]
    mrt: Option<PathBuf>,
    /// Validate origins with the VRPs of this RTR server, such as a validator's; the next one is for when it fails
    #[arg(long, value_name = "HOST:PORT")]
    rtr: Vec<String>,
    /// Answer HTTP requests at this address [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    http: Option<SocketAddr>,
    /// Keep the table in this file, and continue from it after a restart
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Time between checkpoints [default: 60s]
    #[arg(long, value_name = "TIME", requires = "checkpoint")]
    checkpoint_every: Option<Time>,
}

fn parse_as(text: &str) -> Result<u32, String> {
    let number = text.trim_start_matches("AS").parse();
    number.map_err(|_| format!("{text:?} is not an AS number, such as 64512"))
}

fn parse_neighbour(text: &str) -> Result<(IpAddr, Option<u32>), String> {
    let (address, asn) = match text.split_once(',') {
        Some((address, asn)) => (address, Some(asn)),
        None => (text, None),
    };
    let asn = asn.map(parse_as);
    let address = address.parse().map_err(|_| format!("{address:?} is no address"))?;
    Ok((address, asn.transpose()?))
}

impl Args {
    /// The file's configuration, with what the flags add.
    fn config(&self) -> Result<ServeConfig, ConfigError> {
        let mut config = match &self.flags.config {
            Some(path) => ServeConfig::read(path)?,
            None => ServeConfig::default(),
        };
        self.flags.add_to(&mut config, self.kernel_buffer);
        config.bmp.extend(self.bmp.map(Stream::at));
        if let (Some(listen), Some(local_as), Some(router_id)) =
            (self.bgp, self.bgp_as, self.bgp_id)
        {
            let neighbour =
                self.bgp_neighbour.iter().map(|&(address, asn)| Neighbour::at(address, asn));
            config.bgp.push(Bgp::at(listen, local_as, router_id, neighbour.collect()));
        }
        config.ris.extend(self.ris.clone().map(Ris::of));
        config.mrt.extend(self.mrt.clone().map(Mrt::of));
        if !self.rtr.is_empty() {
            config.rpki = Some(Rpki::of(self.rtr.clone()));
        }
        let http = config.http.get_or_insert_default();
        if let Some(listen) = self.http {
            http.listen_on(listen);
        }
        if let Some(file) = &self.checkpoint {
            config.checkpoint = Some(Checkpoint::at(file.clone()));
        }
        if let (Some(checkpoint), Some(every)) = (&mut config.checkpoint, self.checkpoint_every) {
            checkpoint.every = every;
        }
        if config.sources().is_empty() {
            return Err(Problem::NoSource.into());
        }
        config.checked()
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let config = args.config()?;
    crate::engines::choose::<u32>(&config.tables.engine)?;
    // What is odd in files is logged when they are read.
    args.flags.begin_log();
    if args.flags.check {
        let mut out = stdout();
        check_sources(&config, &mut out)?;
        for rule in config.alarm_rules()? {
            writeln!(out, "alarm {}: {}", rule.name, rule.kind.name())?;
        }
        #[cfg(target_os = "linux")]
        if let Some(flows) = &config.flows {
            let at: Vec<_> = flows.listen.iter().map(ToString::to_string).collect();
            writeln!(out, "flows at {}, into {}", at.join(", "), flows.output.display())?;
            for own in &flows.own {
                writeln!(out, "flows have the values of {own}")?;
            }
        }
        writeln!(out, "answers on {}", config.http.unwrap_or_default().address())?;
        out.flush()?;
        return Ok(Outcome::Done);
    }
    let signals = signals::listen(true)?;
    let again = args.clone();
    let tables = crate::engines::options([EngineChoice::Auto]);
    let options = ServeOptions::new(config).tables(tables).rereading(move || again.config());
    let serve = Serve::start(options)?;
    signals.notify(serve.handle())?;
    systemd::ready();
    let ServeEnd { live, .. } = serve.wait()?;
    // The system takes memory back at once; a table of a million routes, freed piece by piece, takes tenths of a
    // second.
    std::mem::forget(live);
    Ok(Outcome::Done)
}
