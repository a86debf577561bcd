//! `fibula query`: addresses, prefixes, ASes and peers of a server or a file.

use std::io::Write;
use std::net::IpAddr;

use clap::{Args as ClapArgs, ValueEnum};
use fibula_core::AnyPrefix;
use fibula_fib::{EngineChoice, Fib, Match, Typed};
use fibula_server::api::{
    Lookup, OriginValidity, PastPeer, PastRoute, PrefixPaths, Route, RouteHistory, Routes, Search,
};
use fibula_server::client::{Client, RouteQuery};
use serde_json::{Map, json};

use crate::asking::{ServerArgs, attributes, peer};
use crate::failure::{Failure, Outcome};
use crate::output::{self, json_value};
use crate::source::{self, ReadArgs};
use crate::table;

const EXAMPLES: &str = "\
Examples:
  fibula query 193.0.6.139
  fibula query --view covered 193.0.0.0/16
  fibula query --server https://lg.example --table bgp AS3333
  fibula query --file rib.fib --json 193.0.6.139
  fibula query --path-regex _3333$ --community '64500:*'
  fibula query --at 2026-11-01T12:00:00Z 193.0.6.139

For an address, all routes that cover it are printed, the longest first; for a prefix, every peer's
path and why the best one is best; for an AS, the prefixes that it originates; for other text, the
peers whose names contain it. With --origin-as, --community or --path-regex, the best routes that fit
all of them are printed. With --at, the best routes of that time
are printed: of a server from its history, of a file of several dates from the table of the date.

Exit code 1 if there is no route, AS or peer for a question.";

/// Query a server or a file for addresses, prefixes, ASes and peers
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Addresses, prefixes, AS64500, parts of peers' names
    #[arg(value_name = "QUESTION", required_unless_present_any = ["origin_as", "community", "path_regex"])]
    questions: Vec<String>,
    /// Best routes that this AS originates
    #[arg(long, value_name = "AS", value_parser = parse_as, conflicts_with_all = ["questions", "file"])]
    origin_as: Option<u32>,
    /// Best routes with one of these communities; * is any part (64500:*, 64500:1:*)
    #[arg(long, value_name = "COMMUNITY,...", conflicts_with_all = ["questions", "file"])]
    community: Option<String>,
    /// Best routes whose AS path matches this regular expression; _ is the beginning, the end or what is between two AS
    #[arg(long, value_name = "REGEX", conflicts_with_all = ["questions", "file"])]
    path_regex: Option<String>,
    /// Maximum number of best routes to print
    #[arg(long, value_name = "N", conflicts_with = "questions")]
    limit: Option<u64>,
    #[command(flatten)]
    server: ServerArgs,
    /// A file in place of a server: a snapshot, a checkpoint, table files
    #[arg(long, value_name = "TABLE,...", conflicts_with_all = ["server", "table"])]
    file: Vec<String>,
    /// One table of the server (default: all)
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Routes of a prefix: its own, those that cover it, those inside it
    #[arg(long, default_value = "exact")]
    view: View,
    /// Print one JSON object a line, as the server gives them
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

fn parse_as(text: &str) -> Result<u32, &'static str> {
    fibula_rpki::parse_asn(text).ok_or("an AS is a number, as 64500 or AS64500")
}

/// The routes of a prefix to print.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum View {
    Exact,
    Covering,
    Covered,
}

impl View {
    fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Covering => "covering",
            Self::Covered => "covered",
        }
    }
}

/// The subject of a query.
enum Question<'a> {
    Address(IpAddr),
    Prefix(AnyPrefix),
    Text(&'a str),
}

impl<'a> Question<'a> {
    fn new(text: &'a str) -> Self {
        match (text.parse(), text.parse()) {
            (Ok(address), _) => Self::Address(address),
            (_, Ok(prefix)) => Self::Prefix(prefix),
            _ => Self::Text(text),
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut out = output::stdout();
    let mut is_found = true;
    if args.questions.is_empty() {
        if args.read.at.is_some() {
            return Err(Failure::new("--at has answers about addresses and prefixes")
                .hint("name one in place of --origin-as, --community or --path-regex"));
        }
        is_found = filter(args, &mut out)?;
    } else if args.file.is_empty() {
        let mut client = args.server.client()?;
        for question in &args.questions {
            is_found &= ask_server(args, &mut client, Question::new(question), &mut out)?;
            out.flush()?;
        }
    } else {
        let options = crate::engines::options([EngineChoice::Search]);
        let fib = table::open(&source::parse_list(&args.file, &args.read)?, &args.read, &options)?;
        for question in &args.questions {
            is_found &= ask_file(args, &fib, Question::new(question), &mut out)?;
        }
        fib.unchanged()?;
    }
    out.flush()?;
    Ok(if is_found { Outcome::Done } else { Outcome::Negative })
}

/// Prints the best routes that fit; false if there is none.
fn filter(args: &Args, out: &mut impl Write) -> Result<bool, Failure> {
    let wanted = RouteQuery {
        origin_as: args.origin_as,
        community: args.community.as_deref(),
        path_regex: args.path_regex.as_deref(),
        table: args.table.as_deref(),
    };
    let (mut count, mut failed) = (0, None);
    args.server.client()?.filter(&wanted, |found| {
        if args.limit.is_some_and(|limit| limit <= count) {
            return false;
        }
        count += 1;
        let printed = match args.json {
            true => json_line(out, &found),
            false => {
                let Route { prefix, peer: of, attributes: set, rpki, aspa, .. } = &found.route;
                let (set, validity) = (attributes(set), validity(rpki, aspa));
                let line =
                    writeln!(out, "{prefix} in {}  {set}{validity}  ({})", found.table, peer(of));
                line.map_err(Failure::from)
            }
        };
        failed = printed.err();
        failed.is_none()
    })?;
    match failed {
        Some(failed) => Err(failed),
        None => Ok(count > 0),
    }
}

/// Sends the query and prints the answer; false if nothing was found.
fn ask_server(
    args: &Args,
    client: &mut Client,
    question: Question<'_>,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let table = args.table.as_deref();
    if let Some(at) = args.read.at {
        if !matches!(args.view, View::Exact) {
            return Err(Failure::new("--view is for the routes of now").hint(
                "with --at, a prefix has its own route, and an address all that covered it",
            ));
        }
        let question = match question {
            Question::Address(address) => address.to_string(),
            Question::Prefix(prefix) => prefix.to_string(),
            Question::Text(text) => {
                return Err(Failure::new(format_args!("{text:?} is no address and no prefix"))
                    .hint("--at has answers about these"));
            }
        };
        let found = client.history(&question, &at.to_string(), table)?;
        match args.json {
            true => json_line(out, &found)?,
            false => print_history(&found, out)?,
        }
        return Ok(found.tables.iter().any(|table| table.found.is_some()));
    }
    match question {
        Question::Address(address) => {
            let found = client.lookup(address, table)?;
            if args.json {
                json_line(out, &found)?;
            } else {
                print_lookup(&found, out)?;
            }
            Ok(found.tables.iter().any(|table| table.found.is_some()))
        }
        Question::Prefix(prefix) => {
            let found = client.routes(&prefix.to_string(), args.view.name(), table)?;
            if args.json {
                json_line(out, &found)?;
            } else {
                print_routes(&found, out)?;
            }
            Ok(found.tables.iter().any(|table| !table.routes.is_empty()))
        }
        Question::Text(text) => {
            let found = client.search(text, table)?;
            if args.json {
                json_line(out, &found)?;
            } else {
                print_search(&found, out)?;
            }
            Ok(!found.origins.is_empty() || !found.peers.is_empty())
        }
    }
}

fn json_line(out: &mut impl Write, value: &impl serde::Serialize) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, value)?;
    Ok(writeln!(out)?)
}

/// What the RPKI says of origin and path, behind the attributes.
fn validity(rpki: &Option<OriginValidity>, aspa: &Option<String>) -> String {
    let origin = rpki.as_ref().map(|rpki| format!(", RPKI {}", rpki.validity));
    let path = aspa.as_ref().map(|aspa| format!(", ASPA {aspa}"));
    [origin, path].into_iter().flatten().collect()
}

fn print_lookup(found: &Lookup, out: &mut impl Write) -> Result<(), Failure> {
    for table in &found.tables {
        writeln!(out, "{} in {}:", found.address, table.table)?;
        if table.covering.is_empty() {
            writeln!(out, "  no route")?;
        }
        for Route { prefix, peer: of, attributes: set, rpki, aspa, .. } in &table.covering {
            let validity = validity(rpki, aspa);
            writeln!(out, "  {prefix}  {}{validity}  ({})", attributes(set), peer(of))?;
        }
    }
    if found.tables.is_empty() {
        writeln!(out, "{}: no table has a route", found.address)?;
    }
    Ok(())
}

fn print_history(found: &RouteHistory, out: &mut impl Write) -> Result<(), Failure> {
    let at = found.at.as_deref().unwrap_or_default();
    for table in &found.tables {
        writeln!(out, "{} at {at} in {}:", found.prefix, table.table)?;
        if table.covering.is_empty() {
            let since = table.since.as_ref().map(|since| format!(" since {since}"));
            let until = table.until.as_ref().map(|until| format!(" until {until}"));
            let (since, until) = (since.unwrap_or_default(), until.unwrap_or_default());
            writeln!(out, "  no route{since}{until}")?;
        }
        for PastRoute { prefix, peer: of, attributes: set, since, or_before, until } in
            &table.covering
        {
            let of = of.as_ref().map_or(String::new(), |of| format!("  ({})", past_peer(of)));
            let before = if *or_before { " or before" } else { "" };
            let until = until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
            writeln!(out, "  {prefix}  {}{of}  since {since}{before}{until}", attributes(set))?;
        }
    }
    if found.tables.is_empty() {
        writeln!(out, "{}: no table had a route at {at}", found.prefix)?;
    }
    for gap in &found.gaps {
        writeln!(out, "changes from {} to {} are not known: {}", gap.from, gap.until, gap.why)?;
    }
    Ok(())
}

fn past_peer(peer: &PastPeer) -> String {
    match &peer.source {
        Some(source) if *source != peer.name => format!("{} of {source}", peer.name),
        _ => peer.name.clone(),
    }
}

fn print_routes(found: &Routes, out: &mut impl Write) -> Result<(), Failure> {
    for table in &found.tables {
        writeln!(out, "{} ({}) in {}:", found.prefix, found.view, table.table)?;
        if table.routes.is_empty() {
            writeln!(out, "  no route")?;
        }
        for PrefixPaths { prefix, paths, .. } in &table.routes {
            writeln!(out, "  {prefix}")?;
            for path in paths {
                let lost = match &path.lost_by {
                    Some(step) => format!("lost by {step}"),
                    None => "best".to_owned(),
                };
                writeln!(
                    out,
                    "    {lost}: {}{}  ({})",
                    attributes(&path.attributes),
                    validity(&path.rpki, &path.aspa),
                    peer(&path.peer)
                )?;
            }
        }
        if table.truncated {
            writeln!(out, "  and more")?;
        }
    }
    Ok(())
}

fn print_search(found: &Search, out: &mut impl Write) -> Result<(), Failure> {
    for of in &found.origins {
        let (v4, v6) = (of.routes.ipv4, of.routes.ipv6);
        writeln!(out, "{} originates {v4} IPv4 and {v6} IPv6 routes in {}:", found.q, of.table)?;
        for prefix in &of.prefixes {
            writeln!(out, "  {prefix}")?;
        }
    }
    for status in &found.peers {
        let (v4, v6) = (status.routes.ipv4, status.routes.ipv6);
        let state = match &status.until {
            None => status.state.clone(),
            Some(until) => format!("{} (routes kept until {until})", status.state),
        };
        writeln!(out, "{}: {state}, {v4} IPv4 and {v6} IPv6 routes", peer(&status.peer))?;
    }
    if found.truncated {
        writeln!(out, "and more")?;
    }
    if found.origins.is_empty() && found.peers.is_empty() {
        writeln!(out, "{}: nothing is known of it", found.q)?;
    }
    Ok(())
}

/// Looks up in a table and prints the answer; false if nothing was found.
fn ask_file(
    args: &Args,
    fib: &Fib,
    question: Question<'_>,
    out: &mut impl Write,
) -> Result<bool, Failure> {
    let (requested, found): (String, Vec<Match<'_>>) = match question {
        Question::Address(address) => (address.to_string(), fib.covering(address)?.collect()),
        Question::Prefix(prefix) => {
            let found = match args.view {
                View::Exact => fib.exact(prefix)?.into_iter().collect(),
                View::Covering => fib.covering(prefix)?.collect(),
                View::Covered => fib.covered(prefix)?.collect(),
            };
            (prefix.to_string(), found)
        }
        Question::Text(text) => {
            return Err(Failure::new(format_args!("{text:?} is no address and no prefix"))
                .hint("a file has only answers about these; a server also has ASes and peers"));
        }
    };
    if args.json {
        let route = |route: &Match<'_>| {
            let values: Map<_, _> =
                route.typed().map(|(name, value)| (name.into_owned(), json_value(value))).collect();
            json!({ "prefix": route.prefix().map(|prefix| prefix.to_string()), "values": values })
        };
        let routes: Vec<_> = found.iter().map(route).collect();
        json_line(out, &json!({ "q": requested, "routes": routes }))?;
        return Ok(!found.is_empty());
    }
    writeln!(out, "{requested}:")?;
    if found.is_empty() {
        writeln!(out, "  no route")?;
    }
    for route in &found {
        let prefix = route.prefix().map_or_else(String::new, |prefix| prefix.to_string());
        let text = |(name, value): (_, Typed<'_>)| match value {
            Typed::Null => None,
            value => Some(format!("{name} {}", json_value(value))),
        };
        let values: Vec<_> = route.typed().filter_map(text).collect();
        writeln!(out, "  {prefix}  {}", values.join(", "))?;
    }
    Ok(!found.is_empty())
}
