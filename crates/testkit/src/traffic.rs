//! Streams of addresses, as the papers' benchmarks use them.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use fibula_core::{Addr, Family, Prefix, Routes};

use crate::Rng;
use crate::zipf::Zipf;

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// `RND`: uniform over the space in use: IPv4 without [reserved space](RESERVED_V4), IPv6 in
    /// `2000::/3`.
    Rnd,
    /// `PFX`: uniform over the table's prefixes, with random host bits.
    Pfx,
    /// `ZIPF`: a million PFX keys, the k-th of them looked up with probability proportional to 1 / k (Zipf's law with
    /// s = 1.0).
    Zipf,
    /// `REP`: RND keys, each of them 16 times in a row.
    Rep,
    /// `SEQ`: RND keys for a loop in which each lookup waits for the last one's result. The keys are
    /// those of RND; making them dependent is the loop's matter.
    Seq,
    /// `WORST`: uniform over the 1,024 deepest of the table's prefixes, with random host bits: the longest ones, of
    /// equally long ones those with the most prefixes above them.
    Worst,
    /// `MATCH50` (0 to 100): this percentage of keys is covered by a route, the rest is not. Matching
    /// keys are PFX keys, the others RND keys in the gaps. A table without gaps (one with a default
    /// route) has matching keys only, an empty one has none.
    Match(u8),
}

/// Keys that ZIPF draws from.
const ZIPF_KEYS: usize = 1_000_000;
/// Times that REP repeats each key.
const REPEATS: usize = 16;
/// Prefixes that WORST draws from: few, so that all are deep, and too many for the first-level cache.
const DEEPEST: usize = 1024;

impl Traffic {
    /// The kinds with a fixed name; [`Traffic::Match`] has one for each percentage.
    pub const NAMED: [Self; 6] =
        [Self::Rnd, Self::Pfx, Self::Zipf, Self::Rep, Self::Seq, Self::Worst];
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rnd => f.write_str("RND"),
            Self::Pfx => f.write_str("PFX"),
            Self::Zipf => f.write_str("ZIPF"),
            Self::Rep => f.write_str("REP"),
            Self::Seq => f.write_str("SEQ"),
            Self::Worst => f.write_str("WORST"),
            Self::Match(percent) => write!(f, "MATCH{percent}"),
        }
    }
}

/// The name of a kind of traffic was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficError(String);

impl fmt::Display for TrafficError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(f, "unknown traffic {text:?}: RND, PFX, ZIPF, REP, SEQ, WORST or MATCH0 to MATCH100")
    }
}

impl std::error::Error for TrafficError {}

impl FromStr for Traffic {
    type Err = TrafficError;

    /// The names as [`Display`](fmt::Display) writes them, in upper or lower case.
    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let upper = text.to_ascii_uppercase();
        if let Some(kind) = Self::NAMED.into_iter().find(|kind| kind.to_string() == upper) {
            return Ok(kind);
        }
        let percent = upper.strip_prefix("MATCH").and_then(|percent| percent.parse().ok());
        match percent {
            Some(percent @ 0..=100) => Ok(Self::Match(percent)),
            _ => Err(TrafficError(text.to_owned())),
        }
    }
}

/// `count` keys of this traffic for this table; equal arguments give equal keys.
///
/// An empty table has no prefixes to draw from: its PFX, ZIPF and WORST keys are RND keys.
///
/// ```
/// use fibula_testkit::{tables, traffic::{Traffic, keys}};
/// let routes = tables::dense::<u32>(1, 100);
/// let traffic: Traffic = "REP".parse()?;
/// let keys = keys(&routes, traffic, 100, 7);
/// assert_eq!(keys.len(), 100);
/// assert!(keys[..16].iter().all(|key| *key == keys[0]));
/// # Ok::<(), fibula_testkit::traffic::TrafficError>(())
/// ```
pub fn keys<A: Addr>(routes: &Routes<A>, traffic: Traffic, count: usize, seed: u64) -> Vec<A> {
    let mut rng = Rng::new(seed);
    match traffic {
        Traffic::Rnd | Traffic::Seq => (0..count).map(|_| random(&mut rng)).collect(),
        Traffic::Pfx => (0..count).map(|_| in_prefix(routes, &mut rng)).collect(),
        Traffic::Rep => {
            let distinct = (0..count.div_ceil(REPEATS)).map(|_| random(&mut rng));
            distinct.flat_map(|key| [key; REPEATS]).take(count).collect()
        }
        Traffic::Zipf => {
            let pool: Vec<A> = (0..ZIPF_KEYS).map(|_| in_prefix(routes, &mut rng)).collect();
            let zipf = Zipf::new(ZIPF_KEYS);
            (0..count).map(|_| pool[zipf.rank(&mut rng)]).collect()
        }
        Traffic::Worst => {
            let deepest = deepest(routes);
            let key = |_| match rng.choose(&deepest) {
                None => random(&mut rng),
                Some(prefix) => rng.addr_in(prefix),
            };
            (0..count).map(key).collect()
        }
        Traffic::Match(percent) => matching(routes, percent, count, &mut rng),
    }
}

/// IPv4 blocks that RND leaves out: they are not routed on the Internet.
pub const RESERVED_V4: [(u32, u8); 8] = [
    (0x0000_0000, 8),  // 0.0.0.0/8, "this network"
    (0x0a00_0000, 8),  // 10.0.0.0/8, private
    (0x6440_0000, 10), // 100.64.0.0/10, shared by carriers
    (0x7f00_0000, 8),  // 127.0.0.0/8, loopback
    (0xa9fe_0000, 16), // 169.254.0.0/16, link-local
    (0xac10_0000, 12), // 172.16.0.0/12, private
    (0xc0a8_0000, 16), // 192.168.0.0/16, private
    (0xe000_0000, 3),  // 224.0.0.0/3, multicast and the future
];

/// Whether RND can yield the address.
fn in_use<A: Addr>(addr: A) -> bool {
    match A::FAMILY {
        Family::V4 => {
            let addr = addr.to_u128() as u32;
            !RESERVED_V4.iter().any(|(block, len)| addr & u32::netmask(*len) == *block)
        }
        Family::V6 => addr.to_u128() >> 125 == 1,
    }
}

fn random<A: Addr>(rng: &mut Rng) -> A {
    if A::FAMILY == Family::V6 {
        // 2000::/3 by construction: seven of eight tries would fail.
        return A::from_u128(rng.addr::<u128>() >> 3 | 1 << 125);
    }
    loop {
        let addr = rng.addr();
        if in_use(addr) {
            return addr;
        }
    }
}

fn in_prefix<A: Addr>(routes: &Routes<A>, rng: &mut Rng) -> A {
    match rng.choose(routes.as_slice()) {
        None => random(rng),
        Some(route) => rng.addr_in(route.prefix),
    }
}

/// The prefixes of WORST.
fn deepest<A: Addr>(routes: &Routes<A>) -> Vec<Prefix<A>> {
    let mut above: Vec<Prefix<A>> = Vec::new();
    let mut all = Vec::with_capacity(routes.len());
    // Those above a prefix precede it.
    for prefix in routes.iter().map(|route| route.prefix) {
        while above.pop_if(|last| !last.contains(prefix.first())).is_some() {}
        all.push((prefix.len(), above.len(), prefix));
        above.push(prefix);
    }
    all.sort_by_key(|&(len, above, _)| Reverse((len, above)));
    all.into_iter().take(DEEPEST).map(|(_, _, prefix)| prefix).collect()
}

fn matching<A: Addr>(routes: &Routes<A>, percent: u8, count: usize, rng: &mut Rng) -> Vec<A> {
    let gaps: Vec<(A, A)> =
        routes.ranges().filter(|r| r.hop.is_none()).map(|r| (r.first, r.last)).collect();
    (0..count)
        .map(|_| {
            let wanted = rng.below(100) < u64::from(percent);
            if (wanted || gaps.is_empty()) && !routes.is_empty() {
                in_prefix(routes, rng)
            } else {
                in_gap(&gaps, rng)
            }
        })
        .collect()
}

/// An RND key that no route covers; if the gaps lie outside the space in use, any address of one.
fn in_gap<A: Addr>(gaps: &[(A, A)], rng: &mut Rng) -> A {
    for _ in 0..64 {
        let addr = random(rng);
        let after = gaps.partition_point(|(first, _)| *first <= addr);
        if after > 0 && addr <= gaps[after - 1].1 {
            return addr;
        }
    }
    let (first, last) = rng.choose(gaps).unwrap_or((A::MIN, A::MAX));
    let parts: Vec<Prefix<A>> = Prefix::split_range(first, last).collect();
    let part = rng.choose(&parts).unwrap_or(Prefix::ALL);
    rng.addr_in(part)
}

/// Addresses read from a file, to be replayed as traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay<A> {
    /// The addresses of this family, in order.
    pub keys: Vec<A>,
    /// Lines with an address of the other family.
    pub other_family: usize,
    /// Lines that are neither empty nor a comment and have no address in front.
    pub unparsable: usize,
}

/// Reads addresses from text: one in front of each line, ended by a space, tab, comma or semicolon;
/// what follows is ignored. Empty lines and lines that begin with `#` or `;` are skipped.
///
/// ```
/// let replay = fibula_testkit::traffic::replay::<u32>(b"# list\n192.0.2.1\n192.0.2.7\t12\n::1\n?\n");
/// assert_eq!(replay.keys, [0xc000_0201, 0xc000_0207]);
/// assert_eq!((replay.other_family, replay.unparsable), (1, 1));
/// ```
pub fn replay<A: Addr>(text: &[u8]) -> Replay<A> {
    let mut replay = Replay { keys: Vec::new(), other_family: 0, unparsable: 0 };
    for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if matches!(line.first(), None | Some(b'#' | b';')) {
            continue;
        }
        let is_end = |byte: &u8| matches!(byte, b' ' | b'\t' | b',' | b';');
        let field = line.split(is_end).next().unwrap_or_default();
        let ip = std::str::from_utf8(field).ok().and_then(|field| field.parse().ok());
        match ip.map(A::from_ip) {
            Some(Some(addr)) => replay.keys.push(addr),
            Some(None) => replay.other_family += 1,
            None => replay.unparsable += 1,
        }
    }
    replay
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables;
    use fibula_core::Hop;

    /// RND, PFX, ZIPF, REP, SEQ, WORST, MATCH50; IPv4 and IPv6.
    const EXPECTED: [[u64; 2]; 7] = [
        [0x4e5f_6af7_9b75_e291, 0x915e_feea_74fb_45c5],
        [0x1069_1a50_b411_a91f, 0x76e1_a582_d29e_05b1],
        [0x38fe_7106_056e_0244, 0x9efd_0ea8_843a_15da],
        [0x6434_089d_0c57_5890, 0x5977_053a_7432_2ca0],
        [0x4e5f_6af7_9b75_e291, 0x915e_feea_74fb_45c5],
        [0x52a4_a227_54b9_0da8, 0x9fab_de13_0fa9_3c07],
        [0x108c_d9a8_dcf5_448d, 0x3c6f_a1c8_35d1_ae06],
    ];

    fn small<A: Addr>() -> Routes<A> {
        let prefix = Prefix::masked(A::netmask(2).xor(A::netmask(3)), 20).unwrap();
        [(prefix, Hop::new(0))].into_iter().collect()
    }

    #[test]
    fn random_keys_avoid_reserved_space() {
        let routes = Routes::default();
        for key in keys::<u32>(&routes, Traffic::Rnd, 100_000, 1) {
            let octets = key.to_be_bytes();
            assert!(!matches!(octets[0], 0 | 10 | 127 | 224..), "{octets:?}");
            assert!(!matches!(octets, [192, 168, ..] | [169, 254, ..] | [172, 16..=31, ..]));
            assert!(!matches!(octets, [100, 64..=127, ..]));
        }
        for key in keys::<u128>(&Routes::default(), Traffic::Rnd, 1000, 1) {
            assert_eq!(key >> 125, 1);
        }
        assert_eq!(
            keys::<u32>(&routes, Traffic::Rnd, 1000, 2),
            keys::<u32>(&routes, Traffic::Seq, 1000, 2)
        );
    }

    #[test]
    fn prefix_keys_match() {
        let routes = small::<u128>();
        let prefix = routes.as_slice()[0].prefix;
        assert!(keys(&routes, Traffic::Pfx, 1000, 3).iter().all(|key| prefix.contains(*key)));
        assert!(keys(&routes, Traffic::Zipf, 1000, 3).iter().all(|key| prefix.contains(*key)));
    }

    /// The longest prefixes, of equally long ones those with more above them.
    #[test]
    fn worst_keys_go_deepest() {
        let prefix = |text: &str| text.parse::<Prefix<u32>>().unwrap();
        let chain = ["10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.1.1.0/25"].map(prefix);
        // As many /25 below a single prefix as there is room for.
        let shallow = (0..DEEPEST as u32).map(|i| Prefix::masked(11 << 24 | i << 7, 25).unwrap());
        let others = [prefix("11.0.0.0/8"), prefix("12.0.0.0/24"), prefix("12.0.1.0/31")];
        let all = chain.into_iter().chain(shallow).chain(others);
        let routes: Routes<u32> = all.map(|prefix| (prefix, Hop::new(0))).collect();
        let found = deepest(&routes);
        assert_eq!(found.len(), DEEPEST);
        assert_eq!(found[..3], [others[2], chain[3], prefix("11.0.0.0/25")]);
        for key in keys(&routes, Traffic::Worst, 10_000, 6) {
            assert!(found.iter().any(|prefix| prefix.contains(key)), "{key:#x}");
        }
        let distinct = keys(&small::<u128>(), Traffic::Worst, 10, 6);
        assert!(distinct.iter().all(|key| small().as_slice()[0].prefix.contains(*key)));
    }

    #[test]
    fn zipf_keys_are_skewed() {
        let routes = tables::dense::<u128>(1, 1000);
        let keys = keys(&routes, Traffic::Zipf, 100_000, 4);
        let mut counts = std::collections::HashMap::new();
        for key in keys {
            *counts.entry(key).or_insert(0u32) += 1;
        }
        let mut counts: Vec<u32> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // 1 / H(1,000,000) = 6.95 % for the first, half of it for the second.
        assert!((6_500..7_600).contains(&counts[0]), "{}", counts[0]);
        assert!((3_100..3_900).contains(&counts[1]), "{}", counts[1]);
    }

    #[test]
    fn matching_ratio() {
        fn ratio<A: Addr>(routes: &Routes<A>, percent: u8) -> usize {
            let prefix = routes.as_slice()[0].prefix;
            let keys = keys(routes, Traffic::Match(percent), 10_000, 5);
            keys.iter().filter(|key| prefix.contains(**key)).count()
        }
        assert_eq!(ratio(&small::<u32>(), 0), 0);
        assert_eq!(ratio(&small::<u128>(), 100), 10_000);
        assert!((2_800..3_200).contains(&ratio(&small::<u32>(), 30)));
        assert!((2_800..3_200).contains(&ratio(&small::<u128>(), 30)));
    }

    #[test]
    fn matching_where_one_side_is_empty() {
        let default: Routes<u32> = [(Prefix::ALL, Hop::new(0))].into_iter().collect();
        assert_eq!(keys(&default, Traffic::Match(0), 10, 1).len(), 10);
        assert_eq!(keys(&Routes::<u32>::default(), Traffic::Match(100), 10, 1).len(), 10);
        assert_eq!(keys(&Routes::<u128>::default(), Traffic::Pfx, 10, 1).len(), 10);
        assert_eq!(keys(&Routes::<u128>::default(), Traffic::Worst, 10, 1).len(), 10);
        // Only reserved space is free: the keys go there.
        let used: Routes<u32> = [
            (Prefix::masked(0u32, 1).unwrap(), Hop::new(0)),
            (Prefix::masked(1u32 << 31, 2).unwrap(), Hop::new(0)),
            (Prefix::masked(6u32 << 29, 3).unwrap(), Hop::new(0)),
        ]
        .into_iter()
        .collect();
        assert!(keys(&used, Traffic::Match(0), 100, 1).iter().all(|key| key >> 29 == 7));
    }

    /// The same keys on every machine: benchmark records carry checksums of their answers.
    #[test]
    fn the_same_keys_for_ever() {
        fn sum<A: Addr>(traffic: Traffic) -> u64 {
            let keys = keys(&tables::dense::<A>(1, 1000), traffic, 2000, 42);
            keys.iter().fold(0, |sum: u64, key| {
                let key = key.to_u128();
                (sum ^ key as u64 ^ (key >> 64) as u64).wrapping_mul(0x0000_0100_0000_01b3)
            })
        }
        let kinds = Traffic::NAMED.into_iter().chain([Traffic::Match(50)]);
        let sums: Vec<[u64; 2]> = kinds.map(|kind| [sum::<u32>(kind), sum::<u128>(kind)]).collect();
        assert_eq!(sums, EXPECTED, "{sums:#018x?}");
    }

    #[test]
    fn names() {
        for kind in Traffic::NAMED.into_iter().chain([Traffic::Match(0), Traffic::Match(100)]) {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("match7".parse(), Ok(Traffic::Match(7)));
        for bad in ["", "MATCH", "MATCH101", "MATCH-1", "RANDOM"] {
            assert!(bad.parse::<Traffic>().is_err(), "{bad}");
        }
    }
}
