//! The sections of a file whose header and section table are sound: by name, as bytes, JSON or arrays.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::SnapshotError;
use super::error::SnapshotErrorKind as Kind;
use super::format::{self, Section};
use crate::array::{Array, Image};

type Result<T> = std::result::Result<T, SnapshotError>;

/// The bytes of a file, and the positions of its sections.
pub(crate) struct Sections {
    pub(super) image: Arc<Image>,
    pub(super) list: Vec<Section>,
}

impl Sections {
    fn bytes(&self, section: &Section) -> &[u8] {
        &(*self.image).as_ref()[section.place.clone()]
    }

    /// Every byte is read.
    pub(super) fn check_sums(&self) -> Result<()> {
        for section in &self.list {
            if format::checksum(self.bytes(section)) != section.checksum {
                let error = SnapshotError::new(Kind::Damaged, "the checksum differs");
                return Err(error.in_section(&section.name, section.place.start));
            }
        }
        Ok(())
    }

    fn section(&self, name: &str) -> Result<&Section> {
        let found = self.list.iter().find(|s| s.name == name);
        found.ok_or_else(|| SnapshotError::invalid(format!("there is no section {name}")))
    }

    /// An error with the section's name and place.
    pub(crate) fn blame(&self, name: &str, reason: impl Into<String>) -> SnapshotError {
        let error = SnapshotError::invalid(reason);
        match self.section(name) {
            Ok(section) => error.in_section(name, section.place.start),
            Err(_) => error,
        }
    }

    /// An error about item `index` of a section of items of type `T`.
    pub(crate) fn blame_item<T>(
        &self,
        name: &str,
        index: usize,
        reason: impl AsRef<str>,
    ) -> SnapshotError {
        let start = self.section(name).map_or(0, |s| s.place.start);
        let offset = start + index * size_of::<T>();
        let reason = format!("item {index}: {}", reason.as_ref());
        SnapshotError::invalid(reason).in_section(name, offset)
    }

    /// A section of JSON, of bounded size.
    pub(crate) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let bytes = self.bytes(self.section(name)?);
        if bytes.len() > format::MAX_JSON {
            let reason = format!("{} bytes of JSON are too many", bytes.len());
            return Err(self.blame(name, reason));
        }
        serde_json::from_slice(bytes)
            .map_err(|e| self.blame(name, format!("not the expected JSON: {e}")))
    }

    /// A section as an array of numbers.
    pub(crate) fn array<T: bytemuck::Pod>(&self, name: &str) -> Result<Array<T>> {
        let place = self.section(name)?.place.clone();
        Array::stored(&self.image, place).ok_or_else(|| {
            self.blame(name, format!("not a whole number of {}-byte items", size_of::<T>()))
        })
    }

    /// An array that must have `len` items.
    pub(super) fn array_of<T: bytemuck::Pod>(&self, name: &str, len: usize) -> Result<Array<T>> {
        let array = self.array::<T>(name)?;
        if array.len() != len {
            return Err(self.blame(name, format!("{} items, {len} expected", array.len())));
        }
        Ok(array)
    }
}
