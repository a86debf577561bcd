//! Measures the cost of decoding a stream of FPM or BMP into a RIB, on one core, without socket and engine; and how
//! long the RIB is locked while it is copied.
//!
//! ```text
//! cargo run --release -p fibula-feeds --example rates -- bmp 950000 200000
//! ```
//! Arguments: fpm or bmp, IPv4 routes, IPv6 routes. The daemon of the other example sends the same bytes.

#[path = "daemon/stream.rs"]
mod stream;

use std::error::Error;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use fibula_core::Update;
use fibula_feeds::{FeedError, Protocol, Session, SessionOptions};
use fibula_ingest::bgp::BgpOptions;
use fibula_ingest::bmp::BmpDecoder;
use fibula_ingest::fpm::FpmDecoder;
use fibula_ingest::{Damage, Decoder, Driver, Sink};
use fibula_rib::Rib;
use fibula_testkit::Rng;
use stream::Stream;

/// Number of bytes read from a socket at a time.
const PIECE: usize = 64 << 10;

#[derive(Default)]
struct Counts(u64);

impl Sink for Counts {
    fn update(&mut self, _: &Update<'_>) {
        self.0 += 1;
    }
    fn damage(&mut self, _: &Damage) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// The processor time if the system reports it, else the clock's: a busy machine affects processor time less.
struct Time {
    clock: Instant,
    processor: Option<u64>,
}

impl Time {
    fn now() -> Self {
        Self { clock: Instant::now(), processor: Self::processor() }
    }
    fn processor() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok()
    }
    fn elapsed(&self) -> Duration {
        match self.processor.zip(Self::processor()) {
            Some((from, to)) => Duration::from_nanos(to - from),
            None => self.clock.elapsed(),
        }
    }
}

fn decoder(protocol: &str) -> Box<dyn Decoder> {
    match protocol {
        "fpm" => Box::new(FpmDecoder::default()),
        _ => Box::new(BmpDecoder::new(BgpOptions { communities: true, ..BgpOptions::default() })),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [protocol, v4, v6] = &arguments[..] else {
        return Err("give: fpm|bmp IPV4-ROUTES IPV6-ROUTES".into());
    };
    let (v4, v6): (usize, usize) = (v4.parse()?, v6.parse()?);
    let stream = Stream::new(protocol, v4, v6)?;
    let rate = |what: &str, routes: usize, took: Duration| {
        let each = took.as_nanos() as f64 / routes as f64;
        println!(
            "{what}: {:.3} s, {each:.0} ns a route, {:.2} M routes/s",
            took.as_secs_f64(),
            1e3 / each
        );
    };

    let began = Time::now();
    let (mut driver, mut counts) = (Driver::new(decoder(protocol), 1 << 20), Counts::default());
    for piece in stream.bytes.chunks(PIECE) {
        driver.push(piece, &mut counts)?;
    }
    rate("decoding alone", counts.0 as usize, began.elapsed());

    let (name, mut table) = (protocol.clone(), Rib::default());
    let mut session = Session::new(move || decoder(&name), SessionOptions::default());
    session.connected(Duration::ZERO, &mut table, &mut Vec::new())?;
    let routes = stream.prefixes.len();
    let load = |session: &mut Session, table: &mut Rib, bytes: &[u8]| -> Result<_, FeedError> {
        let began = Time::now();
        for piece in bytes.chunks(PIECE) {
            session.bytes(Duration::ZERO, piece, table, &mut Vec::new())?;
        }
        Ok(began.elapsed())
    };
    rate("into an empty RIB", routes, load(&mut session, &mut table, &stream.bytes)?);

    let (mut rng, mut bytes) = (Rng::new(7), Vec::new());
    for _ in 0..routes {
        let prefix = stream.prefixes[rng.below(routes as u64) as usize];
        (stream.write)(prefix, rng.below(200) as u8 + 2, &mut bytes);
    }
    rate("changes of random routes", routes, load(&mut session, &mut table, &bytes)?);

    let memory = table.memory();
    println!("{} routes, {:.1} bytes each", memory.routes, memory.per_route());
    // The views of BMP have tables of their own; the one without a name is empty.
    let vrfs: Vec<_> = table.vrfs().collect();
    for vrf in vrfs.into_iter().flat_map(|vrf| [vrf; 3]) {
        let began = Instant::now();
        let copy = table.freeze(vrf);
        let held = began.elapsed();
        let made = copy.table()?;
        let routes = made.v4.len() + made.v6.len();
        if routes > 0 {
            println!("a copy of {routes} routes: held for {held:?}, made in {:?}", began.elapsed());
        }
    }
    for _ in 0..3 {
        let began = Instant::now();
        let checkpoint = table.checkpoint("");
        let held = began.elapsed();
        let bytes = checkpoint.to_bytes()?.as_ref().len();
        println!("a checkpoint of {bytes} bytes: held for {held:?}, made in {:?}", began.elapsed());
    }
    rate("changes after copies", routes, load(&mut session, &mut table, &bytes)?);
    Ok(())
}
