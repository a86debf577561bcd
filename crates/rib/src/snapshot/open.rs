//! From bytes to a snapshot: what is checked, and in which order.
//!
//! Every byte of the file is read once for its checksum and, where lookups rely on it, once more for
//! its meaning. The checks are written without early exits so that the compiler vectorises them; only
//! when one fails is the place looked for.

use std::sync::Arc;

use fibula_core::Family;
use serde::de::DeserializeOwned;

use super::error::SnapshotErrorKind as Kind;
use super::format::{self, Section};
use super::routes::StoredTables;
use super::write::{ColumnSchema, Engines, Schema};
use super::{Snapshot, SnapshotError, StoredFamily, StoredRoutes};
use crate::ColumnKind;
use crate::array::{Array, Image};
use crate::columns::{Column, Columns, Dictionary};
use crate::indexed::{IndexedRoutes, MAX_BUCKET_BITS};

type Result<T> = std::result::Result<T, SnapshotError>;

pub(super) fn open(image: Image) -> Result<Snapshot> {
    let image = Arc::new(image);
    let (sections, digest) = format::decode((*image).as_ref())?;
    let reader = Reader { image, sections };
    reader.check_sums()?;
    let provenance = reader.json("provenance")?;
    let engines: Engines = reader.json("engines")?;
    let schema: Schema = reader.json("schema")?;
    let rows = schema.rows;
    let v4 = family::<u32>(&reader, rows, engines.v4)?;
    let v6 = family::<u128>(&reader, rows, engines.v6)?;
    check_rows(&schema, v4.len() + v6.len()).map_err(|e| reader.blame("schema", e))?;
    let columns = columns(&reader, schema)?;
    let Reader { sections, .. } = reader;
    Ok(Snapshot { path: None, sections, digest, v4, v6, columns, provenance })
}

/// Rows without columns take no space in the file: their number must be bounded by something.
pub(super) fn check_rows(schema: &Schema, routes: usize) -> Result<()> {
    if schema.columns.is_empty() && schema.rows as usize > routes {
        let reason = format!("{} rows without columns for {routes} routes", schema.rows);
        return Err(SnapshotError::invalid(reason));
    }
    Ok(())
}

struct Reader {
    image: Arc<Image>,
    sections: Vec<Section>,
}

impl Reader {
    fn bytes(&self, section: &Section) -> &[u8] {
        &(*self.image).as_ref()[section.place.clone()]
    }

    fn check_sums(&self) -> Result<()> {
        for section in &self.sections {
            if format::checksum(self.bytes(section)) != section.checksum {
                let error = SnapshotError::new(Kind::Damaged, "the checksum differs");
                return Err(error.in_section(&section.name, section.place.start));
            }
        }
        Ok(())
    }

    fn section(&self, name: &str) -> Result<&Section> {
        let found = self.sections.iter().find(|s| s.name == name);
        found.ok_or_else(|| SnapshotError::invalid(format!("there is no section {name}")))
    }

    /// Puts the section's name and place on an error.
    fn blame(&self, name: &str, error: SnapshotError) -> SnapshotError {
        match self.section(name) {
            Ok(section) => error.in_section(name, section.place.start),
            Err(_) => error,
        }
    }

    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let bytes = self.bytes(self.section(name)?);
        let error = |reason: String| self.blame(name, SnapshotError::invalid(reason));
        if bytes.len() > format::MAX_JSON {
            return Err(error(format!("{} bytes of JSON are too many", bytes.len())));
        }
        serde_json::from_slice(bytes).map_err(|e| error(format!("not the expected JSON: {e}")))
    }

    fn array<T: bytemuck::Pod>(&self, name: &str) -> Result<Array<T>> {
        let place = self.section(name)?.place.clone();
        Array::stored(&self.image, place).ok_or_else(|| {
            let reason = format!("not a whole number of {}-byte items", size_of::<T>());
            self.blame(name, SnapshotError::invalid(reason))
        })
    }

    /// An array that must have `len` items.
    fn array_of<T: bytemuck::Pod>(&self, name: &str, len: usize) -> Result<Array<T>> {
        let array = self.array::<T>(name)?;
        if array.len() != len {
            let reason = format!("{} items, {len} expected", array.len());
            return Err(self.blame(name, SnapshotError::invalid(reason)));
        }
        Ok(array)
    }

    /// An error about item `index` of a section.
    fn item<T>(&self, name: &str, index: usize, reason: String) -> SnapshotError {
        let start = self.section(name).map_or(0, |s| s.place.start);
        let offset = start + index * size_of::<T>();
        SnapshotError::invalid(format!("item {index}: {reason}")).in_section(name, offset)
    }
}

fn family<A: StoredFamily>(reader: &Reader, rows: u32, engine: String) -> Result<StoredRoutes<A>> {
    let name = |what: &str| format!("{}/{what}", A::FAMILY);
    let addrs = reader.array::<A>(&name("addr"))?;
    let count = addrs.len();
    if count >= u32::MAX as usize {
        let reason = format!("{count} routes are too many");
        return Err(reader.blame(&name("addr"), SnapshotError::invalid(reason)));
    }
    let lens = reader.array_of::<u8>(&name("len"), count)?;
    let hops = reader.array_of::<u32>(&name("hop"), count)?;
    let parents = reader.array_of::<u32>(&name("parent"), count)?;
    let buckets = reader.array::<u32>(&name("bucket"))?;

    check_order(reader, &name("addr"), &addrs, &lens)?;
    if hops.iter().fold(0, |max, &hop| max.max(hop)) >= rows && count > 0 {
        let at = hops.iter().position(|&hop| hop >= rows).unwrap_or(0);
        let reason = format!("hop {} is not below the {rows} rows", hops[at]);
        return Err(reader.item::<u32>(&name("hop"), at, reason));
    }
    // An earlier route, or none: `NO_PARENT` wraps to 0.
    let earlier = |(i, &parent): (u32, &u32)| parent.wrapping_add(1) <= i;
    if !(0..).zip(parents.iter()).fold(true, |ok, next| ok & earlier(next)) {
        let at = (0..).zip(parents.iter()).position(|next| !earlier(next)).unwrap_or(0);
        let reason = format!("parent {} is not an earlier route", parents[at]);
        return Err(reader.item::<u32>(&name("parent"), at, reason));
    }
    let bits = check_buckets(reader, &name("bucket"), &buckets, count)?;
    let tables = engine_tables(reader, A::FAMILY);
    if !format::is_engine_name(&engine) {
        let error = SnapshotError::invalid("an engine's name is too long or not plain ASCII");
        return Err(reader.blame("engines", error));
    }
    let routes = IndexedRoutes { addrs, lens, hops, parents, buckets, bits };
    Ok(StoredRoutes { routes, rows, engine, tables })
}

/// Prefixes are canonical, sorted and unique.
fn check_order<A: StoredFamily>(
    reader: &Reader,
    name: &str,
    addrs: &[A],
    lens: &[u8],
) -> Result<()> {
    // The bits that must be clear, by length; a table since it is faster than to shift.
    let mut host = [A::MIN; 256];
    for (host, len) in host.iter_mut().zip(0..=A::BITS) {
        *host = A::netmask(len).not();
    }
    let canonical = |addr: A, len: u8| addr.and(host[usize::from(len)]) == A::MIN;
    let longest = lens.iter().fold(0, |max, &len| max.max(len));
    let mut sound = longest <= A::BITS;
    for (&addr, &len) in addrs.iter().zip(lens) {
        sound &= canonical(addr, len);
    }
    let sorted = |a: (A, u8), b: (A, u8)| (a.0 < b.0) | ((a.0 == b.0) & (a.1 < b.1));
    let pairs = || addrs.iter().copied().zip(lens.iter().copied());
    for (a, b) in pairs().zip(pairs().skip(1)) {
        sound &= sorted(a, b);
    }
    if sound {
        return Ok(());
    }
    let at = (0..addrs.len()).position(|i| {
        let (addr, len) = (addrs[i], lens[i]);
        let follows = i == 0 || sorted((addrs[i - 1], lens[i - 1]), (addr, len));
        len > A::BITS || !canonical(addr, len) || !follows
    });
    let at = at.unwrap_or(0);
    let prefix = format!("{}/{}", addrs[at].to_ip(), lens[at]);
    let reason = format!("{prefix} is no prefix or does not sort after its predecessor");
    Err(reader.item::<A>(name, at, reason))
}

/// The number of bits of the bucket index. A bucket is a range of routes.
fn check_buckets(reader: &Reader, name: &str, buckets: &[u32], routes: usize) -> Result<u8> {
    let error = |reason: &str| reader.blame(name, SnapshotError::invalid(reason));
    let bits = buckets.len().saturating_sub(1).checked_ilog2().unwrap_or(0) as u8;
    if !(1..=MAX_BUCKET_BITS).contains(&bits) || buckets.len() != (1 << bits) + 1 {
        return Err(error("the number of buckets is not a power of two and one"));
    }
    let ascending = buckets.iter().zip(&buckets[1..]).fold(true, |ok, (a, b)| ok & (a <= b));
    if buckets[0] != 0 || !ascending || buckets[1 << bits] as usize != routes {
        return Err(error("buckets do not ascend from 0 to the number of routes"));
    }
    Ok(bits)
}

fn engine_tables(reader: &Reader, family: Family) -> StoredTables {
    let prefix = format!("engine/{family}/");
    let place = |s: &Section| {
        let name = s.name.strip_prefix(&prefix)?;
        Some((name.to_owned(), s.place.start, s.place.end))
    };
    let places = reader.sections.iter().filter_map(place).collect();
    StoredTables { image: Arc::clone(&reader.image), places }
}

fn columns(reader: &Reader, schema: Schema) -> Result<Columns> {
    let rows = schema.rows;
    let numbered = schema.columns.into_iter().enumerate();
    let columns = numbered.map(|(i, column)| self::column(reader, i, column, rows as usize));
    Ok(Columns { rows, columns: columns.collect::<Result<_>>()? })
}

fn column(reader: &Reader, number: usize, schema: ColumnSchema, rows: usize) -> Result<Column> {
    let name = |what: &str| format!("column/{number}/{what}");
    let codes = reader.array_of::<u32>(&name("code"), rows)?;
    let dictionary = match schema.kind {
        ColumnKind::Int => Dictionary::Int(reader.array(&name("int"))?),
        ColumnKind::Str => {
            let offsets = reader.array(&name("offset"))?;
            let text = reader.array(&name("text"))?;
            check_text(reader, &name("offset"), &name("text"), &offsets, &text)?;
            Dictionary::Str { offsets, text }
        }
    };
    // A code below the number of values, or `NULL`, which wraps to 0.
    let values = dictionary.len();
    let known = |code: u32| code.wrapping_add(1) as usize <= values;
    if codes.iter().fold(0, |max, code| max.max(code.wrapping_add(1))) as usize > values {
        let at = codes.iter().position(|&code| !known(code)).unwrap_or(0);
        let reason = format!("code {} of a column with {values} values", codes[at]);
        return Err(reader.item::<u32>(&name("code"), at, reason));
    }
    Ok(Column { name: schema.name, codes, dictionary })
}

/// Every value of a text column is a part of the text, and UTF-8.
fn check_text(
    reader: &Reader,
    offsets_name: &str,
    text_name: &str,
    offsets: &[u32],
    text: &[u8],
) -> Result<()> {
    if let Err(e) = std::str::from_utf8(text) {
        let reason = "not UTF-8".to_owned();
        return Err(reader.item::<u8>(text_name, e.valid_up_to(), reason));
    }
    let ends = (offsets.first().copied(), offsets.last().map(|&last| last as usize));
    let ascending = offsets.windows(2).fold(true, |ok, w| ok & (w[0] <= w[1]));
    if ends != (Some(0), Some(text.len())) || !ascending {
        let error = SnapshotError::invalid("offsets do not ascend from 0 to the end of the text");
        return Err(reader.blame(offsets_name, error));
    }
    // A continuation byte begins no value.
    let inside = |&offset: &u32| text.get(offset as usize).is_some_and(|b| b & 0xc0 == 0x80);
    if let Some(at) = offsets.iter().position(inside) {
        let reason = "the offset is inside a character".to_owned();
        return Err(reader.item::<u32>(offsets_name, at, reason));
    }
    Ok(())
}
