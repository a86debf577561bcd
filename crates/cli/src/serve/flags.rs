//! The flags that `fibula serve` and `fibula route` have in common.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use fibula_daemon::Serve;
use fibula_daemon::config::{Kernel, ServeConfig, Stream};
use tracing_subscriber::filter::LevelFilter;

use super::log::{self, LogFormat};
use crate::failure::Failure;

/// The sources of tables, and logging.
#[derive(ClapArgs, Clone, Debug)]
pub struct Flags {
    /// The configuration file (TOML); flags add to it
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the configuration, list what would be done, and end
    #[arg(long)]
    pub check: bool,
    /// Accept FPM connections of FRR's zebra at this address; without one, 127.0.0.1:2620
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:2620",
          value_parser = socket_address)]
    fpm: Option<SocketAddr>,
    /// Follow the kernel's own forwarding tables
    #[arg(long)]
    kernel: bool,
    /// Engines in order of preference
    #[arg(long, short, value_delimiter = ',', value_name = "NAME,...")]
    engine: Vec<String>,
    /// Format of log lines
    #[arg(long, value_enum, default_value_t)]
    log: LogFormat,
    /// Least severe level that is logged: error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LevelFilter,
}

impl Flags {
    /// Adds them to what the file says. The buffer is that of the kernel's socket, in bytes.
    pub fn add_to(&self, config: &mut ServeConfig, kernel_buffer: Option<usize>) {
        config.fpm.extend(self.fpm.map(Stream::at));
        if self.kernel {
            config.kernel.push(Kernel::with_buffer(kernel_buffer));
        }
        if !self.engine.is_empty() {
            config.tables.engine.clone_from(&self.engine);
        }
    }

    pub fn begin_log(&self) {
        log::begin(self.log, self.log_level);
    }
}

/// An address and a port, as flags have them.
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("{text:?} is not an address with a port, such as 127.0.0.1:2620 or [::1]:2620")
    })
}

/// Checks the sources and the files that they name (passwords, tokens, certificates), and lists the sources.
pub fn check_sources(config: &ServeConfig, out: &mut dyn Write) -> Result<(), Failure> {
    Serve::check(config)?;
    for source in config.sources() {
        writeln!(out, "{}: {}, into table {}", source.name, source.config, source.table)?;
    }
    Ok(())
}
