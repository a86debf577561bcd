//! The MaxMind DB format, version 2.0.
//!
//! ```text
//!   search tree   nodes of two records, for a bit 0 and a bit 1; the root is node 0
//!                 record < nodes: a node; = nodes: nothing; > nodes: nodes + 16 + place in the data
//!   16 zeros
//!   data          every name and every longer value once, then a map for each row that is used:
//!                 {"asn": 64500, "country": pointer}
//!   metadata      behind the mark "\xab\xcd\xefMaxMind.com"
//! ```
//!
//! IPv4 addresses lie in `::/96`, where readers look for them.

use std::collections::HashMap;
use std::io::Write;

use fibula_core::{Addr, Hop, Route, Value};
use fibula_rib::{Columns, Table};

use crate::ExportError;

/// Where a record of the tree leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Record {
    /// A node, numbered in the order in which they were made: children before parents.
    Node(u32),
    /// The end of the search: a row, or nothing.
    Leaf(Hop),
}

const TOO_MANY_NODES: ExportError = ExportError::Limit { what: "nodes of a search tree" };

/// Writes a table as an mmdb file of IP version 6 that holds both families. `kind` is its
/// `database_type`, `epoch` its `build_epoch`.
///
/// Of the data, readers see a map of the columns: text as `utf8_string`, numbers as `uint32`, or
/// `uint64` for a column in which one needs it; what has no value is left out. The networks that
/// readers tell are those of the tree, where neighbours with equal rows are one.
///
/// Addresses in `::/96` are IPv4 addresses to readers of the format, so IPv6 routes say nothing about
/// them here.
///
/// # Errors
/// If writing fails, or if the table is larger than 2^32 nodes and bytes.
pub fn mmdb(table: &Table, kind: &str, epoch: u64, mut out: impl Write) -> Result<(), ExportError> {
    let mut tree = Tree::default();
    let v4: Vec<_> = table.v4.iter().collect();
    let v6: Vec<_> = table.v6.iter().collect();
    let v4 = tree.below(&v4, 0, Hop::NONE)?;
    let mut root = tree.v6(&v6, 0, Hop::NONE, v4)?;
    if let Record::Leaf(_) = root {
        root = tree.node(root, root)?;
    }
    // The root was made last and must be the first: numbers count from the other end.
    let nodes = tree.nodes.len() as u64;
    debug_assert!(root == Record::Node(nodes as u32 - 1), "the root is made last");

    let mut used = vec![false; table.columns.len() as usize];
    for record in tree.nodes.iter().flatten() {
        if let Record::Leaf(hop) = record
            && let Some(row) = hop.index()
            && let Some(used) = used.get_mut(row as usize)
        {
            *used = true;
        }
    }
    let data = Data::new(&table.columns, &used)?;
    let largest = nodes + 16 + data.bytes.len() as u64;
    let size = match largest {
        0..0x0100_0000 => 24,
        0x0100_0000..0x1000_0000 => 28,
        0x1000_0000..0x1_0000_0000 => 32,
        _ => return Err(TOO_MANY_NODES),
    };
    let value = |record: Record| match record {
        Record::Node(node) => (nodes - 1 - u64::from(node)) as u32,
        Record::Leaf(hop) => {
            let place = hop.index().and_then(|row| data.rows.get(row as usize).copied().flatten());
            // Both below 2^32: that is how the size was chosen.
            place.map_or(nodes as u32, |place| (nodes + 16) as u32 + place)
        }
    };
    let mut bytes = Vec::with_capacity(1 << 16);
    for &[left, right] in tree.nodes.iter().rev() {
        let (left, right) = (value(left).to_be_bytes(), value(right).to_be_bytes());
        match size {
            24 => {
                bytes.extend_from_slice(&left[1..]);
                bytes.extend_from_slice(&right[1..]);
            }
            28 => {
                bytes.extend_from_slice(&left[1..]);
                bytes.push(left[0] << 4 | right[0] & 15);
                bytes.extend_from_slice(&right[1..]);
            }
            _ => {
                bytes.extend_from_slice(&left);
                bytes.extend_from_slice(&right);
            }
        }
        if bytes.len() > (1 << 16) - 16 {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    bytes.extend_from_slice(&[0; 16]);
    out.write_all(&bytes)?;
    out.write_all(&data.bytes)?;
    out.write_all(&metadata(nodes as u32, size, kind, epoch))?;
    out.flush()?;
    Ok(())
}

#[derive(Default)]
struct Tree {
    nodes: Vec<[Record; 2]>,
}

impl Tree {
    /// A node; none is needed where both sides say the same.
    fn join(&mut self, left: Record, right: Record) -> Result<Record, ExportError> {
        match (left, right) {
            (Record::Leaf(a), Record::Leaf(b)) if a == b => Ok(left),
            _ => self.node(left, right),
        }
    }

    fn node(&mut self, left: Record, right: Record) -> Result<Record, ExportError> {
        let number = u32::try_from(self.nodes.len()).map_err(|_| TOO_MANY_NODES)?;
        self.nodes.push([left, right]);
        Ok(Record::Node(number))
    }

    /// What the first `depth` bits of these routes, which they share, lead to; `around` is the hop of
    /// the addresses there that none of them covers.
    fn below<A: Addr>(
        &mut self,
        routes: &[Route<A>],
        depth: u8,
        around: Hop,
    ) -> Result<Record, ExportError> {
        let (around, routes) = here(routes, depth, around);
        if routes.is_empty() {
            return Ok(Record::Leaf(around));
        }
        let (zeros, ones) = split(routes, depth);
        let left = self.below(zeros, depth + 1, around)?;
        let right = self.below(ones, depth + 1, around)?;
        self.join(left, right)
    }

    /// As [`Tree::below`] for the path of zeros that leads to the IPv4 addresses.
    fn v6(
        &mut self,
        routes: &[Route<u128>],
        depth: u8,
        around: Hop,
        v4: Record,
    ) -> Result<Record, ExportError> {
        if depth == 96 {
            return Ok(v4);
        }
        let (around, routes) = here(routes, depth, around);
        let (zeros, ones) = split(routes, depth);
        // The right side first: the node on the left side of the root must be the one made last.
        let right = self.below(ones, depth + 1, around)?;
        let left = self.v6(zeros, depth + 1, around, v4)?;
        self.join(left, right)
    }
}

/// Takes the route that ends at this depth, if there is one.
fn here<A: Addr>(routes: &[Route<A>], depth: u8, around: Hop) -> (Hop, &[Route<A>]) {
    match routes.split_first() {
        Some((route, rest)) if route.prefix.len() == depth => (route.hop, rest),
        _ => (around, routes),
    }
}

/// Those whose next bit is 0, and those whose next bit is 1.
fn split<A: Addr>(routes: &[Route<A>], depth: u8) -> (&[Route<A>], &[Route<A>]) {
    routes.split_at(routes.partition_point(|route: &Route<A>| !route.prefix.addr().bit(depth)))
}

/// The data section.
struct Data {
    bytes: Vec<u8>,
    /// By row where its map is, if it is used.
    rows: Vec<Option<u32>>,
}

/// A type as the format numbers them.
const UTF8: u8 = 2;
const UINT16: u8 = 5;
const UINT32: u8 = 6;
const MAP: u8 = 7;
const UINT64: u8 = 9;
const ARRAY: u8 = 11;

impl Data {
    fn new(columns: &Columns, used: &[bool]) -> Result<Self, ExportError> {
        let mut bytes = Vec::new();
        let names: Vec<Vec<u8>> =
            columns.names().map(|name| shared(&mut bytes, text(name))).collect::<Result<_, _>>()?;
        let wide: Vec<bool> = (0..columns.width())
            .map(|column| {
                (0..columns.distinct(column)).any(|code| {
                    matches!(columns.decode(column, code as u32), Value::Int(int) if int > u64::from(u32::MAX))
                })
            })
            .collect();
        // What stands for a value: itself, or a pointer to where it is.
        let mut values: Vec<HashMap<u32, Vec<u8>>> = vec![HashMap::new(); columns.width()];
        let mut rows = vec![None; used.len()];
        for row in (0..columns.len()).filter(|&row| used[row as usize]) {
            let (mut map, mut pairs) = (Vec::new(), 0);
            for column in 0..columns.width() {
                let Some(code) = columns.code(column, row) else { continue };
                let value = match values[column].get(&code) {
                    Some(value) => value,
                    None => {
                        let value = match columns.decode(column, code) {
                            Value::Int(int) if wide[column] => number(UINT64, int),
                            Value::Int(int) => number(UINT32, int),
                            Value::Str(value) => text(value),
                            Value::Null => continue,
                        };
                        let value = shared(&mut bytes, value)?;
                        values[column].entry(code).or_insert(value)
                    }
                };
                map.extend_from_slice(&names[column]);
                map.extend_from_slice(value);
                pairs += 1;
            }
            rows[row as usize] = Some(place(&bytes)?);
            control(MAP, pairs, &mut bytes);
            bytes.extend_from_slice(&map);
        }
        Ok(Self { bytes, rows })
    }
}

fn place(bytes: &[u8]) -> Result<u32, ExportError> {
    u32::try_from(bytes.len()).map_err(|_| ExportError::Limit { what: "bytes of values" })
}

/// Puts a value into the data and gives a pointer to it, if that is shorter than the value.
fn shared(bytes: &mut Vec<u8>, value: Vec<u8>) -> Result<Vec<u8>, ExportError> {
    let pointer = pointer(place(bytes)?);
    if pointer.len() >= value.len() {
        return Ok(value);
    }
    bytes.extend_from_slice(&value);
    Ok(pointer)
}

/// A pointer to a place of the data: the size in two bits, then the place less what shorter ones reach.
fn pointer(place: u32) -> Vec<u8> {
    let head = |size: u8, high: u32| 1 << 5 | size << 3 | high as u8;
    match place {
        0..2048 => vec![head(0, place >> 8), place as u8],
        2048..526_336 => {
            let rest = place - 2048;
            vec![head(1, rest >> 16), (rest >> 8) as u8, rest as u8]
        }
        526_336..134_744_064 => {
            let rest = place - 526_336;
            vec![head(2, rest >> 24), (rest >> 16) as u8, (rest >> 8) as u8, rest as u8]
        }
        _ => [&[head(3, 0)][..], &place.to_be_bytes()].concat(),
    }
}

/// What goes before a value: its type and size.
fn control(kind: u8, size: usize, out: &mut Vec<u8>) {
    let (small, rest, bytes) = match size {
        0..29 => (size as u8, 0, 0),
        29..285 => (29, size - 29, 1),
        285..65_821 => (30, size - 285, 2),
        _ => (31, size - 65_821, 3),
    };
    // Types beyond 7 are told by a second byte.
    if kind > 7 {
        out.extend_from_slice(&[small, kind - 7]);
    } else {
        out.push(kind << 5 | small);
    }
    out.extend_from_slice(&(rest as u32).to_be_bytes()[4 - bytes..]);
}

/// The longest text that a size can tell.
const LONGEST: usize = 65_821 + (1 << 24) - 1;

fn text(text: &str) -> Vec<u8> {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut out = Vec::with_capacity(end + 5);
    control(UTF8, end, &mut out);
    out.extend_from_slice(&text.as_bytes()[..end]);
    out
}

fn number(kind: u8, value: u64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let first = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
    let mut out = Vec::with_capacity(10);
    control(kind, bytes.len() - first, &mut out);
    out.extend_from_slice(&bytes[first..]);
    out
}

fn metadata(nodes: u32, size: u64, kind: &str, epoch: u64) -> Vec<u8> {
    let mut out = b"\xab\xcd\xefMaxMind.com".to_vec();
    control(MAP, 9, &mut out);
    for (name, value) in [
        ("node_count", number(UINT32, nodes.into())),
        ("record_size", number(UINT16, size)),
        ("ip_version", number(UINT16, 6)),
        ("database_type", text(kind)),
        ("binary_format_major_version", number(UINT16, 2)),
        ("binary_format_minor_version", number(UINT16, 0)),
        ("build_epoch", number(UINT64, epoch)),
    ] {
        out.extend_from_slice(&text(name));
        out.extend_from_slice(&value);
    }
    out.extend_from_slice(&text("languages"));
    control(ARRAY, 0, &mut out);
    out.extend_from_slice(&text("description"));
    control(MAP, 1, &mut out);
    out.extend_from_slice(&text("en"));
    out.extend_from_slice(&text(concat!("written by fibula ", env!("CARGO_PKG_VERSION"))));
    out
}
