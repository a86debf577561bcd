use bytemuck::Pod;

/// Half a cache line of records: the amount that the second-level cache delivers at a time.
pub(super) type Half = [u16; 16];

/// The most keys of a record.
pub(super) const KEYS_MAX: usize = 16;

/// A width of records' codes.
///
/// A record has its keys, 16 bits each, in ascending order, followed by its codes, one more than keys. The keys
/// lie in one half line; the codes of large records continue in the next halves.
pub(super) trait Codes: Send + Sync + Sized + Clone {
    /// The stored form of a code.
    type Code: Pod + Into<u32>;
    /// The largest code.
    const TOP: u32;
    /// The stored table's name.
    const NAME: &'static str;

    fn code(code: u32) -> Self::Code;

    /// The place of the codes of a record that begins at this byte, counted in codes.
    #[inline(always)]
    fn codes_at(byte: usize, keys: usize) -> usize {
        (byte + 2 * keys).div_ceil(size_of::<Self::Code>())
    }

    /// The bytes of a record that begins at a multiple of four.
    fn bytes(keys: usize) -> usize {
        (Self::codes_at(0, keys) + keys + 1) * size_of::<Self::Code>()
    }
}

macro_rules! codes {
    ($name:ident, $code:ty, $top:expr, $stored:literal) => {
        #[doc = concat!("Codes that are `", stringify!($code), "`.")]
        #[derive(Clone, Copy)]
        pub(super) struct $name;

        impl Codes for $name {
            type Code = $code;
            const TOP: u32 = $top;
            const NAME: &'static str = $stored;

            fn code(code: u32) -> $code {
                code as $code
            }
        }
    };
}

codes!(Byte, u8, u8::MAX as u32, "records8");
codes!(Narrow, u16, u16::MAX as u32, "records16");
codes!(Wide, u32, super::word::CODE_MAX, "records32");

/// Builds the array of records.
pub(super) struct Records<C> {
    codes: std::marker::PhantomData<C>,
    /// The place of the first half.
    base: usize,
    halves: Vec<Half>,
    /// Halves by their free space in units of four bytes: smaller records fill the gaps that larger ones leave. A record
    /// larger than a half begins at a line, so that it occupies as few lines as possible.
    open: [Vec<usize>; 9],
}

impl<C: Codes> Records<C> {
    /// Records to be placed from the half `base` on.
    pub(super) fn new(base: usize) -> Self {
        Self { codes: std::marker::PhantomData, base, halves: Vec::new(), open: Default::default() }
    }

    /// Writes a record, and returns its first byte, counted from the start of all records.
    pub(super) fn push(&mut self, keys: &[u16], codes: &[u32]) -> usize {
        const HALF: usize = size_of::<Half>();
        let bytes = C::bytes(keys.len()).next_multiple_of(4);
        let fit = (bytes / 4..9).find_map(|left| Some((left, self.open[left].pop()?)));
        let (start, left) = match fit {
            Some((left, half)) => ((half + 1) * HALF - 4 * left, 4 * left - bytes),
            None => {
                if bytes > HALF && !(self.base + self.halves.len()).is_multiple_of(2) {
                    self.open[8].push(self.halves.len());
                    self.halves.push([0; 16]);
                }
                let start = self.halves.len() * HALF;
                let end = start + bytes;
                self.halves.resize(end.div_ceil(HALF), [0; 16]);
                (start, self.halves.len() * HALF - end)
            }
        };
        if left > 0 {
            self.open[left / 4].push((start + bytes) / HALF);
        }
        let all: &mut [u16] = self.halves.as_flattened_mut();
        all[start / 2..][..keys.len()].copy_from_slice(keys);
        let all: &mut [C::Code] = bytemuck::cast_slice_mut(all);
        for (to, &code) in all[C::codes_at(start, keys.len())..].iter_mut().zip(codes) {
            *to = C::code(code);
        }
        self.base * HALF + start
    }

    pub(super) fn halves(&self) -> &[Half] {
        &self.halves
    }
}
