use fibula_core::{Addr, Hop};

/// The batch of an engine that looks up one address after the other.
///
/// # Panics
/// If the slices differ in length.
#[inline(always)]
pub fn each<A: Addr>(addrs: &[A], hops: &mut [Hop], lookup: impl Fn(A) -> Hop) {
    assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
    for (hop, &addr) in hops.iter_mut().zip(addrs) {
        *hop = lookup(addr);
    }
}
