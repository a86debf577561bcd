use fibula_core::{BuildError, Engine, Follow, Hop, Lookup, Patched, Persist, Prefix, Routes};
use fibula_simd::Isa;
use fibula_testkit::{StoredTables, conform};

use super::entry::Entry;
use super::{Config, Dir24_8, Form, Width, batch};

fn config(width: Width) -> Config {
    Config { width, ..Config::default() }
}

fn routes(list: &[(&str, u32)]) -> Routes<u32> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

/// The tables of the module's drawing: A is hop 0, B hop 1.
#[test]
fn worked_example() {
    let table = routes(&[("10.0.0.0/8", 0), ("10.1.2.128/26", 1)]);
    let dir = Dir24_8::build(&table, &Config::default()).unwrap();
    let Form::Narrow(tables) = &dir.form else { panic!("16 bits are the default") };
    assert_eq!(tables.tbl24[0x0a_01_01..=0x0a_01_03], [1, 0x8000, 1]);
    assert_eq!((tables.tbl24[0x09_ff_ff], tables.tbl24[0x0b_00_00]), (0, 0));
    let mut chunk = [1; 256];
    chunk[128..192].fill(2);
    assert_eq!(tables.tbl_long[..], chunk);
    assert_eq!(dir.lookup(0x0a01_0282), Hop::new(1));
    assert_eq!(dir.lookup(0x0a01_0382), Hop::new(0));
    assert_eq!(dir.memory().total(), 2 * ((1 << 24) + 256));
}

#[test]
fn patches_agree_with_the_oracle() {
    conform::patches::<u32, Dir24_8>("dir24-8", &config(Width::Bits16));
    conform::patches::<u32, Dir24_8>("dir24-8-wide", &config(Width::Bits32));
    conform::copies::<u32, Dir24_8>("dir24-8", &config(Width::Bits16));
}

/// A /25 in each of `blocks` blocks.
fn halves(blocks: u32) -> Vec<(Prefix<u32>, Hop)> {
    (0..blocks).map(|i| (Prefix::masked(i << 8, 25).unwrap(), Hop::new(i % 7))).collect()
}

#[test]
fn chunks_come_and_go() {
    let all = halves(300);
    let empty = Routes::default();
    let prefixes: Vec<_> = all.iter().map(|(prefix, _)| *prefix).collect();
    let mut dir = Dir24_8::build(&empty, &Config::default()).unwrap();
    for round in 0..3 {
        let routes = all.iter().copied().collect();
        assert_eq!(dir.follow(&routes, &prefixes), Ok(Patched::Applied));
        assert_eq!(dir.chunks(), 300, "round {round}");
        // One route over all of them, and then nothing.
        assert_eq!(dir.follow(&empty, &[Prefix::ALL]), Ok(Patched::Applied));
        assert_eq!(dir.chunks(), 0, "round {round}");
    }
    let Form::Narrow(tables) = &dir.form else { panic!("16 bits are the default") };
    assert_eq!(tables.chunks(), 512, "used again, not made anew");
}

#[test]
fn clones_and_files_do_not_see_a_patch() {
    let before = routes(&[("10.0.0.0/8", 0), ("10.1.2.128/26", 1)]);
    let after = routes(&[("10.0.0.0/8", 0), ("10.1.2.129/32", 2), ("10.1.3.1/32", 3)]);
    let changed = ["10.1.2.128/26", "10.1.2.129/32", "10.1.3.1/32"].map(|p| p.parse().unwrap());
    let built = Dir24_8::build(&before, &Config::default()).unwrap();
    let stored = StoredTables::of(&built.tables());
    for mut dir in
        [built.clone(), Dir24_8::load(&stored, before.hop_count(), &Config::default()).unwrap()]
    {
        assert_eq!(dir.follow(&after, &changed), Ok(Patched::Applied));
        assert_eq!(dir.chunks(), 2);
        let answers = [0x0a01_0280, 0x0a01_0281, 0x0a01_0301].map(|addr| dir.lookup(addr).index());
        assert_eq!(answers, [Some(0), Some(2), Some(3)]);
        assert_eq!(
            Dir24_8::load(&StoredTables::of(&dir.tables()), after.hop_count(), &Config::default())
                .unwrap()
                .chunks(),
            2
        );
    }
    assert_eq!(built.lookup(0x0a01_0280), Hop::new(1));
    assert!(StoredTables::of(&built.tables()) == stored);
}

#[test]
fn limits_of_either_width() {
    let limit = |width, list: Vec<_>| {
        let routes: Routes<u32> = list.into_iter().collect();
        match Dir24_8::build(&routes, &config(width)) {
            Err(BuildError::Limit { limit, needed, .. }) => Some((limit, needed)),
            other => {
                let dir = other.unwrap();
                let last = routes.as_slice().last().unwrap();
                assert_eq!(dir.lookup(last.prefix.last()), last.hop);
                None
            }
        }
    };
    let one = |hop| vec![(Prefix::ALL, Hop::new(hop))];
    assert_eq!(limit(Width::Bits16, one(32_766)), None);
    assert_eq!(limit(Width::Bits16, one(32_767)), Some((32_767, 32_768)));
    assert_eq!(limit(Width::Bits32, one((1 << 31) - 2)), None);
    assert_eq!(limit(Width::Bits32, one((1 << 31) - 1)), Some(((1 << 31) - 1, 1 << 31)));
    assert_eq!(limit(Width::Bits16, halves(32_768)), None);
    assert_eq!(limit(Width::Bits16, halves(32_769)), Some((32_768, 32_769)));
    assert_eq!(limit(Width::Bits32, halves(32_769)), None);
}

#[test]
fn damaged_tables_are_refused() {
    let table = routes(&[("10.0.0.0/8", 0), ("10.1.2.128/26", 1)]);
    let stored = StoredTables::of(&Dir24_8::build(&table, &Config::default()).unwrap().tables());
    let blame = |name: &'static str, entry: usize, value: u16| {
        let mut tables = stored.clone();
        tables.edit(name, |bytes| bytes[2 * entry..][..2].copy_from_slice(&value.to_ne_bytes()));
        Dir24_8::load(&tables, 2, &Config::default()).err().map(|error| error.to_string())
    };
    let (tbl24, tbl_long) = (<u16 as Entry>::TBL24, <u16 as Entry>::TBL_LONG);
    assert_eq!(blame(tbl24, 0, 2), None);
    let missing = Some("table tbl24: names a hop or a chunk that is not there".to_owned());
    assert_eq!(blame(tbl24, 0, 3), missing);
    assert_eq!(blame(tbl24, 0, 0x8001), missing);
    let twice = Some("table tbl24: names a chunk twice".to_owned());
    assert_eq!(blame(tbl24, 0, 0x8000), twice);
    let beyond = Some("table tbllong: names a hop beyond the hop count".to_owned());
    assert_eq!(blame(tbl_long, 0, 3), beyond);
    assert_eq!(blame(tbl_long, 0, 0x8000), beyond);
    // A chunk that nobody names may hold anything.
    assert_eq!(blame(tbl24, 0x0a_01_02, 1), None);
}

/// Whole stages of lookups, whether or not this machine would gather: with and without chunks, in both widths.
#[test]
fn stages_are_gathered() {
    let route = |i: u32| {
        let len = [8, 16, 23, 24, 25, 28, 32][i as usize % 7];
        (Prefix::masked(i.wrapping_mul(0x9e37_79b1), len).unwrap(), Hop::new(i % 1000))
    };
    let routes: Routes<u32> =
        (0..500).map(route).chain([(Prefix::host(u32::MAX), Hop::new(1))]).collect();
    let addrs: Vec<u32> = routes
        .iter()
        .flat_map(|route| [route.prefix.first(), route.prefix.last()])
        .flat_map(|addr| [addr.wrapping_sub(1), addr, addr.wrapping_add(1)])
        .collect();
    for width in [Width::Bits16, Width::Bits32] {
        let dir = Dir24_8::build(&routes, &config(width)).unwrap();
        let mut hops = vec![Hop::NONE; addrs.len()];
        let len = match &dir.form {
            Form::Narrow(tables) => batch::gathers(tables, dir.level, &addrs, &mut hops),
            Form::Wide(tables) => batch::gathers(tables, dir.level, &addrs, &mut hops),
        };
        let whole = addrs.len() / 64 * 64;
        assert_eq!(len, if dir.level.isa() == Isa::Avx512 { whole } else { 0 });
        for (&addr, &hop) in addrs[..len].iter().zip(&hops) {
            assert_eq!(hop, dir.lookup(addr), "{width:?} {addr:#x}");
        }
    }
}
