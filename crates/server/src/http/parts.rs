//! JSON documents that are made in parts.

use serde::Serialize;

/// The elements of a JSON array, in parts: each item is some elements, with the commas between all of them.
pub(crate) fn elements<T: Serialize>(
    groups: impl Iterator<Item = Vec<T>>,
) -> impl Iterator<Item = Vec<u8>> {
    let mut is_first = true;
    groups.map(move |group| {
        let mut text = Vec::new();
        for one in group {
            if !std::mem::take(&mut is_first) {
                text.push(b',');
            }
            // The types of answers have no maps with other keys than text: writing to memory cannot fail.
            let _ = serde_json::to_writer(&mut text, &one);
        }
        text
    })
}

/// A text between the arrays of a document.
pub(crate) fn text(text: impl Into<String>) -> impl Iterator<Item = Vec<u8>> {
    std::iter::once(text.into().into_bytes())
}
