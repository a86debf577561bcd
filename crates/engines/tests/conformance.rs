//! The conformance suite on every engine of the registry, in every form that this machine can run,
//! and on the chooser.

use std::cell::Cell;

use fibula_core::Engine;
use fibula_engines::matchline::{Config as Reads, Matchline};
use fibula_engines::wideleaf::{Config, Variant, Wideleaf};
use fibula_engines::{EngineFamily, auto, find};
use fibula_simd::Isa;
use fibula_testkit::{conform, conforms};

/// Each form of the engine that this machine has.
fn forms<A: EngineFamily>(name: &str) -> conform::Builders<A> {
    let entry = find::<A>(name).expect("the registry has the engine");
    let build_for = |isa: Isa| -> (String, conform::Build<A>) {
        (format!("{name} {isa}"), Box::new(move |routes| Ok(entry.build(routes, isa)?)))
    };
    entry.isas.iter().copied().filter(|isa| isa.is_supported()).map(build_for).collect()
}

/// One form, whose instruction set is another one at each table. For engines whose smallest tables take as long to build as all
/// others' together, and which differ from others in a parameter alone.
fn forms_in_turns(name: &str) -> conform::Builders<u32> {
    let forms = forms::<u32>(name);
    let turn = Cell::new(0);
    let build = move |routes: &_| {
        let (_, build) = &forms[turn.replace(turn.get() + 1) % forms.len()];
        build(routes)
    };
    vec![(format!("{name}, instruction sets in turns"), Box::new(build))]
}

fn chooser<A: EngineFamily>() -> conform::Builders<A> {
    let build_for = |isa: Isa| -> (String, conform::Build<A>) {
        (format!("auto {isa}"), Box::new(move |routes| Ok(auto(routes, isa).engine)))
    };
    Isa::available().into_iter().map(build_for).collect()
}

/// The shapes of wideleaf, whichever is the fastest here.
fn wideleaf_shapes() -> conform::Builders<u128> {
    let build_for = |variant: Variant| -> (String, conform::Build<u128>) {
        let config = Config { isa: Isa::detect(), variant: Some(variant) };
        let build = move |routes: &_| Ok(Box::new(Wideleaf::build(routes, &config)?) as _);
        (format!("wideleaf, {variant:?}"), Box::new(build))
    };
    [(false, false), (false, true), (true, false), (true, true)]
        .map(|(lines, gathers)| build_for(Variant { lines, gathers }))
        .into()
}

/// The ways in which matchline reads words, whichever is the fastest here.
fn matchline_reads() -> conform::Builders<u128> {
    let build_for = |gathers: bool| -> (String, conform::Build<u128>) {
        let config = Reads { isa: Isa::detect(), gathers: Some(gathers) };
        let build = move |routes: &_| Ok(Box::new(Matchline::build(routes, &config)?) as _);
        (format!("matchline, gathers: {gathers}"), Box::new(build))
    };
    [false, true].map(build_for).into()
}

conforms!(radix_v4, u32, forms("radix"));
conforms!(radix_v6, u128, forms("radix"));
conforms!(tree_bitmap_v4, u32, forms("tree-bitmap"));
conforms!(tree_bitmap_v6, u128, forms("tree-bitmap"));
conforms!(tree_bitmap_split_v4, u32, forms("tree-bitmap-split"));
conforms!(tree_bitmap_split_v6, u128, forms("tree-bitmap-split"));
conforms!(lc_trie_v4, u32, forms("lc-trie"));
conforms!(lc_trie_v6, u128, forms("lc-trie"));
conforms!(lc_trie_wide_v4, u32, forms("lc-trie-wide"));
conforms!(lc_trie_wide_v6, u128, forms("lc-trie-wide"));
conforms!(lulea, u32, forms("lulea"));
conforms!(lulea_wide, u32, forms("lulea-wide"));
conforms!(hbs_v4, u32, forms("hbs"));
conforms!(hbs_v6, u128, forms("hbs"));
conforms!(hbs_basic_v4, u32, forms("hbs-basic"));
conforms!(hbs_basic_v6, u128, forms("hbs-basic"));
conforms!(pbf_v4, u32, forms("pbf"));
conforms!(pbf_v6, u128, forms("pbf"));
conforms!(cp_trie_v4, u32, forms("cp-trie"));
conforms!(cp_trie_v6, u128, forms("cp-trie"));
conforms!(bsd_radix_v4, u32, forms("bsd-radix"));
conforms!(bsd_radix_v6, u128, forms("bsd-radix"));
conforms!(neurotrie_v4, u32, forms("neurotrie"));
conforms!(neurotrie_v6, u128, forms("neurotrie"));
conforms!(runmap, u32, forms("runmap"));
conforms!(dxr16, u32, forms("dxr16"));
conforms!(dxr17, u32, forms("dxr17"));
conforms!(dxr18, u32, forms("dxr18"));
conforms!(dxr19, u32, forms("dxr19"));
conforms!(dxr20, u32, forms("dxr20"));
conforms!(dxr18_branching, u32, forms("dxr18-branching"));
conforms!(dxr21, u32, forms("dxr21"));
conforms!(dxr22, u32, forms_in_turns("dxr22"));
conforms!(dxr23, u32, forms_in_turns("dxr23"));
conforms!(dxr24, u32, forms_in_turns("dxr24"));
conforms!(poptrie16_v4, u32, forms("poptrie16"));
conforms!(poptrie16_v6, u128, forms("poptrie16"));
conforms!(poptrie18_v4, u32, forms("poptrie18"));
conforms!(poptrie18_v6, u128, forms("poptrie18"));
conforms!(poptrie18_batch_v4, u32, forms("poptrie18-batch"));
conforms!(poptrie18_batch_v6, u128, forms("poptrie18-batch"));
conforms!(dir24_8, u32, forms("dir24-8"));
conforms!(dir24_8_prefetch, u32, forms("dir24-8-prefetch"));
conforms!(dir24_8_wide, u32, forms("dir24-8-wide"));
conforms!(dir24_8_wide_prefetch, u32, forms("dir24-8-wide-prefetch"));
conforms!(planb_v4, u32, forms("planb"));
conforms!(planb_v6, u128, forms("planb"));
conforms!(planb_single_v4, u32, forms("planb-single"));
conforms!(planb_single_v6, u128, forms("planb-single"));
conforms!(planb_compiled_v4, u32, forms("planb-compiled"));
conforms!(planb_compiled_v6, u128, forms("planb-compiled"));
conforms!(lower_bound_v4, u32, forms("lower-bound"));
conforms!(lower_bound_v6, u128, forms("lower-bound"));
conforms!(miht_v4, u32, forms("miht"));
conforms!(miht_v6, u128, forms("miht"));
conforms!(miht_batch_v4, u32, forms("miht-batch"));
conforms!(miht_batch_v6, u128, forms("miht-batch"));
conforms!(sail_b, u32, forms("sail-b"));
conforms!(sail_u, u32, forms("sail-u"));
conforms!(sail_m, u32, forms("sail-m"));
conforms!(sail_l, u32, forms("sail-l"));
conforms!(sail_l8, u32, forms("sail-l8"));
conforms!(sail_l_wide, u32, forms("sail-l-wide"));
conforms!(sail_l_prefetch, u32, forms("sail-l-prefetch"));
conforms!(wideleaf, u128, forms("wideleaf"));
conforms!(matchline, u128, forms("matchline"));
conforms!(matchline_reads, u128, matchline_reads());
conforms!(wideleaf_shapes, u128, wideleaf_shapes());
conforms!(bloomfwd_v4, u32, forms("bloomfwd"));
conforms!(bloomfwd_v6, u128, forms("bloomfwd"));
conforms!(bloomfwd_baseline_v4, u32, forms("bloomfwd-baseline"));
conforms!(bloomfwd_baseline_v6, u128, forms("bloomfwd-baseline"));
conforms!(bloomfwd_naive_v4, u32, forms("bloomfwd-naive"));
conforms!(bloomfwd_naive_v6, u128, forms("bloomfwd-naive"));
conforms!(auto_v4, u32, chooser());
conforms!(auto_v6, u128, chooser());

/// A new engine needs its line above.
#[test]
fn every_engine_is_tested() {
    let source = include_str!("conformance.rs");
    fn names<A: EngineFamily>() -> impl Iterator<Item = &'static str> {
        fibula_engines::engines::<A>().iter().map(|entry| entry.name)
    }
    for (name, family) in
        names::<u32>().map(|name| (name, "u32")).chain(names::<u128>().map(|name| (name, "u128")))
    {
        let has = |forms| source.contains(&format!("{family}, {forms}(\"{name}\")"));
        assert!(
            has("forms") || has("forms_in_turns"),
            "no conforms! line for {name} over {family}"
        );
    }
}
