//! Finds the smallest list of prefixes for a set of addresses.

use fibula_core::{Addr, AnyPrefix, Prefix};

/// The smallest list of prefixes that covers the same addresses, ordered by family and address. Prefixes inside
/// others are left out, and two halves are replaced by their common prefix, repeatedly. O(n log n).
///
/// ```
/// let list = ["10.0.1.0/24", "10.0.0.0/24", "10.0.0.128/25", "2001:db8::/32"];
/// let prefixes: Vec<_> = list.iter().map(|prefix| prefix.parse()).collect::<Result<_, _>>()?;
/// let fewest: Vec<_> = fibula_fib::aggregate(prefixes).iter().map(|p| p.to_string()).collect();
/// assert_eq!(fewest, ["10.0.0.0/23", "2001:db8::/32"]);
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
pub fn aggregate(prefixes: impl IntoIterator<Item = AnyPrefix>) -> Vec<AnyPrefix> {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for prefix in prefixes {
        match prefix {
            AnyPrefix::V4(prefix) => v4.push(prefix),
            AnyPrefix::V6(prefix) => v6.push(prefix),
        }
    }
    let v4 = family(v4).into_iter().map(AnyPrefix::V4);
    v4.chain(family(v6).into_iter().map(AnyPrefix::V6)).collect()
}

fn family<A: Addr>(mut prefixes: Vec<Prefix<A>>) -> Vec<Prefix<A>> {
    prefixes.sort_unstable();
    let mut fewest: Vec<Prefix<A>> = Vec::new();
    for prefix in prefixes {
        // In sorted order, only the last of the prefixes so far can cover this one.
        if fewest.last().is_some_and(|last| last.covers(prefix)) {
            continue;
        }
        fewest.push(prefix);
        while let [.., left, right] = *fewest
            && let Some(whole) = whole(left, right)
        {
            fewest.pop();
            fewest.pop();
            fewest.push(whole);
        }
    }
    fewest
}

/// The prefix of which these two are the halves.
fn whole<A: Addr>(left: Prefix<A>, right: Prefix<A>) -> Option<Prefix<A>> {
    let whole = Prefix::masked(left.addr(), left.len().checked_sub(1)?).ok()?;
    (left.len() == right.len() && left != right && whole.covers(right)).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Prefixes over eight bits: the result has the same addresses, no prefix inside another one, and no two
        /// halves of one prefix. So there is no shorter list.
        #[test]
        fn the_same_addresses_in_the_fewest_prefixes(
            list in prop::collection::vec((any::<u8>(), 0..=8u8), 0..40), low: bool,
        ) {
            // The first eight bits of IPv4, the last eight of IPv6.
            let prefix = |&(bits, len): &(u8, u8)| match low {
                false => AnyPrefix::V4(Prefix::masked(u32::from(bits) << 24, len).unwrap()),
                true => AnyPrefix::V6(Prefix::masked(u128::from(bits), 120 + len).unwrap()),
            };
            let prefixes: Vec<AnyPrefix> = list.iter().map(prefix).collect();
            let fewest = aggregate(prefixes.iter().copied());
            for bits in 0..=255u8 {
                let address = prefix(&(bits, 8));
                let is_in = |list: &[AnyPrefix]| list.iter().filter(|p| covers(**p, address)).count();
                prop_assert_eq!(is_in(&prefixes) > 0, is_in(&fewest) > 0);
                prop_assert!(is_in(&fewest) <= 1);
            }
            prop_assert!(fewest.is_sorted());
            for (i, a) in fewest.iter().enumerate() {
                for b in &fewest[..i] {
                    prop_assert!(!is_halves(*b, *a));
                }
            }
        }
    }

    fn covers(a: AnyPrefix, b: AnyPrefix) -> bool {
        match (a, b) {
            (AnyPrefix::V4(a), AnyPrefix::V4(b)) => a.covers(b),
            (AnyPrefix::V6(a), AnyPrefix::V6(b)) => a.covers(b),
            _ => false,
        }
    }

    /// Whether the second begins right after the first, and they differ in one bit.
    fn is_halves(a: AnyPrefix, b: AnyPrefix) -> bool {
        match (a, b) {
            (AnyPrefix::V4(a), AnyPrefix::V4(b)) => {
                a.len() == b.len() && (a.addr() ^ b.addr()) == a.last() - a.first() + 1
            }
            (AnyPrefix::V6(a), AnyPrefix::V6(b)) => {
                a.len() == b.len() && (a.addr() ^ b.addr()) == a.last() - a.first() + 1
            }
            _ => false,
        }
    }

    #[test]
    fn the_whole_space_and_its_ends() {
        let parse =
            |list: &[&str]| list.iter().map(|p| p.parse().unwrap()).collect::<Vec<AnyPrefix>>();
        let fewest = |list: &[&str]| {
            aggregate(parse(list)).iter().map(AnyPrefix::to_string).collect::<Vec<_>>()
        };
        assert_eq!(fewest(&["128.0.0.0/1", "0.0.0.0/1", "::/0"]), ["0.0.0.0/0", "::/0"]);
        assert_eq!(fewest(&["8000::/1", "::/2", "4000::/2"]), ["::/0"]);
        let ends = ["255.255.255.255/32", "0.0.0.0/32", "255.255.255.254/32"];
        assert_eq!(fewest(&ends), ["0.0.0.0/32", "255.255.255.254/31"]);
        assert!(fewest(&[]).is_empty());
    }
}
