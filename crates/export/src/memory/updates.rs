use std::fmt;

use super::Memories;
use super::image::hex;

/// A step of an update of the memories, see [`Memories::updates`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateStep {
    /// Write this word to this address of the memory with this index.
    Write {
        /// The memory, as an index of [`Memories::images`].
        memory: usize,
        /// The word's address.
        address: u64,
        /// The word, little-endian.
        word: Vec<u8>,
    },
    /// Wait until the lookups that have begun are done.
    Drain,
}

impl fmt::Display for UpdateStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { memory, address, word } => {
                let mut digits = Vec::new();
                hex(word, &mut digits);
                write!(f, "w {memory} {address:x} {}", String::from_utf8_lossy(&digits))
            }
            Self::Drain => f.write_str("d"),
        }
    }
}

impl Memories<'_> {
    /// The writes that turn the memories of `before`, an earlier state of the same engine, into these.
    ///
    /// They are in an order in which each lookup beside them finds the answer of before or of after: words are written
    /// from the last memory of a lookup to the first, so that what an entry refers to is there before the entry; words
    /// that only mean "none" follow once no lookup that has read an older entry is on its way. A chunk that is no
    /// longer in use is left as it is, and one that comes into use is written whole.
    pub fn updates(&self, before: &Memories<'_>) -> Vec<UpdateStep> {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for (memory, (new, old)) in self.images.iter().zip(&before.images).enumerate().rev() {
            for index in 0..new.blocks() {
                let is_new = index >= old.blocks();
                if !is_new && new.block(index) == old.block(index) {
                    continue;
                }
                let unused = |is_zero: bool| is_zero && new.has_unused_chunks();
                if unused(new.is_zero(index)) {
                    continue;
                }
                let (from, words) = new.words(index);
                let known = (!is_new && !unused(old.is_zero(index))).then(|| old.words(index).1);
                for (i, word) in words.into_iter().enumerate() {
                    let Some(word) = word else { continue };
                    if known.as_ref().is_some_and(|known| known[i].as_ref() == Some(&word)) {
                        continue;
                    }
                    let is_late = new.zero_is_none && word.iter().all(|&byte| byte == 0);
                    let write = UpdateStep::Write { memory, address: from + i as u64, word };
                    if is_late { last.push(write) } else { first.push(write) }
                }
            }
        }
        if !first.is_empty() {
            first.push(UpdateStep::Drain);
        }
        if !last.is_empty() {
            last.push(UpdateStep::Drain);
        }
        first.extend(last);
        first
    }
}
