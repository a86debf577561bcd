use std::sync::LazyLock;

use fibula_core::{Addr, PerFamily};
use fibula_engines::{Entries, Entry, Isa, Registry};

use crate::bloomfwd::{self, Bloomfwd};
use crate::bsd_radix::BsdRadix;
use crate::cp_trie::{self, CpTrie};
use crate::hbs::{self, Hbs};
use crate::lc_trie::{self, LcTrie};
use crate::lulea::{self, Lulea};
use crate::miht::{self, Miht, TrieAddr};
use crate::neurotrie::{self, Neurotrie};
use crate::pbf::{FilterAddr, Pbf};
use crate::sail::{SailB, SailL, SailL8, SailM, SailU, merged};
use crate::tree_bitmap::{self, TreeBitmap};

/// Of schemes with a form for each instruction set.
const EVERY: &[Isa] = &Isa::ALL;
/// Of schemes that are plain code on every machine.
const SCALAR: &[Isa] = &[Isa::Scalar];

/// The engines of the product, and the baselines behind them.
pub fn registry() -> &'static Registry {
    static ALL: LazyLock<Registry> = LazyLock::new(|| Registry::product().with(entries()));
    &ALL
}

/// The baselines, for [`Registry::with`].
pub fn entries() -> PerFamily<Entries> {
    let mut v4: Vec<Entry<u32>> = sail().into();
    v4.extend(lulea());
    v4.extend(both());
    PerFamily { v4, v6: both() }
}

/// The schemes that have both families.
fn both<A: bloomfwd::Address + TrieAddr + FilterAddr>() -> Vec<Entry<A>> {
    let mut list: Vec<Entry<A>> = bloomfwd().into();
    list.extend(miht());
    list.extend(tree_bitmap());
    list.extend(lc_trie());
    list.extend(hbs());
    list.extend([cp_trie(), neurotrie(), pbf(), bsd_radix()]);
    list
}

fn sail() -> [Entry<u32>; 7] {
    fn l<E: merged::Entry>(name: &'static str, summary: &'static str, staged: bool) -> Entry<u32> {
        Entry::of::<SailL<E>>(name, summary, SCALAR, move |_| merged::Config { staged })
    }
    let l8 = "SAIL_L with next hops of 1 byte: tables of up to 255 hops";
    let b = "SAIL_B: a bitmap a level, 0 to 24; patched in place";
    let u = "SAIL_U: bitmaps at levels 6, 12, 18, 24; patched in place";
    let m = "SAIL_M: bitmaps and chunks that many tables share, here of one; patched in place";
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

fn bloomfwd<A: bloomfwd::Address>() -> [Entry<A>; 4] {
    let entry = |name, summary, isas, config: fn() -> bloomfwd::Config| {
        let config = move |isa| bloomfwd::Config { isa, ..config() };
        Entry::of::<Bloomfwd<A>>(name, summary, isas, config)
    };
    let staged = "Bloomfwd: Bloom filters and hash tables, batches level by level";
    let compiled = "Bloomfwd in plain loops, vectors by the compiler";
    let baseline = "Bloomfwd's baseline: expanded prefixes, no vectors";
    let naive = "Bloom filters and hash tables, one for each length";
    [
        entry("bloomfwd", staged, EVERY, bloomfwd::Config::default),
        entry("bloomfwd-compiled", compiled, EVERY, bloomfwd::Config::compiled),
        entry("bloomfwd-baseline", baseline, SCALAR, bloomfwd::Config::baseline),
        entry("bloomfwd-naive", naive, SCALAR, bloomfwd::Config::naive),
    ]
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

fn hbs<A: Addr>() -> [Entry<A>; 3] {
    let entry = |name, summary, heuristic, batch| {
        Entry::of::<Hbs<A>>(name, summary, SCALAR, move |_| hbs::Config { heuristic, batch })
    };
    let pruned =
        "HBS: binary search over lengths in hash tables, pruned by origins; patched in place";
    let interleaved = "HBS, lookups of a batch interleaved";
    let basic = "binary search over lengths in hash tables, Waldvogel's basic scheme";
    [
        entry("hbs", pruned, true, hbs::Batch::Plain),
        entry("hbs-batch", interleaved, true, hbs::Batch::Interleaved),
        entry("hbs-basic", basic, false, hbs::Batch::Plain),
    ]
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
