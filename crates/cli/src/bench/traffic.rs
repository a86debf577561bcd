//! The keys of a benchmark, and the oracle's answers to them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread;

use fibula_core::{Addr, Hop, Lookup, Routes};
use fibula_testkit::Oracle;
use fibula_testkit::traffic;

use crate::failure::Failure;

/// A kind of traffic, or a file to be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Generated.
    Kind(traffic::Traffic),
    /// The addresses in a file.
    File(PathBuf),
}

impl FromStr for Traffic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("file:") {
            Some(path) => Ok(Self::File(path.into())),
            None => text
                .parse()
                .map(Self::Kind)
                .map_err(|e: traffic::TrafficError| format!("{e}, or file:PATH")),
        }
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => kind.fmt(f),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl Traffic {
    /// `count` keys for each thread; nothing if the file has no address of this family.
    pub fn keys<A: Addr>(
        &self,
        routes: &Routes<A>,
        count: usize,
        threads: usize,
        seed: u64,
    ) -> Result<Vec<Vec<A>>, Failure> {
        match self {
            Self::Kind(kind) => Ok((0..threads as u64)
                .map(|thread| traffic::keys(routes, *kind, count, seed.wrapping_add(thread)))
                .collect()),
            Self::File(path) => {
                let file = crate::input::open(path)?;
                let text = crate::input::read_all(file, path)?;
                let replay = traffic::replay::<A>(&text).keys;
                // Threads replay the same addresses from different places on.
                let from = |thread: usize| replay.len() * thread / threads;
                let keys = |thread| {
                    replay.iter().copied().cycle().skip(from(thread)).take(count).collect()
                };
                Ok(if replay.is_empty() { Vec::new() } else { (0..threads).map(keys).collect() })
            }
        }
    }
}

/// The oracle's answers, key by key. It is asked in ascending order of keys, where neighbours share
/// most of their way through its trie, and by all cores: millions of keys take a second, not ten.
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

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_testkit::tables;

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
    fn names() {
        for text in ["RND", "MATCH50", "file:a,b"] {
            assert_eq!(text.parse::<Traffic>().unwrap().to_string(), text);
        }
        assert!("QUX".parse::<Traffic>().unwrap_err().contains("file:PATH"));
    }
}
