//! `fibula route`: packets in, longest-prefix match, packets out.
//!
//! The router is the crate `daemon`'s ([`Route`]). This module opens a table that does not change, maps signals to
//! notices and prints the summary; [`args`] has the arguments.

mod args;
mod report;

use std::io::Write as _;
use std::time::Duration;

use fibula_daemon::config::RouteConfig;
use fibula_daemon::route::{RouteEnd, next_hops, read_rules};
use fibula_daemon::{Route, RouteOptions, systemd};
use fibula_fib::{EngineChoice, Fib};

use crate::failure::{Failure, Outcome};
use crate::output::stdout;
use crate::serve::flags::check_sources;
use crate::{signals, source, table};
pub use args::Args;

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let config = args.config()?;
    crate::engines::choose::<u32>(&config.feeds.tables.engine)?;
    if args.flags.check {
        return check(&config);
    }
    args.flags.begin_log();
    // Without rules there is nothing to read again.
    let signals = signals::listen(config.router.rules.is_some())?;
    let table = table(args, &config)?;
    let mut options =
        RouteOptions::new(config).tables(crate::engines::options([EngineChoice::Auto]));
    if let Some(table) = table {
        options = options.by_table(table);
    }
    if let Some(seconds) = args.wait {
        options = options.waiting(Duration::from_secs(seconds));
    }
    let route = Route::start(options)?;
    signals.notify(route.handle())?;
    systemd::ready();
    let RouteEnd { figures, time, failure } = match args.seconds {
        Some(seconds) => route.wait_at_most(Duration::from_secs_f64(seconds))?,
        None => route.wait()?,
    };
    let mut out = stdout();
    report::print(&figures, &mut out, time, args.json)?;
    out.flush()?;
    failure.map_or(Ok(Outcome::Done), |failure| Err(failure.into()))
}

/// The table that does not change, if there is one.
fn table(args: &Args, config: &RouteConfig) -> Result<Option<Fib>, Failure> {
    if config.router.table.is_empty() {
        return Ok(None);
    }
    let names = config.feeds.tables.engine.iter().map(String::as_str);
    let options = crate::engines::options(names);
    let sources = source::parse_list(&config.router.table, &args.read)?;
    table::open(&sources, &args.read, &options).map(Some)
}

/// `--check`: reads every file but the tables, and lists the planned parts.
fn check(config: &RouteConfig) -> Result<Outcome, Failure> {
    Route::check(config)?;
    let mut out = stdout();
    check_sources(&config.feeds, &mut out)?;
    if let Some(text) = read_rules(config)? {
        writeln!(out, "rules: {}", text.rules.len())?;
        text.notes.iter().try_for_each(|note| writeln!(out, "  {note}"))?;
    }
    for table in &config.router.table {
        writeln!(out, "table: {table}")?;
    }
    if let Some(file) = &config.router.next_hops {
        next_hops::check(file, config.ports.len())?;
        writeln!(out, "next hops: {}", file.display())?;
    }
    for (number, port) in config.ports.iter().enumerate() {
        let table = config.table_of(port);
        let table = table.map_or(String::new(), |table| format!(", forwards by {table}"));
        writeln!(out, "port {number}: {}{table}", port.port)?;
    }
    if let Some(http) = &config.feeds.http {
        writeln!(out, "answers on {}", http.address())?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}
