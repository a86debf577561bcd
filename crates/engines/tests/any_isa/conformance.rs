//! The conformance suite on every engine of the registry, in every form that this machine can run,
//! and on the chooser.

use std::cell::Cell;

use fibula_core::{Addr, Engine};
use fibula_engines::matchline::{Config as Reads, Matchline};
use fibula_engines::wideleaf::{Config, Variant, Wideleaf};
use fibula_engines::{Entry, auto};
use fibula_simd::Isa;
use fibula_testkit::{conform, conforms};

use crate::engines;

/// Engines whose smallest tables take as long to build as all others' together, and which differ from others in a
/// parameter alone: each table is built in another instruction set.
const IN_TURNS: &[&str] = &["dxr22", "dxr23", "dxr24"];

/// Every engine of the registry, in each form that this machine has: an engine that is added is tested.
fn every_engine<A: Addr>() -> conform::Builders<A> {
    engines::<A>().iter().flat_map(forms).collect()
}

fn forms<A: Addr>(entry: &'static Entry<A>) -> conform::Builders<A> {
    let build_for = |isa: Isa| -> (String, conform::Build<A>) {
        (format!("{} {isa}", entry.name), Box::new(move |routes| Ok(entry.build(routes, isa)?)))
    };
    let forms: conform::Builders<A> =
        entry.isas.iter().copied().filter(|isa| isa.is_supported()).map(build_for).collect();
    if !IN_TURNS.contains(&entry.name) {
        return forms;
    }
    let turn = Cell::new(0);
    let build = move |routes: &_| {
        let (_, build) = &forms[turn.replace(turn.get() + 1) % forms.len()];
        build(routes)
    };
    vec![(format!("{}, instruction sets in turns", entry.name), Box::new(build))]
}

fn chooser<A: Addr>() -> conform::Builders<A> {
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

conforms!(every_engine_v4, u32, every_engine());
conforms!(every_engine_v6, u128, every_engine());
conforms!(matchline_reads, u128, matchline_reads());
conforms!(wideleaf_shapes, u128, wideleaf_shapes());
conforms!(auto_v4, u32, chooser());
conforms!(auto_v6, u128, chooser());

/// The suite has something to do: each engine by name, and a form for each instruction set of this machine.
#[test]
fn every_engine_is_tested() {
    fn check<A: Addr>() {
        let labels: Vec<String> = every_engine::<A>().into_iter().map(|(label, _)| label).collect();
        for entry in engines::<A>() {
            let own = |label: &&String| label.split([' ', ',']).next() == Some(entry.name);
            let forms = entry.isas.iter().filter(|isa| isa.is_supported()).count();
            let expected = if IN_TURNS.contains(&entry.name) { 1 } else { forms };
            assert_eq!(labels.iter().filter(own).count(), expected, "{}", entry.name);
        }
    }
    check::<u32>();
    check::<u128>();
}
