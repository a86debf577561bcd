use bytemuck::Pod;

/// Half a cache line of records: so much comes from the second level of the caches at a time.
pub(super) type Half = [u16; 16];

/// Keys of a record, at most.
pub(super) const KEYS_MAX: usize = 16;

/// How large the codes of records are.
///
/// A record is its keys, 16 bits each, ascending, and behind them its codes, one more. Keys stand in one
/// half of a line; the codes of large records go on in the next ones.
pub(super) trait Codes: Send + Sync + Sized + Clone {
    /// A code as it is stored.
    type Code: Pod + Into<u32>;
    /// The largest code.
    const TOP: u32;
    /// The stored table's name.
    const NAME: &'static str;

    fn code(code: u32) -> Self::Code;

    /// Where the codes of a record stand that begins at this byte: a number of codes.
    #[inline(always)]
    fn codes_at(byte: usize, keys: usize) -> usize {
        (byte + 2 * keys).div_ceil(size_of::<Self::Code>())
    }

    /// Bytes of a record, from a multiple of four on.
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

/// Records, as they are written.
pub(super) struct Records<C> {
    codes: std::marker::PhantomData<C>,
    /// The place of the first half.
    base: usize,
    halves: Vec<Half>,
    /// Halves with so many times four bytes left: smaller records fill up what larger ones leave. The
    /// largest ones begin with a line, so as to touch one only.
    open: [Vec<usize>; 9],
}

impl<C: Codes> Records<C> {
    /// Records from this place on, which counts halves.
    pub(super) fn new(base: usize) -> Self {
        Self { codes: std::marker::PhantomData, base, halves: Vec::new(), open: Default::default() }
    }

    /// Writes a record, and gives back its first byte in all records.
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
