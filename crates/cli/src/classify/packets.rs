//! Reads packets from captures and CSV. Parquet is read in its own module.

use std::io::{BufRead, Read, Write as _};
use std::path::Path;

use fibula_annotate::ParquetRows;
use fibula_capture::{Container, Step};
use fibula_classify::{Field, Flow};
use fibula_packet::{Frame, LinkType};

use super::{COLUMNS, Hits, five};
use crate::failure::Failure;

/// Counts of packets and damage, for the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Packets of unknown link types, of which no fields are read.
    pub unknown_links: u64,
    /// Places where the capture is damaged.
    pub damaged: u64,
    /// The first damaged place.
    pub first_damage: Option<String>,
    /// There are no columns of ports: packets are taken as packets without.
    pub without_ports: bool,
}

/// Classifies all packets of a file. For Parquet input, the rows and the rules' columns are written to `parquet`, if
/// it is given.
pub fn each(path: &Path, hits: &mut Hits, parquet: Option<&Path>) -> Result<Said, Failure> {
    let mut data = super::open(path)?;
    let head = data.fill_buf().map_err(|error| Failure::io(path.display(), &error))?;
    if head.starts_with(ParquetRows::MAGIC) {
        if path.as_os_str() == "-" {
            return Err(Failure::new(
                "Parquet is not read in order: it cannot come from standard input",
            )
            .hint("name the file"));
        }
        return super::parquet::rows(path, hits, parquet);
    }
    if let Some(to) = parquet {
        let what = format_args!("{}: Parquet is written of Parquet alone", to.display());
        return Err(
            Failure::new(what).hint("other packets become CSV: give the output another name")
        );
    }
    match Container::recognise(head) {
        Some(container) => capture(path, data, container, hits),
        None => rows(path, data, hits),
    }
}

fn capture(
    path: &Path,
    mut data: impl Read,
    mut container: Container,
    hits: &mut Hits,
) -> Result<Said, Failure> {
    hits.line(format!("packet,{COLUMNS_OF_FLOWS},{COLUMNS}\n").as_bytes())?;
    let (mut said, mut number, mut offset) = (Said::default(), 0u64, 0u64);
    let (mut buffer, mut start, mut first, mut ended) = (Vec::new(), 0, true, false);
    loop {
        match container.next(&buffer[start..], first) {
            Step::Packet(len, packet) => {
                number += 1;
                let link = LinkType::from_number(packet.link);
                said.unknown_links += u64::from(link.is_none());
                let flow = link.map_or(Flow::default(), |link| {
                    Flow::from(&Frame::parse_captured(link, packet.data, packet.length as usize))
                });
                hits.packet(&flow, packet.length.into(), |row| write_flow(row, number, &flow))?;
                start += len;
            }
            Step::Skip(len) => start += len,
            Step::Damaged(len, what) => {
                said.damage(offset + start as u64, what);
                start += len;
            }
            Step::Lost(what) => {
                said.damage(offset + start as u64, what);
                return Ok(said);
            }
            Step::Incomplete if ended => {
                if start < buffer.len() {
                    said.damage(offset + start as u64, "the capture ends within a packet");
                }
                return Ok(said);
            }
            Step::Incomplete => {
                buffer.drain(..start);
                (offset, start) = (offset + start as u64, 0);
                let old = buffer.len();
                buffer.resize(old + (256 << 10), 0);
                let read = data
                    .read(&mut buffer[old..])
                    .map_err(|error| Failure::io(path.display(), &error))?;
                buffer.truncate(old + read);
                ended = read == 0;
                continue;
            }
        }
        first = false;
        if start > buffer.len() {
            // The capture ends inside a block that is skipped.
            said.damage(offset + buffer.len() as u64, "the capture ends within a block");
            return Ok(said);
        }
    }
}

impl Said {
    fn damage(&mut self, at: u64, what: &str) {
        self.damaged += 1;
        self.first_damage.get_or_insert_with(|| format!("byte {at}: {what}"));
    }
}

/// The columns of a capture's rows, after the packet number.
pub(super) const COLUMNS_OF_FLOWS: &str = "src,dst,protocol,src_port,dst_port";

pub(super) fn write_flow(row: &mut Vec<u8>, number: u64, flow: &Flow) {
    use std::net::{Ipv4Addr, Ipv6Addr};
    // Writing to memory cannot fail.
    let _ = write!(row, "{number},");
    let _ = match flow.get(Field::IpVersion) {
        4 => {
            let ip = |field| Ipv4Addr::from_bits(flow.get(field) as u32);
            write!(row, "{},{},", ip(Field::Ipv4Src), ip(Field::Ipv4Dst))
        }
        6 => {
            let ip = |field| Ipv6Addr::from_bits(flow.get(field));
            write!(row, "{},{},", ip(Field::Ipv6Src), ip(Field::Ipv6Dst))
        }
        _ => {
            row.extend_from_slice(b",,,,");
            return;
        }
    };
    let _ = write!(row, "{},", flow.get(Field::Protocol));
    let ports = [(Field::SrcPort, Field::DstPort), (Field::IcmpType, Field::IcmpCode)];
    let _ = match flow.get(Field::Transport) {
        kind @ 1..=2 => {
            let (from, to) = ports[kind as usize - 1];
            write!(row, "{},{}", flow.get(from), flow.get(to))
        }
        _ => write!(row, ","),
    };
}

/// The accepted column names.
const NAMES: [&[&str]; 5] = [
    &["src", "src_ip", "source", "source_ip", "saddr", "srcaddr", "id.orig_h"],
    &["dst", "dst_ip", "destination", "destination_ip", "daddr", "dstaddr", "id.resp_h"],
    &["protocol", "proto", "ip_proto"],
    &["src_port", "source_port", "sport", "srcport", "sp", "spt", "id.orig_p"],
    &["dst_port", "destination_port", "dport", "dstport", "dp", "dpt", "id.resp_p"],
];

/// Classifies rows of CSV, whose first row has the column names.
fn rows(path: &Path, mut data: impl BufRead, hits: &mut Hits) -> Result<Said, Failure> {
    let wrong = |line: u64, what: &str| {
        Failure::new(format_args!("{}: line {line}: {what}", path.display()))
    };
    let (mut line, mut number, mut places) = (Vec::new(), 0u64, None);
    loop {
        line.clear();
        let read = data
            .by_ref()
            .take(1 << 20)
            .read_until(b'\n', &mut line)
            .map_err(|error| Failure::io(path.display(), &error))?;
        if read == 0 {
            break;
        }
        number += 1;
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        let text = std::str::from_utf8(&line).map_err(|_| wrong(number, "not UTF-8"))?;
        if text.is_empty() {
            continue;
        }
        let Some(places) = &places else {
            let cells = cells(text.strip_prefix('\u{feff}').unwrap_or(text));
            places = Some(columns(&cells).map_err(|what| {
                wrong(number, &what)
                    .hint("a capture is pcap or pcapng; CSV begins with the columns' names")
            })?);
            if hits.out.is_some() {
                unclassified(&cells).map_err(|what| wrong(number, &what))?;
            }
            hits.line(&[&line, b",".as_slice(), COLUMNS.as_bytes(), b"\n"].concat())?;
            continue;
        };
        let cells = cells(text);
        let cell = |place: &Option<usize>| {
            place.map_or(Some(""), |at| Some(cells.get(at)?.trim_matches('"')))
        };
        let all = [&places[0], &places[1], &places[2], &places[3], &places[4]].map(cell);
        let [Some(src), Some(dst), Some(protocol), Some(from), Some(to)] = all else {
            return Err(wrong(number, "the row has fewer columns than the first"));
        };
        let flow =
            five::flow([src, dst, protocol, from, to]).map_err(|what| wrong(number, &what))?;
        hits.packet(&flow, 0, |row| row.extend_from_slice(&line))?;
    }
    let Some(places) = places else {
        return Err(Failure::new(format_args!("{}: the file is empty", path.display())));
    };
    Ok(Said { without_ports: places[3].is_none(), ..Said::default() })
}

/// The positions of the five columns. The ports may be missing.
pub(super) fn columns(names: &[&str]) -> Result<[Option<usize>; 5], String> {
    let place = |known: &&[&str]| {
        names.iter().position(|name| {
            known.iter().any(|known| known.eq_ignore_ascii_case(name.trim().trim_matches('"')))
        })
    };
    let places = [0, 1, 2, 3, 4].map(|at| place(&NAMES[at]));
    for (place, known) in places.iter().zip(NAMES).take(3) {
        if place.is_none() {
            return Err(format!("no column is called {}", known[0]));
        }
    }
    if places[3].is_some() != places[4].is_some() {
        return Err("one column of ports is there, the other is missing".to_owned());
    }
    Ok(places)
}

/// The input has none of the columns that are added.
pub(super) fn unclassified(names: &[&str]) -> Result<(), String> {
    let taken = |added: &&str| names.iter().any(|name| name.trim_matches('"') == *added);
    match COLUMNS.split(',').find(taken) {
        Some(added) => {
            Err(format!("the input already has a column {added}: was it classified before?"))
        }
        None => Ok(()),
    }
}

/// The cells of a row, still quoted.
fn cells(line: &str) -> Vec<&str> {
    let (mut cells, mut start, mut quoted) = (Vec::new(), 0, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                cells.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    cells.push(&line[start..]);
    cells
}
