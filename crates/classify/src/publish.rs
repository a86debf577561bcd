//! A cache that one thread changes while others search it.

use std::fmt;
use std::mem;

use fibula_publish::{Numbered, Pinned, Published};

use crate::sync::{Arc, Threads, Weak};
use crate::{Batch, Cache, Match, Searcher};

/// A cache that does not change any more.
struct Generation {
    number: u64,
    cache: Cache,
}

impl Numbered for Generation {
    #[inline]
    fn number(&self) -> u64 {
        self.number
    }
}

/// What the writer and the readers share.
type Shared = Published<Generation, Threads>;

#[derive(Clone, Copy, Debug)]
enum Change {
    Insert(Match, u32),
    Remove(Match),
}

fn apply(cache: &mut Cache, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Insert(megaflow, number) => cache.insert(*megaflow, *number),
            Change::Remove(megaflow) => cache.remove(megaflow),
        };
    }
}

/// Changes a cache that [`Reader`]s search in other threads. Changes take effect together, when they are
/// [published](Writer::publish).
///
/// ```text
///   Writer ── changes ──► spare ── publish ──► newest ◄── pinned by Readers, a batch at a time
///                           ▲                    │
///                           └── once no reader has it: the same changes again
/// ```
///
/// There are two caches as long as no reader holds one back: the newest, and the one before it. To publish, the older
/// one gets the changes that it lacks and becomes the newest. A change therefore costs its time twice, and never a
/// copy. While a reader holds the older cache, the newest is copied instead.
///
/// ```
/// use fibula_classify::{Batch, Cache, Field, Flow, MISS, Mask, Match, Writer};
///
/// let mut writer = Writer::new(Cache::new());
/// let mut reader = writer.reader();
/// let (mut batch, mut numbers) = (Batch::new(), [0]);
/// batch.push(&Flow::default());
///
/// writer.insert(Match::new(Flow::default(), Mask::exact(Field::InPort)), 5);
/// reader.search(&batch, &mut numbers);
/// assert_eq!(numbers, [MISS]);
/// writer.publish();
/// reader.search(&batch, &mut numbers);
/// assert_eq!(numbers, [5]);
/// ```
pub struct Writer {
    shared: Arc<Shared>,
    /// The one before the newest, and what changed between them.
    spare: Option<(Arc<Generation>, Vec<Change>)>,
    changes: Vec<Change>,
    /// Generations that readers may have.
    given: Vec<Weak<Generation>>,
    number: u64,
}

impl Writer {
    /// Makes a writer whose first generation is this cache, with the number 1.
    pub fn new(cache: Cache) -> Self {
        let shared = Shared::new(Generation { number: 1, cache });
        let given = vec![Arc::downgrade(&shared.load())];
        Self { shared: Arc::new(shared), spare: None, changes: Vec::new(), given, number: 1 }
    }

    /// Makes a reader for another thread.
    pub fn reader(&self) -> Reader {
        Reader::of(&self.shared, Searcher::new())
    }

    /// Makes a reader with an exact-match cache.
    pub fn reader_with_exact(&self) -> Reader {
        Reader::of(&self.shared, Searcher::with_exact())
    }

    /// Inserts a megaflow, or gives an existing one another number.
    ///
    /// # Panics
    /// If the number is [`MISS`](crate::MISS).
    pub fn insert(&mut self, megaflow: Match, number: u32) {
        assert_ne!(number, crate::MISS, "the number of packets without a megaflow");
        self.changes.push(Change::Insert(megaflow, number));
    }

    /// Removes a megaflow.
    pub fn remove(&mut self, megaflow: &Match) {
        self.changes.push(Change::Remove(*megaflow));
    }

    /// Whether there are changes to publish.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Whether no reader holds the generation before the newest. Publishing then costs only the changes, without a
    /// copy.
    pub fn is_cheap(&self) -> bool {
        self.spare.as_ref().is_some_and(|(old, _)| Arc::strong_count(old) == 1)
    }

    /// Publishes all changes, and returns the number of the generation that has them. Does nothing if there are no
    /// changes.
    pub fn publish(&mut self) -> u64 {
        if self.changes.is_empty() {
            return self.number;
        }
        let changes = mem::take(&mut self.changes);
        let spare = self.spare.take().map(|(old, behind)| (Arc::try_unwrap(old), behind));
        let mut cache = match spare {
            Some((Ok(old), behind)) => {
                let mut cache = old.cache;
                apply(&mut cache, &behind);
                cache
            }
            _ => self.shared.load().cache.clone(),
        };
        apply(&mut cache, &changes);
        self.number += 1;
        let old = self.shared.publish(Generation { number: self.number, cache });
        self.given.retain(|given| given.strong_count() > 0);
        self.given.push(Arc::downgrade(&self.shared.load()));
        self.spare = Some((old, changes));
        self.number
    }

    /// The oldest generation that a reader holds, or the newest. Numbers of megaflows that only earlier generations
    /// had are not returned any more, and may be reused.
    pub fn oldest(&self) -> u64 {
        let spare = self.spare.as_ref().map(|(old, _)| old);
        let held = self.given.iter().filter_map(Weak::upgrade).filter(|given| {
            // This function's own, and the spare's.
            let own = 1 + usize::from(spare.is_some_and(|spare| Arc::ptr_eq(spare, given)));
            Arc::strong_count(given) > own
        });
        held.map(|given| given.number).min().unwrap_or(self.number)
    }

    /// Number of megaflows in the newest generation.
    pub fn len(&self) -> usize {
        self.shared.load().cache.len()
    }

    /// Whether the newest generation is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({}, {:?})", self.number, self.shared.load().cache)
    }
}

/// Searches the published caches of a [`Writer`], in one thread.
pub struct Reader {
    pinned: Pinned<Generation, Threads>,
    searcher: Searcher,
}

impl Reader {
    fn of(shared: &Arc<Shared>, searcher: Searcher) -> Self {
        Self { pinned: Pinned::new(shared), searcher }
    }

    /// Searches the newest generation; see [`Searcher::search`]. The generation stays pinned until the next search,
    /// so that the slow path can look the numbers up. It is never older than the generation of the last search.
    pub fn search(&mut self, batch: &Batch, numbers: &mut [u32]) {
        self.searcher.search(&self.pinned.pin().cache, batch, numbers);
    }

    /// The number of the last generation searched; 0 after a release.
    pub fn generation(&self) -> u64 {
        self.pinned.held().map_or(0, Generation::number)
    }

    /// Releases the generation. Idle readers should call this.
    pub fn release(&mut self) {
        self.pinned.release();
    }

    /// The counts of this reader.
    pub fn counts(&self) -> crate::Counts {
        self.searcher.counts()
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader({}, {:?})", self.generation(), self.counts())
    }
}
