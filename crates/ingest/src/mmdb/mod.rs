//! MaxMind DB: GeoIP2, GeoLite2 and the many databases in the same format.
//!
//! Each record becomes a row. Columns are named by their path: `country.iso_code`, `autonomous_system_number`,
//! `subdivisions.0.names.en`. Maps called `names` hold translations; only `en` is read. A column is of integers if
//! all its values in the database are, and of fractions if some are integers and some fractions. Booleans and fractions
//! become text, and [`SourceInfo::types`] has their types. Of a column with several types, the first record that makes
//! it text is named ([`Sink::remark`]).
//!
//! IPv4 networks of an IPv6 tree become IPv4 routes, once, however many aliases (`::ffff:0:0/96`, `2002::/16`) lead
//! to them. The record of a network that contains `::/96` is also that of all IPv4 addresses, as MaxMind's readers
//! answer.
//!
//! The decoder waits for all of the input, because the metadata are at the end. It reads the data twice: first for
//! the columns, then for the networks.

mod flatten;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::HashMap;

use fibula_core::{AnyPrefix, Attributes, Change, Prefix, Update, Value};
use maxminddb::{MaxMindDbError, Reader};

use crate::{Damage, Decoder, Sink, SourceInfo, StopReason, Tail};
use flatten::{Columns, Node, Row};

/// Decodes an mmdb file; see the [module](self). A record is a network.
#[derive(Debug, Default)]
pub struct MmdbDecoder {
    records: u64,
}

impl Decoder for MmdbDecoder {
    fn decode(
        &mut self,
        input: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        if !tail.is_last() {
            return Ok(0);
        }
        match Reader::from_source(input) {
            Ok(reader) if !tree::is_credible(input, reader.metadata()) => {
                sink.begin(&SourceInfo { format: "mmdb", ..SourceInfo::default() });
                let what = "the search tree has more paths than is credible; it was not read";
                report(0, 0, what.to_owned(), sink)?;
            }
            Ok(reader) => self.walk(&reader, input.len(), sink)?,
            Err(error) => {
                sink.begin(&SourceInfo { format: "mmdb", ..SourceInfo::default() });
                report(0, offset_of(&error).unwrap_or(0), error.to_string(), sink)?;
            }
        }
        Ok(input.len())
    }

    fn records(&self) -> u64 {
        self.records
    }
}

type Database<'d> = Reader<&'d [u8]>;
/// By offset in the data section: networks share records.
type Rows<'d> = HashMap<usize, Result<Row<'d>, String>>;

impl MmdbDecoder {
    fn walk(
        &mut self,
        reader: &Database<'_>,
        len: usize,
        sink: &mut dyn Sink,
    ) -> Result<(), StopReason> {
        let (columns, rows, mixed) = collect(reader, len);
        let types = columns.types();
        let (decls, trouble) = columns.declare();
        sink.begin(&SourceInfo {
            format: "mmdb",
            date: Some(reader.metadata().build_epoch),
            columns: decls.clone(),
            types,
            ..SourceInfo::default()
        });
        mixed.iter().for_each(|remark| sink.remark("column", remark));
        if let Some(what) = trouble {
            report(0, 0, what.to_owned(), sink)?;
        }
        let data = data_offset(reader);
        let mut buffers = Vec::new();
        for found in networks(reader) {
            self.records += 1;
            match found {
                Err(Trouble { offset, what }) => report(self.records, offset, what, sink)?,
                Ok((network, record)) => match rows.get(&record) {
                    Some(Ok(row)) => {
                        let mut values = vec![Value::Null; decls.len()];
                        row.fill(&decls, &mut buffers, &mut values);
                        announce(network, &values, sink);
                        if holds_ipv4(network) {
                            announce(AnyPrefix::V4(Prefix::ALL), &values, sink);
                        }
                    }
                    Some(Err(what)) => {
                        report(self.records, data + record as u64, what.clone(), sink)?;
                    }
                    None => {}
                },
            }
        }
        Ok(())
    }
}

/// The first pass: the distinct records and the columns that they need together.
/// Also, a sentence for each column that is text because of a record.
fn collect<'d>(reader: &'d Database<'_>, len: usize) -> (Columns, Rows<'d>, Vec<String>) {
    let mut columns = Columns::new(len);
    let (mut rows, mut mixed) = (Rows::new(), Vec::new());
    for found in lookups(reader) {
        let Ok(found) = found else { continue };
        let Some(record) = found.offset() else { continue };
        if rows.contains_key(&record) {
            continue;
        }
        let row = match columns.read(|| found.decode::<Node<'_>>()) {
            Some(Ok(Some(row))) => Ok(row),
            Some(Ok(None)) => continue,
            Some(Err(error)) => Err(error.to_string()),
            None => break,
        };
        let network = || {
            found.network().map_or_else(|error| error.to_string(), |network| network.to_string())
        };
        mixed.extend(columns.take_mixed().into_iter().map(|(name, value)| {
            format!("column {name} is text, because values have several types; the first other one is {value} of {}", network())
        }));
        rows.insert(record, row);
    }
    (columns, rows, mixed)
}

type Lookup<'a, 'd> = maxminddb::LookupResult<'a, &'d [u8]>;

/// All networks, aliases left out, but no more than a sound tree can have: of n nodes it has at most
/// n + 1 leaves, while damage (or malice) can share nodes until leaves are as many as addresses.
fn lookups<'a, 'd>(
    reader: &'a Database<'d>,
) -> impl Iterator<Item = Result<Lookup<'a, 'd>, MaxMindDbError>> {
    let limit = 4 * u64::from(reader.metadata().node_count) + 1024;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (networks, error) = match reader.networks(Default::default()) {
        Ok(networks) => (Some(networks), None),
        Err(error) => (None, Some(Err(error))),
    };
    let excess = MaxMindDbError::invalid_database("the tree has more networks than nodes allow");
    networks.into_iter().flatten().chain(error).enumerate().map_while({
        let mut excess = Some(excess);
        move |(i, found)| match i.cmp(&limit) {
            std::cmp::Ordering::Less => Some(found),
            std::cmp::Ordering::Equal => excess.take().map(Err),
            std::cmp::Ordering::Greater => None,
        }
    })
}

struct Trouble {
    offset: u64,
    what: String,
}

/// The second pass: each network and the offset of its record.
fn networks(reader: &Database<'_>) -> impl Iterator<Item = Result<(AnyPrefix, usize), Trouble>> {
    lookups(reader).filter_map(|found| {
        let trouble = |error: MaxMindDbError| Trouble {
            offset: offset_of(&error).unwrap_or(0),
            what: error.to_string(),
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => return Some(Err(trouble(error))),
        };
        let record = found.offset()?;
        let prefix = found.network().map_err(trouble).and_then(|network| {
            AnyPrefix::masked(network.ip(), network.prefix())
                .map_err(|error| Trouble { offset: 0, what: error.to_string() })
        });
        Some(prefix.map(|prefix| (prefix, record)))
    })
}

/// Whether the record of an IPv6 network is that of all IPv4 addresses, which readers look up below `::/96`.
fn holds_ipv4(network: AnyPrefix) -> bool {
    matches!(network, AnyPrefix::V6(prefix) if prefix.first() == 0 && prefix.len() <= 96)
}

/// Where the data section begins.
fn data_offset(reader: &Database<'_>) -> u64 {
    let meta = reader.metadata();
    u64::from(meta.node_count) * u64::from(meta.record_size) / 4 + 16
}

/// The position of the fault in the file, if the reader reports it.
fn offset_of(error: &MaxMindDbError) -> Option<u64> {
    match error {
        MaxMindDbError::InvalidDatabase { offset, .. } => offset.map(|at| at as u64),
        _ => None,
    }
}

fn announce(prefix: AnyPrefix, values: &[Value<'_>], sink: &mut dyn Sink) {
    let change = Change::Announce(Attributes::Values(values));
    sink.update(&Update::new(prefix, change));
}

fn report(record: u64, offset: u64, what: String, sink: &mut dyn Sink) -> Result<(), StopReason> {
    match sink.damage(&Damage::new(record, offset, what)).is_break() {
        true => Err(StopReason::BySink),
        false => Ok(()),
    }
}
