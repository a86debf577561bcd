//! The engines of the product, best known first.

use fibula_core::{Addr, PerFamily};
use fibula_simd::Isa;

use crate::common::SearchAddr;
use crate::dir24_8::{self, Batch, Dir24_8, Width};
use crate::dxr::{self, Dxr, RangeSearch};
use crate::lower_bound::LowerBound;
use crate::matchline::{self, Matchline};
use crate::planb::{self, PlanB, PlanB128, TreeSearch};
use crate::poptrie::{self, Poptrie};
use crate::radix::Radix;
use crate::registry::{Entries, Entry};
use crate::runmap::{self, Runmap};
use crate::wideleaf::{self, Wideleaf};

/// Of engines with a form for each instruction set.
const EVERY: &[Isa] = &Isa::ALL;
/// Of engines that are plain code on every machine.
const SCALAR: &[Isa] = &[Isa::Scalar];

pub(crate) fn entries() -> PerFamily<Entries> {
    let mut v4 = vec![runmap()];
    v4.extend(dxr());
    v4.extend(poptrie());
    v4.extend(dir24_8());
    v4.extend(planb());
    v4.extend([lower_bound(), radix()]);
    let mut v6 = vec![wideleaf(), matchline()];
    v6.extend(planb());
    v6.extend(poptrie());
    v6.extend([lower_bound(), radix()]);
    PerFamily { v4, v6 }
}

fn runmap() -> Entry<u32> {
    let summary = "direct table over 18 bits, then bitmaps of runs beside their hops; our own";
    Entry::of::<Runmap>("runmap", summary, EVERY, |isa| runmap::Config { width: None, isa })
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

fn planb<A: SearchAddr>() -> [Entry<A>; 4] {
    let entry = |name, summary, search| {
        let config = move |isa| planb::Config { isa, search };
        Entry::of::<PlanB<A>>(name, summary, EVERY, config)
    };
    let (ways, wide_ways, bits) = if A::BITS == 32 { (17, 33, 32) } else { (9, 17, 64) };
    let tree = format!(
        "PlanB: elementary intervals in a linearised {ways}-ary B+-tree of {bits}-bit keys"
    );
    let ablation = |what| format!("PlanB's ablation: {what}");
    let single = ablation("the tree, one lookup after the other");
    let compiled = ablation("as planb-single, vectors by the compiler");
    let wide = format!("PlanB with nodes of 128 bytes: a {wide_ways}-ary tree");
    let wide = Entry::of::<PlanB128<A>>("planb-128", wide, EVERY, |isa| planb::Config {
        isa,
        search: TreeSearch::Batched,
    });
    [
        entry("planb", tree, TreeSearch::Batched),
        entry("planb-single", single, TreeSearch::Single),
        entry("planb-compiled", compiled, TreeSearch::Compiled),
        wide,
    ]
}

fn lower_bound<A: SearchAddr>() -> Entry<A> {
    let summary = "elementary intervals in a sorted array, branching binary search";
    Entry::of::<LowerBound<A>>("lower-bound", summary, SCALAR, |_| ())
}

fn radix<A: Addr>() -> Entry<A> {
    let summary = "path-compressed binary trie, compared on the way down";
    Entry::of::<Radix<A>>("radix", summary, SCALAR, |_| ())
}
