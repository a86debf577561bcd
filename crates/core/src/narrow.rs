use crate::{Addr, Hop, Lookup};

/// Lookups with results in 16-bit buffers, which need half the memory.
///
/// For tables of up to [`Hops16::HOPS_MAX`] hops. The result is the hop's index, or [`Hops16::NONE`] for an address
/// without a route.
///
/// ```
/// use fibula_core::{Addr, Hop, Hops16, Lookup, Memory};
///
/// /// All addresses that begin with 10 have hop 7.
/// struct Ten;
/// impl Lookup<u32> for Ten {
///     fn lookup(&self, addr: u32) -> Hop {
///         if addr >> 24 == 10 { Hop::new(7) } else { Hop::NONE }
///     }
///     fn lookup_batch(&self, addrs: &[u32], hops: &mut [Hop]) {
///         addrs.iter().zip(hops).for_each(|(&addr, hop)| *hop = self.lookup(addr));
///     }
///     fn memory(&self) -> Memory {
///         Memory::default()
///     }
/// }
///
/// let narrow = Hops16::new(Ten, 8).expect("eight hops, counted from 0, fit");
/// let mut hops = [0; 2];
/// narrow.lookup_batch(&[0x0a00_0001, 0x0b00_0001], &mut hops);
/// assert_eq!(hops, [7, Hops16::<Ten>::NONE]);
/// assert!(Hops16::new(Ten, 1 << 16).is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Hops16<E>(E);

impl<E> Hops16<E> {
    /// No route covers the address.
    pub const NONE: u16 = u16::MAX;
    /// Number of hops that 16 bits can distinguish, besides [`NONE`](Self::NONE).
    pub const HOPS_MAX: u32 = u16::MAX as u32;

    /// Wraps an engine built from routes with this number of hops (`Routes::hop_count`); `None` if it is more than
    /// [`HOPS_MAX`](Self::HOPS_MAX).
    pub fn new(engine: E, hop_count: u32) -> Option<Self> {
        (hop_count <= Self::HOPS_MAX).then_some(Self(engine))
    }

    /// Like [`Lookup::lookup_batch`], with 16-bit results.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn lookup_batch<A: Addr>(&self, addrs: &[A], hops: &mut [u16])
    where
        E: Lookup<A>,
    {
        self.0.lookup_batch16(addrs, hops);
    }
}

/// The buffer for hops between a lookup and a 16-bit result: 1 KB, which fits the first-level cache and is a good
/// batch size.
const BLOCK: usize = 256;

/// [`Lookup::lookup_batch16`] by means of [`Lookup::lookup_batch`]: its default, for engines that write 16 bits
/// for some of their tables only.
///
/// # Panics
/// If the slices differ in length.
pub fn narrow_batch<A: Addr>(engine: &(impl Lookup<A> + ?Sized), addrs: &[A], hops: &mut [u16]) {
    assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
    let mut wide = [Hop::NONE; BLOCK];
    for (addrs, hops) in addrs.chunks(BLOCK).zip(hops.chunks_mut(BLOCK)) {
        let wide = &mut wide[..addrs.len()];
        engine.lookup_batch(addrs, wide);
        for (to, hop) in hops.iter_mut().zip(wide) {
            // The bits of `Hop::NONE` are all ones; sixteen of them are kept.
            *to = hop.to_bits() as u16;
        }
    }
}
