use fibula_core::{BuildError, Engine, Hop, Lookup, Prefix, Routes};
use fibula_testkit::{Oracle, check::check, probes, tables};

use super::Lulea;
use super::code::{Code, DIRECT_MOST, ROWS, map, masks, read};
use super::pointer::{Pointer, Target};

fn routes(list: &[(&str, u32)]) -> Routes<u32> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

/// The paper's counts: 677 masks, 676 rows, 5.3 KB, 22,272 direct codes.
#[test]
fn masks_of_aligned_leaves() {
    assert_eq!([0, 1, 2, 3, 4].map(|height| masks(height).len()), [1, 2, 5, 26, 677]);
    assert!(masks(4).is_sorted());
    assert_eq!((map().len(), map().len() * 8), (ROWS, 5408));
    assert_eq!(DIRECT_MOST + 1, 22_272);
    // 1000 0000 1010 1000, slot 0 first.
    let row = masks(4)[1..].binary_search(&0b0001_0101_0000_0001).unwrap();
    let heads: Vec<u64> = (0..16).map(|slot| map()[row] >> (4 * slot) & 15).collect();
    assert_eq!(heads, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3]);
}

/// The tables drawn in the module's page.
#[test]
fn worked_example() {
    let table = routes(&[("10.0.0.0/12", 0), ("10.16.0.0/13", 1), ("10.26.0.0/15", 2)]);
    let engine = <Lulea>::build(&table, &()).unwrap();
    assert_eq!(read(engine.codes[0x0a0]), Code::Direct(1));
    assert_eq!(read(engine.codes[0x0a2]), Code::Direct(0));
    // Slots 0 (B), 8 (none), 10 (C), 12 (none).
    let row = masks(4)[1..].binary_search(&0b0001_0101_0000_0001).unwrap();
    assert_eq!(read(engine.codes[0x0a1]), Code::Row { row, offset: 0 });
    let hops = engine.pointers.iter().map(|pointer| pointer.parts());
    assert!(hops.eq([2, 0, 3, 0].map(|code| (Target::Hop, code))));
    let answers = [0x0a1a_0001, 0x0a1b_ffff, 0x0a19_0001, 0x0a10_0000, 0x0a00_0000];
    let hops = [Hop::new(2), Hop::new(2), Hop::NONE, Hop::new(1), Hop::new(0)];
    assert_eq!(answers.map(|addr| engine.lookup(addr)), hops);
    assert_eq!([0x0a1a_0001, 0x0a00_0000].map(|addr| engine.steps(addr)), [4, 1]);
}

/// Chunks of each form, at both levels: every second block of a fixed size has a route, so that it and the next
/// block have a head each; the rest are aligned blocks.
#[test]
fn forms_of_chunks() {
    for (blocks, bits, heads, form) in
        [(1, 1, 2, 0), (4, 3, 8, 0), (1, 8, 9, 1), (30, 8, 63, 1), (31, 8, 65, 2), (128, 8, 256, 2)]
    {
        for level in [0, 1] {
            let shift = 32 - 8 * level - 16 - bits + 1;
            let len = (16 + 8 * level + bits) as u8;
            let prefix = |i: u32| Prefix::new(0x0a01_0000 | i << shift, len).unwrap();
            let table: Routes<u32> = (0..blocks).map(|i| (prefix(i), Hop::new(i % 3))).collect();
            let engine = <Lulea>::build(&table, &()).unwrap();
            let label = format!("{blocks} of {bits} bits, level {level}");
            let mut expected = [0; 3];
            expected[form] = 1;
            assert_eq!(engine.chunks()[level as usize], expected, "{label}");
            if level == 0 {
                assert_eq!(engine.chunks()[1], [0; 3], "{label}");
            }
            // Of dense chunks each head that is not a whole group has a pointer.
            assert!(engine.levels[level as usize].pointers.len() <= heads, "{label}");
            let oracle = Oracle::new(&table);
            let report = check(&engine, &oracle, &mut probes::boundary(&table), 3);
            assert!(report.is_ok(), "{label}: {report}");
        }
    }
}

/// Both widths; a crowded table has very dense chunks.
#[test]
fn widths() {
    fn all<P: Pointer>(routes: &Routes<u32>) {
        let engine = Lulea::<P>::build(routes, &()).unwrap();
        let oracle = Oracle::new(routes);
        let report = check(&engine, &oracle, &mut probes::boundary(routes), 3);
        assert!(report.is_ok(), "{report}");
    }
    for table in [tables::dense(41, 800), tables::crowded()] {
        all::<u16>(&table);
        all::<u32>(&table);
    }
}

#[test]
fn limits() {
    let hops = |most: u32| routes(&[("10.1.2.0/24", most - 1), ("10.0.0.0/8", 0)]);
    for (table, narrow, wide) in [
        (hops(16_383), true, true),
        (hops(16_384), false, true),
        (hops(22_271), false, true),
        (hops(22_272), false, false),
    ] {
        assert_eq!(<Lulea>::build(&table, &()).is_ok(), narrow);
        assert_eq!(Lulea::<u32>::build(&table, &()).is_ok(), wide);
        if wide {
            let engine = Lulea::<u32>::build(&table, &()).unwrap();
            assert_eq!(engine.lookup(0x0a01_0203).index(), Some(table.hop_count() - 1));
        }
    }
    // A chunk for each /16 of a quarter of the space and one more.
    let many: Routes<u32> =
        (0..(1u32 << 14) + 1).map(|i| (Prefix::new(i << 16, 24).unwrap(), Hop::new(0))).collect();
    let refused = <Lulea>::build(&many, &()).err();
    let expected = BuildError::Limit {
        engine: "lulea",
        what: "chunks of a level",
        limit: 1 << 14,
        needed: (1 << 14) + 1,
    };
    assert_eq!(refused, Some(expected));
    assert!(Lulea::<u32>::build(&many, &()).is_ok());
}
