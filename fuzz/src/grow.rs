//! Tables from a fuzzer's bytes.

use fibula_core::{Addr, Hop, Prefix, Route};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

/// What the next bytes stand for.
pub enum Grown<A: Addr> {
    /// A route of the table, whose hop is below 256.
    Route(Route<A>),
    /// An address to look up.
    Addr(A),
}

/// A route for a relative of an earlier prefix (inside it, around it, beside it, or a host at its edge), or an address,
/// from the next 4 to 20 bytes.
///
/// # Errors
/// Never: the input continues with zeros.
pub fn grow<A: Addr>(earlier: &[Prefix<A>], input: &mut Unstructured<'_>) -> Result<Grown<A>> {
    let masked =
        |addr: A, len: u8| Prefix::masked(addr, len.min(A::BITS)).expect("a length in range");
    let [kind, from, by, hop]: [u8; 4] = input.arbitrary()?;
    // Counted from the last one, so that chains are short to write.
    let back = earlier.len().checked_sub(1 + usize::from(from) % earlier.len().max(1));
    let from = back.map_or(Prefix::ALL, |at| earlier[at]);
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
        _ => return Ok(Grown::Addr(A::from_u128(input.arbitrary()?))),
    };
    Ok(Grown::Route(Route { prefix, hop: Hop::new(hop.into()) }))
}
