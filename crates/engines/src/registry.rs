//! The list of engines. An entry is an engine with one of its configurations.

use std::sync::LazyLock;

use fibula_core::{Addr, BuildError, Follow, LoadError, Persist, Routes, TableRef, TableSource};
use fibula_simd::Isa;

use crate::bloomfwd::{self, Bloomfwd};
use crate::bsd_radix::BsdRadix;
use crate::common::SearchAddr;
use crate::cp_trie::{self, CpTrie};
use crate::dir24_8::{self, Batch, Dir24_8, Width};
use crate::dxr::{self, Dxr, RangeSearch};
use crate::hbs::{self, Hbs};
use crate::lc_trie::{self, LcTrie};
use crate::lower_bound::LowerBound;
use crate::lulea::{self, Lulea};
use crate::matchline::{self, Matchline};
use crate::miht::{self, Miht, TrieAddr};
use crate::neurotrie::{self, Neurotrie};
use crate::pbf::{FilterAddr, Pbf};
use crate::planb::{self, PlanB, TreeSearch};
use crate::poptrie::{self, Poptrie};
use crate::radix::Radix;
use crate::runmap::{self, Runmap};
use crate::sail::{SailB, SailL, SailL8, SailM, SailU, merged};
use crate::tree_bitmap::{self, TreeBitmap};
use crate::wideleaf::{self, Wideleaf};

/// An engine over a table, whichever it is: it looks up, and follows a change of the routes if its
/// scheme can.
pub trait AnyEngine<A: Addr>: Follow<A> {
    /// The tables as they are stored, see [`Persist::tables`]; `None` if it has no stored form.
    fn persist(&self) -> Option<Vec<TableRef<'_>>>;
}

impl<A: Addr, E: Follow<A> + Persist<A>> AnyEngine<A> for E {
    fn persist(&self) -> Option<Vec<TableRef<'_>>> {
        Some(self.tables())
    }
}

/// An engine of the list, over a table.
pub type BoxedEngine<A> = Box<dyn AnyEngine<A>>;

type Build<A> = dyn Fn(&Routes<A>, Isa) -> Result<BoxedEngine<A>, BuildError> + Send + Sync;
type Load<A> =
    dyn Fn(&dyn TableSource, u32, Isa) -> Result<BoxedEngine<A>, LoadError> + Send + Sync;

/// An engine that can be chosen by name.
pub struct Entry<A: Addr> {
    /// The name: lower case, unique in the family.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: String,
    /// The instruction sets for which it has forms of its own; see [`Isa::best_of`] for the others.
    pub isas: &'static [Isa],
    build: Box<Build<A>>,
    load: Box<Load<A>>,
}

impl<A: Addr> Entry<A> {
    /// The engine `E` with the configuration that `config` gives for an instruction set.
    fn of<E>(
        name: &'static str,
        summary: impl Into<String>,
        isas: &'static [Isa],
        config: impl Fn(Isa) -> E::Config + Copy + Send + Sync + 'static,
    ) -> Self
    where
        E: Follow<A> + Persist<A> + 'static,
    {
        Self {
            name,
            summary: summary.into(),
            isas,
            build: Box::new(move |routes, isa| Ok(Box::new(E::build(routes, &config(isa))?))),
            load: Box::new(move |tables, hop_count, isa| {
                Ok(Box::new(E::load(tables, hop_count, &config(isa))?))
            }),
        }
    }

    /// Compiles a table.
    ///
    /// # Errors
    /// As [`Engine::build`](fibula_core::Engine::build).
    pub fn build(&self, routes: &Routes<A>, isa: Isa) -> Result<BoxedEngine<A>, BuildError> {
        (self.build)(routes, isa)
    }

    /// Checks stored tables and uses them in place.
    ///
    /// # Errors
    /// As [`Persist::load`].
    pub fn load(
        &self,
        tables: &dyn TableSource,
        hop_count: u32,
        isa: Isa,
    ) -> Result<BoxedEngine<A>, LoadError> {
        (self.load)(tables, hop_count, isa)
    }
}

/// Of engines with a form for each instruction set.
const EVERY: &[Isa] = &Isa::ALL;
/// Of engines that are plain code on every machine.
const SCALAR: &[Isa] = &[Isa::Scalar];

/// Other names under which engines are found.
const ALIASES: &[(&str, &str)] = &[("dxr", "dxr18")];

static V4: LazyLock<Vec<Entry<u32>>> = LazyLock::new(|| {
    let mut list = vec![runmap()];
    list.extend(dxr());
    list.extend(poptrie());
    list.extend(dir24_8());
    list.extend(sail());
    list.extend(planb());
    list.extend(bloomfwd());
    list.push(lower_bound());
    list.extend(lulea());
    list.extend(miht());
    list.extend(tree_bitmap());
    list.extend(lc_trie());
    list.extend(hbs());
    list.push(cp_trie());
    list.push(neurotrie());
    list.push(pbf());
    list.push(bsd_radix());
    list.push(radix());
    list
});

static V6: LazyLock<Vec<Entry<u128>>> = LazyLock::new(|| {
    let mut list = vec![wideleaf(), matchline()];
    list.extend(planb());
    list.extend(poptrie());
    list.extend(bloomfwd());
    list.push(lower_bound());
    list.extend(miht());
    list.extend(tree_bitmap());
    list.extend(lc_trie());
    list.extend(hbs());
    list.push(cp_trie());
    list.push(neurotrie());
    list.push(pbf());
    list.push(bsd_radix());
    list.push(radix());
    list
});

fn runmap() -> Entry<u32> {
    let summary = "direct table over 18 bits, then bitmaps of runs beside their hops; our own";
    Entry::of::<Runmap>("runmap", summary, EVERY, |isa| runmap::Config { width: None, isa })
}

fn wideleaf() -> Entry<u128> {
    let summary = "wideleaf: tables whose strides suit the routes, then a cache line of keys";
    Entry::of::<Wideleaf>("wideleaf", summary, EVERY, |isa| wideleaf::Config {
        isa,
        ..Default::default()
    })
}

fn matchline() -> Entry<u128> {
    let summary = "matchline: tables whose strides suit the routes, then a cache line of whole prefixes; our own";
    Entry::of::<Matchline>("matchline", summary, EVERY, |isa| matchline::Config {
        isa,
        gathers: None,
    })
}

fn dxr() -> Vec<Entry<u32>> {
    let by_k = |name, k| {
        let summary = format!("DXR: direct table over {k} bits, then ranges by bisection (D{k}R)");
        let config = move |isa| dxr::Config { k, isa, ..dxr::Config::default() };
        Entry::of::<Dxr>(name, summary, EVERY, config)
    };
    let branching = Entry::of::<Dxr>(
        "dxr18-branching",
        "D18R one lookup after the other, with branches",
        SCALAR,
        |isa| dxr::Config { search: RangeSearch::Branching, isa, ..dxr::Config::default() },
    );
    vec![
        by_k("dxr18", 18),
        by_k("dxr20", 20),
        by_k("dxr19", 19),
        by_k("dxr17", 17),
        by_k("dxr16", 16),
        by_k("dxr21", 21),
        by_k("dxr22", 22),
        by_k("dxr23", 23),
        by_k("dxr24", 24),
        branching,
    ]
}

fn poptrie<A: Addr>() -> [Entry<A>; 3] {
    let entry = |name, summary, s, by_level| {
        let config = move |isa| poptrie::Config { s, by_level, isa };
        Entry::of::<Poptrie<A>>(name, summary, EVERY, config)
    };
    let plain = |s| format!("Poptrie: direct table over {s} bits, then a 64-ary trie");
    let by_level = "Poptrie over 18 bits, batches taken level by level".to_owned();
    [
        entry("poptrie18-batch", by_level, 18, true),
        entry("poptrie18", plain(18), 18, false),
        entry("poptrie16", plain(16), 16, false),
    ]
}

fn dir24_8() -> [Entry<u32>; 4] {
    let entry = |name, summary, width, batch| {
        let isas = if batch == Batch::Plain { SCALAR } else { &[Isa::Scalar, Isa::Avx512] };
        Entry::of::<Dir24_8>(name, summary, isas, move |isa| dir24_8::Config { width, batch, isa })
    };
    let plain = "DIR-24-8: direct table over 24 bits, then chunks of 256";
    let wide_prefetch = "DIR-24-8 of 32-bit entries, prefetched";
    [
        entry(
            "dir24-8-prefetch",
            "DIR-24-8 with prefetched entries",
            Width::Bits16,
            Batch::Prefetch,
        ),
        entry("dir24-8", plain, Width::Bits16, Batch::Plain),
        entry("dir24-8-wide-prefetch", wide_prefetch, Width::Bits32, Batch::Prefetch),
        entry("dir24-8-wide", "DIR-24-8 of 32-bit entries", Width::Bits32, Batch::Plain),
    ]
}

fn sail() -> [Entry<u32>; 7] {
    fn l<E: merged::Entry>(name: &'static str, summary: &'static str, staged: bool) -> Entry<u32> {
        Entry::of::<SailL<E>>(name, summary, SCALAR, move |_| merged::Config { staged })
    }
    let l8 = "SAIL_L with next hops of 1 byte: tables of up to 255 hops";
    let b = "SAIL_B: a bitmap a level, 0 to 24; patched in place";
    let u = "SAIL_U: bitmaps at levels 6, 12, 18, 24; patched in place";
    let m = "SAIL_M: bitmaps and chunks that many tables share, here of one";
    [
        l::<u16>("sail-l", "SAIL_L: levels 16, 24, 32, entries of 2 bytes", false),
        l::<u16>("sail-l-prefetch", "SAIL_L, batches taken level by level", true),
        l::<u32>("sail-l-wide", "SAIL_L with entries of 4 bytes", false),
        Entry::of::<SailL8>("sail-l8", l8, SCALAR, |_| merged::Config { staged: false }),
        Entry::of::<SailB>("sail-b", b, SCALAR, |_| ()),
        Entry::of::<SailU>("sail-u", u, SCALAR, |_| ()),
        Entry::of::<SailM>("sail-m", m, SCALAR, |_| ()),
    ]
}

fn planb<A: SearchAddr>() -> [Entry<A>; 3] {
    let entry = |name, summary, search| {
        let config = move |isa| planb::Config { isa, search };
        Entry::of::<PlanB<A>>(name, summary, EVERY, config)
    };
    let (ways, bits) = if A::BITS == 32 { (17, 32) } else { (9, 64) };
    let tree = format!(
        "PlanB: elementary intervals in a linearised {ways}-ary B+-tree of {bits}-bit keys"
    );
    let ablation = |what| format!("PlanB's ablation: {what}");
    let single = ablation("the tree, one lookup after the other");
    let compiled = ablation("as planb-single, vectors by the compiler");
    [
        entry("planb", tree, TreeSearch::Batched),
        entry("planb-single", single, TreeSearch::Single),
        entry("planb-compiled", compiled, TreeSearch::Compiled),
    ]
}

fn bloomfwd<A: bloomfwd::Address>() -> [Entry<A>; 3] {
    let entry = |name, summary, isas, config: fn() -> bloomfwd::Config| {
        let config = move |isa| bloomfwd::Config { isa, ..config() };
        Entry::of::<Bloomfwd<A>>(name, summary, isas, config)
    };
    let staged = "Bloomfwd: Bloom filters and hash tables, batches level by level";
    let baseline = "Bloomfwd's baseline: expanded prefixes, no vectors";
    let naive = "Bloom filters and hash tables, one for each length";
    [
        entry("bloomfwd", staged, EVERY, bloomfwd::Config::default),
        entry("bloomfwd-baseline", baseline, SCALAR, bloomfwd::Config::baseline),
        entry("bloomfwd-naive", naive, SCALAR, bloomfwd::Config::naive),
    ]
}

fn lower_bound<A: SearchAddr>() -> Entry<A> {
    let summary = "elementary intervals in a sorted array, branching binary search";
    Entry::of::<LowerBound<A>>("lower-bound", summary, SCALAR, |_| ())
}

fn miht<A: TrieAddr>() -> [Entry<A>; 2] {
    let entry = |name, summary, isas, batch| {
        let config = move |isa| miht::Config { batch, isa, k: None, m: None };
        Entry::of::<Miht<A>>(name, summary, isas, config)
    };
    let plain = "MIHT: a B+ tree over the first bits, then priority tries; patched in place";
    let interleaved = "MIHT, batches taken level by level";
    [
        entry("miht-batch", interleaved, EVERY, miht::Batch::Interleaved),
        entry("miht", plain, SCALAR, miht::Batch::Plain),
    ]
}

fn tree_bitmap<A: Addr>() -> [Entry<A>; 2] {
    let entry = |name, summary, root, stride, split| {
        let config = move |isa| tree_bitmap::Config { root, stride, split, isa };
        Entry::of::<TreeBitmap<A>>(name, summary, EVERY, config)
    };
    let plain = "Tree Bitmap: strides of 4, routes and children in bitmaps of each node";
    let split = "Tree Bitmap with strides of 6, its internal bitmaps apart";
    let root = if A::BITS == 32 { 8 } else { 16 };
    [entry("tree-bitmap", plain, 8, 4, false), entry("tree-bitmap-split", split, root, 6, true)]
}

fn pbf<A: FilterAddr>() -> Entry<A> {
    let summary = "PBF: a Bloom filter and a hash table for each length, 18.755 bits a prefix";
    Entry::of::<Pbf<A>>("pbf", summary, SCALAR, |_| ())
}

fn neurotrie<A: Addr>() -> Entry<A> {
    let summary =
        "Neurotrie: a stride for each node, chosen by a dynamic program, 64 bytes a route";
    let config = |isa| neurotrie::Config { isa, ..neurotrie::Config::default() };
    Entry::of::<Neurotrie<A>>("neurotrie", summary, EVERY, config)
}

fn cp_trie<A: Addr>() -> Entry<A> {
    let summary = "CP-Trie: bitmaps with cumulative counts, 16 bits and then 8 a level";
    Entry::of::<CpTrie<A>>("cp-trie", summary, EVERY, |isa| cp_trie::Config { isa })
}

fn hbs<A: Addr>() -> [Entry<A>; 2] {
    let entry = |name, summary, heuristic| {
        Entry::of::<Hbs<A>>(name, summary, SCALAR, move |_| hbs::Config { heuristic })
    };
    let pruned = "HBS: binary search over lengths in hash tables, pruned by the origins of markers";
    let basic = "binary search over lengths in hash tables, Waldvogel's basic scheme";
    [entry("hbs", pruned, true), entry("hbs-basic", basic, false)]
}

fn lulea() -> [Entry<u32>; 2] {
    fn entry<P: lulea::Pointer>(name: &'static str, summary: &'static str) -> Entry<u32> {
        Entry::of::<Lulea<P>>(name, summary, SCALAR, |_| ())
    }
    [
        entry::<u16>("lulea", "Lulea: changes as bits at levels 16, 24, 32, pointers of 16 bits"),
        entry::<u32>("lulea-wide", "Lulea with pointers of 32 bits"),
    ]
}

fn lc_trie<A: Addr>() -> [Entry<A>; 2] {
    fn entry<A: Addr, N: lc_trie::Node>(name: &'static str, summary: &'static str) -> Entry<A> {
        Entry::of::<LcTrie<A, N>>(name, summary, SCALAR, |_| lc_trie::Config::default())
    }
    let plain = "LC-trie: paths and levels compressed, nodes of 32 bits";
    [
        entry::<A, u32>("lc-trie", plain),
        entry::<A, u64>("lc-trie-wide", "LC-trie with nodes of 64 bits"),
    ]
}

fn bsd_radix<A: Addr>() -> Entry<A> {
    let summary = "the BSD routing table: down by single bits, back up by masks; patched in place";
    Entry::of::<BsdRadix<A>>("bsd-radix", summary, SCALAR, |_| ())
}

fn radix<A: Addr>() -> Entry<A> {
    let summary = "path-compressed binary trie, compared on the way down";
    Entry::of::<Radix<A>>("radix", summary, SCALAR, |_| ())
}

/// The families, with the engines that each has.
pub trait EngineFamily: Addr {
    /// The engines of this family, best known first.
    fn engines() -> &'static [Entry<Self>];
}

impl EngineFamily for u32 {
    fn engines() -> &'static [Entry<Self>] {
        &V4
    }
}

impl EngineFamily for u128 {
    fn engines() -> &'static [Entry<Self>] {
        &V6
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
