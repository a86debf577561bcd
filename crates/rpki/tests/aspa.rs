//! ASPAs: cases by hand, the text of the draft written out, and paths through random hierarchies.

use fibula_rpki::{Aspas, PathValidity, ReceivedFrom};
use fibula_testkit::Rng;

use PathValidity::{Invalid, Unknown, Valid};
use ReceivedFrom::{Customer, Peer, Provider, RouteServer};

/// The steps of the draft, by its names and numbers: AS(1) is the origin, AS(N) the neighbour.
fn by_the_text(aspas: &Aspas, path: &[u32], neighbour: ReceivedFrom) -> PathValidity {
    let mut collapsed = path.to_vec();
    collapsed.dedup();
    if collapsed.is_empty() {
        return Invalid;
    }
    let n = collapsed.len();
    let as_of = |i: usize| collapsed[n - i];
    let provider = |x: u32, y: u32| aspas.providers(x).map(|all| all.contains(&y));
    match neighbour {
        Customer | Peer | RouteServer => {
            let hops: Vec<_> = (1..n).map(|i| provider(as_of(i), as_of(i + 1))).collect();
            if hops.contains(&Some(false)) {
                Invalid
            } else if hops.contains(&None) {
                Unknown
            } else {
                Valid
            }
        }
        ReceivedFrom::Unknown => {
            let all = [Customer, Peer, RouteServer, Provider];
            let mut outcomes = all.map(|of| by_the_text(aspas, path, of)).into_iter();
            let first = outcomes.next().unwrap();
            if outcomes.all(|outcome| outcome == first) { first } else { Unknown }
        }
        Provider => {
            if n <= 2 {
                return Valid;
            }
            let up = |is_end: &dyn Fn(Option<bool>) -> bool| {
                (1..n).find(|&i| is_end(provider(as_of(i), as_of(i + 1)))).unwrap_or(n)
            };
            let down = |is_end: &dyn Fn(Option<bool>) -> bool| {
                let end = (2..=n).rev().find(|&j| is_end(provider(as_of(j), as_of(j - 1))));
                end.map_or(n, |j| n - j + 1)
            };
            let is_not = |hop: Option<bool>| hop == Some(false);
            let is_not_or_none = |hop: Option<bool>| hop != Some(true);
            if up(&is_not) + down(&is_not) < n {
                Invalid
            } else if up(&is_not_or_none) + down(&is_not_or_none) < n {
                Unknown
            } else {
                Valid
            }
        }
    }
}

#[test]
fn cases() {
    let none = Aspas::default();
    assert!(none.is_empty());
    let aspas: Aspas =
        [(1, vec![10]), (2, vec![10, 20]), (10, vec![100]), (20, vec![100, 200]), (100, vec![0])]
            .into_iter()
            .collect();
    assert_eq!(
        (aspas.len(), aspas.providers(2), aspas.providers(3)),
        (5, Some(&[10, 20][..]), None)
    );
    for (path, upstream, downstream) in [
        (&[][..], Invalid, Invalid),
        (&[1], Valid, Valid),
        (&[1, 1, 1], Valid, Valid),
        (&[10, 1], Valid, Valid),
        (&[20, 1], Invalid, Valid),
        (&[100, 10, 1], Valid, Valid),
        (&[100, 10, 10, 1, 1], Valid, Valid),
        // Up to 100 and down again to 2: from a provider only.
        (&[2, 20, 100, 10, 1], Invalid, Valid),
        // A hop between peers at the top.
        (&[2, 20, 10, 1], Invalid, Valid),
        // A leak: 2 has it from its provider 10 and passes it on to its provider 20.
        (&[20, 2, 10, 1], Invalid, Invalid),
        (&[100, 20, 2, 10, 1], Invalid, Invalid),
        // 100 says that it has no providers: nobody may come after it on the way up.
        (&[300, 100, 10, 1], Invalid, Valid),
        (&[301, 300, 100, 10, 1], Invalid, Unknown),
        // 3 has no ASPA.
        (&[10, 3], Unknown, Valid),
        (&[100, 10, 3], Unknown, Unknown),
        (&[3, 10, 1], Invalid, Valid),
        (&[4, 3, 10, 1], Invalid, Unknown),
        // AS 0 is nobody.
        (&[10, 0, 1], Invalid, Invalid),
    ] {
        for of in [Customer, Peer, RouteServer] {
            assert_eq!(aspas.verify(path, of), upstream, "{path:?} from a {of}");
        }
        assert_eq!(aspas.verify(path, Provider), downstream, "{path:?} from a provider");
        if path.len() > 1 && !path.contains(&0) && path.iter().any(|asn| *asn != path[0]) {
            assert_eq!(none.verify(path, Customer), Unknown, "{path:?} without ASPAs");
        }
        // Who sent it is not known: what holds for all of them.
        let either = if upstream == downstream { upstream } else { Unknown };
        assert_eq!(aspas.verify(path, ReceivedFrom::Unknown), either, "{path:?} from anybody");
    }
}

#[test]
fn as_the_text_says() {
    let mut rng = Rng::new(5);
    let mut seen = [0; 3];
    for _ in 0..200_000 {
        let ases = 2 + rng.below(6);
        let mut all = Vec::new();
        for customer in 1..=ases as u32 {
            if rng.chance(0.7) {
                let providers = (0..=rng.below(3)).map(|_| 1 + rng.below(ases) as u32).collect();
                all.push((customer, providers));
            }
        }
        let aspas: Aspas = all.into_iter().collect();
        let path: Vec<u32> = (0..=rng.below(7)).map(|_| 1 + rng.below(ases) as u32).collect();
        for neighbour in ReceivedFrom::ALL {
            let verified = aspas.verify(&path, neighbour);
            let expected = by_the_text(&aspas, &path, neighbour);
            assert_eq!(verified, expected, "{path:?}, {neighbour:?}: {aspas:?}");
            seen[verified as usize] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 10_000), "all kinds occur: {seen:?}");
}

/// In a hierarchy in which every AS has an ASPA, exactly the paths without a valley are valid.
#[test]
fn paths_without_a_valley_are_valid() {
    let mut rng = Rng::new(9);
    let (mut leaks, mut good) = (0, 0);
    for _ in 0..20_000 {
        // An AS has providers with smaller numbers only; the first has none.
        let ases = 12;
        let provider = |rng: &mut Rng, asn: u32| 1 + rng.below(u64::from(asn) - 1) as u32;
        let mut all = vec![(1, vec![0])];
        for asn in 2..=ases {
            all.push((asn, (0..=rng.below(2)).map(|_| provider(&mut rng, asn)).collect()));
        }
        let aspas: Aspas = all.into_iter().collect();
        let is_up = |from: u32, to: u32| aspas.providers(from).is_some_and(|all| all.contains(&to));
        // From the origin on.
        let mut way: Vec<u32> =
            (0..2 + rng.below(5)).map(|_| 1 + rng.below(ases.into()) as u32).collect();
        way.dedup();
        let hops: Vec<(u32, u32)> = way.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let climbs = hops.iter().take_while(|(from, to)| is_up(*from, *to)).count();
        let falls = hops.iter().rev().take_while(|(from, to)| is_up(*to, *from)).count();
        let is_good = climbs + falls + 1 >= hops.len();
        let path: Vec<u32> = way.iter().rev().copied().collect();
        let expected = if is_good { Valid } else { Invalid };
        assert_eq!(aspas.verify(&path, Provider), expected, "{path:?}: {aspas:?}");
        let expected = if climbs == hops.len() { Valid } else { Invalid };
        assert_eq!(aspas.verify(&path, Customer), expected, "{path:?}: {aspas:?}");
        good += u32::from(is_good);
        leaks += u32::from(!is_good);
    }
    assert!(good > 1000 && leaks > 1000, "{good} good, {leaks} leaks");
}
