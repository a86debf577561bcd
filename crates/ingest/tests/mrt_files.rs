//! Every MRT file of the shared data: it decodes, or its damage is reported and located.

mod common;

use std::collections::HashMap;

use common::{Bgp, Event, gunzip, mrt_files, read_bgp, shared};
use fibula_ingest::{ReadError, ReadOptions, SourceSpec, decompress, read};

/// What is damaged in which files: how many reports, and how the first begins.
const DAMAGED: [(&str, u64, &str); 4] = [
    ("trailing_bits", 1, "prefix needs 2 bytes"),
    // bzip2 archives cut after a megabyte: their last record, and the archive.
    ("_firstMB", 2, "the last record is cut short"),
    // RIB records without their table of peers.
    ("_3samples", 1, "no PEER_INDEX_TABLE"),
    // State changes and OPENs that Zebra shortened.
    ("rrc01_2000.11", 63, "peers of unknown address family"),
];

#[test]
fn every_file_decodes_or_reports_its_damage() {
    let Some(data) = shared() else { return };
    for path in mrt_files(&data) {
        let name = path.file_name().unwrap().to_string_lossy();
        let (report, bgp) = read_bgp(&path);
        println!(
            "{name}: {} records, {} updates, {} peers, {} damaged, {:?}",
            report.records,
            report.updates,
            bgp.peers.len(),
            report.damaged,
            report.ignored
        );
        assert!(report.records > 0 && report.updates > 0, "{name}");
        assert!(bgp.info.is_some_and(|info| info.bgp && info.date.is_some()), "{name}");
        let known = DAMAGED.iter().find(|(part, ..)| name.contains(part));
        let (count, what) = known.map_or((0, ""), |&(_, count, what)| (count, what));
        assert_eq!(report.damaged, count, "{name}: {:?}", bgp.damage.first());
        assert!(bgp.damage.first().is_none_or(|d| d.what.starts_with(what)), "{name}");
        for damage in &bgp.damage {
            assert!(damage.offset < report.bytes + 4096 && !damage.file.is_empty(), "{damage}");
        }
    }
}

#[test]
fn strict_stops_at_the_first_damage() {
    let Some(data) = shared() else { return };
    let path = data.join("mrt/pyasn-rib.20080501.0644_firstMB.bz2");
    let mut bgp = Bgp::default();
    let mut options = ReadOptions { strict: true, ..ReadOptions::default() };
    let error = read(&SourceSpec::new(&path), &mut options, &mut bgp).expect_err("damaged");
    assert!(matches!(&error, ReadError::Damaged(d) if d.record == 139_292), "{error}");
    assert_eq!(bgp.events.len(), 139_291);
}

#[test]
fn the_table_of_a_day_of_updates() {
    let Some(data) = shared() else { return };
    let (_, bgp) = read_bgp(&data.join("mrt/ripencc-bgpdump-updates.et-header.2015.gz"));
    let mut table = HashMap::new();
    for Event { prefix, route, .. } in bgp.events {
        match route {
            Some(route) => table.insert(prefix, route.next_hop.unwrap().to_string()),
            None => table.remove(&prefix),
        };
    }
    let mut wanted = String::new();
    let file = data.join("tables/pch-20151023-as3856-v4-fib-nexthop.tsv.xz");
    let (_, mut reader) = decompress(std::fs::File::open(file).unwrap()).unwrap();
    std::io::Read::read_to_string(&mut reader, &mut wanted).unwrap();
    let wanted: HashMap<String, String> = wanted
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(prefix, hop)| (prefix.to_owned(), hop.to_owned()))
        .collect();
    assert_eq!(table.len(), 577_703);
    assert!(table == wanted);
}

#[test]
fn a_cut_file_gives_what_comes_before_the_cut() {
    let Some(data) = shared() else { return };
    let path = data.join("mrt/ripencc-bgpdump-updates.20071015.1505.gz");
    let whole = read_bgp(&path).1.events;
    let bytes = std::fs::read(&path).unwrap();
    let mut longest = 0;
    for len in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 9] {
        let mut bgp = Bgp::default();
        let mut options =
            ReadOptions { as_path: true, communities: true, ..ReadOptions::default() };
        let input = std::io::Cursor::new(bytes[..len].to_vec());
        let spec = SourceSpec::new("cut.gz");
        let report = fibula_ingest::read_from(&spec, input, &mut options, &mut bgp).unwrap();
        assert!(whole.starts_with(&bgp.events) && bgp.events.len() > longest);
        longest = bgp.events.len();
        let last = bgp.damage.last().expect("reported");
        assert!(last.what.contains("gzip stream"), "{last}");
        assert!(last.offset >= report.bytes && last.record == 0);
    }
    assert_eq!(longest, whole.len());
}

#[test]
fn progress_counts_up_to_the_size_of_the_file() {
    let Some(data) = shared() else { return };
    let path = data.join("mrt/ripencc-bgpdump-bview.20020722.2337.gz");
    let mut seen = Vec::new();
    let mut watch = |progress| seen.push(progress);
    let mut options = ReadOptions { progress: Some(&mut watch), ..ReadOptions::default() };
    read(&SourceSpec::new(&path), &mut options, &mut Bgp::default()).unwrap();
    assert!(seen.is_sorted_by_key(|p| (p.bytes_read, p.records)));
    let last = seen.last().expect("called");
    assert_eq!(Some(last.bytes_read), last.bytes_total);
    assert_eq!(last.records, 115_521);
    let expect = gunzip(&data.join("mrt/expect/ripencc-bgpdump-bview.20020722.2337.gz.bgp.gz"));
    assert_eq!(expect.lines().count() as u64, last.records);
}
