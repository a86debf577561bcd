//! A server with a generated table for load generators, and a measurement of the rate of bulk lookups.
//!
//! `cargo run --release -p fibula-server --example load -- [ROUTES [THREADS [CHANGES]]]`: a table with ROUTES IPv4
//! routes and a fifth as many IPv6 routes, THREADS threads that answer, and CHANGES changes of best routes a second.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, UInt32Array};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Update};
use fibula_feeds::Board;
use fibula_fib::FibOptions;
use fibula_rib::{Live, LiveOptions, Peer, Rib};
use fibula_server::client::{Client, ClientOptions};
use fibula_server::{Server, ServerOptions};
use fibula_testkit::Rng;
use fibula_testkit::fib::{FibSpec, HopModel};

fn announce(live: &Live, prefix: AnyPrefix, hop: u32) {
    let as_path = format!("64500 {} {}", 1000 + hop % 97, 2000 + hop);
    let bgp = BgpAttributes {
        next_hop: Some([192, 0, 2, (hop % 250) as u8].into()),
        origin_as: Some(2000 + hop),
        as_path_len: 3,
        as_path: &as_path,
        origin: Some(0),
        communities: "64500:1 64500:2",
        ..BgpAttributes::default()
    };
    let change = Change::Announce(Attributes::Bgp(&bgp));
    live.apply(&Update::new(prefix, change)).expect("a path");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let number = |at| std::env::args().nth(at).and_then(|text| text.parse::<usize>().ok());
    let (routes, threads) = (number(1).unwrap_or(900_000), number(2).unwrap_or(1));
    let changes = number(3).unwrap_or(0);
    let mut rib = Rib::default();
    rib.name_global("bgp");
    rib.peer(Peer::new(Some([10, 0, 0, 1].into()), 64500));
    let spec = |prefixes| FibSpec { year: 2024, prefixes, seed: 1, hops: HopModel::Near(20_000) };
    let v4 = spec(routes).generate::<u32>();
    let v6 = spec(routes / 5).generate::<u128>();
    let options = LiveOptions { history: 100_000, ..LiveOptions::default() };
    let live = Live::start(rib, &[0], FibOptions::default(), options, |event| println!("{event}"))?;
    v4.iter().for_each(|r| announce(&live, r.prefix.into(), r.hop.index().unwrap_or(0)));
    v6.iter().for_each(|r| announce(&live, r.prefix.into(), r.hop.index().unwrap_or(0)));
    live.flush()?;
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
    bulk(&server)?;

    println!("asking may begin");
    let mut rng = Rng::new(7);
    let all = v4.as_slice();
    loop {
        let begin = Instant::now();
        for _ in 0..changes / 100 {
            let route = all[rng.below(all.len() as u64) as usize];
            announce(&live, route.prefix.into(), rng.below(5000) as u32);
        }
        std::thread::sleep(Duration::from_millis(10).saturating_sub(begin.elapsed()));
    }
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
    let mut client = Client::new(ClientOptions::new(format!("http://{}", server.addresses()[0])))?;
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
