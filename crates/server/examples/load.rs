//! A server with a generated table for load generators, and a measurement of the rate of bulk lookups.
//!
//! `cargo run --release -p fibula-server --example load -- [ROUTES [THREADS [CHANGES [PEERS]]]]`: a table with ROUTES
//! IPv4 routes and a fifth as many IPv6 routes, THREADS threads that answer, CHANGES changes of best routes a second,
//! and PEERS peers that announce all routes, each with paths of its own.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, UInt32Array};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Route, Update};
use fibula_feeds::Board;
use fibula_fib::FibOptions;
use fibula_rib::{Live, LiveOptions, Peer, Rib};
use fibula_server::client::{Client, ClientOptions};
use fibula_server::{Server, ServerOptions};
use fibula_testkit::Rng;
use fibula_testkit::fib::{FibSpec, HopModel};

fn announce(live: &Live, peer: u32, prefix: AnyPrefix, hop: u32) {
    let as_path = format!("{} {} {}", 64500 + peer, 1000 + (hop + peer) % 97, 2000 + hop);
    let bgp = BgpAttributes {
        next_hop: Some([10, 0, 0, peer as u8 + 1].into()),
        origin_as: Some(2000 + hop),
        as_path_len: 3,
        as_path: &as_path,
        origin: Some(0),
        communities: "64500:1 64500:2",
        ..BgpAttributes::default()
    };
    let change = Change::Announce(Attributes::Bgp(&bgp));
    live.apply(&Update { peer, ..Update::new(prefix, change) }).expect("a path");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let number = |at| std::env::args().nth(at).and_then(|text| text.parse::<usize>().ok());
    let (routes, threads) = (number(1).unwrap_or(900_000), number(2).unwrap_or(1));
    let changes = number(3).unwrap_or(0);
    let peers = number(4).unwrap_or(1).clamp(1, 250) as u32;
    let mut rib = Rib::default();
    rib.name_global("bgp");
    for peer in 0..peers {
        rib.peer(Peer::new(Some([10, 0, 0, peer as u8 + 1].into()), 64500 + peer));
    }
    let spec = |prefixes| FibSpec { year: 2024, prefixes, seed: 1, hops: HopModel::Near(20_000) };
    let v4 = spec(routes).generate::<u32>();
    let v6 = spec(routes / 5).generate::<u128>();
    let options = LiveOptions { history: 100_000, ..LiveOptions::default() };
    let live = Live::start(rib, &[0], FibOptions::default(), options, |event| println!("{event}"))?;
    let begin = Instant::now();
    for peer in 0..peers {
        v4.iter().for_each(|r| announce(&live, peer, r.prefix.into(), r.hop.index().unwrap_or(0)));
        v6.iter().for_each(|r| announce(&live, peer, r.prefix.into(), r.hop.index().unwrap_or(0)));
    }
    live.flush()?;
    let memory = live.with_rib(Rib::memory);
    println!("{} paths in {:?}: {memory:?}", memory.routes, begin.elapsed());
    let live = Arc::new(live);
    let mut options = ServerOptions::default();
    options.threads = threads;
    let server = Server::start(Arc::clone(&live), Arc::new(Board::default()), options)?;
    println!("{routes} routes, http://{}", server.addresses()[0]);

    let begin = Instant::now();
    let copy = live.with_rib(|rib| rib.freeze(0));
    println!("the RIB is locked for {:?} while {} routes are copied", begin.elapsed(), copy.len());
    let begin = Instant::now();
    let table = copy.table()?;
    println!("columns: {:?}, {} rows", begin.elapsed(), table.columns.len());
    questions(&server, v4.as_slice())?;
    bulk(&server)?;

    println!("asking may begin");
    let mut rng = Rng::new(7);
    let all = v4.as_slice();
    loop {
        let begin = Instant::now();
        for _ in 0..changes / 100 {
            let route = all[rng.below(all.len() as u64) as usize];
            announce(&live, 0, route.prefix.into(), rng.below(5000) as u32);
        }
        std::thread::sleep(Duration::from_millis(10).saturating_sub(begin.elapsed()));
    }
}

/// What a person at the looking glass asks, one after the other on one connection.
fn questions(server: &Server, routes: &[Route<u32>]) -> Result<(), Box<dyn std::error::Error>> {
    let mut client = Client::new(ClientOptions::new(format!("http://{}", server.addresses()[0])))?;
    let mut rng = Rng::new(5);
    for (what, count) in [("lookup", 1000), ("routes", 1000), ("peers", 100), ("filter", 100)] {
        let mut times = Vec::new();
        for _ in 0..count {
            let prefix = routes[rng.below(routes.len() as u64) as usize].prefix;
            let path = match what {
                "lookup" => format!("/v1/lookup/{}", std::net::Ipv4Addr::from(prefix.last())),
                "routes" => format!("/v1/routes/{prefix}"),
                "filter" => "/v1/filter?peer=0&limit=200".to_owned(),
                _ => "/v1/peers".to_owned(),
            };
            let begin = Instant::now();
            let answer = client.get(&path, &[])?;
            times.push(begin.elapsed());
            assert_eq!(answer.status, 200, "{path}");
        }
        times.sort_unstable();
        let (median, last) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!("{what}: median {median:?}, 99 % within {last:?}");
    }
    Ok(())
}

/// A large batch of addresses in Arrow.
fn bulk(server: &Server) -> Result<(), Box<dyn std::error::Error>> {
    const BATCH: usize = 65_536;
    const BATCHES: usize = 300;
    let schema = Arc::new(Schema::new(vec![Field::new("ip", DataType::UInt32, true)]));
    let mut rng = Rng::new(3);
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    for _ in 0..BATCHES {
        let column: UInt32Array = (0..BATCH).map(|_| rng.addr::<u32>()).collect();
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(column)])?)?;
    }
    let body = bytes::Bytes::from(writer.into_inner()?);
    TcpStream::connect(server.addresses()[0])?.flush()?;
    let mut options = ClientOptions::new(format!("http://{}", server.addresses()[0]));
    options.answer_bytes = 4 << 30;
    let mut client = Client::new(options)?;
    for add in ["origin_as", "origin_as", "prefix,origin_as", "origin_as,as_path"] {
        let begin = Instant::now();
        let path = format!("/v1/lookup?column=ip&add={add}");
        let answer = client.post(&path, "application/vnd.apache.arrow.stream", body.clone())?;
        let (rows, time) = (BATCH * BATCHES, begin.elapsed());
        let rate = rows as f64 / time.as_secs_f64() / 1e6;
        println!("{add}: status {}, {rate:.1} million rows/s, {time:?}", answer.status);
    }
    Ok(())
}
