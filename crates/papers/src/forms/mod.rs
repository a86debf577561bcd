//! The searches that the paper on AVX-512 in Open vSwitch compares with the product's.
//!
//! A [`Cache`] is made for one [`Form`], because forms hash differently. Its megaflows are inserted once, and a
//! [`Searcher`] finds those of a [`Batch`]. The form [`Form::Packed`] is the product's cache, batch and searcher,
//! unchanged.

mod batch;
mod hash;
mod miniflow;
mod rows;
pub mod steps;
mod table;

use std::collections::HashMap;
use std::fmt;

use fibula_classify::{Context, Counts, Flow, MISS, Mask, Match, Parts};
use fibula_packet::Frame;
use fibula_simd::{Isa, Level};

use rows::{Columns, Crc, Gather, Murmur, Ranked, Search, Transposed};
use table::Table;

pub use miniflow::Miniflow;

/// Batches after which the subtables are ranked anew.
const RANK_EVERY: u32 = 256;

/// The search methods. All find the same megaflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// One packet after the other with MurmurHash3, like Open vSwitch without special instructions.
    Murmur,
    /// One packet after the other with CRC32C, like Open vSwitch with SSE4.2.
    Crc,
    /// MurmurHash3 of many packets at once, with words gathered from the array of miniflows. The paper advises
    /// against it.
    Gather,
    /// The paper's method: miniflows are transposed, two rounds of 16 packets as long as more than 8 are left.
    /// Packets whose bitmap differs from the majority's are searched one by one.
    Transposed,
    /// The paper's method with columns of the flow's words, as the product's: no packet is searched for by itself
    /// because its bitmap differs. A step between the two, and in no figure of the paper.
    Columns,
    /// The product's.
    Packed,
}

impl Form {
    /// All forms but [`Form::Columns`].
    pub const ALL: [Self; 5] =
        [Self::Murmur, Self::Crc, Self::Gather, Self::Transposed, Self::Packed];

    /// `"murmur"`, `"crc"`, `"gather"`, `"transposed"`, `"columns"` or `"packed"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Murmur => "murmur",
            Self::Crc => "crc",
            Self::Gather => "gather",
            Self::Transposed => "transposed",
            Self::Columns => "columns",
            Self::Packed => "packed",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Megaflows of one form, each with a number.
#[derive(Clone, Debug)]
pub enum Cache {
    /// A form of the paper.
    Rows(RowsCache),
    /// The product's.
    Packed(fibula_classify::Cache),
}

/// The megaflows of a form of the paper, by mask.
#[derive(Clone)]
pub struct RowsCache {
    form: Form,
    level: Level,
    tables: Vec<Table>,
    by_mask: HashMap<Mask, usize>,
}

impl fmt::Debug for RowsCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (isa, tables) = (self.level.isa(), self.tables.len());
        write!(f, "RowsCache({}, {isa}, {tables} masks)", self.form)
    }
}

impl Cache {
    /// Makes an empty cache for this form and instruction set. The seed is for the hash keys of [`Form::Packed`].
    pub fn with(form: Form, isa: Isa, seed: u64) -> Self {
        match form {
            Form::Packed => Self::Packed(fibula_classify::Cache::with(isa, seed)),
            _ => Self::Rows(RowsCache {
                form,
                level: isa.level(),
                tables: Vec::new(),
                by_mask: HashMap::new(),
            }),
        }
    }

    /// The form.
    pub fn form(&self) -> Form {
        match self {
            Self::Rows(cache) => cache.form,
            Self::Packed(_) => Form::Packed,
        }
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        match self {
            Self::Rows(cache) => cache.level.isa(),
            Self::Packed(cache) => cache.isa(),
        }
    }

    /// Number of megaflows.
    pub fn len(&self) -> usize {
        match self {
            Self::Rows(cache) => cache.tables.iter().map(|table| table.len).sum(),
            Self::Packed(cache) => cache.len(),
        }
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of masks.
    pub fn subtables(&self) -> usize {
        match self {
            Self::Rows(cache) => cache.tables.len(),
            Self::Packed(cache) => cache.subtables(),
        }
    }

    /// Bytes of all megaflows and filters.
    pub fn memory(&self) -> usize {
        match self {
            Self::Rows(cache) => cache.tables.iter().map(Table::memory).sum(),
            Self::Packed(cache) => cache.memory(),
        }
    }

    /// Inserts a megaflow. Of several that are equal, a search finds one.
    ///
    /// # Panics
    /// If the number is [`MISS`].
    pub fn insert(&mut self, megaflow: Match, number: u32) {
        match self {
            Self::Packed(cache) => {
                cache.insert(megaflow, number);
            }
            Self::Rows(cache) => {
                assert_ne!(number, MISS, "the number of packets without a megaflow");
                let RowsCache { form, tables, by_mask, .. } = cache;
                let at = *by_mask.entry(*megaflow.mask()).or_insert_with(|| {
                    tables.push(Table::new(*form, *megaflow.mask()));
                    tables.len() - 1
                });
                tables[at].insert(megaflow.flow(), number);
            }
        }
    }
}

/// A batch in the layout of a form.
#[derive(Clone, Debug)]
pub enum Batch {
    /// A form of the paper.
    Rows(batch::Rows),
    /// The product's.
    Packed(fibula_classify::Batch),
}

impl Batch {
    /// Makes an empty batch.
    pub fn new(form: Form) -> Self {
        match form {
            Form::Packed => Self::Packed(fibula_classify::Batch::new()),
            _ => Self::Rows(batch::Rows::new(form)),
        }
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.miniflows.len(),
            Self::Packed(batch) => batch.len(),
        }
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all packets.
    #[inline]
    pub fn clear(&mut self) {
        match self {
            Self::Rows(rows) => rows.clear(),
            Self::Packed(batch) => batch.clear(),
        }
    }

    /// Appends the packet in a frame.
    ///
    /// # Panics
    /// If the batch is full.
    #[inline(always)]
    pub fn push_frame(&mut self, frame: &Frame<'_>, context: &Context) {
        match self {
            Self::Rows(rows) => rows.push_frame(frame, context),
            Self::Packed(batch) => batch.push_frame(frame, context),
        }
    }

    /// Appends a packet, given as a flow.
    ///
    /// # Panics
    /// If the batch is full.
    pub fn push(&mut self, flow: &Flow) {
        match self {
            Self::Rows(rows) => rows.push(flow),
            Self::Packed(batch) => batch.push(flow),
        }
    }
}

/// The order of the subtables by hits, and counts. A searcher is for one cache.
#[derive(Clone, Debug, Default)]
pub struct Searcher {
    packed: fibula_classify::Searcher,
    order: Vec<Ranked>,
    batches: u32,
    counts: Counts,
}

impl Searcher {
    /// Makes a searcher, without an exact-match cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a searcher with some of the parts of [`Form::Packed`].
    pub fn with_parts(parts: Parts) -> Self {
        Self { packed: fibula_classify::Searcher::with_parts(parts), ..Self::default() }
    }

    /// The counts.
    pub fn counts(&self) -> Counts {
        match self.packed.counts() {
            counts if counts.packets > 0 => counts,
            _ => self.counts,
        }
    }

    /// Searches for all packets of the batch, and writes the numbers of their megaflows, or [`MISS`].
    ///
    /// # Panics
    /// If the batch has another form than the cache, or the number of results differs from the number of packets.
    pub fn search(&mut self, cache: &Cache, batch: &Batch, numbers: &mut [u32]) {
        match (cache, batch) {
            (Cache::Packed(cache), Batch::Packed(batch)) => {
                self.packed.search(cache, batch, numbers);
            }
            (Cache::Rows(cache), Batch::Rows(batch)) => self.rows(cache, batch, numbers),
            _ => panic!("the form of the cache"),
        }
    }

    fn rows(&mut self, cache: &RowsCache, batch: &batch::Rows, numbers: &mut [u32]) {
        assert_eq!(cache.form, batch.form(), "the form of the cache");
        assert_eq!(batch.miniflows.len(), numbers.len(), "a number for each packet");
        self.rank(cache);
        numbers.fill(MISS);
        self.counts.packets += numbers.len() as u64;
        let (tables, order) = (&*cache.tables, &mut *self.order);
        macro_rules! search {
            ($hasher:expr) => {
                cache.level.run(Search { tables, batch, numbers, order, hasher: $hasher })
            };
        }
        let (hits, tried) = match cache.form {
            Form::Crc => search!(Crc),
            Form::Gather => search!(Gather),
            Form::Transposed => search!(Transposed::default()),
            Form::Columns => search!(Columns),
            _ => search!(Murmur),
        };
        self.counts.hits += hits;
        self.counts.subtables += tried;
    }

    /// Orders the subtables by recent hits, from time to time.
    fn rank(&mut self, cache: &RowsCache) {
        let known = self.order.len();
        self.order.extend((known..cache.tables.len()).map(|at| Ranked { at, hits: 0 }));
        self.batches += 1;
        if self.batches >= RANK_EVERY {
            self.batches = 0;
            self.order.sort_by_key(|rank| std::cmp::Reverse(rank.hits));
            self.order.iter_mut().for_each(|rank| rank.hits /= 2);
        }
    }
}
