//! Counts of routes and addresses by validity.

use std::collections::HashMap;

use fibula_core::{Addr, Hop, Value};
use fibula_rib::{AddressCount, Columns, Pod, Table};

use crate::{RpkiError, VALIDITY, Validity, columns::origins};

/// Routes and addresses of a table by validity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidityReport {
    /// The routes of IPv4.
    pub v4: FamilyCounts,
    /// The routes of IPv6.
    pub v6: FamilyCounts,
    /// The origins with invalid routes, most invalid routes first, then by AS.
    pub origins: Vec<OriginCounts>,
}

/// Counts for each validity in a family. The index is `Validity as usize`, in the order of [`Validity::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FamilyCounts {
    /// Number of routes.
    pub routes: [u64; 4],
    /// Number of addresses whose longest match has the validity. Each address counts once, however many routes cover
    /// it.
    pub addresses: [AddressCount; 4],
}

/// Counts of the routes of one origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OriginCounts {
    /// The AS; `None` for routes without an origin.
    pub origin: Option<u32>,
    /// Number of routes of each validity, like [`FamilyCounts::routes`].
    pub routes: [u64; 4],
}

impl OriginCounts {
    /// Number of invalid routes.
    pub fn invalid(&self) -> u64 {
        invalid(&self.routes)
    }
}

impl FamilyCounts {
    /// Number of invalid routes.
    pub fn invalid(&self) -> u64 {
        invalid(&self.routes)
    }
}

fn invalid(routes: &[u64; 4]) -> u64 {
    Validity::ALL.iter().zip(routes).filter(|(v, _)| v.is_invalid()).map(|(_, count)| count).sum()
}

impl ValidityReport {
    /// Counts the routes of a table that [`add_columns`](crate::add_columns) made, with the same column of origins.
    ///
    /// # Errors
    /// [`RpkiError::NoColumn`] if the table does not have a column.
    pub fn new(table: &Table, origin: &str) -> Result<Self, RpkiError> {
        let validities = validities(&table.columns)?;
        let origins = origins(&table.columns, origin)?;
        let mut by_origin: HashMap<Option<u32>, [u64; 4]> = HashMap::new();
        let v4 = family::<u32>(table, &validities, &origins, &mut by_origin);
        let v6 = family::<u128>(table, &validities, &origins, &mut by_origin);
        let mut origins: Vec<OriginCounts> =
            by_origin.into_iter().map(|(origin, routes)| OriginCounts { origin, routes }).collect();
        origins.retain(|counts| counts.invalid() > 0);
        origins.sort_by_key(|counts| (std::cmp::Reverse(counts.invalid()), counts.origin));
        Ok(Self { v4, v6, origins })
    }

    /// Number of invalid routes of both families.
    pub fn invalid(&self) -> u64 {
        self.v4.invalid() + self.v6.invalid()
    }
}

/// The validity of each row.
fn validities(columns: &Columns) -> Result<Vec<Option<Validity>>, RpkiError> {
    let column = columns.find(VALIDITY).ok_or_else(|| RpkiError::NoColumn {
        asked: VALIDITY.to_owned(),
        columns: columns.names().map(str::to_owned).collect(),
    })?;
    let validity = |row| match columns.value(column, row) {
        Value::Str(text) => text.parse().ok(),
        _ => None,
    };
    Ok((0..columns.len()).map(validity).collect())
}

fn family<A: Addr + Pod>(
    table: &Table,
    validities: &[Option<Validity>],
    origins: &[Option<u32>],
    by_origin: &mut HashMap<Option<u32>, [u64; 4]>,
) -> FamilyCounts {
    let mut counts = FamilyCounts::default();
    let row = |hop: Hop| hop.index().map(|row| row as usize);
    let validity = |hop: Hop| row(hop).and_then(|row| *validities.get(row)?);
    for route in table.routes::<A>().iter() {
        let Some(validity) = validity(route.hop) else { continue };
        counts.routes[validity as usize] += 1;
        let origin = row(route.hop).and_then(|row| *origins.get(row)?);
        by_origin.entry(origin).or_default()[validity as usize] += 1;
    }
    for range in table.routes::<A>().ranges() {
        if let Some(validity) = validity(range.hop) {
            counts.addresses[validity as usize].add(range.first, range.last);
        }
    }
    counts
}
