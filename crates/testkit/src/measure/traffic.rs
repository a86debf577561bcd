//! The keys of a benchmark.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::traffic;
use fibula_core::{Addr, Routes};

/// A kind of traffic, or a file to be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrafficInput {
    /// Generated.
    Pattern(traffic::Traffic),
    /// The addresses in a file.
    File(PathBuf),
}

impl FromStr for TrafficInput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("file:") {
            Some(path) => Ok(Self::File(path.into())),
            None => text
                .parse()
                .map(Self::Pattern)
                .map_err(|e: traffic::TrafficError| format!("{e}, or file:PATH")),
        }
    }
}

impl fmt::Display for TrafficInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(kind) => kind.fmt(f),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl TrafficInput {
    /// `count` keys for each thread; nothing if the file, which `read` reads, has no address of this family.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn keys<A: Addr, E>(
        &self,
        routes: &Routes<A>,
        count: usize,
        threads: usize,
        seed: u64,
        read: impl FnOnce(&Path) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<Vec<A>>, E> {
        match self {
            Self::Pattern(kind) => Ok((0..threads as u64)
                .map(|thread| traffic::keys(routes, *kind, count, seed.wrapping_add(thread)))
                .collect()),
            Self::File(path) => {
                let replay = traffic::replay::<A>(&read(path)?).keys;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for text in ["RND", "MATCH50", "file:a,b"] {
            assert_eq!(text.parse::<TrafficInput>().unwrap().to_string(), text);
        }
        assert!("QUX".parse::<TrafficInput>().unwrap_err().contains("file:PATH"));
    }

    #[test]
    fn threads_replay_a_file_from_different_places_on() {
        let read = |_: &Path| Ok::<_, ()>(b"10.0.0.1\n10.0.0.2\n10.0.0.3\n10.0.0.4\n".to_vec());
        let traffic = TrafficInput::File("list".into());
        let keys = traffic.keys::<u32, _>(&Routes::default(), 3, 2, 1, read).unwrap();
        let low: Vec<Vec<u32>> =
            keys.iter().map(|keys| keys.iter().map(|key| key & 255).collect()).collect();
        assert_eq!(low, [[1, 2, 3], [3, 4, 1]]);
        assert!(traffic.keys::<u128, _>(&Routes::default(), 3, 2, 1, read).unwrap().is_empty());
        assert_eq!(traffic.keys::<u32, _>(&Routes::default(), 3, 2, 1, |_| Err(7)), Err(7));
    }
}
