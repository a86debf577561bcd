//! The `fibula` command: compile routing tables, look addresses up, annotate data, verify and
//! measure engines.
//!
//! It assembles and decides nothing: tables come from `sources` (modules `source` and `table`),
//! lookups from `engines`, annotation from `annotate`, the oracle and the generators from `testkit`.
//! A command is a module with its arguments, its examples and one function `run`.
//!
//! This is a library so that the Python package has the command, too, without a second copy of all that both contain.
//! Its only function is [`run`].
#![forbid(unsafe_code)]

mod annotate;
mod as_of;
mod asking;
mod bench;
mod build;
mod classify;
mod config;
mod diff;
mod engines;
mod export;
mod failure;
mod fetch;
#[cfg(target_os = "linux")]
mod flow;
mod generate;
mod input;
mod layer;
mod lookup;
mod output;
mod plot;
mod progress;
mod query;
mod replay;
#[cfg(target_os = "linux")]
mod route;
mod rpki;
mod same;
#[cfg(unix)]
mod serve;
mod shell;
mod signals;
mod source;
mod stats;
mod table;
mod verify;
mod watch;
mod watch_rules;
mod written;

use std::ffi::OsString;
use std::io::Write as _;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use fibula_simd::Isa;

use failure::{Failure, Outcome};

const AFTER: &str = "\
A table is a snapshot that `fibula build` wrote, a routing table file (text, CSV, JSON, Parquet, MRT,
mmdb; also gz, bz2, xz or zst, and - for standard input), a generated table such as
gen:v4:2024:900000:1 (family, year, prefixes, seed), or `embedded`, the countries of the world's
address ranges. A URL (https://...) or a named source (fetch:aws) is fetched first. Several, separated
by commas, merge in order (in `bench`, each is measured). Without --table, it is FIBULA_TABLE, else the
table of the configuration (~/.config/fibula/config.toml), else `embedded`.

Exit codes: 0 success; 1 success, and the answer is no (an address without a route, tables that
differ, an invalid route, an engine that is wrong); 2 wrong usage, or input or output failed.

Environment: FIBULA_ISA=scalar|avx2|avx512|neon forces an instruction set; FIBULA_HUGE_PAGES=off keeps
tables on ordinary pages; FIBULA_TABLE is the table of commands without --table; FIBULA_OFFLINE=1
fetches nothing; FIBULA_CONFIG is the configuration file. HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE are used.

Examples:
  fibula lookup 8.8.8.8 2001:4860:4860::8888
  fibula lookup --table rib.gz --where origin_as=64500
  fibula diff yesterday.fib today.fib
  fibula build rib.20260101.0000.bz2 -o table.fib
  fibula build --as-of ribs/ -o year.fib
  fibula fetch ris/rrc00
  fibula annotate --table table.fib --add prefix,origin_as flows.csv > annotated.csv
  fibula classify rules.txt capture.pcapng > hits.csv
  fibula rpki vrps.json rib.gz
  fibula export table.fib -o table.mmdb
  fibula plot rib.gz --chart hilbert -o map.svg
  fibula verify --table table.fib
  fibula bench --table table.fib --engines all
  fibula replay --table rib.bz2 --updates updates.gz
  fibula serve --fpm --checkpoint rib.fib
  fibula flow --listen 0.0.0.0:2055 --table table.fib -o flows/
  fibula route --fpm --port afxdp:eth1 --port afxdp:eth2";

/// IP longest-prefix match: build, look up, annotate, verify, measure
#[derive(Parser, Debug)]
#[command(name = "fibula", version, after_help = AFTER, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Build(build::Args),
    Fetch(fetch::Args),
    Lookup(lookup::Args),
    Diff(diff::Args),
    Annotate(annotate::Args),
    Classify(classify::Args),
    #[cfg(target_os = "linux")]
    Flow(Box<flow::Args>),
    Rpki(rpki::Args),
    Export(export::Args),
    Verify(verify::Args),
    Stats(stats::Args),
    Plot(plot::Args),
    Bench(bench::Args),
    Replay(replay::Args),
    #[cfg(target_os = "linux")]
    Route(Box<route::Args>),
    #[cfg(unix)]
    Serve(serve::Args),
    Query(query::Args),
    Watch(watch::Args),
    Gen(generate::Args),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

impl Command {
    /// Whether it handles signals itself.
    fn ends_in_order(&self) -> bool {
        if matches!(self, Self::Annotate(args) if args.stream.stream.is_some()) {
            return cfg!(unix);
        }
        #[cfg(target_os = "linux")]
        if matches!(self, Self::Route(_) | Self::Flow(_)) {
            return true;
        }
        #[cfg(unix)]
        if matches!(self, Self::Serve(_)) {
            return true;
        }
        false
    }
}

/// Turns panics of the file-format libraries, which damaged files can cause, into errors.
fn leave_out_caught_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !fibula_annotate::panic_is_caught() {
            default(panic);
        }
    }));
}

fn done(command: &Command) -> Result<Outcome, Failure> {
    leave_out_caught_panics();
    Isa::forced().map_err(|error| Failure::new(format_args!("FIBULA_ISA: {error}")))?;
    match command {
        Command::Build(args) => build::run(args),
        Command::Fetch(args) => fetch::run(args),
        Command::Lookup(args) => lookup::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Annotate(args) => annotate::run(args),
        Command::Classify(args) => classify::run(args),
        #[cfg(target_os = "linux")]
        Command::Flow(args) => flow::run(args),
        Command::Rpki(args) => rpki::run(args),
        Command::Export(args) => export::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Stats(args) => stats::run(args),
        Command::Plot(args) => plot::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Replay(args) => replay::run(args),
        #[cfg(target_os = "linux")]
        Command::Route(args) => route::run(args),
        #[cfg(unix)]
        Command::Serve(args) => serve::run(args),
        Command::Query(args) => query::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Gen(args) => generate::run(args),
        Command::Completions(args) => shell::completions(args, Cli::command()),
        Command::Man(args) => shell::man(args, Cli::command()),
    }
}

/// Runs the command with these arguments, of which the first is the program's name, and returns its exit code. It is
/// the program's only work: it sets the process's panic hook and its handlers of signals.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let parsed = Cli::command().try_get_matches_from(arguments);
    let code = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => {
            if !cli.command.ends_in_order() {
                signals::clean_up();
            }
            match done(&cli.command) {
                Ok(outcome) => outcome.code(),
                Err(failure) => {
                    // It may be about a table that the user did not name here.
                    config::report(None);
                    failure.report()
                }
            }
        }
        // Not `exit`: it panics if the help goes into a closed pipe.
        Err(error) => match error.print() {
            Err(failed) if !error.use_stderr() => Failure::from(failed).report(),
            _ => u8::from(error.use_stderr()) * 2,
        },
    };
    // Rust's own `main` does this at its end, and another program's does not.
    let _ = std::io::stdout().flush();
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
