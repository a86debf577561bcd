//! Bounds the memory of batches before a library unpacks them.

use std::collections::HashMap;
use std::fmt::Display;

use crate::AnnotateError;

/// Without a limit, a batch may be unpacked to this number of bytes, or to this multiple of its stored ones.
const UNPACKED: u64 = 256 << 20;
const RATIO: u64 = 64;

/// The bytes of a batch, and the number of bytes that they are unpacked to.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) stored: u64,
    pub(super) unpacked: u64,
}

/// The memory that batches may take, and that dictionaries have taken.
pub(super) struct Room {
    limit: Option<u64>,
    dictionaries: HashMap<i64, Size>,
}

impl Room {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self { limit, dictionaries: HashMap::new() }
    }

    /// Whether the bytes of a message may be read.
    pub(super) fn check_stored(&self, what: impl Display, bytes: u64) -> Result<(), AnnotateError> {
        match self.limit {
            Some(limit) if bytes > limit => Err(too_large(what, bytes, limit)),
            _ => Ok(()),
        }
    }

    /// Whether a batch may be unpacked beside the dictionaries.
    pub(super) fn check(&self, what: impl Display, size: Size) -> Result<(), AnnotateError> {
        let (mut stored, mut unpacked) = (size.stored, size.unpacked);
        for dictionary in self.dictionaries.values() {
            stored = stored.saturating_add(dictionary.stored);
            unpacked = unpacked.saturating_add(dictionary.unpacked);
        }
        let limit = self.limit.unwrap_or_else(|| UNPACKED.max(stored.saturating_mul(RATIO)));
        match unpacked > limit {
            true => Err(too_large(what, unpacked, limit)),
            false => Ok(()),
        }
    }

    /// Counts a dictionary; a delta is added to what there is of it.
    pub(super) fn keep(&mut self, id: i64, size: Size, is_delta: bool) {
        let kept = self.dictionaries.entry(id).or_default();
        let before = if is_delta { *kept } else { Size::default() };
        *kept = Size {
            stored: before.stored.saturating_add(size.stored),
            unpacked: before.unpacked.saturating_add(size.unpacked),
        };
    }
}

fn too_large(what: impl Display, bytes: u64, limit: u64) -> AnnotateError {
    AnnotateError::File {
        what: format!(
            "{what} takes {bytes} bytes of memory with the dictionaries before it, more than {limit}; write smaller \
             batches"
        ),
    }
}
