//! How each scheme's stored tables lie in memories.

use std::borrow::Cow;
use std::collections::HashMap;

use fibula_core::{Family, TableRef};

use super::Memories;
use super::image::{EntryPart, MemoryImage, stride};
use crate::ExportError;

pub(super) fn memories<'a>(
    scheme: &'static str,
    family: Family,
    tables: &[TableRef<'a>],
) -> Result<Memories<'a>, ExportError> {
    let parts = Parts { scheme, tables };
    let (parameters, images) = match scheme {
        "sail-l" => sail_l(&parts)?,
        "sail-b" => sail_bitmaps(&parts, &(0..=24).collect::<Vec<u8>>(), |level| 1 << level)?,
        "sail-u" => sail_bitmaps(&parts, &[6, 12, 18, 24], |level| {
            ((1 << 6) + (1 << 12) + (1 << 18)) & ((1 << level) - 1)
        })?,
        "planb" => planb(&parts, family)?,
        "dxr" => dxr(&parts)?,
        "runmap" => runmap(&parts)?,
        _ => {
            let what = "has no pipeline; those that have one are sail-l, sail-b, sail-u, planb, dxr18, runmap";
            return Err(parts.error(what));
        }
    };
    Ok(Memories { scheme, family, parameters, images })
}

type Layout<'a> = (Vec<(&'static str, u64)>, Vec<MemoryImage<'a>>);

/// The stored tables by name.
struct Parts<'t, 'a> {
    scheme: &'static str,
    tables: &'t [TableRef<'a>],
}

impl<'a> Parts<'_, 'a> {
    fn error(&self, what: impl Into<String>) -> ExportError {
        ExportError::Scheme { scheme: self.scheme, what: what.into() }
    }

    fn find(&self, name: &str) -> Option<&'a [u8]> {
        self.tables.iter().find(|table| table.name == name).map(|table| table.bytes)
    }

    fn get(&self, name: &str) -> Result<&'a [u8], ExportError> {
        self.find(name).ok_or_else(|| self.error(format!("has no table {name} in this form")))
    }

    /// The table with elements of so many bytes, little-endian.
    fn words(&self, name: &str, size: usize) -> Result<Cow<'a, [u8]>, ExportError> {
        Ok(little_endian(self.get(name)?, size))
    }
}

/// Elements in the machine's byte order as little-endian ones.
fn little_endian(bytes: &[u8], size: usize) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(bytes.chunks(size).flat_map(|element| element.iter().rev().copied()).collect())
}

/// `B` and `C` of level 16 in one word, which 2^11 words of a block RAM hold; `B_24` in words of 64 bits.
fn sail_l<'a>(parts: &Parts<'_, 'a>) -> Result<Layout<'a>, ExportError> {
    let level16 = parts.words("BCN16", 2)?;
    let level24 = parts.words("BCN24", 2)?;
    let level32 = parts.words("N32", 2)?;
    let first = |below: &[u8]| (1 << 16) - (below.len() / 512) as u32;
    let (first24, first32) = (first(&level24), first(&level32));
    // No value of level 32 is a chunk.
    let none = 1 << 16;
    use EntryPart::{Chunk, Code, Ends, GoesOn};
    Ok((
        vec![
            ("chunks24", (level24.len() / 512) as u64),
            ("chunks32", (level32.len() / 512) as u64),
        ],
        vec![
            MemoryImage::entries("BC16", GoesOn, level16.clone(), first24, false),
            MemoryImage::entries("N16", Code, level16, first24, false),
            MemoryImage::entries("B24", Ends, level24.clone(), first32, true),
            MemoryImage::entries("N24", Code, level24.clone(), first32, true),
            MemoryImage::entries("C24", Chunk, level24, first32, true),
            MemoryImage::entries("N32", Code, level32, none, true),
        ],
    ))
}

/// A bitmap a level in words of 64 bits, level 24 first. SAIL_B's levels of fewer bits share one word, in which they
/// lie as in the table.
fn sail_bitmaps<'a>(
    parts: &Parts<'_, 'a>,
    levels: &[u8],
    start: impl Fn(u8) -> usize,
) -> Result<Layout<'a>, ExportError> {
    let b = parts.words("B", 8)?;
    let word = |place: usize| place / 64 * 8;
    let mut images: Vec<_> = levels
        .iter()
        .rev()
        .filter(|&&level| level >= 6)
        .map(|&level| {
            let bytes = b[word(start(level))..word(start(level) + (1 << level))].to_vec();
            MemoryImage::plain(format!("B{level}"), 64, true, bytes)
        })
        .collect();
    if levels.contains(&0) {
        // Levels 0 to 5: bit 2^level and those that follow of the first word.
        images.push(MemoryImage::plain("B0", 64, true, b[..8].to_vec()));
    }
    let zero_is_none = true;
    images.push(MemoryImage {
        zero_is_none,
        ..MemoryImage::plain("N", 16, false, parts.words("N", 2)?)
    });
    images.push(MemoryImage {
        zero_is_none,
        ..MemoryImage::plain("C24", 16, false, parts.words("C24", 2)?)
    });
    images.push(MemoryImage::chunks("N32", 16, parts.words("N32", 2)?));
    Ok((Vec::new(), images))
}

/// A memory of nodes a level.
fn planb<'a>(parts: &Parts<'_, 'a>, family: Family) -> Result<Layout<'a>, ExportError> {
    let key_bytes = match family {
        Family::V4 => 4,
        Family::V6 => 8,
    };
    let lanes = 64 / key_bytes;
    let keys = parts.words("keys", key_bytes)?;
    let (values, value_bytes) = match parts.find("values16") {
        Some(values) => (little_endian(values, 2), 2),
        None => (parts.words("values32", 4)?, 4),
    };
    let intervals = values.len() / value_bytes;
    let mut counts = vec![intervals.div_ceil(lanes)];
    while let Some(&count) = counts.last().filter(|&&count| count > 1) {
        counts.push(count.div_ceil(lanes + 1));
    }
    let (mut images, mut node) = (Vec::new(), 0);
    for (level, count) in counts.iter().rev().enumerate() {
        let bytes = keys.get(node * 64..(node + count) * 64);
        let bytes = bytes.ok_or_else(|| parts.error("has a tree of another shape"))?.to_vec();
        images.push(MemoryImage::plain(format!("level{level}"), 512, true, bytes));
        node += count;
    }
    let blocks = parts.find("long_starts").map_or(0, |starts| starts.len() / 4 - 1);
    let parameters = vec![
        ("lanes", lanes as u64),
        ("levels", counts.len() as u64),
        ("intervals", intervals as u64),
        ("blocks", blocks as u64),
    ];
    images.push(MemoryImage::plain("values", 8 * value_bytes as u32, true, values));
    for (name, size) in [("long_starts", 4), ("long_lasts", 8), ("long_codes", 4)] {
        if let Some(bytes) = parts.find(name) {
            images.push(MemoryImage::plain(
                name,
                8 * size as u32,
                false,
                little_endian(bytes, size),
            ));
        }
    }
    Ok((parameters, images))
}

fn dxr<'a>(parts: &Parts<'_, 'a>) -> Result<Layout<'a>, ExportError> {
    let shape = little_endian(parts.get("shape")?, 4);
    let shape: Vec<u32> = numbers(&shape).collect();
    let [k, grain, 0] = shape[..] else {
        return Err(parts.error(
            "needs its wide form for this table, which has no pipeline: it takes at most 65,535 hops",
        ));
    };
    let lookup = parts.words("lookup", 4)?;
    let largest = numbers(&lookup).map(|entry| (entry >> 19 & 0xfff) << grain).max().unwrap_or(0);
    let steps = u32::BITS - largest.saturating_sub(1).leading_zeros();
    Ok((
        vec![("k", k.into()), ("grain", grain.into()), ("steps", steps.into())],
        vec![
            MemoryImage::plain("lookup", 32, true, lookup),
            MemoryImage::plain("ranges", 32, true, parts.words("ranges", 4)?),
        ],
    ))
}

/// Words of 32 bits.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// The records in a memory of their own, numbered, each with the place of its values, and the records of networks that
/// longer routes divide in another. In the engine all lie among each other, to save cache lines.
fn runmap<'a>(parts: &Parts<'_, 'a>) -> Result<Layout<'a>, ExportError> {
    const ROOT: usize = 1 << 18;
    let forms = [("runs8", 1), ("runs16", 2), ("runs32", 4)];
    let (bytes, size) = forms
        .iter()
        .find_map(|&(name, size)| parts.find(name).map(|bytes| (bytes, size)))
        .ok_or_else(|| parts.error("has no table of runs"))?;
    let read = |at: usize, size: usize| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(&little_endian(&bytes[at..at + size], size));
        u64::from_le_bytes(word)
    };
    let code_bits = 8 * size as u32;
    let escape = (1u64 << code_bits) - 64;
    let (mut root, mut records, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (mut networks, mut codes) = (Vec::new(), Vec::new());
    let (mut known, mut known_networks) = (HashMap::new(), HashMap::new());
    for block in 0..ROOT {
        let at = read(4 * block, 4) as usize;
        let next = known.len() as u32;
        let number = *known.entry(at).or_insert_with(|| {
            let map = read(at, 8);
            records.extend(map.to_le_bytes());
            // There are at most 2^24 runs, one for each network.
            records.extend(&((values.len() / 5) as u32).to_le_bytes()[..3]);
            for run in 0..map.count_ones() as usize {
                let code = read(at + 8 + run * size, size);
                let word = match code.checked_sub(escape) {
                    None => code,
                    Some(number) => {
                        let place = read(at - 4 * (number as usize + 1), 4) as usize;
                        let next = known_networks.len() as u64;
                        let network = *known_networks.entry(place).or_insert_with(|| {
                            let map = &bytes[place..place + 32];
                            let ones = map.iter().map(|byte| byte.count_ones()).sum::<u32>();
                            // The four words are each in the machine's order.
                            networks.extend(little_endian(map, 8).iter());
                            networks.extend(((codes.len() / 4) as u32).to_le_bytes());
                            for run in 0..ones as usize {
                                codes.extend((read(place + 36 + 4 * run, 4) as u32).to_le_bytes());
                            }
                            next
                        });
                        1 << 32 | network
                    }
                };
                values.extend(&word.to_le_bytes()[..5]);
            }
            next
        });
        root.extend(&number.to_le_bytes()[..3]);
    }
    let network_bits = u64::BITS - (known_networks.len() as u64).leading_zeros();
    let value_bits = code_bits.max(network_bits);
    let values = values.chunks_exact(5).flat_map(|word| {
        let number = u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let word = number | u64::from(word[4]) << value_bits;
        word.to_le_bytes().into_iter().take(stride(value_bits + 1))
    });
    let values: Vec<u8> = values.collect();
    Ok((
        vec![
            ("records", known.len() as u64),
            ("networks", known_networks.len() as u64),
            ("value_bits", value_bits.into()),
        ],
        vec![
            MemoryImage::plain("root", 18, true, root),
            MemoryImage::plain("records", 88, true, records),
            MemoryImage::plain("values", value_bits + 1, true, values),
            MemoryImage::plain("networks", 288, false, networks),
            MemoryImage::plain("network_codes", 32, false, codes),
        ],
    ))
}
