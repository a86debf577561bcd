//! Hostile snapshots: any bytes, and sound files with changed sections and right checksums. What
//! opens must answer everything, and engines that take its tables must look up without harm.
#![no_main]

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use fibula_core::{Addr, Hop, Value};
use fibula_engines::Entry;
use fibula_fuzz::forge::{Edit, Section, assemble, seal, sections};
use fibula_rib::{Columns, EnginePart, Pod, Snapshot, Table, to_bytes};
use fibula_simd::Isa;
use fibula_testkit::{probes, tables};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    /// The bytes as they are, and with their checksums made right.
    File(&'a [u8]),
    /// A sound file with these engines, edited, and then edited again where it lies.
    Forged { v4: u8, v6: u8, edits: Vec<Edit<'a>>, after: Vec<(u16, u8)> },
}

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::File(bytes) => {
            open(bytes);
            let mut bytes = bytes.to_vec();
            seal(&mut bytes);
            open(&bytes);
        }
        Input::Forged { v4, v6, edits, after } => {
            let mut sections = sound(v4, v6).to_vec();
            edits.iter().for_each(|edit| edit.apply(&mut sections));
            let mut file = assemble(&sections);
            for &(at, value) in &after {
                let head = 64 * (1 + sections.len());
                file[usize::from(at) % head] = value;
            }
            seal(&mut file);
            let opened = open(&file);
            assert!(opened || !edits.is_empty() || !after.is_empty());
        }
    }
});

/// Sections by the numbers of the engines of both families.
type Sound = Mutex<HashMap<[usize; 2], Arc<[Section]>>>;

/// The sections of a sound file with the engines of these numbers: 0 for none, then the last of the
/// list first, since those at its end have the smallest tables.
fn sound(v4: u8, v6: u8) -> Arc<[Section]> {
    static SOUND: LazyLock<Sound> = LazyLock::new(Mutex::default);
    let at = [
        usize::from(v4) % (fibula_baselines::registry().engines::<u32>().len() + 1),
        usize::from(v6) % (fibula_baselines::registry().engines::<u128>().len() + 1),
    ];
    let make = || {
        let (v4, v6) = (tables::dense::<u32>(3, 60), tables::dense::<u128>(3, 60));
        let rows = v4.hop_count().max(v6.hop_count());
        let built4 = chosen(at[0]).map(|e| (e.build(&v4, Isa::Scalar), e.name));
        let built6 = chosen(at[1]).map(|e| (e.build(&v6, Isa::Scalar), e.name));
        let part4 =
            built4.as_ref().map(|(engine, name)| EnginePart::of(name, &**engine.as_ref().unwrap()));
        let part6 =
            built6.as_ref().map(|(engine, name)| EnginePart::of(name, &**engine.as_ref().unwrap()));
        let table = Table { v4, v6, columns: Columns::numbered("hop", rows), ..Table::default() };
        let file =
            to_bytes(&table, &part4.unwrap_or_default(), &part6.unwrap_or_default()).unwrap();
        sections(file.as_ref()).into()
    };
    Arc::clone(SOUND.lock().unwrap().entry(at).or_insert_with(make))
}

fn chosen<A: Addr>(number: usize) -> Option<&'static Entry<A>> {
    fibula_baselines::registry().engines::<A>().iter().rev().nth(number.checked_sub(1)?)
}

/// Asks for everything that the file can answer; whether it opens.
fn open(bytes: &[u8]) -> bool {
    let Ok(snapshot) = Snapshot::from_bytes(bytes) else { return false };
    family::<u32>(&snapshot);
    family::<u128>(&snapshot);
    let columns = snapshot.columns();
    for column in 0..columns.width() {
        for code in 0..columns.distinct(column).min(1000) as u32 {
            assert_ne!(columns.decode(column, code), Value::Null);
        }
    }
    assert!(!format!("{snapshot:?} {:?}", snapshot.provenance()).is_empty());
    true
}

fn family<A: Addr + Pod>(snapshot: &Snapshot) {
    let stored = snapshot.family::<A>();
    let routes = stored.to_routes();
    assert_eq!(routes.len(), stored.len());
    let addrs: Vec<A> = probes::boundary(&routes).take(2000).collect();
    for &addr in &addrs {
        assert_eq!(stored.covering(addr).next(), stored.matched(addr));
        for index in stored.covering(addr) {
            let route = stored.get(index);
            assert!(route.prefix.contains(addr));
            let row = route.hop.index().expect("a route has a hop");
            assert!(row < stored.hop_count());
            for column in 0..snapshot.columns().width().min(100) {
                snapshot.columns().value(column, row);
            }
        }
    }
    for (name, bytes) in stored.table_sizes() {
        assert_eq!(stored.tables().table(name).expect("a listed table").as_slice().len(), bytes);
    }
    // The engine that the file names with every instruction set, the others with the best one.
    let named =
        fibula_baselines::registry().find::<A>(stored.engine_name()).map(|entry| entry.name);
    for entry in fibula_baselines::registry().engines::<A>() {
        for isa in Isa::available() {
            if Some(entry.name) != named && isa != Isa::best() {
                continue;
            }
            let hop_count = stored.hop_count();
            let Ok(engine) = entry.load(stored.tables(), hop_count, isa) else { continue };
            let mut hops = vec![Hop::NONE; addrs.len()];
            engine.lookup_batch(&addrs, &mut hops);
            hops.extend(addrs.iter().map(|&addr| engine.lookup(addr)));
            let sound = |hop: &Hop| hop.index().is_none_or(|index| index < hop_count);
            assert!(hops.iter().all(sound), "{} {isa}: a hop of {hop_count} or more", entry.name);
        }
    }
}
