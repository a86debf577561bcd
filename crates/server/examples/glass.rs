//! A server for the tests of the looking glass. Its routes come as JSON lines on standard input.
//!
//! `cargo run -p fibula-server --example glass -- 127.0.0.1:8080`, then for example
//!
//! ```json
//! {"do":"peer","address":"10.0.0.1","asn":64500,"source":"bgp"}
//! {"do":"announce","table":"bgp","prefix":"193.0.0.0/21","peer":0,
//!  "attributes":{"kind":"bgp","next_hop":"10.0.0.1","as_path":"64500 3333","as_path_len":2,"origin_as":3333}}
//! {"do":"withdraw","table":"bgp","prefix":"193.0.0.0/21","peer":0}
//! {"do":"flows","column":"dst_origin_as","top":[
//!  {"value":"3333","bytes":1500000,"packets":1000,"flows":20,"missed_bytes":0}]}
//! {"do":"past","table":"bgp","prefix":"193.0.0.0/21","ago":3600,"attributes":null}
//! ```
//!
//! (a line each). Attributes have the form of answers. For each line it prints `ok` or the error, and it ends with its
//! input.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, SystemTimeError, UNIX_EPOCH};

use fibula_core::{Attributes, BgpAttributes, Change, NextHop, NextHops, RouteKind, Update, Value};
use fibula_feeds::{Board, Figures, SourceState, SourceStatus};
use fibula_fib::FibOptions;
use fibula_history::{HistoryBreak, HistoryFolder, HistoryOptions, RouteKey, RouteRecord};
use fibula_rib::{AttributeSet, Live, LiveOptions, Peer, Rib};
use fibula_server::{AsNames, FlowTops, HistoryOnDisk, Server, ServerOptions, api, rfc3339};
use serde::Deserialize;

/// One line of the input.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Line {
    Source {
        name: String,
    },
    Peer {
        address: Option<IpAddr>,
        asn: u32,
        source: String,
    },
    Announce {
        table: String,
        prefix: String,
        peer: u32,
        #[serde(default)]
        path_id: u32,
        attributes: api::Attributes,
    },
    Withdraw {
        table: String,
        prefix: String,
        peer: u32,
        #[serde(default)]
        path_id: u32,
    },
    Flows {
        column: String,
        top: Vec<api::TopFlow>,
    },
    /// A change in the history of files, so many seconds before the start.
    Past {
        table: String,
        prefix: String,
        ago: u64,
        attributes: Option<api::Attributes>,
    },
}

/// What the lines change.
struct World {
    live: Arc<Live>,
    board: Arc<Board>,
    flows: Flows,
    history: Past,
}

/// A history that begins two hours before the start.
struct Past {
    folder: Arc<Mutex<HistoryFolder>>,
    started: u64,
    _files: tempfile::TempDir,
}

impl Past {
    fn new() -> Result<Self, Box<dyn Error>> {
        let files = tempfile::tempdir()?;
        let started = micros()?;
        let mut folder = HistoryFolder::open(files.path(), HistoryOptions::default())?;
        folder.begin(started - 7_200_000_000, HistoryBreak::Begin)?;
        Ok(Self { folder: Arc::new(Mutex::new(folder)), started, _files: files })
    }

    /// It has all changes until each question.
    fn on_disk(&self) -> HistoryOnDisk {
        let folder = Arc::clone(&self.folder);
        HistoryOnDisk(Arc::new(move || {
            let mut folder = folder.lock().map_err(|error| error.to_string())?;
            folder.cover(micros().map_err(|error| error.to_string())?);
            Ok(folder.reader())
        }))
    }

    fn write(
        &self,
        key: RouteKey,
        ago: u64,
        set: Option<AttributeSet>,
    ) -> Result<(), Box<dyn Error>> {
        let record = RouteRecord::new(self.started - ago * 1_000_000, None, set);
        let mut folder = self.folder.lock().map_err(|error| error.to_string())?;
        Ok(folder.write(&[(key, record)])?)
    }
}

/// Microseconds since 1970.
fn micros() -> Result<u64, SystemTimeError> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u64)
}

/// The values of a column.
type Column = (String, Vec<api::TopFlow>);

/// The columns of flows.
#[derive(Clone, Default)]
struct Flows(Arc<Mutex<Vec<Column>>>);

impl Flows {
    /// The same for any time.
    fn top(&self, by: Option<&str>, minutes: u64, limit: usize) -> Result<api::TopFlows, String> {
        let all = self.0.lock().map_err(|error| error.to_string())?;
        let found = match by {
            Some(by) => Some(all.iter().find(|(name, _)| name == by).ok_or("no such column")?),
            None => all.first(),
        };
        let sum =
            |of: fn(&api::TopFlow) -> u64| found.iter().flat_map(|(_, top)| top).map(of).sum();
        let now = SystemTime::now();
        Ok(api::TopFlows {
            columns: all.iter().map(|(name, _)| name.clone()).collect(),
            column: found.map(|(name, _)| name.clone()),
            from: rfc3339(now - Duration::from_secs(60 * minutes)),
            until: rfc3339(now),
            bytes: sum(|flow| flow.bytes),
            packets: sum(|flow| flow.packets),
            flows: sum(|flow| flow.flows),
            top: found.iter().flat_map(|(_, top)| top.iter().take(limit)).cloned().collect(),
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let listen = std::env::args().nth(1).ok_or("usage: glass ADDRESS:PORT")?.parse()?;
    let mut rib = Rib::default();
    // The first table; others appear when a line names them.
    rib.name_global("bgp");
    let options = LiveOptions { history: 10_000, ..LiveOptions::default() };
    let live = Live::start(rib, &[0], FibOptions::default(), options, |event| {
        eprintln!("{event}");
    });
    let live = Arc::new(live?);
    let board = Arc::new(Board::default());
    let mut options = ServerOptions::default();
    options.listen = vec![listen];
    let names = "3333,RIPE NCC\n1103,<script>window.attacked = true</script>";
    options.as_names = Some(Arc::new(AsNames::parse(names)?));
    let told = Flows::default();
    let flows = told.clone();
    options.flows =
        Some(FlowTops(Arc::new(move |by, minutes, limit| flows.top(by, minutes, limit))));
    let history = Past::new()?;
    options.history = Some(history.on_disk());
    let server = Server::start(Arc::clone(&live), Arc::clone(&board), options)?;
    let world = World { live, board, flows: told, history };
    println!("{}", server.addresses()[0]);
    for line in io::stdin().lock().lines() {
        match serde_json::from_str(&line?).map_err(Into::into).and_then(|line| world.take(line)) {
            Ok(()) => println!("ok"),
            Err(error) => println!("{error}"),
        }
        io::stdout().flush()?;
    }
    Ok(())
}

impl World {
    fn take(&self, line: Line) -> Result<(), Box<dyn Error>> {
        let Self { live, board, flows, history } = self;
        match line {
            Line::Source { name } => board.set(source(name)),
            Line::Peer { address, asn, source } => {
                live.peer(Peer { source: Some(source.into()), ..Peer::new(address, asn) });
            }
            Line::Announce { table, prefix, peer, path_id, attributes } => {
                with(&attributes, |attributes| {
                    apply(live, &table, &prefix, (peer, path_id), Change::Announce(attributes))
                })?
            }
            Line::Withdraw { table, prefix, peer, path_id } => {
                apply(live, &table, &prefix, (peer, path_id), Change::Withdraw)?;
            }
            Line::Flows { column, top } => {
                flows.0.lock().map_err(|error| error.to_string())?.push((column, top));
            }
            Line::Past { table, prefix, ago, attributes } => {
                let key = RouteKey { table: table.into(), prefix: prefix.parse()? };
                let set = attributes.map(|attributes| {
                    with(&attributes, |attributes| Ok(AttributeSet::new(&attributes)))
                });
                history.write(key, ago, set.transpose()?)?;
            }
        }
        Ok(())
    }
}

fn source(name: String) -> SourceStatus {
    SourceStatus {
        kind: "bgp",
        endpoint: "standard input".to_owned(),
        table: name.clone(),
        name,
        state: SourceState::Up,
        figures: Figures::default(),
        since: SystemTime::now(),
        until: None,
        last: None,
        trouble: None,
    }
}

/// Does something with the attributes of an answer.
fn with<T>(
    attributes: &api::Attributes,
    act: impl FnOnce(Attributes<'_>) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    match attributes {
        api::Attributes::Bgp(bgp) => {
            let origin = match bgp.origin.as_deref() {
                None => None,
                Some("igp") => Some(0),
                Some("egp") => Some(1),
                Some(_) => Some(2),
            };
            let bgp = BgpAttributes {
                next_hop: bgp.next_hop,
                origin_as: bgp.origin_as,
                as_path_len: bgp.as_path_len,
                as_path: &bgp.as_path,
                local_pref: bgp.local_pref,
                med: bgp.med,
                origin,
                communities: &bgp.communities,
                ..BgpAttributes::default()
            };
            act(Attributes::Bgp(&bgp))
        }
        api::Attributes::NextHops(hops) => {
            let kind = RouteKind::ALL.into_iter().find(|kind| kind.to_string() == hops.route_type);
            let kind = kind.ok_or_else(|| format!("no kind of route is {}", hops.route_type))?;
            let hop = |hop: &api::NextHop| NextHop {
                gateway: hop.gateway,
                interface: hop.interface,
                weight: hop.weight,
            };
            let hops = NextHops { kind, hops: hops.next_hops.iter().map(hop).collect() };
            act(Attributes::NextHops(&hops))
        }
        api::Attributes::Values { values } => {
            let value = |value: &serde_json::Value| value.to_string();
            let texts: Vec<String> = values.values().map(value).collect();
            let values: Vec<Value<'_>> = texts.iter().map(|text| Value::Str(text)).collect();
            act(Attributes::Values(&values))
        }
    }
}

fn apply(
    live: &Live,
    table: &str,
    prefix: &str,
    (peer, path_id): (u32, u32),
    change: Change<'_>,
) -> Result<(), Box<dyn Error>> {
    let vrf = live.vrf(table);
    Ok(live.apply(&Update { vrf, peer, path_id, ..Update::new(prefix.parse()?, change) })?)
}
