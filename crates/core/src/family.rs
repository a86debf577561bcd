use crate::Addr;

/// A type that exists once for each address family, named without the family. [`PerFamily`] holds one value for each.
///
/// Generic associated types cannot be passed as parameters, so an empty type represents the type.
pub trait FamilyType {
    /// The type for this family.
    type Of<A: Addr>;
}

/// One value for IPv4 and one for IPv6, of the same kind.
///
/// Code that is generic over the address type takes its half with [`PerFamily::get`]; code for both families uses the
/// fields.
///
/// ```
/// use fibula_core::{Addr, FamilyType, PerFamily, Prefix};
///
/// struct Prefixes;
/// impl FamilyType for Prefixes {
///     type Of<A: Addr> = Vec<Prefix<A>>;
/// }
///
/// fn add<A: Addr>(seen: &mut PerFamily<Prefixes>, prefix: Prefix<A>) {
///     seen.get_mut::<A>().push(prefix);
/// }
///
/// let mut seen = PerFamily::<Prefixes>::default();
/// add(&mut seen, Prefix::<u32>::ALL);
/// assert_eq!((seen.v4.len(), seen.get::<u128>().len()), (1, 0));
/// ```
pub struct PerFamily<K: FamilyType> {
    /// For IPv4.
    pub v4: K::Of<u32>,
    /// For IPv6.
    pub v6: K::Of<u128>,
}

impl<K: FamilyType> PerFamily<K> {
    /// The value of this family.
    #[inline]
    pub fn get<A: Addr>(&self) -> &K::Of<A> {
        A::half(self)
    }

    /// A mutable reference to the value of this family.
    #[inline]
    pub fn get_mut<A: Addr>(&mut self) -> &mut K::Of<A> {
        A::half_mut(self)
    }
}

impl<K: FamilyType> Default for PerFamily<K>
where
    K::Of<u32>: Default,
    K::Of<u128>: Default,
{
    fn default() -> Self {
        Self { v4: Default::default(), v6: Default::default() }
    }
}

impl<K: FamilyType> Clone for PerFamily<K>
where
    K::Of<u32>: Clone,
    K::Of<u128>: Clone,
{
    fn clone(&self) -> Self {
        Self { v4: self.v4.clone(), v6: self.v6.clone() }
    }
}
