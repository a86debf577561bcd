//! Looks for a small table that a contestant answers wrongly: hard tables of few routes, one after the other.

use std::fs;
use std::path::{Path, PathBuf};

use fibula_core::{Addr, Hop, Prefix, Route, Routes};
use fibula_testkit::{Oracle, Rng, probes, tables};

use crate::peer::Contestant;
use crate::process::{Process, cores};
use crate::workload::{key_bytes, table_bytes};

/// Routes of a table, at most.
const MOST: u64 = 40;
/// Random addresses beside those at the edges of prefixes.
const RANDOM: u64 = 200;
/// How often routes are left out in search of a smaller table.
const TURNS: usize = 20;

/// The end of a hunt.
pub enum Hunted {
    /// So many tables were answered rightly, and so many refused, the first one for this reason.
    Right { right: usize, refused: usize, reason: String },
    /// One was not.
    Wrong(Found),
}

/// What a contestant makes of a table.
enum Verdict {
    Right,
    Refused(String),
    Wrong(String),
}

/// A table that a contestant answers wrongly.
pub struct Found {
    /// The table: a route in each line.
    pub table: String,
    /// The first wrong answer, or the error.
    pub wrong: String,
}

/// A contestant that is asked with one table after the other.
struct Hunt<'a> {
    contestant: &'a Contestant,
    folder: PathBuf,
}

/// Tries so many tables. Returns the smallest one that can be made of the first that is answered wrongly.
pub fn hunt<A: Addr>(contestant: &Contestant, count: u64, folder: &Path) -> Result<Hunted, String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let hunt = Hunt { contestant, folder: folder.to_owned() };
    let edges = tables::edge::<A>().into_iter().map(|(_, routes)| routes);
    let (mut right, mut refused, mut found) = (0, Vec::new(), None);
    for routes in edges.chain((0..count).map(random::<A>)) {
        match hunt.verdict(&routes)? {
            Verdict::Right => right += 1,
            Verdict::Refused(reason) => refused.push(reason),
            Verdict::Wrong(wrong) => {
                found = Some((routes, wrong));
                break;
            }
        }
    }
    let Some((mut routes, mut wrong)) = found else {
        let reason = refused.first().cloned().unwrap_or_default();
        return Ok(Hunted::Right { right, refused: refused.len(), reason });
    };
    for _ in 0..TURNS {
        let before = routes.len();
        for at in (0..before).rev() {
            let mut fewer: Vec<Route<A>> = routes.as_slice().to_vec();
            if at >= fewer.len() || fewer.len() == 1 {
                continue;
            }
            fewer.remove(at);
            let fewer: Routes<A> = fewer.into_iter().collect();
            if let Verdict::Wrong(still) = hunt.verdict(&fewer)? {
                (routes, wrong) = (fewer, still);
            }
        }
        if routes.len() == before {
            break;
        }
    }
    let line = |route: Route<A>| format!("{} {}\n", route.prefix, route.hop.to_bits());
    Ok(Hunted::Wrong(Found { table: routes.iter().map(line).collect(), wrong }))
}

impl Hunt<'_> {
    /// Compares the contestant's answers; one that cannot build a table may refuse it.
    fn verdict<A: Addr>(&self, routes: &Routes<A>) -> Result<Verdict, String> {
        // Each table gets a process of its own: what an earlier one left must not matter.
        let mut process = Process::start(self.contestant, &cores()[..1], &self.folder)?;
        let file = |name: &str| self.folder.join(name);
        let write = |name: &str, bytes: Vec<u8>| {
            fs::write(file(name), bytes).map_err(|error| format!("{name}: {error}"))
        };
        let mut keys: Vec<A> = probes::boundary(routes).collect();
        keys.extend([A::MIN, A::MAX]);
        keys.extend(probes::random(routes, RANDOM, 1));
        write("table", table_bytes(routes))?;
        write("keys", key_bytes(&keys))?;
        let family = if A::BITS == 32 { "v4" } else { "v6" };
        let answers = match process.load(family, &file("table")) {
            Ok(_) => {
                process.keys(&file("keys"), 1, 16).and_then(|()| process.answers(&file("answers")))
            }
            Err(error) if error.starts_with("it has ended") => Err(error),
            Err(reason) => return Ok(Verdict::Refused(reason)),
        };
        let hops = match answers {
            Ok(hops) if hops.len() == keys.len() * 4 => hops,
            Ok(hops) => {
                let (bytes, keys) = (hops.len(), keys.len());
                return Ok(Verdict::Wrong(format!("{bytes} bytes of hops for {keys} keys")));
            }
            Err(error) => return Ok(Verdict::Wrong(error)),
        };
        let oracle = Oracle::new(routes);
        let hops = hops.chunks_exact(4).map(|hop| u32::from_le_bytes(hop.try_into().expect("4")));
        let mut pairs = keys.iter().zip(hops);
        let lookup = |key: A| fibula_core::Lookup::lookup(&oracle, key);
        let Some((&key, hop)) = pairs.find(|(key, hop)| lookup(**key).to_bits() != *hop) else {
            return Ok(Verdict::Right);
        };
        let text =
            |hop: Hop| if hop.is_none() { "none".to_owned() } else { hop.to_bits().to_string() };
        let (hop, right) = (text(Hop::from_bits(hop)), text(lookup(key)));
        Ok(Verdict::Wrong(format!("{}: {hop}, right {right}", key.to_ip())))
    }
}

/// A small table of nested prefixes with few hops: the default route, halves, hosts at both ends of the space and of
/// prefixes, and neighbours with equal hops are all likely.
fn random<A: Addr>(seed: u64) -> Routes<A> {
    let mut rng = Rng::new(seed);
    let (count, hops) = (1 + rng.below(MOST), 1 + rng.below(4));
    let mut prefixes: Vec<Prefix<A>> = Vec::new();
    while (prefixes.len() as u64) < count {
        let base = match rng.below(8) {
            0 => A::MIN,
            1 => A::MAX,
            2 => rng.addr(),
            _ => prefixes.get(rng.below(prefixes.len().max(1) as u64) as usize).map_or(
                A::MIN,
                |prefix| {
                    let within = rng.addr::<A>().and(A::netmask(prefix.len()).not());
                    match rng.below(3) {
                        0 => prefix.first(),
                        1 => prefix.last(),
                        _ => prefix.first().or(within),
                    }
                },
            ),
        };
        let len = match rng.below(6) {
            0 => rng.below(3) as u8,
            1 => A::BITS - rng.below(3) as u8,
            2 => (rng.below(u64::from(A::BITS) / 8 + 1) * 8) as u8,
            _ => rng.below(u64::from(A::BITS) + 1) as u8,
        };
        prefixes.push(Prefix::masked(base, len).expect("the length is within the family's bits"));
    }
    prefixes.into_iter().map(|prefix| (prefix, Hop::new(rng.below(hops) as u32))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_what_is_hard() {
        let all: Vec<Routes<u32>> = (0..200).map(random).collect();
        let has = |is: fn(Prefix<u32>) -> bool| {
            all.iter().filter(|routes| routes.iter().any(|route| is(route.prefix))).count()
        };
        assert!(has(|prefix| prefix.len() == 0) > 20, "default routes");
        assert!(has(|prefix| prefix.len() == 32) > 20, "hosts");
        assert!(has(|prefix| prefix.last() == u32::MAX && prefix.len() > 24) > 20, "the end");
        assert!(all.iter().any(|routes| routes.len() > 30) && all.iter().any(|it| it.len() < 3));
    }
}
