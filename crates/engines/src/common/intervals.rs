use fibula_core::{BuildError, Hop, Routes};

use super::long::LongBuilder;
use super::{Long, SearchAddr, SearchKey};

/// The elementary intervals of a table, as sorted search keys with answers, from which interval searches
/// are compiled.
///
/// Interval *i* ends with key `lasts[i]` and begins after `lasts[i - 1]`, so the interval of a key is
/// *the number of lasts below it*. Ends are better than starts: the final end is the largest key,
/// so every key has an interval, and padding with the largest key is never counted, not even for that
/// key itself.
///
/// The answer of an interval is its code: 0 for no hop, *h* + 1 for hop *h*, or a block of [`Long`], counted
/// down from `u32::MAX`, for a network in which longer routes lie.
pub(crate) struct Intervals<A: SearchAddr> {
    /// Strictly ascending and never empty; the final one is the largest key.
    pub(crate) lasts: Vec<A::Key>,
    /// As many as `lasts`.
    pub(crate) codes: Vec<u32>,
    pub(crate) long: Option<Long>,
}

impl<A: SearchAddr> Intervals<A> {
    /// The intervals of the routes, neighbours with equal hops merged. O(n).
    pub(crate) fn new(routes: &Routes<A>, engine: &'static str) -> Result<Self, BuildError> {
        let mut lasts = Vec::new();
        let mut codes = Vec::new();
        let mut long = LongBuilder::default();
        let mut push = |last, code| {
            lasts.push(last);
            codes.push(code);
        };
        for range in routes.ranges() {
            let code = code_of(range.hop);
            let mut first = range.first.high();
            let last = range.last.high();
            // The previous range ended inside a network, which this one continues.
            if range.first.low() != 0 {
                let Some(next) = first.successor().filter(|_| first != last) else {
                    long.push(range.last.low(), code);
                    continue;
                };
                long.push(A::LOW_MAX, code);
                first = next;
            }
            if range.last.low() == A::LOW_MAX {
                push(last, code);
                continue;
            }
            // The range ends inside a network: this becomes a block, and the networks before it are an interval.
            if let Some(before) = last.predecessor().filter(|&before| before >= first) {
                push(before, code);
            }
            push(last, u32::MAX - long.begin() as u32);
            long.push(range.last.low(), code);
        }
        let long = long.finish(engine)?;
        check_codes(routes.hop_count(), long.as_ref().map_or(0, Long::blocks), engine)?;
        Ok(Self { lasts, codes, long })
    }
}

/// The code of a hop.
fn code_of(hop: Hop) -> u32 {
    hop.to_bits().wrapping_add(1)
}

/// Hop codes and block codes share 32 bits.
fn check_codes(hop_count: u32, blocks: usize, engine: &'static str) -> Result<(), BuildError> {
    let (limit, needed) = (u64::from(u32::MAX), u64::from(hop_count) + blocks as u64);
    if needed > limit {
        let what = "hops and networks with routes longer than /64";
        return Err(BuildError::Limit { engine, what, limit, needed });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use fibula_core::Prefix;

    use super::*;

    fn routes(list: &[(&str, u32)]) -> Routes<u128> {
        list.iter().map(|&(p, h)| (p.parse::<Prefix<u128>>().unwrap(), Hop::new(h))).collect()
    }

    #[test]
    fn whole_networks_need_no_blocks() {
        let it = Intervals::new(&routes(&[("::/0", 0), ("1::/16", 1), ("1::/64", 2)]), "").unwrap();
        let top = 1 << 48;
        assert_eq!(it.lasts, [top - 1, top, (2 << 48) - 1, u64::MAX]);
        assert_eq!(it.codes, [1, 3, 2, 1]);
        assert!(it.long.is_none());
    }

    #[test]
    fn a_network_cut_inside_becomes_a_block() {
        let table = routes(&[("::/64", 0), ("::8000:0:0:0/65", 1), ("0:0:0:1::1/128", 2)]);
        let it = Intervals::new(&table, "").unwrap();
        let long = it.long.unwrap();
        assert_eq!(it.lasts, [0, 1, u64::MAX]);
        assert_eq!(it.codes, [u32::MAX, u32::MAX - 1, 0]);
        assert_eq!(long.blocks(), 2);
        for (block, low, code) in [
            (0, 0, 1),
            (0, (1 << 63) - 1, 1),
            (0, 1 << 63, 2),
            (0, u64::MAX, 2),
            (1, 0, 0),
            (1, 1, 3),
            (1, 2, 0),
            (1, u64::MAX, 0),
        ] {
            assert_eq!(long.find(block, low), code, "block {block} low {low:#x}");
        }
    }

    #[test]
    fn both_ends_of_the_space() {
        let hosts = [("::/128", 7), ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 8)];
        let it = Intervals::new(&routes(&hosts), "").unwrap();
        assert_eq!(it.lasts, [0, u64::MAX - 1, u64::MAX]);
        assert_eq!(it.codes, [u32::MAX, 0, u32::MAX - 1]);
        let long = it.long.unwrap();
        assert_eq!([long.find(0, 0), long.find(0, 1)], [8, 0]);
        assert_eq!([long.find(1, u64::MAX - 1), long.find(1, u64::MAX)], [0, 9]);
    }

    #[test]
    fn codes_for_hops_and_blocks_do_not_meet() {
        let most = Hop::MAX_INDEX;
        assert!(Intervals::new(&routes(&[("::/64", most)]), "").is_ok());
        let one = Intervals::new(&routes(&[("::/65", most - 1)]), "").unwrap();
        assert_eq!(one.codes, [u32::MAX, 0]);
        assert_eq!(one.long.unwrap().find(0, 0), u32::MAX - 1);
        assert!(Intervals::new(&routes(&[("::/65", most)]), "").is_err());
    }

    #[test]
    fn ipv4_is_all_key() {
        let host = Prefix::host(u32::MAX);
        let it = Intervals::new(&[(host, Hop::new(0))].into_iter().collect(), "").unwrap();
        assert_eq!((it.lasts, it.codes), (vec![u32::MAX - 1, u32::MAX], vec![0, 1]));
    }
}
