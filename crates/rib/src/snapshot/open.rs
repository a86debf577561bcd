//! From bytes to a snapshot: the checks in their order.
//!
//! Every byte of the file is read once for its checksum and, where lookups rely on it, once more for
//! its meaning. The checks are written without early exits so that the compiler vectorises them; the place of an error
//! is searched only after a check failed.

use std::sync::Arc;

use fibula_core::{Addr, Family, PerFamily};

use super::dated::{self, Dated};
use super::format::{self, FileKind, Section};
use super::routes::{Stored, StoredTables};
use super::schema::{ColumnSchema, Engines, Schema, Typed};
use super::sections::Sections;
use super::{Pod, SnapshotError, StoredRoutes};
use crate::array::Image;
use crate::columns::{Column, Columns, Dictionary};
use crate::indexed::{IndexedRoutes, MAX_BUCKET_BITS};
use crate::{ColumnKind, Provenance};

type Result<T> = std::result::Result<T, SnapshotError>;

/// The checked parts of a snapshot.
pub(super) struct Opened {
    pub(super) sections: Sections,
    pub(super) digest: u128,
    pub(super) table_digest: u128,
    pub(super) families: PerFamily<Stored>,
    pub(super) columns: Columns,
    pub(super) provenance: Provenance,
    /// The parts of a file of several dates.
    pub(super) dated: Option<Dated>,
}

pub(super) fn open(image: Image, kind: FileKind) -> Result<Opened> {
    let image = Arc::new(image);
    let (list, table_digest) = format::decode((*image).as_ref(), kind)?;
    let digest = format::digest(&list);
    let sections = Sections { image, list };
    sections.check_sums()?;
    let provenance = sections.json("provenance")?;
    let engines: Engines = sections.json("engines")?;
    let schema: Schema = sections.json("schema")?;
    let rows = schema.rows;
    let dated = match kind {
        FileKind::Table => None,
        FileKind::Dated => Some(dated::open(&sections, rows)?),
    };
    // Hops number rows, or the timelines of rows.
    let hops = dated.as_ref().map_or([rows; 2], Dated::timelines);
    let v4 = family::<u32>(&sections, hops[0], engines.v4)?;
    let v6 = family::<u128>(&sections, hops[1], engines.v6)?;
    schema.check_rows(v4.len() + v6.len()).map_err(|reason| sections.blame("schema", reason))?;
    let columns = columns(&sections, schema)?;
    let families = PerFamily { v4, v6 };
    Ok(Opened { sections, digest, table_digest, families, columns, provenance, dated })
}

fn family<A: Addr + Pod>(
    sections: &Sections,
    rows: u32,
    engine: String,
) -> Result<StoredRoutes<A>> {
    let name = |what: &str| format!("{}/{what}", A::FAMILY);
    let addrs = sections.array::<A>(&name("addr"))?;
    let count = addrs.len();
    if count >= u32::MAX as usize {
        let reason = format!("{count} routes are too many");
        return Err(sections.blame(&name("addr"), reason));
    }
    let lens = sections.array_of::<u8>(&name("len"), count)?;
    let hops = sections.array_of::<u32>(&name("hop"), count)?;
    let parents = sections.array_of::<u32>(&name("parent"), count)?;
    let buckets = sections.array::<u32>(&name("bucket"))?;

    check_order(sections, &name("addr"), &addrs, &lens)?;
    if hops.iter().fold(0, |max, &hop| max.max(hop)) >= rows && count > 0 {
        let at = hops.iter().position(|&hop| hop >= rows).unwrap_or(0);
        let reason = format!("hop {} is not below the {rows} rows", hops[at]);
        return Err(sections.blame_item::<u32>(&name("hop"), at, reason));
    }
    // An earlier route, or none: `NO_PARENT` wraps to 0.
    let earlier = |(i, &parent): (u32, &u32)| parent.wrapping_add(1) <= i;
    if !(0..).zip(parents.iter()).fold(true, |ok, next| ok & earlier(next)) {
        let at = (0..).zip(parents.iter()).position(|next| !earlier(next)).unwrap_or(0);
        let reason = format!("parent {} is not an earlier route", parents[at]);
        return Err(sections.blame_item::<u32>(&name("parent"), at, reason));
    }
    let bits = check_buckets(sections, &name("bucket"), &buckets, count)?;
    let tables = engine_tables(sections, A::FAMILY);
    if !format::is_engine_name(&engine) {
        let reason = "an engine's name is too long or not plain ASCII";
        return Err(sections.blame("engines", reason));
    }
    let routes = IndexedRoutes { addrs, lens, hops, parents, buckets, bits };
    Ok(StoredRoutes { routes, rows, engine, tables })
}

/// Prefixes are canonical, sorted and unique.
fn check_order<A: Addr + Pod>(
    sections: &Sections,
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
    Err(sections.blame_item::<A>(name, at, reason))
}

/// The number of bits of the bucket index. A bucket is a range of routes.
fn check_buckets(sections: &Sections, name: &str, buckets: &[u32], routes: usize) -> Result<u8> {
    let error = |reason: &str| sections.blame(name, reason);
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

fn engine_tables(sections: &Sections, family: Family) -> StoredTables {
    let prefix = format!("engine/{family}/");
    let place = |s: &Section| {
        let name = s.name.strip_prefix(&prefix)?;
        Some((name.to_owned(), s.place.start, s.place.end))
    };
    let places = sections.list.iter().filter_map(place).collect();
    StoredTables { image: Arc::clone(&sections.image), places }
}

fn columns(sections: &Sections, schema: Schema) -> Result<Columns> {
    let rows = schema.rows;
    let numbered = schema.columns.into_iter().enumerate();
    let columns = numbered.map(|(i, column)| self::column(sections, i, column, rows as usize));
    Ok(Columns { rows, columns: columns.collect::<Result<_>>()? })
}

fn column(sections: &Sections, number: usize, schema: ColumnSchema, rows: usize) -> Result<Column> {
    let name = |what: &str| format!("column/{number}/{what}");
    let codes = sections.array_of::<u32>(&name("code"), rows)?;
    let dictionary = match schema.kind {
        ColumnKind::Int => Dictionary::Int(sections.array(&name("int"))?),
        ColumnKind::Str => {
            let offsets = sections.array(&name("offset"))?;
            let text = sections.array(&name("text"))?;
            check_text(sections, &name("offset"), &name("text"), &offsets, &text)?;
            Dictionary::Str { offsets, text }
        }
    };
    // A code below the number of values, or `NULL`, which wraps to 0.
    let values = dictionary.len();
    let known = |code: u32| code.wrapping_add(1) as usize <= values;
    if codes.iter().fold(0, |max, code| max.max(code.wrapping_add(1))) as usize > values {
        let at = codes.iter().position(|&code| !known(code)).unwrap_or(0);
        let reason = format!("code {} of a column with {values} values", codes[at]);
        return Err(sections.blame_item::<u32>(&name("code"), at, reason));
    }
    Ok(Column { name: schema.name, codes, dictionary, scalar: schema.scalar.map(|Typed(of)| of) })
}

/// Every value of a text column is a part of the text, and UTF-8.
fn check_text(
    sections: &Sections,
    offsets_name: &str,
    text_name: &str,
    offsets: &[u32],
    text: &[u8],
) -> Result<()> {
    if let Err(e) = std::str::from_utf8(text) {
        let reason = "not UTF-8".to_owned();
        return Err(sections.blame_item::<u8>(text_name, e.valid_up_to(), reason));
    }
    let ends = (offsets.first().copied(), offsets.last().map(|&last| last as usize));
    let ascending = offsets.windows(2).fold(true, |ok, w| ok & (w[0] <= w[1]));
    if ends != (Some(0), Some(text.len())) || !ascending {
        let reason = "offsets do not ascend from 0 to the end of the text";
        return Err(sections.blame(offsets_name, reason));
    }
    // A value must not begin with a continuation byte.
    let inside = |&offset: &u32| text.get(offset as usize).is_some_and(|b| b & 0xc0 == 0x80);
    if let Some(at) = offsets.iter().position(inside) {
        let reason = "the offset is inside a character".to_owned();
        return Err(sections.blame_item::<u32>(offsets_name, at, reason));
    }
    Ok(())
}
