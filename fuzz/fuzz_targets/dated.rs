//! Hostile files of several dates: any bytes, and a sound file with changed sections and right checksums. What opens
//! must answer everything, by search and by an engine that is compiled from it.
#![no_main]

use std::sync::LazyLock;

use fibula_core::{Addr, Hop, Route, Routes};

use fibula_fuzz::forge::{Edit, Section, assemble_as, seal, sections};
use fibula_rib::{Columns, DatedBuilder, DatedSnapshot, EnginePart, Moment, Pod, Table};
use fibula_simd::Isa;
use fibula_testkit::{probes, tables};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    /// The bytes as they are, and with their checksums made right.
    File(&'a [u8]),
    /// A sound file, edited.
    Forged(Vec<Edit<'a>>),
}

static SOUND: LazyLock<Vec<Section>> = LazyLock::new(|| {
    fn routes<A: fibula_core::Addr>(day: usize) -> Routes<A> {
        let all = tables::dense::<A>(3, 60);
        let is_there = |(at, _): &(usize, Route<A>)| !(at + day).is_multiple_of(3);
        let hop = |(at, route): (usize, Route<A>)| (route.prefix, Hop::new((at * day % 5) as u32));
        all.iter().enumerate().filter(is_there).map(hop).collect()
    }
    let mut builder = DatedBuilder::default();
    for day in 0..4 {
        let (v4, v6, columns) = (routes(day), routes(day), Columns::numbered("hop", 5));
        let table = Table { v4, v6, columns, ..Table::default() };
        builder.add(Moment::from_unix(day as i64 * 86_400), "day", &table).expect("in order");
    }
    let dated = builder.finish().expect("small");
    let file = dated.to_bytes(&EnginePart::none(), &EnginePart::none()).expect("storable");
    sections(file.as_ref())
});

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::File(bytes) => {
            open(bytes);
            let mut bytes = bytes.to_vec();
            seal(&mut bytes);
            open(&bytes);
        }
        Input::Forged(edits) => {
            let mut sections = SOUND.clone();
            edits.iter().for_each(|edit| edit.apply(&mut sections));
            assert!(open(&assemble_as(2, &sections)) || !edits.is_empty(), "a sound one opens");
        }
    }
});

/// Asks for everything that the file can answer; whether it opens.
fn open(bytes: &[u8]) -> bool {
    let Ok(dated) = DatedSnapshot::from_bytes(bytes) else { return false };
    family::<u32>(&dated);
    family::<u128>(&dated);
    for time in [i64::MIN, 0, 86_399, 86_400, i64::MAX] {
        dated.dates().number(Moment::from_unix(time));
    }
    let newest = dated.table(dated.dates().newest());
    newest.check().expect("rows that there are");
    // What opens can be added to, and written.
    let builder = DatedBuilder::from_snapshot(&dated).expect("its own rows");
    builder.finish().expect("no more than before");
    true
}

fn family<A: Addr + Pod>(dated: &DatedSnapshot) {
    let (stored, ask) = (dated.routes::<A>(), dated.timelines::<A>().ask());
    let routes = stored.to_routes();
    let addrs: Vec<A> = probes::boundary(&routes).take(500).collect();
    let engine = fibula_engines::auto(&routes, Isa::best()).engine;
    let dates = dated.dates().len().min(8) as u16;
    for addr in addrs {
        for timeline in
            [stored.matched(addr).map_or(Hop::NONE, |at| stored.get(at).hop), engine.lookup(addr)]
        {
            for date in (0..=dates).chain([u16::MAX]) {
                if let Some((row, len)) = ask.find(timeline, date) {
                    assert!(row.index().is_some_and(|row| row < dated.columns().len()));
                    assert!(len <= A::BITS);
                }
            }
        }
    }
}
