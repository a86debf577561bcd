use fibula_core::{
    Addr, BuildError, Engine, Follow, LoadError, Patch, Patched, Persist, Prefix, Routes,
    TableSource,
};
use fibula_simd::Isa;

use crate::auto::{self, Candidate, Rival};
use crate::bloomfwd::{self, Bloomfwd};
use crate::common::SearchAddr;
use crate::dir24_8::{self, Dir24_8};
use crate::dxr::{self, Dxr};
use crate::lower_bound::{self, LowerBound};
use crate::miht::{self, Miht, TrieAddr};
use crate::planb::{self, PlanB};
use crate::poptrie::{self, Poptrie};
use crate::radix::{self, Radix};
use crate::runmap::{self, Runmap};
use crate::sail::{self, SailL, SailL8, bitmaps::Bitmaps};
use crate::wideleaf::{self, Wideleaf};

/// An engine over a table, whichever it is.
pub type BoxedEngine<A> = Box<dyn Follow<A>>;

/// How an engine takes stored tables.
type Load<A> = fn(&dyn TableSource, u32, Isa) -> Result<BoxedEngine<A>, LoadError>;

/// An engine that can be chosen by name.
pub struct Entry<A: Addr> {
    /// The name: lower case, unique in the family.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The instruction sets for which it has forms of its own; others run the best form below.
    pub isas: &'static [Isa],
    /// Compiles a table.
    pub build: fn(&Routes<A>, Isa) -> Result<BoxedEngine<A>, BuildError>,
    /// Checks stored tables and uses them in place; the integer is the hop count, see
    /// [`Persist::load`].
    pub load: Load<A>,
}

/// The forms of an engine that is plain code on every machine.
const SCALAR: &[Isa] = &[Isa::Scalar];

/// One entry an engine, best known first.
static V4: &[Entry<u32>] = &[
    runmap(),
    dxr::<18, BATCHED>("dxr18", "DXR: direct table over 18 bits, then ranges by bisection (D18R)"),
    dxr::<20, BATCHED>("dxr20", "DXR: direct table over 20 bits, then ranges by bisection (D20R)"),
    dxr::<19, BATCHED>("dxr19", "DXR: direct table over 19 bits, then ranges by bisection (D19R)"),
    dxr::<17, BATCHED>("dxr17", "DXR: direct table over 17 bits, then ranges by bisection (D17R)"),
    dxr::<16, BATCHED>("dxr16", "DXR: direct table over 16 bits, then ranges by bisection (D16R)"),
    dxr::<21, BATCHED>("dxr21", "DXR: direct table over 21 bits, then ranges by bisection (D21R)"),
    dxr::<22, BATCHED>("dxr22", "DXR: direct table over 22 bits, then ranges by bisection (D22R)"),
    dxr::<23, BATCHED>("dxr23", "DXR: direct table over 23 bits, then ranges by bisection (D23R)"),
    dxr::<24, BATCHED>("dxr24", "DXR: direct table over 24 bits, then ranges by bisection (D24R)"),
    dxr::<18, BRANCHING>("dxr18-branching", "D18R one lookup after the other, with branches"),
    poptrie::<u32, 18, true>(
        "poptrie18-batch",
        "Poptrie over 18 bits, batches taken level by level",
    ),
    poptrie::<u32, 18, false>(
        "poptrie18",
        "Poptrie: direct table over 18 bits, then a 64-ary trie",
    ),
    poptrie::<u32, 16, false>(
        "poptrie16",
        "Poptrie: direct table over 16 bits, then a 64-ary trie",
    ),
    dir24_8::<false, true>("dir24-8-prefetch", "DIR-24-8 with entries asked for ahead"),
    dir24_8::<false, false>("dir24-8", "DIR-24-8: direct table over 24 bits, then chunks of 256"),
    dir24_8::<true, true>("dir24-8-wide-prefetch", "DIR-24-8 of 32-bit entries, asked for ahead"),
    dir24_8::<true, false>("dir24-8-wide", "DIR-24-8 of 32-bit entries"),
    sail_l::<u16, false>("sail-l", "SAIL_L: levels 16, 24, 32, entries of 2 bytes"),
    sail_l::<u16, true>("sail-l-prefetch", "SAIL_L, batches taken level by level"),
    sail_l::<u32, false>("sail-l-wide", "SAIL_L with entries of 4 bytes"),
    sail_l8(),
    sail_bitmaps::<sail::bitmaps::Basic>("SAIL_B: a bitmap a level, 0 to 24; patched in place"),
    sail_bitmaps::<sail::bitmaps::Update>(
        "SAIL_U: bitmaps at levels 6, 12, 18, 24; patched in place",
    ),
    planb::<_, BATCHED>(
        "planb",
        "PlanB: elementary intervals in a linearised 17-ary B+-tree of 32-bit keys",
    ),
    planb::<_, SINGLE>("planb-single", PLANB_SINGLE),
    planb::<_, COMPILED>("planb-compiled", PLANB_COMPILED),
    bloomfwd::<_, OPTIMISED>("bloomfwd", BLOOMFWD),
    bloomfwd::<_, BASELINE>("bloomfwd-baseline", BLOOMFWD_BASELINE),
    bloomfwd::<_, NAIVE>("bloomfwd-naive", BLOOMFWD_NAIVE),
    lower_bound(),
    miht::<_, true>("miht-batch", MIHT_BATCH),
    miht::<_, false>("miht", MIHT),
    radix(),
];

/// One entry an engine, best known first.
static V6: &[Entry<u128>] = &[
    wideleaf(),
    planb::<_, BATCHED>(
        "planb",
        "PlanB: elementary intervals in a linearised 9-ary B+-tree of 64-bit keys",
    ),
    planb::<_, SINGLE>("planb-single", PLANB_SINGLE),
    planb::<_, COMPILED>("planb-compiled", PLANB_COMPILED),
    poptrie::<u128, 18, true>(
        "poptrie18-batch",
        "Poptrie over 18 bits, batches taken level by level",
    ),
    poptrie::<u128, 18, false>(
        "poptrie18",
        "Poptrie: direct table over 18 bits, then a 64-ary trie",
    ),
    poptrie::<u128, 16, false>(
        "poptrie16",
        "Poptrie: direct table over 16 bits, then a 64-ary trie",
    ),
    bloomfwd::<_, OPTIMISED>("bloomfwd", BLOOMFWD),
    bloomfwd::<_, BASELINE>("bloomfwd-baseline", BLOOMFWD_BASELINE),
    bloomfwd::<_, NAIVE>("bloomfwd-naive", BLOOMFWD_NAIVE),
    lower_bound(),
    miht::<_, true>("miht-batch", MIHT_BATCH),
    miht::<_, false>("miht", MIHT),
    radix(),
];

/// Other names under which engines are found.
const ALIASES: &[(&str, &str)] = &[("dxr", "dxr18")];

const fn runmap() -> Entry<u32> {
    Entry {
        name: "runmap",
        summary: "direct table over 18 bits, then bitmaps of runs beside their hops; our own",
        isas: &Isa::ALL,
        build: |routes, isa| {
            boxed(Runmap::build(routes, &runmap::Config { isa, ..runmap::Config::default() }))
        },
        load: |tables, hops, isa| boxed(Runmap::load_for(tables, hops, isa)),
    }
}

/// The entry of DXR with a direct table over the first `K` bits, and with batches side by side or with
/// branches.
const fn dxr<const K: u8, const SEARCH: usize>(
    name: &'static str,
    summary: &'static str,
) -> Entry<u32> {
    const SEARCHES: [dxr::Search; 2] = [dxr::Search::Batched, dxr::Search::Branching];
    Entry {
        name,
        summary,
        isas: if SEARCH == BATCHED { &Isa::ALL } else { SCALAR },
        build: |routes, isa| {
            boxed(Dxr::build(routes, &dxr::Config { k: K, search: SEARCHES[SEARCH], isa }))
        },
        load: |tables, hops, isa| {
            let engine = Dxr::load_for(tables, hops, SEARCHES[SEARCH], isa)?;
            if engine.k() != K {
                let reason = format!("k is {}, the engine's is {K}", engine.k());
                return Err(LoadError::new("shape", reason));
            }
            Ok(Box::new(engine))
        },
    }
}

/// The entry of DIR-24-8 with entries of 32 bits or 16, and with prefetching or without.
const fn dir24_8<const WIDE: bool, const PREFETCH: bool>(
    name: &'static str,
    summary: &'static str,
) -> Entry<u32> {
    const fn config(wide: bool, prefetch: bool, isa: Isa) -> dir24_8::Config {
        dir24_8::Config {
            width: if wide { dir24_8::Width::Bits32 } else { dir24_8::Width::Bits16 },
            batch: if prefetch { dir24_8::Batch::Prefetch } else { dir24_8::Batch::Plain },
            isa,
        }
    }
    Entry {
        name,
        summary,
        isas: SCALAR,
        build: |routes, isa| boxed(Dir24_8::build(routes, &config(WIDE, PREFETCH, isa))),
        load: |tables, hops, isa| {
            boxed(Dir24_8::load_for(tables, hops, &config(WIDE, PREFETCH, isa)))
        },
    }
}

/// The entry of Poptrie with a direct table over the first `S` bits, and with batches by level or
/// an address at a time.
const fn poptrie<A: Addr, const S: u32, const BY_LEVEL: bool>(
    name: &'static str,
    summary: &'static str,
) -> Entry<A> {
    Entry {
        name,
        summary,
        isas: &Isa::ALL,
        build: |routes, isa| {
            let config = poptrie::Config { s: S, by_level: BY_LEVEL, isa };
            boxed(Poptrie::build(routes, &config))
        },
        load: |tables, hops, isa| {
            let config = poptrie::Config { s: S, by_level: BY_LEVEL, isa };
            boxed(Poptrie::load_for(tables, hops, &config))
        },
    }
}

/// The steps of PlanB's ablation, as indexes: const parameters cannot be enums.
const SEARCHES: [planb::Search; 3] =
    [planb::Search::Batched, planb::Search::Single, planb::Search::Compiled];
const BATCHED: usize = 0;
/// The other one of [`dxr()`].
const BRANCHING: usize = 1;
const SINGLE: usize = 1;
const COMPILED: usize = 2;
const PLANB_SINGLE: &str = "PlanB's ablation: the tree, one lookup after the other";
const PLANB_COMPILED: &str = "PlanB's ablation: as planb-single, vectors by the compiler";

const fn planb<A: SearchAddr, const SEARCH: usize>(
    name: &'static str,
    summary: &'static str,
) -> Entry<A> {
    Entry {
        name,
        summary,
        isas: &Isa::ALL,
        build: |routes, isa| {
            boxed(PlanB::build(routes, &planb::Config { isa, search: SEARCHES[SEARCH] }))
        },
        load: |tables, hops, isa| {
            let config = planb::Config { isa, search: SEARCHES[SEARCH] };
            boxed(PlanB::load_for(tables, hops, &config))
        },
    }
}

const fn wideleaf() -> Entry<u128> {
    Entry {
        name: "wideleaf",
        summary: "wideleaf: tables whose strides suit the routes, then half a cache line of keys",
        isas: &Isa::ALL,
        build: |routes, isa| boxed(Wideleaf::build(routes, &wideleaf::Config { isa })),
        load: |tables, hops, isa| boxed(Wideleaf::load_for(tables, hops, isa)),
    }
}

/// The steps of Bloomfwd's paper, as indexes.
const OPTIMISED: usize = 0;
const BASELINE: usize = 1;
const NAIVE: usize = 2;

const fn bloomfwd<A: bloomfwd::Address, const STEP: usize>(
    name: &'static str,
    summary: &'static str,
) -> Entry<A> {
    const CONFIGS: [fn() -> bloomfwd::Config; 3] =
        [bloomfwd::Config::default, bloomfwd::Config::baseline, bloomfwd::Config::naive];
    Entry {
        name,
        summary,
        isas: if STEP == OPTIMISED { &Isa::ALL } else { SCALAR },
        build: |routes, isa| {
            boxed(Bloomfwd::build(routes, &bloomfwd::Config { isa, ..CONFIGS[STEP]() }))
        },
        load: |tables, hops, isa| {
            boxed(Bloomfwd::load_for(tables, hops, CONFIGS[STEP]().search, isa))
        },
    }
}

const fn lower_bound<A: SearchAddr>() -> Entry<A> {
    Entry {
        name: "lower-bound",
        summary: "elementary intervals in a sorted array, branching binary search",
        isas: SCALAR,
        build: |routes, isa| boxed(LowerBound::build(routes, &lower_bound::Config { isa })),
        load: |tables, hops, _| boxed(LowerBound::load(tables, hops)),
    }
}

const MIHT: &str = "MIHT: a B+ tree over the first bits, then priority tries; patched in place";
const BLOOMFWD: &str = "Bloomfwd: Bloom filters and hash tables, batches level by level";
const BLOOMFWD_BASELINE: &str = "Bloomfwd's baseline: expanded prefixes, no vectors";
const BLOOMFWD_NAIVE: &str = "Bloom filters and hash tables, one for each length";
const MIHT_BATCH: &str = "MIHT, batches taken level by level";

/// The entry of MIHT with its batches interleaved, or an address at a time.
const fn miht<A: TrieAddr, const INTERLEAVED: bool>(
    name: &'static str,
    summary: &'static str,
) -> Entry<A> {
    const BATCH: [miht::Batch; 2] = [miht::Batch::Plain, miht::Batch::Interleaved];
    Entry {
        name,
        summary,
        isas: if INTERLEAVED { &Isa::ALL } else { SCALAR },
        build: |routes, isa| {
            let batch = BATCH[INTERLEAVED as usize];
            boxed(Miht::build(routes, &miht::Config { batch, isa, ..miht::Config::default() }))
        },
        load: |tables, hops, isa| {
            boxed(Miht::load_for(tables, hops, isa, BATCH[INTERLEAVED as usize]))
        },
    }
}

const fn radix<A: Addr>() -> Entry<A> {
    Entry {
        name: "radix",
        summary: "path-compressed binary trie, the scheme of the BSD routing table",
        isas: SCALAR,
        build: |routes, isa| boxed(Radix::build(routes, &radix::Config { isa })),
        load: |tables, hops, _| boxed(Radix::load(tables, hops)),
    }
}

/// SAIL_L with its entries of that width; `STAGED` batches or the paper's.
const fn sail_l<E: sail::merged::Entry, const STAGED: bool>(
    name: &'static str,
    summary: &'static str,
) -> Entry<u32> {
    Entry {
        name,
        summary,
        isas: SCALAR,
        build: |routes, isa| {
            boxed(SailL::<E>::build(routes, &sail::merged::Config { staged: STAGED, isa }))
        },
        load: |tables, hops, _| boxed(SailL::<E>::load_with(tables, hops, STAGED)),
    }
}

const fn sail_l8() -> Entry<u32> {
    Entry {
        name: "sail-l8",
        summary: "SAIL_L with next hops of 1 byte: tables of up to 255 hops",
        isas: SCALAR,
        build: |routes, isa| {
            boxed(SailL8::build(routes, &sail::merged::Config { staged: false, isa }))
        },
        load: |tables, hops, _| boxed(SailL8::load(tables, hops)),
    }
}

/// SAIL_B or SAIL_U.
const fn sail_bitmaps<L: sail::bitmaps::Levels>(summary: &'static str) -> Entry<u32> {
    Entry {
        name: L::NAME,
        summary,
        isas: SCALAR,
        build: |routes, isa| boxed(Bitmaps::<L>::build(routes, &sail::bitmaps::Config { isa })),
        load: |tables, hops, _| boxed(Bitmaps::<L>::load(tables, hops)),
    }
}

/// What can be patched is, whichever engine it is.
macro_rules! patched {
    ($([$($generic:tt)*] $engine:ty: $addr:ty),*) => {$(
        impl<$($generic)*> Follow<$addr> for $engine {
            fn follow(
                &mut self,
                routes: &Routes<$addr>,
                changed: &[Prefix<$addr>],
            ) -> Result<Patched, BuildError> {
                self.patch(routes, changed)
            }
        }
    )*};
}

patched!(
    [] Runmap: u32,
    [] Dxr: u32,
    [] Dir24_8: u32,
    [L: sail::bitmaps::Levels] Bitmaps<L>: u32,
    [] Wideleaf: u128,
    [A: TrieAddr] Miht<A>: A,
    [A: bloomfwd::Address] Bloomfwd<A>: A
);

impl<A: Addr> Follow<A> for Poptrie<A> {}
impl<A: SearchAddr> Follow<A> for PlanB<A> {}
impl<A: SearchAddr> Follow<A> for LowerBound<A> {}
impl<A: Addr> Follow<A> for Radix<A> {}
impl<E: sail::merged::Entry> Follow<u32> for SailL<E> {}
impl Follow<u32> for SailL8 {}

fn boxed<A: Addr, E: Follow<A> + 'static, X>(engine: Result<E, X>) -> Result<BoxedEngine<A>, X> {
    engine.map(|engine| Box::new(engine) as BoxedEngine<A>)
}

/// The families, with the engines that each has.
pub trait EngineFamily: Addr {
    /// The engines of this family, best known first.
    fn engines() -> &'static [Entry<Self>];
    /// What [`auto`](crate::auto()) tries, in order.
    #[doc(hidden)]
    fn candidates() -> &'static [Candidate];
    /// What the first of them is measured against, on machines with large caches.
    #[doc(hidden)]
    fn rival() -> Option<&'static Rival>;
}

impl EngineFamily for u32 {
    fn engines() -> &'static [Entry<Self>] {
        V4
    }
    fn candidates() -> &'static [Candidate] {
        auto::V4
    }
    fn rival() -> Option<&'static Rival> {
        Some(&auto::RIVAL_V4)
    }
}

impl EngineFamily for u128 {
    fn engines() -> &'static [Entry<Self>] {
        V6
    }
    fn candidates() -> &'static [Candidate] {
        auto::V6
    }
    fn rival() -> Option<&'static Rival> {
        None
    }
}

/// The engines of a family, best known first.
pub fn engines<A: EngineFamily>() -> &'static [Entry<A>] {
    A::engines()
}

/// The engine of this name. `"dxr"` stands for `"dxr18"`; `"auto"` is no engine, see [`auto`](crate::auto()).
///
/// ```
/// assert_eq!(fibula_engines::find::<u128>("planb").map(|entry| entry.name), Some("planb"));
/// assert!(fibula_engines::find::<u128>("no-such-engine").is_none());
/// ```
pub fn find<A: EngineFamily>(name: &str) -> Option<&'static Entry<A>> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    A::engines().iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_are_unique_and_found<A: EngineFamily>() {
        for (i, entry) in engines::<A>().iter().enumerate() {
            assert!(engines::<A>()[..i].iter().all(|other| other.name != entry.name));
            assert!(std::ptr::eq(find::<A>(entry.name).unwrap(), entry));
            assert!(entry.isas.contains(&Isa::Scalar));
        }
    }

    #[test]
    fn names() {
        names_are_unique_and_found::<u32>();
        names_are_unique_and_found::<u128>();
    }
}
