//! Tables that one thread publishes and others read, without locks on the way.
//!
//! ```text
//!   writer ── publish ──► Published: the newest generation, its number ──► Pinned: its own Arc, renewed if
//!                            │                                               the number differs, once a batch
//!                            └── the one before: reused, or dropped, once no reader holds it
//! ```
//!
//! A generation never changes once it is published. While nothing is published, reading costs one atomic load and one
//! comparison for each batch. The pointer itself is read once for each generation (`arc-swap`).
//!
//! Invariants:
//! - a reader that sees a number finds at least that generation;
//! - a reader has one generation for as long as a pin lives, and never returns to an earlier one;
//! - while a reader renews its generation it holds none, so an old one is not kept for the time of the change.
//!
//! What happens to generations that were replaced differs, and stays with those who publish: `rib` patches the one
//! before and waits while readers hold two; `classify` repeats the changes in the one before, or copies the newest;
//! `router` drops them in the control thread, and adopts a generation only once its numbers are known.
//!
//! ```
//! use std::sync::Arc;
//! use fibula_publish::{Numbered, Pinned, Published, Standard};
//!
//! struct Names { number: u64, names: Vec<&'static str> }
//!
//! impl Numbered for Names {
//!     fn number(&self) -> u64 {
//!         self.number
//!     }
//! }
//!
//! let first = Names { number: 1, names: vec!["a"] };
//! let published = Arc::new(Published::<Names, Standard>::new(first));
//! let mut reader = Pinned::new(&published);
//! assert_eq!(reader.pin().names, ["a"]);
//! let old = published.publish(Names { number: 2, names: vec!["a", "b"] });
//! assert_eq!((old.number, reader.pin().names.len()), (1, 2));
//! assert_eq!(Arc::strong_count(&old), 1, "the reader has the new one");
//! ```
//!
//! **Model checks.** The crates that publish test their threads with `shuttle`, which tries many schedules and needs
//! its own types in place of the standard ones. [`sync!`] declares a module `sync` with the types of the standard
//! library, or of `shuttle` in the unit tests of the crate that calls it, and [`Published`] takes the difference as a
//! parameter, `sync::Threads`. So the code here is what those tests check.
#![forbid(unsafe_code)]

mod primitives;
mod sync;

use std::fmt;
use std::sync::Arc;

pub use primitives::{Primitives, Standard};

/// A generation: a value with a number, which increases from one generation to the next.
pub trait Numbered {
    /// Its number.
    fn number(&self) -> u64;
}

/// The newest generation, which a writer replaces and readers take. In a cache line of its own, because readers load
/// the number for every batch.
#[repr(align(64))]
pub struct Published<T, S: Primitives> {
    number: S::Number,
    newest: S::Cell<T>,
}

impl<T: Numbered, S: Primitives> Published<T, S> {
    /// Publishes the first generation.
    pub fn new(first: T) -> Self {
        Self { number: S::number(first.number()), newest: S::cell(Arc::new(first)) }
    }

    /// Replaces the newest generation. Returns the one before, which readers may still have.
    pub fn publish(&self, next: T) -> Arc<T> {
        let number = next.number();
        let old = S::swap(&self.newest, Arc::new(next));
        // After the swap: a reader that sees the number finds at least this generation.
        S::store_number(&self.number, number);
        old
    }

    /// The number of the newest generation.
    #[inline]
    pub fn number(&self) -> u64 {
        S::load_number(&self.number)
    }

    /// The newest generation.
    pub fn load(&self) -> Arc<T> {
        S::load(&self.newest)
    }

    /// Replaces a generation that is not the newest: one load while nothing is new.
    #[inline]
    pub fn renew(&self, held: &mut Arc<T>) {
        if self.number() != held.number() {
            *held = self.load();
        }
    }
}

/// One thread's generation of a [`Published`] value.
pub struct Pinned<T, S: Primitives> {
    published: Arc<Published<T, S>>,
    held: Option<Arc<T>>,
}

impl<T: Numbered, S: Primitives> Pinned<T, S> {
    /// Holds no generation yet.
    pub fn new(published: &Arc<Published<T, S>>) -> Self {
        Self { published: Arc::clone(published), held: None }
    }

    /// The newest generation, for one batch.
    #[inline]
    pub fn pin(&mut self) -> &T {
        let newest = self.published.number();
        if self.held.as_ref().is_none_or(|held| held.number() != newest) {
            self.renew();
        }
        self.held.as_deref().expect("a generation was just taken")
    }

    #[cold]
    fn renew(&mut self) {
        // The old one is dropped first: between the two lines this reader holds no generation.
        self.held = None;
        self.held = Some(self.published.load());
    }

    /// The last pinned generation, if it was not released. There may be newer ones.
    #[inline]
    pub fn held(&self) -> Option<&T> {
        self.held.as_deref()
    }

    /// Whether [`Pinned::pin`] would return the generation that is held.
    #[inline]
    pub fn is_newest(&self) -> bool {
        let newest = self.published.number();
        self.held.as_ref().is_some_and(|held| held.number() == newest)
    }

    /// Releases the generation. Idle readers should call this.
    pub fn release(&mut self) {
        self.held = None;
    }
}

/// Another reader, without a generation.
impl<T: Numbered, S: Primitives> Clone for Pinned<T, S> {
    fn clone(&self) -> Self {
        Self::new(&self.published)
    }
}

impl<T: Numbered, S: Primitives> fmt::Debug for Pinned<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("held", &self.held().map(T::number)).finish_non_exhaustive()
    }
}
