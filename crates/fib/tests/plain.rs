//! Tables with a number for each route, with the product's engines: they answer as a map does, in every state that a
//! reader keeps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fibula_core::{Addr, Hop, Prefix};
use fibula_fib::FibOptions;
use fibula_rib::{EngineSource, Plain, PlainReader};
use fibula_testkit::Rng;

/// The value of addresses without a route.
const NONE: u64 = u64::MAX;

type Map<A> = BTreeMap<Prefix<A>, u64>;

fn table<A: Addr>() -> Plain<A>
where
    FibOptions: EngineSource<A>,
{
    Plain::new(Arc::new(FibOptions::default()), NONE)
}

/// One of few prefixes, which lie in each other.
fn prefix<A: Addr>(rng: &mut Rng) -> Prefix<A> {
    let bits = u128::from(rng.next_u64() & 0x8181_8181_0000_0000) << 64;
    let addr = A::from_u128(bits >> (128 - u32::from(A::BITS)));
    Prefix::masked(addr, rng.below(u64::from(A::BITS) / 4 + 1) as u8 * 4).unwrap()
}

/// The first, the last and the neighbouring addresses of all prefixes.
fn probes<A: Addr>(maps: &[Map<A>]) -> Vec<A> {
    let ends = |prefix: &Prefix<A>| {
        let (first, last) = (prefix.first(), prefix.last());
        [Some(first), Some(last), first.predecessor(), last.successor()]
    };
    let mut all: Vec<A> = maps.iter().flat_map(|map| map.keys().flat_map(ends)).flatten().collect();
    all.extend([A::MIN, A::MAX]);
    all.sort_unstable();
    all.dedup();
    all
}

fn longest<A: Addr>(map: &Map<A>, addr: A) -> u64 {
    let covering = map.iter().filter(|(prefix, _)| prefix.contains(addr));
    covering.max_by_key(|(prefix, _)| prefix.len()).map_or(NONE, |(_, value)| *value)
}

/// All ways to ask the table give the map's routes.
fn same<A: Addr>(table: &mut Plain<A>, map: &Map<A>, rng: &mut Rng) {
    assert_eq!(table.len(), map.len());
    let all: Vec<_> = map.iter().map(|(&prefix, &value)| (prefix, value)).collect();
    assert!(table.walk(Prefix::ALL, None).eq(all.iter().copied()));
    for _ in 0..20 {
        let of = prefix::<A>(rng);
        assert_eq!(table.exact(of), map.get(&of).copied());
        let after = prefix::<A>(rng);
        let within: Vec<_> = all.iter().copied().filter(|(each, _)| of.covers(*each)).collect();
        assert!(table.walk(of, None).eq(within.iter().copied()));
        let rest = within.into_iter().filter(|(each, _)| *each > after);
        assert!(table.walk(of, Some(after)).eq(rest));
        let covering = all.iter().copied().filter(|(each, _)| each.covers(of));
        let mut covering: Vec<_> = covering.collect();
        covering.reverse();
        assert!(table.covering(of).eq(covering));
    }
}

/// Random changes in one call or many, with few and with many values, of which most are given up again. Readers keep
/// some of the states; each still answers as the map did.
fn as_a_map_does<A: Addr>(seed: u64)
where
    FibOptions: EngineSource<A>,
{
    let mut rng = Rng::new(seed);
    let (mut table, mut map) = (table::<A>(), Map::<A>::new());
    let mut kept: Vec<(PlainReader<A>, Map<A>)> = Vec::new();
    let mut fresh = 0;
    for round in 0..150 {
        for _ in 0..=rng.below(3) {
            let changes = rng.below(if round % 10 == 0 { 3000 } else { 5 });
            let changes: Vec<_> = (0..changes)
                .map(|_| {
                    fresh += 1;
                    let value = match rng.below(3) {
                        0 => None,
                        1 => Some([0, 1, u64::from(u32::MAX), NONE - 1][rng.below(4) as usize]),
                        _ => Some(fresh << 20),
                    };
                    (prefix::<A>(&mut rng), value)
                })
                .collect();
            for &(prefix, value) in &changes {
                match value {
                    Some(value) => map.insert(prefix, value),
                    None => map.remove(&prefix),
                };
            }
            table.change(changes).unwrap();
        }
        if round % 7 == 0 {
            same(&mut table, &map, &mut rng);
        }
        table.publish().unwrap();
        assert_eq!(table.lag(), None);
        if round % 6 == 0 {
            let mut reader = table.reader();
            reader.pin();
            kept.push((reader, map.clone()));
            if kept.len() > 5 {
                kept.remove(rng.below(5) as usize);
            }
        }
        if round % 10 == 3 {
            let maps: Vec<_> =
                kept.iter().map(|(_, map)| map.clone()).chain([map.clone()]).collect();
            // The map is searched from one end to the other for each: some are enough.
            let all = probes(&maps);
            let probes: Vec<A> = (0..300).map(|_| rng.choose(&all).unwrap()).collect();
            let mut newest = table.reader();
            let mut values = vec![0; probes.len()];
            let mut low = vec![Hop::NONE; probes.len()];
            newest.pin().lookup(&probes, &mut values);
            newest.pin().lookup_low(&probes, &mut low);
            for ((&addr, value), low) in probes.iter().zip(&values).zip(&low) {
                assert_eq!(*value, longest(&map, addr), "{addr:?} in round {round}");
                assert_eq!(low.to_bits(), *value as u32);
            }
            for (reader, map) in &mut kept {
                reader.keep().lookup(&probes, &mut values);
                for (&addr, value) in probes.iter().zip(&values) {
                    assert_eq!(
                        *value,
                        longest(map, addr),
                        "{addr:?} of a kept state, round {round}"
                    );
                }
            }
        }
    }
    let counters = table.counters();
    let made = counters.builds + counters.patches + counters.copies;
    assert!(made >= 100 && counters.copies > 0 && counters.builds > 1, "{counters:?}");
    assert!(table.memory().held <= kept.len());
    // Without routes nothing is left but the value for no route.
    let all: Vec<_> = map.keys().map(|&prefix| (prefix, None)).collect();
    table.change(all).unwrap();
    table.publish().unwrap();
    let mut values = [0; 2];
    table.reader().pin().lookup(&[A::MIN, A::MAX], &mut values);
    assert_eq!((values, table.is_empty(), table.memory().engine), ([NONE; 2], true, 0));
}

#[test]
fn v4_answers_as_a_map_does() {
    as_a_map_does::<u32>(3);
}

#[test]
fn v6_answers_as_a_map_does() {
    as_a_map_does::<u128>(4);
}

/// Threads read while one changes: a batch is of one state, values of this state included, and states never go back.
#[test]
fn threads_read_one_state_at_a_time() {
    const LAST: u64 = 1000;
    let addrs: Vec<u32> = (0..64).map(|at| at << 24).collect();
    let mut table = table::<u32>();
    let set = |table: &mut Plain<u32>, value: u64| {
        // Each address gets the same new value: the first by routes, the others by the route around all.
        let prefixes = [Prefix::ALL, Prefix::masked(1 << 24, 8).unwrap()];
        table.change(prefixes.map(|prefix| (prefix, Some(value << 33)))).unwrap();
        table.publish().unwrap();
    };
    set(&mut table, 0);
    let seen = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            let mut reader = table.reader();
            let (addrs, seen) = (&addrs, &seen);
            scope.spawn(move || {
                let (mut last, mut values) = (0, vec![0; addrs.len()]);
                while last != LAST << 33 {
                    reader.pin().lookup(addrs, &mut values);
                    assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
                    assert!(values[0] >= last, "a reader went back");
                    seen.fetch_add(u64::from(values[0] != last), Ordering::Relaxed);
                    last = values[0];
                }
            });
        }
        (1..=LAST).for_each(|value| set(&mut table, value));
    });
    assert!(seen.load(Ordering::Relaxed) >= 2);
    assert_eq!(table.memory().held, 0);
}

/// A table that is loaded with one call has the routes of the call in order of their prefixes, whatever their order.
#[test]
fn a_load_in_no_order_is_one_build() {
    let mut rng = Rng::new(9);
    let routes: Vec<(Prefix<u32>, Option<u64>)> = (0..30_000)
        .map(|at| {
            let addr = (rng.next_u64() as u32) & 0xff_ffff;
            (Prefix::masked(addr << 8, 16 + rng.below(9) as u8).unwrap(), Some(at % 300))
        })
        .collect();
    let map: BTreeMap<_, _> =
        routes.iter().map(|&(prefix, value)| (prefix, value.unwrap())).collect();
    let mut table = table::<u32>();
    table.change(routes).unwrap();
    table.publish().unwrap();
    assert_eq!(table.counters().builds, 1);
    same(&mut table, &map, &mut rng);
}

/// Single changes in a large table, for which the routes are not moved: the table answers as one that is loaded anew.
fn single_changes<A: Addr>(lens: [u8; 3])
where
    FibOptions: EngineSource<A>,
{
    let mut rng = Rng::new(12);
    let [short, from, to] = lens;
    let any = |rng: &mut Rng, len: u8| {
        let bits = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        // An eighth of the space, so that prefixes lie in each other.
        let addr = A::from_u128(bits >> (128 - u32::from(A::BITS)) >> 3);
        Prefix::masked(addr, len).unwrap()
    };
    let some = |rng: &mut Rng| {
        let len = match rng.below(40) {
            0 => rng.below(u64::from(short)) as u8,
            1 | 2 => A::BITS - rng.below(3) as u8,
            _ => from + rng.below(u64::from(to - from) + 1) as u8,
        };
        any(rng, len)
    };
    let mut map = Map::<A>::new();
    for _ in 0..30_000 {
        let value = rng.below(90);
        map.insert(some(&mut rng), value);
    }
    let mut table = table::<A>();
    table.change(map.iter().map(|(&prefix, &value)| (prefix, Some(value)))).unwrap();
    table.publish().unwrap();
    let (mut reader, mut changed) = (table.reader(), Vec::new());
    for round in 1..=1000_u64 {
        for _ in 0..=rng.below(2) {
            let known = *map.keys().nth(rng.below(200) as usize * map.len() / 201).unwrap();
            let (prefix, value) = match rng.below(4) {
                0 => (known, None),
                1 => (known, Some(rng.below(90))),
                // More values than the width of the engine's hops at first.
                2 => (some(&mut rng), Some(rng.below(90) + u64::from(round > 500) * round)),
                _ => (any(&mut rng, to.max(known.len())), Some(rng.below(90))),
            };
            match value {
                Some(value) => map.insert(prefix, value),
                None => map.remove(&prefix),
            };
            table.change([(prefix, value)]).unwrap();
            changed.push(prefix);
            assert_eq!(table.exact(prefix), value);
        }
        table.publish().unwrap();
        let last = changed[changed.len() - 1];
        let covering = table.covering(last);
        let lens = (0..=last.len()).rev().map(|len| Prefix::masked(last.addr(), len).unwrap());
        let expected = lens.filter_map(|of| Some((of, *map.get(&of)?)));
        assert!(covering.eq(expected));
        if round % 3 == 0 {
            reader.pin(); // the table before stays in use now and then
        }
        if round % 100 != 0 {
            continue;
        }
        let mut anew = self::table::<A>();
        anew.change(map.iter().map(|(&prefix, &value)| (prefix, Some(value)))).unwrap();
        anew.publish().unwrap();
        let few: Map<A> = changed.drain(..).map(|prefix| (prefix, 0)).collect();
        let mut probes = probes(&[few]);
        probes.extend((0..2000).map(|_| any(&mut rng, A::BITS).addr()));
        let (mut found, mut expected) = (vec![0; probes.len()], vec![0; probes.len()]);
        table.reader().pin().lookup(&probes, &mut found);
        anew.reader().pin().lookup(&probes, &mut expected);
        for ((addr, found), expected) in probes.iter().zip(found).zip(expected) {
            assert_eq!(found, expected, "{addr:?} in round {round}");
        }
        if round % 500 == 0 {
            same(&mut table, &map, &mut rng);
        }
    }
    let counters = table.counters();
    assert!(counters.aside > 500 && counters.copies > 10 && counters.patches > 100, "{counters:?}");
}

#[test]
fn single_changes_of_v4_are_followed_without_the_others() {
    single_changes::<u32>([17, 18, 24]);
}

#[test]
fn single_changes_of_v6_are_followed_without_the_others() {
    single_changes::<u128>([28, 32, 48]);
}
