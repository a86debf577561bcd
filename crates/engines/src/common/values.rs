use bytemuck::Pod;
use fibula_core::{Hop, LoadError, TableRef, TableSource};
use fibula_simd::Table;

use super::{optional_table, table};

const NARROW: &str = "values16";
const WIDE: &str = "values32";

/// Codes of answers, one for each interval or leaf: 16 bits each if all hops and blocks fit, to save half the memory,
/// else 32. Code 0 is no route, code *n* is hop *n* - 1; blocks of long routes, if there are any, count down from the
/// largest code.
pub enum Values {
    /// Codes of 16 bits.
    Narrow(Table<u16>),
    /// Codes of 32 bits.
    Wide(Table<u32>),
}

impl Values {
    /// Stores the codes, of so many hops and blocks, in the smaller width that has all of them.
    pub fn new(codes: &[u32], hop_count: u32, blocks: usize) -> Self {
        if hop_count as usize + blocks <= u16::MAX as usize {
            // Truncation to 16 bits leaves hops unchanged, and blocks still count down from the largest
            // code.
            Self::Narrow(Table::with(codes.len(), |narrow| {
                for (to, &from) in narrow.iter_mut().zip(codes) {
                    *to = from as u16;
                }
            }))
        } else {
            Self::Wide(Table::from_slice(codes))
        }
    }

    /// Number of codes.
    pub fn len(&self) -> usize {
        match self {
            Self::Narrow(codes) => codes.len(),
            Self::Wide(codes) => codes.len(),
        }
    }

    /// Whether there are no codes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The code of entry `index`.
    #[inline]
    pub(crate) fn code(&self, index: usize) -> u32 {
        match self {
            Self::Narrow(codes) => codes[index].into(),
            Self::Wide(codes) => codes[index],
        }
    }

    /// The most hops whose codes fit, in tables without blocks.
    pub(crate) fn most_hops(&self) -> u32 {
        match self {
            Self::Narrow(_) => u16::MAX.into(),
            Self::Wide(_) => u32::MAX,
        }
    }

    /// Writes codes that fit from `index` on.
    pub(crate) fn write(&mut self, index: usize, codes: &[u32]) {
        match self {
            Self::Narrow(own) => {
                let own = own.to_mut()[index..].iter_mut();
                own.zip(codes).for_each(|(own, &code)| *own = code as u16);
            }
            Self::Wide(own) => own.to_mut()[index..][..codes.len()].copy_from_slice(codes),
        }
    }

    /// Makes room for `len` codes; the new ones are 0.
    pub(crate) fn grow(&mut self, len: usize) {
        fn grown<V: Value>(codes: &Table<V>, len: usize) -> Table<V> {
            Table::with(len, |new| new[..codes.len()].copy_from_slice(codes))
        }
        match self {
            Self::Narrow(codes) => *codes = grown(codes, len),
            Self::Wide(codes) => *codes = grown(codes, len),
        }
    }

    /// The answer of interval `index`.
    #[inline]
    pub fn get(&self, index: usize, blocks: usize) -> Answer {
        match self {
            Self::Narrow(codes) => answer(codes[index], blocks),
            Self::Wide(codes) => answer(codes[index], blocks),
        }
    }

    /// The hop of entry `index`, in tables without blocks.
    #[inline]
    pub fn hop(&self, index: usize) -> Hop {
        match self {
            Self::Narrow(codes) => hop(codes[index].into()),
            Self::Wide(codes) => hop(codes[index]),
        }
    }

    /// The codes as they are stored.
    pub fn table_ref(&self) -> TableRef<'_> {
        match self {
            Self::Narrow(codes) => TableRef { name: NARROW, bytes: codes.as_bytes() },
            Self::Wide(codes) => TableRef { name: WIDE, bytes: codes.as_bytes() },
        }
    }

    /// The stored codes, each of which names a hop below `hop_count`, none, or one of the blocks.
    ///
    /// # Errors
    /// If the table is missing or names another hop.
    pub fn load(
        tables: &dyn TableSource,
        hop_count: u32,
        blocks: usize,
    ) -> Result<Self, LoadError> {
        fn check<V: Value>(codes: &[V], hop_count: u32, blocks: usize) -> bool {
            codes.iter().all(|&code| {
                matches!(answer(code, blocks), Answer::Block(_)) || code.into() <= hop_count
            })
        }
        let (values, sound) = match optional_table::<u16>(tables, NARROW)? {
            Some(codes) => {
                let sound = check(&codes, hop_count, blocks);
                (Self::Narrow(codes), sound)
            }
            None => {
                let codes = table::<u32>(tables, WIDE)?;
                let sound = check(&codes, hop_count, blocks);
                (Self::Wide(codes), sound)
            }
        };
        if sound {
            Ok(values)
        } else {
            Err(LoadError::new(values.table_ref().name, "names a hop beyond the hop count"))
        }
    }
}

/// A decoded code of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A hop, or none.
    Hop(Hop),
    /// The answer depends on the low bits, in this block of long routes.
    Block(usize),
}

/// A width of codes.
pub(crate) trait Value: Pod + Into<u32> {
    /// The largest code, that of block 0.
    const TOP: u32;
}

impl Value for u16 {
    const TOP: u32 = u16::MAX as u32;
}

impl Value for u32 {
    const TOP: u32 = u32::MAX;
}

/// Decodes a code of a table with this number of blocks.
#[inline(always)]
pub(crate) fn answer<V: Value>(code: V, blocks: usize) -> Answer {
    let code = code.into();
    let block = (V::TOP - code) as usize;
    if block < blocks { Answer::Block(block) } else { Answer::Hop(hop(code)) }
}

/// The hop of a code that is not a block's.
#[inline(always)]
pub fn hop(code: u32) -> Hop {
    Hop::from_bits(code.wrapping_sub(1))
}
