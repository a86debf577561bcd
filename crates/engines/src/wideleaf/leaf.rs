use bytemuck::Pod;
use fibula_simd::Simd;

/// A cache line of a node or a leaf.
pub(super) type Line = [u32; 16];

/// Children of a node: one for each key, and one more.
pub(super) const CHILDREN: usize = 17;
/// What stands where no key does.
pub(super) const NO_KEY: u32 = u32::MAX;

/// How a leaf divides its line: the keys where its intervals end, but for the last one, and behind
/// them the codes of all.
pub(super) trait Leaf: Send + Sync + Sized + Clone {
    /// A code as it is stored.
    type Code: Pod + Into<u32>;
    /// Keys that a leaf holds; it holds one code more.
    const KEYS: usize;
    /// The largest code.
    const TOP: u32;
    /// The stored table's name.
    const NAME: &'static str;

    fn code(code: u32) -> Self::Code;
    /// How many keys are below the key; at most [`KEYS`](Leaf::KEYS).
    fn rank<S: Simd>(simd: S, line: &Line, key: S::Splat32) -> u32;
    /// [`Simd::below32`] of the keys.
    fn below<S: Simd>(simd: S, line: &Line, key: S::Splat32) -> S::Verdict;
    /// [`Simd::ranks`] of the keys; at most [`KEYS`](Leaf::KEYS).
    fn ranks<S: Simd>(simd: S, verdicts: &[S::Verdict; 16]) -> S::Row;

    /// The codes of a leaf.
    #[inline(always)]
    fn codes(line: &Line) -> &[Self::Code] {
        bytemuck::cast_slice(&line[Self::KEYS..])
    }

    /// A leaf of these intervals: as many codes as keys, and one more.
    fn line(keys: &[u32], codes: impl Iterator<Item = u32>) -> Line {
        let mut line = [0; 16];
        let (to_keys, to_codes) = line.split_at_mut(Self::KEYS);
        to_keys.fill(NO_KEY);
        to_keys[..keys.len()].copy_from_slice(keys);
        let to_codes: &mut [Self::Code] = bytemuck::cast_slice_mut(to_codes);
        for (to, code) in to_codes.iter_mut().zip(codes) {
            *to = Self::code(code);
        }
        line
    }
}

/// Ten keys, eleven codes of 16 bits.
#[derive(Clone, Copy)]
pub(super) struct Narrow;

impl Leaf for Narrow {
    type Code = u16;
    const KEYS: usize = 10;
    const TOP: u32 = u16::MAX as u32;
    const NAME: &'static str = "lines16";

    fn code(code: u32) -> u16 {
        code as u16
    }
    #[inline(always)]
    fn rank<S: Simd>(simd: S, line: &Line, key: S::Splat32) -> u32 {
        simd.rank32_first::<10>(line, key)
    }
    #[inline(always)]
    fn below<S: Simd>(simd: S, line: &Line, key: S::Splat32) -> S::Verdict {
        simd.below32::<10>(line, key)
    }
    #[inline(always)]
    fn ranks<S: Simd>(simd: S, verdicts: &[S::Verdict; 16]) -> S::Row {
        simd.ranks::<10>(verdicts)
    }
}

/// Seven keys, eight codes of 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Wide;

impl Leaf for Wide {
    type Code = u32;
    const KEYS: usize = 7;
    const TOP: u32 = super::word::CODE_MAX;
    const NAME: &'static str = "lines32";

    fn code(code: u32) -> u32 {
        code
    }
    #[inline(always)]
    fn rank<S: Simd>(simd: S, line: &Line, key: S::Splat32) -> u32 {
        simd.rank32_first::<7>(line, key)
    }
    #[inline(always)]
    fn below<S: Simd>(simd: S, line: &Line, key: S::Splat32) -> S::Verdict {
        simd.below32::<7>(line, key)
    }
    #[inline(always)]
    fn ranks<S: Simd>(simd: S, verdicts: &[S::Verdict; 16]) -> S::Row {
        simd.ranks::<7>(verdicts)
    }
}

/// How many lines the intervals take that end at so many keys and go on to the end of the block;
/// `None` if a node has not enough children.
pub(super) fn lines<L: Leaf>(keys: usize) -> Option<usize> {
    match (keys + 1).div_ceil(L::KEYS + 1) {
        0 | 1 => Some(1),
        leaves if leaves <= CHILDREN => Some(leaves + 1),
        _ => None,
    }
}
