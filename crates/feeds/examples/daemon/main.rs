//! A daemon that only sends: a generated table, and then changes at a rate, like FRR by FPM or BMP. It is for measuring
//! receivers; docs/replay.md has the figures.
//!
//! ```text
//! cargo run --release -p fibula-feeds --example daemon -- fpm 127.0.0.1:2620 900000 200000 1000 10
//! ```
//! Arguments: fpm or bmp, where to, IPv4 routes, IPv6 routes, changes a second, seconds of changes. After the
//! last one it keeps the connection until standard input ends.

mod stream;

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fibula_core::AnyPrefix;
use fibula_testkit::Rng;
use stream::{Stream, Write1};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [protocol, address, v4, v6, rate, seconds] = &arguments[..] else {
        return Err(
            "give: fpm|bmp ADDRESS IPV4-ROUTES IPV6-ROUTES CHANGES-PER-SECOND SECONDS".into()
        );
    };
    let (rate, seconds): (u64, u64) = (rate.parse()?, seconds.parse()?);
    let Stream { prefixes, bytes, write } = Stream::new(protocol, v4.parse()?, v6.parse()?)?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let began = Instant::now();
    stream.write_all(&bytes)?;
    let (routes, size, took) = (prefixes.len(), bytes.len(), began.elapsed());
    println!("{routes} routes, {size} bytes, written in {:.3} s", took.as_secs_f64());
    change(&mut stream, &prefixes, write, rate, Duration::from_secs(seconds))?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Changes at a rate, in steps of two milliseconds: each gives a prefix another next hop.
fn change(
    stream: &mut TcpStream,
    prefixes: &[AnyPrefix],
    write: Write1,
    rate: u64,
    time: Duration,
) -> std::io::Result<()> {
    let (mut rng, mut sent, began) = (Rng::new(7), 0, Instant::now());
    let mut bytes = Vec::new();
    while began.elapsed() < time && rate > 0 {
        let due = (began.elapsed().as_secs_f64() * rate as f64) as u64;
        bytes.clear();
        for _ in sent..due {
            let prefix = prefixes[rng.below(prefixes.len() as u64) as usize];
            write(prefix, rng.below(200) as u8 + 2, &mut bytes);
        }
        sent = due;
        stream.write_all(&bytes)?;
        std::thread::sleep(Duration::from_millis(2));
    }
    println!("{sent} changes in {:.3} s", began.elapsed().as_secs_f64());
    Ok(())
}
