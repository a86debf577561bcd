//! Engines against the oracle, on dense nested tables grown from the input.
#![no_main]

use fibula_core::{Addr, Hop, Prefix, Routes};
use fibula_engines::{EngineFamily, engines};
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

fn run<A: EngineFamily>(engine: u8, input: &mut Unstructured<'_>) -> Result<()> {
    let (routes, extra) = table::<A>(input)?;
    let oracle = Oracle::new(&routes);
    let entry = &engines::<A>()[usize::from(engine) % engines::<A>().len()];
    for isa in Isa::available() {
        let engine = entry.build(&routes, isa).expect("a small table is taken");
        let mut probes = probes::boundary(&routes).chain(extra.iter().copied());
        let report = check(&*engine, &oracle, &mut probes, 5);
        assert!(report.is_ok(), "{} {isa}: {report}\n{routes:?}", entry.name);
    }
    Ok(())
}

/// Each prefix is a relative of an earlier one: inside it, around it, beside it, or a host at its edge.
fn table<A: Addr>(input: &mut Unstructured<'_>) -> Result<(Routes<A>, Vec<A>)> {
    let masked =
        |addr: A, len: u8| Prefix::masked(addr, len.min(A::BITS)).expect("a length in range");
    let (mut all, mut extra) = (Vec::<(Prefix<A>, Hop)>::new(), Vec::new());
    while !input.is_empty() && all.len() < 1000 {
        let [kind, from, by, hop]: [u8; 4] = input.arbitrary()?;
        // Counted from the last one, so that chains are short to write.
        let back = all.len().checked_sub(1 + usize::from(from) % all.len().max(1));
        let from = back.map_or(Prefix::ALL, |at| all[at].0);
        let (first, last, len) = (from.first(), from.last(), from.len());
        let deeper = len.saturating_add(1 + by % 8);
        let prefix = match kind % 11 {
            0 => masked(A::from_u128(input.arbitrary()?), by % (A::BITS + 1)),
            1 => masked(first.or(A::from_u128(input.arbitrary::<u16>()?.into())), deeper),
            2 => masked(first, deeper),
            3 => masked(last, deeper),
            4 => masked(first, len.saturating_sub(1 + by % 8)),
            5 => masked(last.successor().unwrap_or(A::MAX), len),
            6 => masked(first.predecessor().unwrap_or(A::MIN), len),
            7 => Prefix::host(first),
            8 => Prefix::host(last),
            9 => masked(first, by % (A::BITS + 1)),
            _ => {
                extra.push(A::from_u128(input.arbitrary()?));
                continue;
            }
        };
        all.push((prefix, Hop::new(hop.into())));
    }
    Ok((all.into_iter().collect(), extra))
}
