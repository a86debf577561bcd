//! Section 3's counters: a changed prefix is expanded again, and its new and removed keys are counted in the filters
//! and written to the tables.

use fibula_core::{BuildError, Hop, Patched, Prefix, Route, Routes};

use super::bucket::{Address, Code, Keyed, code_of};
use super::build::{keys, paint};
use super::lookup::{key, place};
use super::tables::{Change, Tables, Writer};

/// Prefixes that expand to more than 2^this are left to a build.
const EXPANSION_MAX: u8 = 18;

impl<A: Address, C: Code> Tables<A, C> {
    pub(super) fn patch(
        &mut self,
        routes: &Routes<A>,
        changed: &[Prefix<A>],
    ) -> Result<Patched, BuildError> {
        if routes.hop_count() > C::HOPS_MAX {
            return Ok(Patched::Rebuild);
        }
        let mut counters = match self.counters.take() {
            Some(counters) => counters,
            None => self.count(),
        };
        let Self { direct_bits, direct, levels, long, gate, filters, buckets, .. } = self;
        let mut writer = Writer {
            hashes: self.hashes,
            filters: filters.to_mut(),
            buckets: buckets.to_mut(),
            counters: Some(&mut counters),
        };
        for &prefix in changed {
            let (len, top) = (prefix.len(), <A as Keyed>::TOP);
            let done = if len <= *direct_bits {
                let codes = expand(routes, prefix, 0, *direct_bits);
                let first = place(prefix.addr(), *direct_bits);
                direct.to_mut()[first..first + codes.len()].copy_from_slice(&codes);
                true
            } else if len <= top {
                let at =
                    levels.iter().rposition(|level| level.len >= len).expect("one of all bits");
                let shorter = levels.get(at + 1).map_or(*direct_bits, |next| next.len);
                let level = &mut levels[at];
                level.len - len <= EXPANSION_MAX && {
                    let codes = expand::<A, C>(routes, prefix, shorter + 1, level.len);
                    let mut each = keys::<A>(prefix, level.len).zip(codes);
                    each.all(|(key, code)| writer.set(level, key, code).is_some())
                }
            } else {
                let level = long.iter_mut().find(|level| level.len == len);
                let code = routes.get(prefix).map_or(C::NONE, |hop| C::of(code_of(hop)));
                match (level, &gate) {
                    (Some(level), Some(gate)) => {
                        let change = writer.set(level, prefix.addr().to_u128(), code);
                        if let Some(change @ (Change::Came | Change::Went)) = change {
                            writer.pass(gate, key::<A, u64>(prefix.addr(), gate.len), change);
                        }
                        change.is_some()
                    }
                    // A length that nobody had: its level is a build's to make.
                    _ => code == C::NONE,
                }
            };
            if !done {
                return Ok(Patched::Rebuild);
            }
        }
        self.counters = Some(counters);
        Ok(Patched::Applied)
    }
}

/// The codes of the prefixes of length `to` under the prefix, by the routes of `from` to `to` bits.
fn expand<A: Address, C: Code>(routes: &Routes<A>, prefix: Prefix<A>, from: u8, to: u8) -> Vec<C> {
    let covering = (from..prefix.len()).rev().find_map(|len| {
        routes.get(Prefix::masked(prefix.addr(), len).expect("shorter than a prefix"))
    });
    let covering = C::of(code_of(covering.unwrap_or(Hop::NONE)));
    let mut codes = vec![covering; 1 << (to - prefix.len())];
    let inside: &[Route<A>] = routes.within(prefix);
    paint(inside, to, prefix, &mut codes);
    codes
}
