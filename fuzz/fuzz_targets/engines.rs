//! Engines against the oracle, on dense nested tables grown from the input.
#![no_main]

use fibula_core::{Addr, Routes};

use fibula_fuzz::{Grown, grow};
use fibula_simd::Isa;
use fibula_testkit::{Oracle, check::check, probes};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[engine, family], rest)) = data.split_first_chunk() else { return };
    let mut input = Unstructured::new(rest);
    // One engine for each input: building them all would take most of the time.
    let result = match family & 1 {
        0 => run::<u32>(engine, &mut input),
        _ => run::<u128>(engine, &mut input),
    };
    result.expect("the end of the input is no error");
});

fn run<A: Addr>(engine: u8, input: &mut Unstructured<'_>) -> Result<()> {
    let (mut prefixes, mut all, mut extra) = (vec![], vec![], vec![]);
    while !input.is_empty() && all.len() < 1000 {
        match grow::<A>(&prefixes, input)? {
            Grown::Route(route) => {
                prefixes.push(route.prefix);
                all.push(route);
            }
            Grown::Addr(addr) => extra.push(addr),
        }
    }
    let routes: Routes<A> = all.into_iter().collect();
    let oracle = Oracle::new(&routes);
    let entry = &fibula_baselines::registry().engines::<A>()
        [usize::from(engine) % fibula_baselines::registry().engines::<A>().len()];
    for isa in Isa::available() {
        let engine = entry.build(&routes, isa).expect("a small table is taken");
        let mut probes = probes::boundary(&routes).chain(extra.iter().copied());
        let report = check(&*engine, &oracle, &mut probes, 5);
        assert!(report.is_ok(), "{} {isa}: {report}\n{routes:?}", entry.name);
    }
    Ok(())
}
