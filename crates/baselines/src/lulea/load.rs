use fibula_core::{LoadError, TableSource};
use fibula_simd::Table;

use super::code::{self, Code, mapped, read};
use super::lookup::{base_index, first_pointer};
use super::pointer::{Target, pointers};
use super::{BASES, CODES, Level, Lulea, MAP, Pointer, level_names};
use fibula_engines::common::table;

/// Stored tables, checked whole in one pass over each.
pub(super) fn load<P: Pointer>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Lulea<P>, LoadError> {
    let level = |number: usize| -> Result<Level<P>, LoadError> {
        let [sparse, dense, very_dense] = level_names(number);
        Ok(Level {
            sparse: table(tables, sparse)?,
            dense: table(tables, dense)?,
            very_dense: table(tables, very_dense)?,
            pointers: table(tables, P::POINTERS[number + 1])?,
        })
    };
    let engine: Lulea<P> = Lulea {
        map: table(tables, MAP)?,
        codes: table(tables, CODES)?,
        bases: table(tables, BASES)?,
        pointers: table(tables, P::POINTERS[0])?,
        levels: [level(0)?, level(1)?],
    };
    if engine.map[..] != code::map() {
        return Err(LoadError::new(MAP, "is not the map table"));
    }
    if engine.codes.len() != 4096 || engine.bases.len() != 1024 {
        return Err(LoadError::new(CODES, "has another length than level 1"));
    }
    let base = |group: usize| engine.bases[group / 4].into();
    let sound = |words: &[u16], base: &dyn Fn(usize) -> usize, pointers: usize| {
        codes(&engine.map, words, base, pointers, hop_count)
    };
    if !sound(&engine.codes, &base, engine.pointers.len()) {
        return Err(LoadError::new(CODES, "leads to a pointer or a hop that is not there"));
    }
    check(&engine.pointers, P::POINTERS[0], Some(&engine.levels[0]), hop_count)?;
    for (number, level) in engine.levels.iter().enumerate() {
        let [sparse, dense, very_dense] = level_names(number);
        let count = level.pointers.len();
        for chunk in level.dense.iter() {
            if !sound(&chunk[..16], &|_| first_pointer(chunk), count) {
                return Err(LoadError::new(dense, "leads to what is not there"));
            }
        }
        for chunk in level.very_dense.iter() {
            let base = |group: usize| first_pointer(chunk) + base_index(chunk, group / 4);
            if !sound(&chunk[..16], &base, count) {
                return Err(LoadError::new(very_dense, "leads to what is not there"));
            }
        }
        let next = engine.levels.get(number + 1);
        for chunk in level.sparse.iter() {
            check(pointers::<P>(chunk), sparse, next, hop_count)?;
        }
        check(&level.pointers, P::POINTERS[number + 1], next, hop_count)?;
    }
    Ok(engine)
}

/// Whether the code words lead to existing pointers or to valid hops.
fn codes(
    map: &Table<u64>,
    words: &[u16],
    base: &dyn Fn(usize) -> usize,
    pointers: usize,
    hop_count: u32,
) -> bool {
    words.iter().enumerate().all(|(group, &word)| match read(word) {
        Code::Direct(code) => code <= hop_count,
        // The last slot's pointer is the last one of the group.
        Code::Row { row, offset } => base(group) + offset + mapped(map, row, 15) < pointers,
    })
}

/// Checks that pointers name chunks of the next level, if there is one, or valid hops.
fn check<P: Pointer>(
    pointers: &[P],
    name: &'static str,
    next: Option<&Level<P>>,
    hop_count: u32,
) -> Result<(), LoadError> {
    let sound = |pointer: &P| {
        let (kind, index) = pointer.parts();
        match (kind, next) {
            (Target::Hop, _) => index <= hop_count as usize,
            (_, None) => false,
            (Target::Sparse, Some(level)) => index < level.sparse.len(),
            (Target::Dense, Some(level)) => index < level.dense.len(),
            (Target::VeryDense, Some(level)) => index < level.very_dense.len(),
        }
    };
    if pointers.iter().all(sound) {
        Ok(())
    } else {
        Err(LoadError::new(name, "names a chunk or a hop that is not there"))
    }
}
