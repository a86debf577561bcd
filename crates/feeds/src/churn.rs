use fibula_core::{Addr, AnyPrefix, Attributes, Change, Prefix, Update, Value};
use fibula_testkit::Rng;

use fibula_rib::Listener;

use crate::FeedError;
use crate::listen::NOBODY;

/// Values that churn gives to routes.
const VALUES: u64 = 256;

/// Generates updates for a table with these prefixes: 85 % give a route another value, 5 % announce a prefix inside
/// another one, 10 % withdraw. They depend only on the prefixes and the seed. Added prefixes are no longer than those
/// in real feeds, because a table of long routes would behave differently.
///
/// # Errors
/// [`FeedError::EmptyTable`] without prefixes, and errors of the listener.
pub fn churn(
    count: u64,
    seed: u64,
    prefixes: &[AnyPrefix],
    to: &mut dyn Listener,
) -> Result<(), FeedError> {
    if prefixes.is_empty() {
        return Err(FeedError::EmptyTable);
    }
    let peer = to.peer(&NOBODY);
    let mut rng = Rng::new(seed);
    for _ in 0..count {
        let prefix = prefixes[rng.below(prefixes.len() as u64) as usize];
        let kind = rng.below(100);
        let values = [Value::Int(rng.below(VALUES))];
        let prefix = if kind >= 95 { inside(prefix, &mut rng) } else { prefix };
        let change = match kind {
            0..10 => Change::Withdraw,
            _ => Change::Announce(Attributes::Values(&values)),
        };
        to.update(&Update { peer, ..Update::new(prefix, change) })?;
    }
    Ok(())
}

/// A prefix one or two bits longer, if that is no longer than /24 or /48.
fn inside(prefix: AnyPrefix, rng: &mut Rng) -> AnyPrefix {
    fn longer<A: Addr>(prefix: Prefix<A>, rng: &mut Rng) -> AnyPrefix {
        let longest = if A::BITS == 32 { 24 } else { 48 };
        let len = (prefix.len() + 1 + rng.below(2) as u8).min(longest).max(prefix.len());
        Prefix::masked(rng.addr_in(prefix), len).unwrap_or(prefix).into()
    }
    match prefix {
        AnyPrefix::V4(prefix) => longer(prefix, rng),
        AnyPrefix::V6(prefix) => longer(prefix, rng),
    }
}
