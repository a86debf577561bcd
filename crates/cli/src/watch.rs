//! `fibula watch`: prints changes of best routes as they come.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args as ClapArgs;
use fibula_core::AnyPrefix;
use fibula_daemon::config::Time;
use fibula_server::api::Change;
use fibula_server::client::{ChangeEvent, ClientError, query};

use crate::asking::{ServerArgs, attributes, peer};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::note;
use crate::watch_rules::{self, Until};

const EXAMPLES: &str = "\
Examples:
  fibula watch
  fibula watch --prefix 193.0.0.0/16 --table bgp
  fibula watch --origin-as 3333 --json | jq .prefix

  fibula watch --until rules.toml --for 10m || echo 'something is wrong'

With --until, the rules of a file ([[alarm]], as in the configuration of `fibula serve`) judge the changes. The command
prints the first alarm and ends with exit code 1. It ends with 0 if --for or --count is over before, and with 2 after an
error. What was wrong before it began is judged when the route changes next.

If the connection breaks, the command connects again and continues after the last change that it
printed. If the server no longer has some of the missed changes, standard error says how many.";

/// Print changes of best routes as they occur
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    server: ServerArgs,
    /// Changes of this prefix and of longer ones
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<AnyPrefix>,
    /// Changes of one table
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Changes of routes that this AS originates, withdrawals included
    #[arg(long, value_name = "AS")]
    origin_as: Option<u32>,
    /// Changes of routes of the peer with this number
    #[arg(long, value_name = "NUMBER")]
    peer: Option<u32>,
    /// Begin after the change with this id
    #[arg(long, value_name = "ID")]
    since: Option<u64>,
    /// Print one JSON object a line, as the server gives them
    #[arg(long)]
    json: bool,
    /// Stop after this number of changes
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Judge the changes by the rules of this file, and end with exit code 1 when an alarm begins
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prefix", "origin_as", "peer"])]
    until: Option<PathBuf>,
    /// Stop after this time, such as 10m
    #[arg(long = "for", value_name = "TIME", requires = "until")]
    longest: Option<Time>,
}

/// Between two connections.
pub(super) const REST: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut client = args.server.client()?;
    let prefix = args.prefix.map(|prefix| prefix.to_string());
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    let (origin_as, of_peer) = (number(args.origin_as), number(args.peer));
    let query = query(&[
        ("prefix", prefix.as_deref()),
        ("table", args.table.as_deref()),
        ("origin_as", origin_as.as_deref()),
        ("peer", of_peer.as_deref()),
    ]);
    if let Some(rules) = &args.until {
        let until = Until {
            rules: rules.clone(),
            longest: args.longest.map(|time| time.0),
            changes: args.count,
            is_json: args.json,
        };
        return watch_rules::run(&until, client, args.server.client()?, query, args.since);
    }
    let (mut last, mut left) = (args.since, args.count.unwrap_or(u64::MAX));
    let mut was_there = false;
    while left > 0 {
        let mut failed = None;
        let done = client.watch(&query, last, |event| {
            was_there = true;
            match event {
                ChangeEvent::Lost(lost) => note(match lost.lost {
                    Some(count) => format!("{count} changes were missed"),
                    None => "changes were missed: the server was started again".to_owned(),
                }),
                ChangeEvent::Change(change) => {
                    last = Some(change.id);
                    left -= 1;
                    failed = print(&change, args.json).err();
                }
            }
            left > 0 && failed.is_none()
        });
        if let Some(failure) = failed {
            return Err(failure);
        }
        match done {
            Ok(()) if left == 0 => break,
            Ok(()) => note("the server ended the connection; trying again"),
            // A refused request would be refused again, and a server that never answered has a wrong address.
            Err(error @ ClientError::Refused { .. }) => return Err(error.into()),
            Err(error) if !was_there => return Err(error.into()),
            Err(error) => note(format_args!("{error}; trying again")),
        }
        thread::sleep(REST);
    }
    Ok(Outcome::Done)
}

fn print(change: &Change, is_json: bool) -> Result<(), Failure> {
    let mut out = output::stdout();
    let written = if is_json {
        serde_json::to_writer(&mut out, change)
            .map_err(std::io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        let Change { time, table, prefix, .. } = change;
        match (&change.attributes, &change.peer) {
            (Some(set), Some(of)) => {
                writeln!(out, "{time} {table} {prefix}  {}  ({})", attributes(set), peer(of))
            }
            _ => writeln!(out, "{time} {table} {prefix}  gone"),
        }
    };
    written.and_then(|()| out.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::output_closed(),
        _ => Failure::from(error),
    })
}
