use std::marker::PhantomData;

use fibula_core::{LoadError, TableSource};
use fibula_filter::Parameters;
use fibula_simd::Table;

use super::{ARRAY, ARRAY_BITS, FILTERS, FilterAddr, HASHES, LEVELS, Level, Pbf, SLOTS};
use crate::common::{Hashed, parts};
use fibula_engines::common::table;

/// Loads the stored tables, and checks each in one pass, except the filters, whose bits may be arbitrary.
pub(super) fn load<A: FilterAddr>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Pbf<A>, LoadError> {
    let array: Table<u32> = table(tables, ARRAY)?;
    let rows: Table<[u32; 4]> = table(tables, LEVELS)?;
    let filters: Table<u64> = table(tables, FILTERS)?;
    let slots = Hashed { words: table(tables, SLOTS)? };
    if array.len() != 1 << ARRAY_BITS || array.iter().any(|&code| code > hop_count) {
        return Err(LoadError::new(ARRAY, "has another length, or names an unknown hop"));
    }
    let parts = parts(&rows, 2);
    if !slots.is_sound::<A>(&parts, hop_count) {
        return Err(LoadError::new(SLOTS, "is not what the levels say, or names an unknown hop"));
    }
    let lengths = u32::from(ARRAY_BITS) + 1..=u32::from(A::BITS);
    let in_order = rows.is_sorted_by(|a, b| a[0] > b[0]);
    if !in_order || !rows.iter().all(|row| lengths.contains(&row[0])) {
        return Err(LoadError::new(LEVELS, "has lengths out of order"));
    }
    let mut levels = Vec::with_capacity(rows.len());
    let mut end = 0usize;
    for (&[len, bits, ..], part) in rows.iter().zip(parts) {
        let parameters = Parameters::new(bits, HASHES);
        if parameters.bits() != bits {
            return Err(LoadError::new(LEVELS, "has a filter of no size"));
        }
        // At most 128 filters of at most 2^25 words.
        levels.push(Level::new(len as u8, parameters, end, part));
        end += parameters.words();
    }
    if end != filters.len() {
        return Err(LoadError::new(FILTERS, "has another size than the levels say"));
    }
    Ok(Pbf { array, levels, rows, filters, slots, family: PhantomData })
}
