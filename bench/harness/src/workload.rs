//! The files that contestants read: routes and keys. And the right answers.

use std::fs;
use std::path::{Path, PathBuf};

use fibula_core::{Addr, Hop, Routes};
use fibula_testkit::measure::answers;
use fibula_testkit::traffic::{self, Traffic};
use fibula_testkit::{Oracle, probes};

use crate::definition::Definition;

/// Addresses beside prefixes whose answers are compared before anything is timed, at most.
const PROBES: usize = 1 << 20;

/// Keys in a file, and their right answers.
#[derive(Debug)]
pub struct Keys {
    /// The file.
    pub path: PathBuf,
    /// The keys, for messages.
    pub texts: Vec<u128>,
    /// The right hops.
    pub right: Vec<u32>,
    /// The threads that share them.
    pub threads: usize,
}

/// What all contestants of a definition do.
#[derive(Debug)]
pub struct Workload {
    folder: PathBuf,
    /// The file with the routes.
    pub table: PathBuf,
    /// Their number.
    pub prefixes: usize,
    /// Addresses at the edges of prefixes, and random ones.
    pub probes: Keys,
    /// The keys of each kind of traffic.
    pub traffic: Vec<(String, Keys)>,
}

impl Workload {
    /// Writes the files into a folder, which is removed in the end. Fails if the right answers are others than those of
    /// the definition.
    pub fn write<A: Addr>(
        definition: &Definition,
        routes: &Routes<A>,
        folder: PathBuf,
    ) -> Result<Self, String> {
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let table = folder.join("table");
        write(&table, &table_bytes(routes))?;
        let oracle = Oracle::new(routes);
        let probes = probes(routes, definition.seed);
        let mut this = Self {
            probes: Keys::write(folder.join("probes"), &probes, 1, &oracle)?,
            prefixes: routes.len(),
            folder,
            table,
            traffic: Vec::new(),
        };
        for name in &definition.traffic {
            let kind: Traffic = name.parse().map_err(|error| format!("{error}"))?;
            let of = |thread| {
                let seed = definition.seed.wrapping_add(thread);
                traffic::keys(routes, kind, definition.keys, seed)
            };
            let keys: Vec<A> = (0..definition.threads as u64).flat_map(of).collect();
            let path = this.folder.join(name);
            let keys = Keys::write(path, &keys, definition.threads, &oracle)?;
            let (found, of) = (checksum(&keys.right), definition.answers.get(name));
            if let Some(expected) = of.filter(|expected| **expected != found) {
                return Err(format!(
                    "{}: the right answers to {name} have the checksum {found}, the definition says {expected}: \
                     table, traffic or oracle are others than when it was written",
                    definition.name
                ));
            }
            this.traffic.push((name.clone(), keys));
        }
        Ok(this)
    }

    /// A file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // What is left there is in the way of nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Keys {
    fn write<A: Addr>(
        path: PathBuf,
        keys: &[A],
        threads: usize,
        oracle: &Oracle<A>,
    ) -> Result<Self, String> {
        write(&path, &key_bytes(keys))?;
        let right = answers(oracle, keys).into_iter().map(Hop::to_bits).collect();
        let texts = keys.iter().map(|key| key.to_u128()).collect();
        Ok(Self { path, texts, right, threads })
    }

    /// One of `slow` keys: the first ones of each thread, in a file of their own.
    pub fn share<A: Addr>(&self, slow: usize) -> Result<Self, String> {
        let each = self.right.len() / self.threads;
        let kept = (each / slow).max(1);
        let is_kept = |at: &usize| at % each < kept;
        let places: Vec<usize> = (0..self.right.len()).filter(is_kept).collect();
        let keys: Vec<A> = places.iter().map(|&at| A::from_u128(self.texts[at])).collect();
        let path = self.path.with_extension(format!("{slow}"));
        write(&path, &key_bytes(&keys))?;
        let texts = places.iter().map(|&at| self.texts[at]).collect();
        let right = places.iter().map(|&at| self.right[at]).collect();
        Ok(Self { path, texts, right, threads: self.threads })
    }

    /// The sum of the right hops, which every timed round must have.
    pub fn sum(&self) -> u32 {
        self.right.iter().fold(0, |sum, hop| sum.wrapping_add(*hop))
    }

    /// What is wrong with a contestant's hops; `None` if nothing is.
    pub fn wrong<A: Addr>(&self, bytes: &[u8]) -> Option<String> {
        let hops: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|hop| u32::from_le_bytes(hop.try_into().expect("4 bytes")))
            .collect();
        if hops.len() != self.right.len() {
            return Some(format!("{} answers to {} keys", hops.len(), self.right.len()));
        }
        let differ = |at: &usize| hops[*at] != self.right[*at];
        let places: Vec<usize> = (0..hops.len()).filter(differ).collect();
        let &first = places.first()?;
        let key = A::from_u128(self.texts[first]).to_ip();
        let text = |hop: u32| if hop == u32::MAX { "none".to_owned() } else { hop.to_string() };
        Some(format!(
            "wrong {} of {}, first {key}: {}, right {}",
            places.len(),
            hops.len(),
            text(hops[first]),
            text(self.right[first])
        ))
    }
}

/// Of small tables all edges of prefixes, of large ones those of evenly spaced prefixes, and as many random addresses.
fn probes<A: Addr>(routes: &Routes<A>, seed: u64) -> Vec<A> {
    let edges: Vec<A> = probes::boundary(routes).collect();
    let step = edges.len().div_ceil(PROBES / 2);
    let mut probes: Vec<A> = edges.iter().copied().step_by(step).collect();
    probes.extend([A::MIN, A::MAX]);
    probes.extend(probes::random(routes, (probes.len() / 2) as u64, seed));
    probes
}

/// A record for each route: address, length, three zeros, hop.
pub fn table_bytes<A: Addr>(routes: &Routes<A>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for route in routes.iter() {
        bytes.extend(key_bytes(&[route.prefix.addr()]));
        bytes.extend([route.prefix.len(), 0, 0, 0]);
        bytes.extend(route.hop.to_bits().to_le_bytes());
    }
    bytes
}

/// Keys as their file has them.
pub fn key_bytes<A: Addr>(keys: &[A]) -> Vec<u8> {
    let size = usize::from(A::BITS / 8);
    keys.iter().flat_map(|key| key.to_u128().to_le_bytes().into_iter().take(size)).collect()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// FNV-1a over the hops' bytes: unlike a sum, it depends on their order.
pub fn checksum(hops: &[u32]) -> String {
    let bytes = hops.iter().flat_map(|hop| hop.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_testkit::tables;

    fn keys() -> Keys {
        let texts = (0..6).map(|at| 0x0a00_0000 + at).collect();
        Keys { path: "keys".into(), texts, right: vec![1, 2, 3, 4, 5, u32::MAX], threads: 2 }
    }

    fn bytes(hops: &[u32]) -> Vec<u8> {
        hops.iter().flat_map(|hop| hop.to_le_bytes()).collect()
    }

    #[test]
    fn a_wrong_answer_is_named() {
        let keys = keys();
        assert_eq!(keys.wrong::<u32>(&bytes(&keys.right)), None);
        let text = keys.wrong::<u32>(&bytes(&[1, 7, 3, 4, 5, 0])).unwrap();
        assert_eq!(text, "wrong 2 of 6, first 10.0.0.1: 7, right 2");
        let text = keys.wrong::<u32>(&bytes(&[1, 2, 3, 4, 5, 0])).unwrap();
        assert_eq!(text, "wrong 1 of 6, first 10.0.0.5: 0, right none");
        assert_eq!(keys.wrong::<u32>(&bytes(&[1])).unwrap(), "1 answers to 6 keys");
    }

    #[test]
    fn a_share_has_keys_of_each_thread() {
        let folder = std::env::temp_dir().join(format!("bench-share-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let keys = Keys { path: folder.join("keys"), ..keys() };
        let share = keys.share::<u32>(2).unwrap();
        assert_eq!((&share.right[..], share.sum()), (&[1, 4][..], 5));
        let written = fs::read(&share.path).unwrap();
        assert_eq!(written, [0, 0, 0, 10, 3, 0, 0, 10]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn probes_have_the_ends_of_the_space_and_edges() {
        let routes = tables::dense::<u128>(1, 300);
        let probes = probes(&routes, 1);
        let first = routes.iter().nth(17).unwrap().prefix.first();
        for key in [0, u128::MAX, first] {
            assert!(probes.contains(&key));
        }
    }

    #[test]
    fn checksums_depend_on_the_order() {
        assert_eq!(checksum(&[]), "cbf29ce484222325");
        assert_ne!(checksum(&[1, 2]), checksum(&[2, 1]));
    }
}
