use fibula_core::{Addr, BoxedEngine, Hop, Lookup, Routes, grouped};
use fibula_simd::{Caches, Isa};

use crate::common::best_times;
use crate::registry::{Entry, Registry};
use crate::wideleaf::Variant;

/// An engine that [`Registry::auto`] may choose.
struct Candidate {
    name: &'static str,
    /// The reason to choose it.
    merit: &'static str,
    /// The part of it that depends on the machine, for so many routes.
    fitted: Option<fn(Isa) -> String>,
    /// The routes for which the next candidate is faster.
    slow: Option<Slow>,
    /// Engines that may be faster than it, each timed against the fastest one so far.
    rivals: &'static [Rival],
}

/// Lengths of routes whose addresses each need a search here, but not in the next candidate.
struct Slow {
    from: u8,
    to: u8,
    /// If more than one route in this many has such a length, the next candidate is faster, as measured.
    one_in: usize,
}

/// The candidates of [`Registry::auto`], in order. The last one never refuses a table.
const V4: &[Candidate] = &[
    Candidate {
        name: "runmap",
        merit: "fastest for IPv4",
        fitted: None,
        slow: None,
        rivals: &[RIVAL_V4],
    },
    // runmap refuses tables of more than 4 GiB: hundreds of millions of routes.
    Candidate { name: "dxr18", merit: "small", fitted: None, slow: None, rivals: &[] },
    Candidate { name: "radix", merit: "takes any table", fitted: None, slow: None, rivals: &[] },
];
/// Routes longer than /64 are not counted, because matchline bisects for these, too.
const V6: &[Candidate] = &[
    Candidate {
        name: "wideleaf",
        merit: "fastest for IPv6",
        fitted: Some(|isa| {
            let measured = if isa.level().isa() == Isa::Avx512 { " as measured here" } else { "" };
            format!("{}{measured}", Variant::here(isa))
        }),
        slow: Some(Slow { from: 49, to: 64, one_in: 16 }),
        rivals: &[],
    },
    Candidate {
        name: "matchline",
        merit: "fast for routes of /49 to /64",
        fitted: None,
        slow: None,
        rivals: &RIVALS_V6,
    },
    // For tables beyond the limits of both, tens of millions of routes.
    Candidate {
        name: "planb",
        merit: "takes larger tables",
        fitted: None,
        slow: None,
        rivals: &[],
    },
    Candidate { name: "radix", merit: "takes any table", fitted: None, slow: None, rivals: &[] },
];

/// An engine that may be faster than a candidate if it fits into the last-level cache with room to spare, or
/// if the candidate is large itself.
struct Rival {
    /// Tried in order; the next one is for tables that exceed the limits of the previous one.
    names: &'static [&'static str],
    /// The size of the first one, if that does not depend on the table. `None`: it is compared with large candidates
    /// only.
    bytes: Option<usize>,
    /// From this size on the candidate is compared with it in any case.
    large: usize,
    /// From this number of routes on it is chosen for a table that changes, without a comparison.
    routes: usize,
    /// How many addresses are looked up for a comparison.
    keys: usize,
}

const RIVAL_V4: Rival = Rival {
    names: &["dir24-8-prefetch", "dir24-8-wide-prefetch"],
    bytes: Some(32 << 20),
    large: 6 << 20,
    // Both are equally fast at some 3 million generated routes: `docs/engines/growth.md`.
    routes: 3_000_000,
    // They touch nearly all of DIR-24-8.
    keys: 1 << 20,
};
/// Of `matchline`. Ranges that were divided into prefixes are few, and wideleaf has keys for ranges. In a mixture of
/// short and long routes the deepest lookup of a batch decides in our own engines; all of PlanB's are equally deep.
const RIVALS_V6: [Rival; 2] = [rival_v6(&["wideleaf"], 6 << 20), rival_v6(&["planb"], 1 << 20)];

const fn rival_v6(names: &'static [&'static str], large: usize) -> Rival {
    Rival { names, bytes: None, large, routes: usize::MAX, keys: 1 << 18 }
}
/// How many times as fast a rival has to be if it takes more than twice the memory: measurements of less come and go,
/// and it displaces other programs' data from the cache.
const WORTH: f64 = 1.3;
/// The same if it takes less.
const WORTH_SMALL: f64 = 1.05;

/// The choice of [`Registry::auto`].
pub struct Auto<A: Addr> {
    /// The compiled table.
    pub engine: BoxedEngine<A>,
    /// The engine's entry.
    pub entry: Entry<A>,
    /// The reason for the choice, in one line: `"runmap: fastest for IPv4, takes 577,703 routes to 3,771 hops"`.
    pub reason: String,
}

/// [`Registry::auto`] of the product's engines.
///
/// ```
/// use fibula_core::{Hop, Prefix, Routes};
/// use fibula_simd::Isa;
///
/// let routes: Routes<u128> = [(Prefix::ALL, Hop::new(0))].into_iter().collect();
/// let chosen = fibula_engines::auto(&routes, Isa::detect());
/// assert_eq!(chosen.entry.name, "wideleaf");
/// assert_eq!(chosen.engine.lookup(1), Hop::new(0));
/// assert!(chosen.reason.starts_with("wideleaf: fastest for IPv6, takes 1 route to 1 hop"));
/// ```
///
/// # Panics
/// As [`Registry::auto`].
pub fn auto<A: Addr>(routes: &Routes<A>, isa: Isa) -> Auto<A> {
    Registry::product().auto(routes, isa)
}

impl Registry {
    /// Compiles the table with the best engine for its family. If the table exceeds the limits of that engine, or has
    /// many routes of lengths for which that engine is slow, the next one is used.
    ///
    /// If the first choice for an IPv4 table takes 6 MiB or more (some 2 million prefixes), the table is also compiled
    /// for prefetching DIR-24-8, and both are timed on addresses in the table's prefixes, which takes some 100 ms. The
    /// same happens for smaller tables that exceed the second-level cache, if the last level has room for twice the
    /// 32 MiB of DIR-24-8. If the choice for an IPv6 table is `matchline`, it is timed against `planb` from 1 MiB on,
    /// which is faster for mixtures of short and long routes, and against `wideleaf` from 6 MiB on, which is faster for
    /// ranges. A rival is chosen if it is 1.3 times as fast, or 1.05 times if it takes no more than twice the memory.
    ///
    /// # Panics
    /// If the last candidate refuses the table, which happens from 2^31 routes on.
    pub fn auto<A: Addr>(&self, routes: &Routes<A>, isa: Isa) -> Auto<A> {
        self.auto_for(routes, isa, Caches::detect())
    }

    /// As [`auto`](Self::auto), with the given cache sizes: for a machine that does not report them, or a process that
    /// may use only a part of its caches.
    ///
    /// # Panics
    /// As [`auto`](Self::auto).
    pub fn auto_for<A: Addr>(&self, routes: &Routes<A>, isa: Isa, caches: Caches) -> Auto<A> {
        let mut refused = String::new();
        for candidate in candidates::<A>() {
            let Candidate { name, merit, fitted, rivals, .. } = candidate;
            let Some(entry) = self.find::<A>(name) else { continue };
            if let Some(why) = candidate.too_many_slow(routes) {
                refused += &format!("; not {name}, {why}");
                continue;
            }
            match entry.build(routes, isa) {
                Ok(engine) => {
                    let number = counted(routes.len(), "route");
                    let hops = counted(routes.hop_count() as usize, "hop");
                    let fitted = fitted.map(|of| format!("; {}", of(isa))).unwrap_or_default();
                    let reason =
                        format!("{name}: {merit}, takes {number} to {hops}{fitted}{refused}");
                    let chosen = Auto { engine, entry: entry.clone(), reason };
                    return rivals.iter().fold(chosen, |chosen, rival| {
                        rival.challenge(self, chosen, routes, isa, caches)
                    });
                }
                Err(error) => refused += &format!("; {error}"),
            }
        }
        panic!("no engine takes the table{refused}");
    }

    /// The engines that [`auto`](Self::auto) tries for these routes, in its order, without compiling any. This is for
    /// tables that change, for which repeated comparisons would be a waste. So the number of routes decides in their
    /// place: from 3 million IPv4 routes on, prefetching DIR-24-8 is the first.
    ///
    /// ```
    /// use fibula_core::{Hop, Prefix, Routes};
    /// use fibula_engines::Registry;
    ///
    /// let names = |routes: &Routes<u32>| -> Vec<&str> {
    ///     Registry::product().suited(routes).iter().map(|entry| entry.name).collect()
    /// };
    /// assert_eq!(names(&Routes::default())[0], "runmap");
    /// let hosts = (0..9).map(|i| (Prefix::host(i), Hop::new(0))).collect();
    /// assert_eq!(names(&hosts)[0], "runmap");
    /// ```
    pub fn suited<A: Addr>(&self, routes: &Routes<A>) -> Vec<Entry<A>> {
        let suited = candidates::<A>().iter().filter(|c| c.too_many_slow(routes).is_none());
        let names = suited.flat_map(|candidate| {
            let rivals = candidate.rivals.iter().filter(|rival| routes.len() >= rival.routes);
            rivals.flat_map(|rival| rival.names).copied().chain([candidate.name])
        });
        names.filter_map(|name| self.find(name).cloned()).collect()
    }
}

/// The candidates of a family in order.
fn candidates<A: Addr>() -> &'static [Candidate] {
    match A::BITS {
        32 => V4,
        _ => V6,
    }
}

impl Candidate {
    /// The reason not to use it, if it is slow for too many of these routes.
    fn too_many_slow<A: Addr>(&self, routes: &Routes<A>) -> Option<String> {
        let Slow { from, to, one_in } = self.slow.as_ref()?;
        let is_slow = |len: u8| (*from..=*to).contains(&len);
        let slow = routes.iter().filter(|route| is_slow(route.prefix.len())).count();
        let share = 100.0 * slow as f64 / routes.len() as f64;
        (slow * one_in > routes.len())
            .then(|| format!("{share:.0} % of the routes are /{from} to /{to} long"))
    }
}

impl Rival {
    /// The faster one of the rival and the chosen engine; measured only if sizes do not decide.
    fn challenge<A: Addr>(
        &self,
        registry: &Registry,
        mut chosen: Auto<A>,
        routes: &Routes<A>,
        isa: Isa,
        caches: Caches,
    ) -> Auto<A> {
        if routes.is_empty() {
            return chosen;
        }
        let is_large = chosen.engine.memory().total() >= self.large;
        if !is_large {
            let (Some(bytes), Caches { second: Some(second), last: Some(last) }) =
                (self.bytes, caches)
            else {
                return chosen;
            };
            if chosen.engine.memory().total() <= second {
                return chosen;
            }
            if last < 2 * bytes {
                let (need, last) = ((2 * bytes) >> 20, last >> 20);
                chosen.reason +=
                    &format!("; not {}, {last} MiB of cache are less than {need}", self.names[0]);
                return chosen;
            }
        }
        for entry in self.names.iter().filter_map(|name| registry.find::<A>(name)) {
            let name = entry.name;
            let engine = match entry.build(routes, isa) {
                Ok(engine) => engine,
                Err(error) => {
                    chosen.reason += &format!("; {error}");
                    continue;
                }
            };
            let times = faster(&*engine, &*chosen.engine, &sample(routes, self.keys));
            let measured = format!("{times:.2} times as fast here as {}", chosen.entry.name);
            let [bytes, known] = [&engine, &chosen.engine].map(|engine| engine.memory().total());
            if !is_worth(times, bytes, known) {
                chosen.reason += &format!("; not {name}, {measured}");
                return chosen;
            }
            let reason =
                format!("{name}: {measured}, {} MiB instead of {}", bytes >> 20, known >> 20);
            return Auto { engine, entry: entry.clone(), reason };
        }
        chosen
    }
}

/// Addresses of random routes.
fn sample<A: Addr>(routes: &Routes<A>, keys: usize) -> Vec<A> {
    let list = routes.as_slice();
    let mut state = 1u64;
    let mut random = move || {
        // SplitMix64: Steele, Lea, Flood 2014.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mix = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mix = (mix ^ mix >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mix ^ mix >> 31
    };
    let key = |_| {
        let prefix = list[random() as usize % list.len()].prefix;
        let (first, last) = (prefix.first().to_u128(), prefix.last().to_u128());
        let host = u128::from(random()) << 64 | u128::from(random());
        A::from_u128(first | host & (last ^ first))
    };
    (0..keys).map(key).collect()
}

/// How many times as fast as the second one the first one looks up these addresses.
fn faster<A: Addr>(one: &dyn Lookup<A>, other: &dyn Lookup<A>, addrs: &[A]) -> f64 {
    const ROUNDS: usize = 5;
    const BATCH: usize = 256;
    let mut hops = [Hop::NONE; BATCH];
    let [time, other_time] = best_times(ROUNDS, |way| {
        let engine = [one, other][way];
        for addrs in addrs.chunks(BATCH) {
            engine.lookup_batch(addrs, &mut hops[..addrs.len()]);
            std::hint::black_box(&hops);
        }
    });
    other_time.as_secs_f64() / time.as_secs_f64()
}

/// Whether a rival of this size is chosen in place of a known engine of that size, if it is so many times as fast.
fn is_worth(times: f64, bytes: usize, known: usize) -> bool {
    times >= if bytes > 2 * known { WORTH } else { WORTH_SMALL }
}

/// `"1 route"`, `"3,771 hops"`.
fn counted(number: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(number as u64), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use fibula_core::{Hop, Prefix};

    use super::*;

    fn suited<A: Addr>(routes: &Routes<A>) -> Vec<Entry<A>> {
        Registry::product().suited(routes)
    }

    fn auto_for<A: Addr>(routes: &Routes<A>, isa: Isa, caches: Caches) -> Auto<A> {
        Registry::product().auto_for(routes, isa, caches)
    }

    /// One route in each block of `1 << (32 - len)` addresses, to hops other than its neighbours'.
    fn blocks<A: Addr>(number: u32, len: u8) -> Routes<A> {
        let block = |i: u32| Prefix::masked(A::from_u128(u128::from(i) << (A::BITS - len)), len);
        (0..number).map(|i| (block(i).unwrap(), Hop::new(i % 256))).collect()
    }

    /// An engine is not chosen if it needs a search for too many of the routes.
    #[test]
    fn long_routes_have_engines_of_their_own() {
        fn chosen<A: Addr>(len: u8) -> (&'static str, String) {
            let routes = blocks::<A>(100, len);
            let Auto { entry, reason, .. } = auto(&routes, Isa::detect());
            assert_eq!(suited(&routes)[0].name, entry.name, "the same without compiling");
            (entry.name, reason)
        }
        assert_eq!(chosen::<u32>(24).0, "runmap");
        assert_eq!(chosen::<u128>(48).0, "wideleaf");
        let (name, reason) = chosen::<u128>(64);
        assert_eq!(name, "matchline");
        assert!(
            reason.ends_with("; not wideleaf, 100 % of the routes are /49 to /64 long"),
            "{reason}"
        );
        assert_eq!(chosen::<u128>(65).0, "wideleaf");
        assert_eq!(chosen::<u32>(28).0, "runmap");
    }

    /// Small tables of long routes are not compared, larger ones are, with one rival or two.
    #[test]
    fn tables_of_long_routes_are_measured() {
        let measured = |number| {
            let Auto { entry, reason, .. } = auto(&blocks::<u128>(number, 64), Isa::detect());
            let chosen = |name| reason.starts_with(&format!("{name}: "));
            assert!(chosen(entry.name), "{reason}");
            ["planb", "wideleaf"].map(|name| {
                let is_measured = chosen(name)
                    || reason.contains(&format!("; not {name}, 0."))
                    || reason.contains(&format!("; not {name}, 1."));
                is_measured && reason.contains(" times as fast here as ")
            })
        };
        assert_eq!(measured(10_000), [false, false]);
        assert_eq!(measured(100_000), [true, false]);
        assert_eq!(measured(800_000), [true, true]);
    }

    /// The same table is 34 MiB in one engine and 93 in the other: chance does not decide.
    #[test]
    fn memory_has_to_be_worth_it() {
        let (small, large) = (34 << 20, 93 << 20);
        assert!(!is_worth(1.0, large, small));
        assert!(!is_worth(1.29, large, small), "measurements of less come and go");
        assert!(is_worth(1.3, large, small));
        assert!(!is_worth(1.04, 2 * small, small), "no more than twice the memory");
        assert!(is_worth(1.05, 2 * small, small));
        assert!(!is_worth(1.05, 2 * small + 1, small));
        assert!(!is_worth(1.0, small, large), "the first choice unless the other one is faster");
        assert!(is_worth(1.05, small, large));
        assert!(!is_worth(f64::NAN, small, large), "two times that a clock did not see");
    }

    #[test]
    fn caches_decide_who_is_measured() {
        let caches = |second, last| Caches { second: Some(second), last: Some(last) };
        let large = blocks::<u32>(100_000, 20);
        let chosen = |routes, caches| auto_for::<u32>(routes, Isa::detect(), caches);

        // The table fits the second level, the cache is too small for the rival, or the sizes are unknown.
        let few = blocks(100, 20);
        let small = chosen(&few, caches(1 << 22, 1 << 30));
        assert_eq!(small.reason, "runmap: fastest for IPv4, takes 100 routes to 100 hops");
        let shared = chosen(&large, caches(1 << 16, 32 << 20));
        assert_eq!(shared.entry.name, "runmap");
        let why = "; not dir24-8-prefetch, 32 MiB of cache are less than 64";
        assert!(shared.reason.ends_with(why), "{}", shared.reason);
        let unknown = chosen(&large, Caches::default());
        assert!(unknown.reason.ends_with("to 256 hops"), "{}", unknown.reason);

        // Either engine may win; its answers must be right, and its name must agree with the reason.
        let measured = chosen(&large, caches(1 << 16, 1 << 30));
        assert!(measured.reason.contains(" times as fast here as runmap"), "{}", measured.reason);
        assert!(measured.reason.starts_with(measured.entry.name), "{}", measured.reason);
        for addr in sample(&large, 1000) {
            assert_eq!(measured.engine.lookup(addr), shared.engine.lookup(addr));
        }
    }

    /// A table that changes has no comparison.
    #[test]
    fn millions_of_changing_routes_have_the_rival() {
        let first = |number| suited(&blocks::<u32>(number, 24))[0].name;
        assert_eq!((first(2_999_999), first(3_000_000)), ("runmap", "dir24-8-prefetch"));
        assert_eq!(suited(&blocks::<u128>(3_000_000, 24))[0].name, "wideleaf");
    }

    /// Without routes there are no addresses to measure with.
    #[test]
    fn empty_tables_are_not_measured() {
        let caches = Caches { second: Some(1), last: Some(64 << 20) };
        assert_eq!(auto_for::<u32>(&Routes::default(), Isa::detect(), caches).entry.name, "runmap");
    }

    /// For large tables both engines are measured even if the cache is small.
    #[test]
    fn large_tables_are_measured_whatever_the_cache() {
        let hop = |i: u32, hops: u32| {
            let mix = i.wrapping_mul(0x9e37_79b9);
            Hop::new((mix ^ mix >> 15).wrapping_mul(0x85eb_ca6b) >> (32 - hops.ilog2()))
        };
        let each = |hops| -> Routes<u32> {
            let network = |i: u32| Prefix::masked(i << 8, 24).unwrap();
            (0..2_000_000).map(|i| (network(i), hop(i, hops))).collect()
        };
        let caches = Caches { second: Some(1 << 20), last: Some(8 << 20) };
        for (hops, rival) in [(256, "dir24-8-prefetch"), (1 << 16, "dir24-8-wide-prefetch")] {
            let chosen = auto_for(&each(hops), Isa::detect(), caches);
            let Auto { entry, reason, engine } = &chosen;
            assert!(reason.contains(" times as fast here as runmap"), "{reason}");
            match entry.name {
                "runmap" => assert!(reason.contains(&format!("; not {rival}, ")), "{reason}"),
                name => assert_eq!(name, rival, "{reason}"),
            }
            for i in (0..2_000_000).step_by(997) {
                assert_eq!(engine.lookup(i << 8 | 9), hop(i, hops));
            }
        }
    }
}
