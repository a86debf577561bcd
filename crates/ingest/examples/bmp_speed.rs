//! Our BMP reader beside bgpkit-parser, on streams in memory: `bmp_speed FILE...`
//!
//! What both give is compared by `tests/bmp.rs`; here only the time is. Streams of version 4 and of VPNs are
//! nothing for bgpkit-parser.

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bgpkit_parser::parse_bmp_msg;
use fibula_core::Update;
use fibula_ingest::bgp::BgpOptions;
use fibula_ingest::bmp::BmpDecoder;
use fibula_ingest::{Damage, Decoder, Sink, Tail, decompress};

#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn update(&mut self, _: &Update<'_>) {
        self.0 += 1;
    }
    fn damage(&mut self, _: &Damage) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The fastest of five times a hundred runs, for one run.
fn fastest(mut run: impl FnMut()) -> Duration {
    let timed = (0..5).map(|_| {
        let start = Instant::now();
        (0..100).for_each(|_| run());
        start.elapsed() / 100
    });
    timed.min().expect("there are runs")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args_os().skip(1) {
        let mut bytes = Vec::new();
        decompress(File::open(&path)?)?.1.read_to_end(&mut bytes)?;
        let decode = |options| {
            let (mut decoder, mut count) = (BmpDecoder::new(options), Count::default());
            decoder.decode(&bytes, Tail::End, &mut count).expect("a stream of BMP");
            (count.0, decoder.records())
        };
        let (updates, messages) = decode(BgpOptions::default());
        let plain = fastest(|| {
            decode(BgpOptions::default());
        });
        let all = fastest(|| {
            decode(BgpOptions { as_path: true, communities: true, extended_communities: true });
        });
        let theirs = fastest(|| {
            // The type is of a crate of theirs.
            let mut rest = bytes.clone().into();
            while parse_bmp_msg(&mut rest).is_ok() {}
        });
        let rate = |time: Duration| updates as f64 / time.as_secs_f64() / 1e6;
        println!(
            "{}: {messages} messages, {updates} updates; {:.1} M updates/s, {:.1} with texts; bgpkit-parser {:.1} without updates",
            path.display(),
            rate(plain),
            rate(all),
            rate(theirs),
        );
    }
    Ok(())
}
