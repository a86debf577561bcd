//! The right answers, and those that differ.

use std::thread;

use crate::Oracle;
use fibula_core::{Addr, Hop, Lookup};

/// The oracle's answers, key by key. Keys are looked up in ascending order, because neighbours share most of their way
/// through its trie, and by all cores: millions of keys take a second, not ten.
pub fn answers<A: Addr>(oracle: &Oracle<A>, keys: &[A]) -> Vec<Hop> {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.sort_unstable_by_key(|&at| keys[at as usize]);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = order.len().div_ceil(threads).max(1);
    let mut hops = vec![Hop::NONE; keys.len()];
    let ask = |part: &[u32]| -> Vec<Hop> {
        part.iter().map(|&at| oracle.lookup(keys[at as usize])).collect()
    };
    let ask = &ask;
    thread::scope(|scope| {
        let parts: Vec<_> =
            order.chunks(part).map(|part| (part, scope.spawn(move || ask(part)))).collect();
        for (part, answers) in parts {
            let answers = answers.join().expect("lookups do not panic");
            part.iter().zip(answers).for_each(|(&at, hop)| hops[at as usize] = hop);
        }
    });
    hops
}

/// The first wrong answers, in words.
pub fn differences<A: Addr>(
    engine: &dyn Lookup<A>,
    keys: &[A],
    expected: &[Hop],
    batch: usize,
) -> Vec<String> {
    let mut hops = vec![Hop::NONE; batch];
    let mut wrong = Vec::new();
    for (keys, expected) in keys.chunks(batch).zip(expected.chunks(batch)) {
        let hops = &mut hops[..keys.len()];
        engine.lookup_batch(keys, hops);
        for ((key, in_batch), right) in keys.iter().zip(hops).zip(expected) {
            let single = engine.lookup(*key);
            if *in_batch != *right || single != *right {
                let ip = key.to_ip();
                wrong.push(format!(
                    "{ip}: expected {right:?}, single {single:?}, batch {in_batch:?}"
                ));
            }
        }
        if wrong.len() > 5 {
            break;
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use crate::liar::{Liar, Lie};
    use crate::{tables, traffic};

    use super::*;

    #[test]
    fn answers_stay_with_their_keys() {
        let routes = tables::dense::<u128>(1, 500);
        let oracle = Oracle::new(&routes);
        let keys = traffic::keys(&routes, traffic::Traffic::Pfx, 1001, 1);
        let one_by_one: Vec<Hop> = keys.iter().map(|key| oracle.lookup(*key)).collect();
        assert_eq!(answers(&oracle, &keys), one_by_one);
        assert!(answers(&oracle, &[]).is_empty());
    }

    #[test]
    fn differences_describe_the_fault() {
        let routes = tables::dense::<u32>(4, 50);
        let keys: Vec<u32> = routes.iter().map(|route| route.prefix.first()).collect();
        let right: Vec<Hop> = keys.iter().map(|key| Oracle::new(&routes).lookup(*key)).collect();
        let liar = Liar::new(&routes, Lie::InBatches, keys[3]);
        let found = differences(&liar, &keys, &right, 7);
        let expected = right[3];
        let other = Hop::from_bits(expected.to_bits() ^ 1);
        let times = keys.iter().filter(|key| **key == keys[3]).count();
        let ip = keys[3].to_ip();
        let text = format!("{ip}: expected {expected:?}, single {expected:?}, batch {other:?}");
        assert_eq!(found, vec![text; times]);
        let honest = Liar::new(&routes, Lie::Honest, 0);
        assert!(differences(&honest, &keys, &right, 7).is_empty());
    }
}
