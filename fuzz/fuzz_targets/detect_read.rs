//! The reading layer: decompression, detection of the format, decoding, and a table of what came out.
//! The first two bytes are options and the size of the reads, the rest is the file.
#![no_main]

use std::io::Cursor;
use std::ops::ControlFlow;

use fibula_core::Update;
use fibula_fuzz::{Pieces, Witness};
use fibula_ingest::{
    Compression, Damage, Format, PeerInfo, PeerState, ReadOptions, Sink, SourceInfo, SourceSpec,
    read_from,
};
use fibula_rib::{BuilderOptions, EnginePart, Snapshot, TableBuilder, to_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[flags, step], input)) = data.split_first_chunk() else { return };
    let mut spec = SourceSpec::new(["-", "x.csv.gz", "x.tsv", "x.mmdb"][usize::from(flags) % 4]);
    if flags & 4 != 0 {
        spec.format =
            [Format::Text, Format::Ranges, Format::Mrt, Format::Mmdb][usize::from(flags >> 6)];
    }
    let options = || ReadOptions {
        strict: flags & 8 != 0,
        as_path: flags & 16 != 0,
        communities: flags & 32 != 0,
        extended_communities: flags & 32 != 0,
        all_paths: flags & 32 != 0,
        ..ReadOptions::default()
    };
    let mut whole = Witness::default();
    let mut parts = Witness::default();
    let file = Cursor::new(input.to_vec());
    let expected = read_from(&spec, file.clone(), &mut options(), &mut whole);
    let got = read_from(&spec, Pieces::new(input, step.into()), &mut options(), &mut parts);
    // How much of a damaged archive comes out before the damage depends on the size of the reads.
    let sound = matches!(&expected, Ok(report) if report.damaged == 0);
    if sound || Compression::detect(input) == Compression::None {
        assert_eq!(format!("{expected:?}"), format!("{got:?}"));
        assert_eq!(whole.verdict(), parts.verdict());
    }

    let mut build = Build(TableBuilder::new(BuilderOptions::default()));
    let Ok(_) = read_from(&spec, file, &mut options(), &mut build) else { return };
    let Ok(table) = build.0.finish() else { return };
    // A column's name may be too long to be stored.
    let Ok(bytes) = to_bytes(&table, &EnginePart::none(), &EnginePart::none()) else { return };
    let snapshot = Snapshot::from_bytes(bytes).expect("what was written opens");
    assert_eq!(snapshot.family::<u32>().to_routes(), table.v4);
    assert_eq!(snapshot.family::<u128>().to_routes(), table.v6);
    assert_eq!(snapshot.columns(), &table.columns);
});

/// Makes a table of the input, as `fibula build` does.
struct Build(TableBuilder);

impl Sink for Build {
    fn begin(&mut self, info: &SourceInfo) {
        let columns: Vec<_> = info.columns.iter().map(|c| (c.name.clone(), c.kind)).collect();
        self.0.begin_source(&info.name, info.format, &columns, info.bgp, info.date);
    }
    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        self.0.add_peer(index, peer.address, peer.asn);
    }
    fn peer_state(&mut self, state: &PeerState) {
        if state.is_down() {
            self.0.peer_down(state.peer);
        }
    }
    fn update(&mut self, update: &Update<'_>) {
        self.0.apply(update);
    }
    fn damage(&mut self, _: &Damage) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
