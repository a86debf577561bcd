//! A contestant's side of the protocol of the harness (`bench/README.md` has the protocol): a contestant in Rust gives
//! [`serve`] two functions that build its table, and each table looks up a batch.

mod timed;

use std::fs;
use std::io::{self, BufRead, Write};
use std::time::Instant;

/// A route as the harness numbers it: address, length, hop.
pub type Route<K> = (K, u8, u32);

/// The hop of an address that no route covers.
pub const NO_HOP: u32 = u32::MAX;

/// A table that a contestant has built.
pub trait Table<K>: Sync {
    /// Looks up as many keys as there are hops.
    fn look_up(&self, keys: &[K], hops: &mut [u32]);
    /// Bytes of the table, if the contestant knows.
    fn bytes(&self) -> Option<usize> {
        None
    }
    /// What a reader of the report should know, such as the form that runs.
    fn note(&self) -> String {
        String::new()
    }
}

/// A table whose lookup is of one key.
pub struct Single<F>(pub F);

impl<K: Copy + Sync, F: Fn(K) -> Option<u32> + Sync> Table<K> for Single<F> {
    fn look_up(&self, keys: &[K], hops: &mut [u32]) {
        keys.iter().zip(hops).for_each(|(&key, hop)| *hop = (self.0)(key).unwrap_or(NO_HOP));
    }
}

/// What a function that builds returns: the table, or why there is none.
pub type Built<K> = Result<Box<dyn Table<K>>, String>;

/// The address families' keys.
pub trait Key: Copy + Sync + 'static {
    /// Bytes of a key in a file.
    const BYTES: usize;
    /// Of bytes in little-endian order.
    fn of(bytes: &[u8]) -> Self;
}

impl Key for u32 {
    const BYTES: usize = 4;
    fn of(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().expect("4 bytes"))
    }
}

impl Key for u128 {
    const BYTES: usize = 16;
    fn of(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().expect("16 bytes"))
    }
}

/// The version of a package in the text of a Cargo.lock.
///
/// ```
/// let lock = "[[package]]\nname = \"a\"\nversion = \"1.2\"\n\n[[package]]\nname = \"b\"\nversion = \"3\"\n";
/// assert_eq!(bench_peer::version(lock, "b"), "3");
/// ```
///
/// # Panics
/// If the package is not there.
pub fn version<'a>(lock: &'a str, package: &str) -> &'a str {
    let name = format!("name = \"{package}\"\nversion = \"");
    let (_, rest) =
        lock.split_once(&name).unwrap_or_else(|| panic!("{package}: not in Cargo.lock"));
    rest.split('"').next().unwrap_or_default()
}

/// Answers the harness on standard input until it ends.
///
/// # Errors
/// Those of standard input and output.
pub fn serve(
    name: &str,
    version: &str,
    v4: impl Fn(&[Route<u32>]) -> Built<u32>,
    v6: impl Fn(&[Route<u128>]) -> Built<u128>,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "fibula-bench 1 {name} {version}")?;
    out.flush()?;
    let mut state = State::Empty;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split('\t').collect();
        let answer = match words[..] {
            ["load", "v4", path] => state.load(path, &v4, State::V4),
            ["load", "v6", path] => state.load(path, &v6, State::V6),
            ["end"] => return Ok(()),
            _ => match &mut state {
                State::Empty => Err("load comes first".to_owned()),
                State::V4(loaded) => loaded.answer(&words),
                State::V6(loaded) => loaded.answer(&words),
            },
        };
        match answer {
            Ok(text) => writeln!(out, "{text}")?,
            Err(error) => writeln!(out, "error {}", error.replace('\n', " "))?,
        }
        out.flush()?;
    }
    Ok(())
}

enum State {
    Empty,
    V4(Loaded<u32>),
    V6(Loaded<u128>),
}

struct Loaded<K> {
    table: Box<dyn Table<K>>,
    keys: Vec<K>,
    threads: usize,
    batch: usize,
}

impl State {
    fn load<K: Key>(
        &mut self,
        path: &str,
        build: impl Fn(&[Route<K>]) -> Built<K>,
        of: impl Fn(Loaded<K>) -> Self,
    ) -> Result<String, String> {
        let routes = routes(&read(path)?)?;
        let started = Instant::now();
        let table = build(&routes)?;
        let time = started.elapsed().as_nanos();
        let bytes = table.bytes().map_or("-".to_owned(), |bytes| bytes.to_string());
        let note = table.note().replace(['\t', '\n'], " ");
        *self = of(Loaded { table, keys: Vec::new(), threads: 1, batch: 1 });
        Ok(format!("ok\t{time}\t{bytes}\t{note}"))
    }
}

impl<K: Key> Loaded<K> {
    fn answer(&mut self, words: &[&str]) -> Result<String, String> {
        let number = |text: &str| match text.parse() {
            Ok(number @ 1..) => Ok(number),
            _ => Err(format!("{text}: not a number from 1 on")),
        };
        match *words {
            ["keys", path, threads, batch] => {
                self.keys = read(path)?.chunks_exact(K::BYTES).map(K::of).collect();
                (self.threads, self.batch) = (number(threads)?, number(batch)?);
                if self.keys.is_empty() || !self.keys.len().is_multiple_of(self.threads) {
                    return Err(format!("{path}: not as many keys for each thread"));
                }
                Ok("ok".to_owned())
            }
            ["answer", path] => {
                let mut hops = vec![NO_HOP; self.keys.len()];
                for (keys, hops) in self.keys.chunks(self.batch).zip(hops.chunks_mut(self.batch)) {
                    self.table.look_up(keys, hops);
                }
                let bytes: Vec<u8> = hops.iter().flat_map(|hop| hop.to_le_bytes()).collect();
                fs::write(path, bytes).map_err(|error| format!("{path}: {error}"))?;
                Ok("ok".to_owned())
            }
            ["run", rounds] => {
                let run = |_| timed::run(&*self.table, &self.keys, self.threads, self.batch);
                let rounds: Vec<String> = (0..number(rounds)?).map(run).collect();
                Ok(rounds.join("\n"))
            }
            _ => Err(format!("{}: not understood", words.join(" "))),
        }
    }
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{path}: {error}"))
}

/// The routes of a table's file.
fn routes<K: Key>(bytes: &[u8]) -> Result<Vec<Route<K>>, String> {
    let size = K::BYTES + 8;
    if !bytes.len().is_multiple_of(size) {
        return Err(format!("the table's {} bytes are not records of {size}", bytes.len()));
    }
    let route = |record: &[u8]| {
        let (key, rest) = record.split_at(K::BYTES);
        (K::of(key), rest[0], u32::of(&rest[4..]))
    };
    Ok(bytes.chunks_exact(size).map(route).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_table() {
        let v4 = [1, 0, 0, 10, 32, 0, 0, 0, 7, 0, 0, 0];
        assert_eq!(routes::<u32>(&v4), Ok(vec![(0x0a00_0001, 32, 7)]));
        assert!(routes::<u128>(&v4).unwrap_err().contains("records of 24"));
    }

    #[test]
    fn a_single_lookup_is_a_table() {
        let even = Single(|key: u32| key.is_multiple_of(2).then_some(key / 2));
        let mut hops = [0; 3];
        even.look_up(&[4, 5, 6], &mut hops);
        assert_eq!(hops, [2, NO_HOP, 3]);
        let line = timed::run(&even, &[4, 5, 6, 8], 2, 1);
        let sum = (2u32 + 3 + 4).wrapping_add(NO_HOP);
        assert_eq!(line.rsplit('\t').next(), Some(&*sum.to_string()), "{line}");
    }
}
