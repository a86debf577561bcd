use std::marker::PhantomData;

use fibula_core::{BuildError, Routes};
use fibula_filter::Parameters;
use fibula_simd::Table;

use super::{ARRAY_BITS, BITS_A_KEY, FilterAddr, HASH, HASHES, Level, NAME, Pbf};
use crate::common::{Hashed, Item, bits};

/// Compiles the routes: short ones into the array, the others into a filter and a table for each length.
pub(super) fn build<A: FilterAddr>(routes: &Routes<A>) -> Result<Pbf<A>, BuildError> {
    let mut array = vec![0; 1 << ARRAY_BITS];
    let mut lengths: Vec<Vec<Item<A>>> = vec![Vec::new(); usize::from(A::BITS) + 1];
    for route in routes.iter() {
        let (len, code) = (route.prefix.len(), route.hop.to_bits() + 1);
        if len > ARRAY_BITS {
            lengths[usize::from(len)].push(Item { key: route.prefix.addr(), code, note: 0 });
        } else {
            // Sorted: shorter ones come first, and longer ones on top.
            let first = bits(route.prefix.addr(), 0, ARRAY_BITS.into());
            array[first..first + (1 << (ARRAY_BITS - len))].fill(code);
        }
    }
    // Longest first.
    let (lens, tables): (Vec<u8>, Vec<Vec<Item<A>>>) =
        (0..=A::BITS).zip(lengths).rev().filter(|(_, items)| !items.is_empty()).unzip();
    let Some((slots, parts)) = Hashed::new(&tables) else {
        let needed = tables.iter().map(|items| 2 * items.len() as u64).sum();
        let limit = u32::MAX.into();
        return Err(BuildError::Limit { engine: NAME, what: "slots", limit, needed });
    };
    let (mut levels, mut rows, mut filters) = (Vec::new(), Vec::new(), Vec::new());
    for ((len, items), part) in lens.into_iter().zip(tables).zip(parts) {
        let shape = Parameters::new((BITS_A_KEY * items.len() as f64).ceil() as u32, HASHES);
        let first = filters.len();
        filters.resize(first + shape.words(), 0u64);
        for item in items {
            for at in shape.positions(HASH, item.key.key()) {
                filters[first + at as usize / 64] |= 1 << (at % 64);
            }
        }
        rows.push([len.into(), shape.bits(), part.first, part.mask]);
        levels.push(Level::new(len, shape, first, part));
    }
    Ok(Pbf {
        array: Table::from_vec(array),
        levels,
        rows: Table::from_vec(rows),
        filters: Table::from_vec(filters),
        slots,
        family: PhantomData,
    })
}
