use bytemuck::Pod;
use fibula_core::{LoadError, TableSource};
use fibula_simd::Table;

/// The stored table of this name, to be used in place.
///
/// # Errors
/// If it is missing, not aligned, or not of whole elements.
pub fn table<T: Pod>(tables: &dyn TableSource, name: &'static str) -> Result<Table<T>, LoadError> {
    optional_table(tables, name)?.ok_or_else(|| LoadError::new(name, "is missing"))
}

/// The stored table of this name, if there is one.
///
/// # Errors
/// If it is not aligned, or not of whole elements.
pub fn optional_table<T: Pod>(
    tables: &dyn TableSource,
    name: &'static str,
) -> Result<Option<Table<T>>, LoadError> {
    let Some(bytes) = tables.table(name) else { return Ok(None) };
    let (owner, start, len) = bytes.into_parts();
    match Table::from_shared(owner, start, len) {
        Some(table) => Ok(Some(table)),
        None => Err(LoadError::new(
            name,
            format!(
                "its {len} bytes are not whole {}-byte elements at a 64-byte boundary",
                size_of::<T>()
            ),
        )),
    }
}
