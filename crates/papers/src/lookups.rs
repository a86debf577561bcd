//! Engines that are measured, and loops of lookups, to be timed by the thread's own clock.

use std::hint::black_box;

use fibula_core::{Addr, BoxedEngine, Hop, Lookup, Routes};
use fibula_simd::Isa;
use fibula_testkit::measure::fold;

use crate::out::{Failure, note};

/// Keys whose hops are kept at a time.
const BATCH_MAX: usize = 1024;

/// Looks keys up in batches, at most 1,024 together: the sum of the hops.
pub fn in_batches<A: Addr>(engine: &dyn Lookup<A>, keys: &[A], batch: usize) -> u32 {
    let mut hops = [Hop::NONE; BATCH_MAX];
    keys.chunks(batch.clamp(1, BATCH_MAX)).fold(0, |sum: u32, keys| {
        let hops = &mut hops[..keys.len()];
        engine.lookup_batch(keys, hops);
        sum.wrapping_add(fold(hops))
    })
}

/// Looks keys up one after the other, each once the last answer is there: the sum of the hops.
pub fn one_by_one<A: Addr>(engine: &dyn Lookup<A>, keys: &[A]) -> u32 {
    // Each key is changed by the last hop and a zero that the compiler does not know.
    let zero = black_box(0u32);
    let (mut change, mut sum) = (0, 0u32);
    for key in keys {
        let hop = engine.lookup(key.xor(A::from_u128(u128::from(change)))).to_bits();
        sum = sum.wrapping_add(hop);
        change = hop & zero;
    }
    sum
}

/// An engine and its name.
pub type Named<'a, A> = (&'a str, BoxedEngine<A>);

/// The engines of these names that take the table and in which `wrong` finds no difference, and whether it found one in
/// others. The user is told of those that are left out.
///
/// # Errors
/// If there is no engine of a name.
pub fn right_engines<'a, A: Addr>(
    names: &[&'a str],
    routes: &Routes<A>,
    mut wrong: impl FnMut(&dyn Lookup<A>) -> Option<String>,
) -> Result<(Vec<Named<'a, A>>, bool), Failure> {
    let (mut engines, mut is_wrong) = (Vec::new(), false);
    for &name in names {
        let entry = fibula_baselines::registry()
            .find::<A>(name)
            .ok_or_else(|| format!("no engine {name} for IP{}", A::FAMILY))?;
        match entry.build(routes, Isa::detect()) {
            Err(error) => note(format_args!("{name} does not take the table: {error}")),
            Ok(engine) => match wrong(&*engine) {
                None => engines.push((name, engine)),
                Some(wrong) => {
                    note(format_args!("{name} is wrong and left out: {wrong}"));
                    is_wrong = true;
                }
            },
        }
    }
    Ok((engines, is_wrong))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_testkit::traffic::{Traffic, keys};
    use fibula_testkit::{Oracle, tables};

    #[test]
    fn each_key_is_looked_up_once() {
        let routes = tables::dense::<u32>(3, 300);
        let oracle = Oracle::new(&routes);
        let keys = keys(&routes, Traffic::Pfx, 2500, 1);
        let hops: Vec<Hop> = keys.iter().map(|key| oracle.lookup(*key)).collect();
        for batch in [1, 64, 1000, 5000] {
            assert_eq!(in_batches(&oracle, &keys, batch), fold(&hops));
        }
        assert_eq!(one_by_one(&oracle, &keys), fold(&hops));
    }
}
