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
//! IPv4 addresses are in `::/96`, where readers expect them. As in MaxMind's own files, `::ffff:0:0/96` is an alias
//! of the same nodes, and so are `2001::/32` (Teredo) and `2002::/16` (6to4), unless the table has IPv6 routes there.

mod data;
mod encode;
mod layout;
mod tree;

use std::io::Write;

use fibula_rib::Table;

use crate::ExportError;
use data::Data;
use encode::{ARRAY, MAP, UINT16, UINT32, UINT64, control, number, text};
use tree::{Record, TOO_MANY_NODES, Tree};

/// Writes a table with both families as an mmdb file of IP version 6. `kind` is its `database_type`, and `epoch` its
/// `build_epoch`.
///
/// The data of a network are a map of the columns: text is `utf8_string`, and numbers are `uint32`, or `uint64` if a
/// value of the column needs it. Nulls are left out. Booleans, fractions and integers of other sizes from an mmdb
/// file ([`Columns::scalar_type`](fibula_rib::Columns::scalar_type)) get their original type. Columns
/// `country.iso_code` and `country.name` become a map `country` with two entries, and `tags.0` and `tags.1` an array
/// `tags` of two items. Readers report the networks of the tree, in which neighbours with equal rows are merged.
///
/// For readers of the format, addresses in `::/96` are IPv4 addresses, so IPv6 routes have no effect there.
///
/// # Errors
/// If writing fails, or the table exceeds 2^32 nodes or bytes.
pub fn mmdb(table: &Table, kind: &str, epoch: u64, mut out: impl Write) -> Result<(), ExportError> {
    let tree = Tree::of(table)?;
    // The root was made last and must be the first: numbers count from the other end.
    let nodes = tree.nodes.len() as u64;

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
