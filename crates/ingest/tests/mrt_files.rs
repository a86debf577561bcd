//! Real MRT files: each decodes, or its damage is reported and located.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

use crate::common::{Bgp, archives, cuts, mrt_files, name, read_bgp, text};
use fibula_ingest::{ReadError, ReadOptions, ReadReport, SourceSpec, read};

/// The known properties of a cut. The numbers of records are those of a walk over the headers, the numbers of updates
/// those of bgpdump where it reads the file.
struct Known {
    name: &'static str,
    records: u64,
    updates: u64,
    damaged: u64,
    /// The first damage: record, offset and fault.
    first: Option<(u64, u64, &'static str)>,
}

const fn sound(name: &'static str, records: u64, updates: u64) -> Known {
    Known { name, records, updates, damaged: 0, first: None }
}

const CUTS: [Known; 24] = [
    sound("bgpkit-ripe_rrc00_1999.09_updates.19990903.1041.first-1500-records.gz", 1500, 3512),
    // Batches, each four bytes longer than its length.
    sound("bgpkit-ripe_rrc00_2000.01_bview.20000111.0032.first-20-records.gz", 20, 3605),
    sound("bgpkit-ripe_rrc00_2000.01_updates.20000102.2014.gz", 3957, 6343),
    // State changes and OPENs that Zebra shortened.
    Known {
        name: "bgpkit-ripe_rrc01_2000.11_updates.20001104.0124.gz",
        records: 1286,
        updates: 519,
        damaged: 63,
        first: Some((35, 1893, "peers of unknown address family")),
    },
    sound("bgpkit-ripe_rrc03_2010.02_updates.20100227.1600.first-796-records.gz", 796, 1359),
    sound("bgpkit-ripe_rrc15_2010.02_updates.20100227.1610.gz", 1953, 7469),
    sound("et-of-rrc15_2010.02_updates.20100227.1600.first-1500-records.gz", 1500, 6981),
    Known {
        name: "made-updates.broken-off",
        records: 2,
        updates: 2,
        damaged: 1,
        first: Some((1, 0, "prefix needs 3 bytes")),
    },
    // RIB records without their table of peers.
    Known {
        name: "pyasn-bview.20140112.1600_3samples.bz2",
        records: 3,
        updates: 3,
        damaged: 1,
        first: Some((1, 0, "no PEER_INDEX_TABLE")),
    },
    // bzip2 archives that were cut: their last record, and the archive.
    Known {
        name: "pyasn-rib.20080501.0644_first109104.bz2",
        records: 12_534,
        updates: 12_533,
        damaged: 2,
        first: Some((12_534, 897_974 - 64, "the last record is cut short")),
    },
    Known {
        name: "pyasn-rib.20140523.0600_first40888.bz2",
        records: 528,
        updates: 15_668,
        damaged: 2,
        first: Some((528, 898_480 - 1071, "the last record is cut short")),
    },
    Known {
        name: "pyasn-rib6.20151101.0600_first78478.bz2",
        records: 527,
        updates: 11_461,
        damaged: 2,
        first: Some((527, 932_924 - 940, "the last record is cut short")),
    },
    sound("bird-mrtdump_bgp", 27, 12),
    sound("bird-mrtdump_rib", 14, 18),
    sound("bird6-mrtdump_bgp", 27, 12),
    sound("bird6-mrtdump_rib", 9, 10),
    sound("bird6_bgp", 29, 14),
    sound("bird_bgp", 29, 14),
    sound("openbgpd_bgp", 87, 93),
    sound("openbgpd_rib_table", 31, 31),
    sound("openbgpd_rib_table-mp", 31, 31),
    sound("openbgpd_rib_table-v2", 24, 31),
    sound("quagga_bgp", 67, 18),
    sound("quagga_rib", 7, 9),
];

/// The damage of the archives: the number of reports, and the beginning of the first.
const DAMAGED: [(&str, u64, &str); 4] = [
    ("trailing_bits", 1, "prefix needs 2 bytes"),
    ("_firstMB", 2, "the last record is cut short"),
    ("_3samples", 1, "no PEER_INDEX_TABLE"),
    ("rrc01_2000.11", 63, "peers of unknown address family"),
];

/// Reads a file; whatever is wrong with it is located in it.
fn decode(path: &Path) -> (ReadReport, Bgp) {
    let name = name(path);
    let (report, bgp) = read_bgp(path);
    println!(
        "{name}: {} records, {} updates, {} peers, {} damaged, {:?}",
        report.records,
        report.updates,
        bgp.peers.len(),
        report.damaged,
        report.ignored
    );
    assert!(report.records > 0 && report.updates > 0, "{name}");
    assert!(bgp.info.as_ref().is_some_and(|info| info.bgp && info.date.is_some()), "{name}");
    for damage in &bgp.damage {
        assert!(damage.offset < report.bytes + 4096 && !damage.file.is_empty(), "{damage}");
    }
    (report, bgp)
}

#[test]
fn every_cut_decodes_or_reports_its_damage() {
    let files = mrt_files(&cuts());
    assert_eq!(files.iter().map(|path| name(path)).collect::<Vec<_>>(), CUTS.map(|cut| cut.name));
    for (path, known) in files.iter().zip(&CUTS) {
        let (report, bgp) = decode(path);
        let found = (report.records, report.updates, report.damaged);
        assert_eq!(found, (known.records, known.updates, known.damaged), "{}", known.name);
        let first = bgp.damage.first().map(|damage| (damage.record, damage.offset, &*damage.what));
        match (first, known.first) {
            (None, None) => {}
            (Some((record, offset, what)), Some(known))
                if (record, offset) == (known.0, known.1) && what.starts_with(known.2) => {}
            _ => panic!("{}: {first:?}", known.name),
        }
    }
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn every_archive_decodes_or_reports_its_damage() {
    let files = mrt_files(&archives());
    assert!(files.len() >= 32, "{} files", files.len());
    for path in files {
        let name = name(&path);
        let (report, bgp) = decode(&path);
        let known = DAMAGED.iter().find(|(part, ..)| name.contains(part));
        let (count, what) = known.map_or((0, ""), |&(_, count, what)| (count, what));
        assert_eq!(report.damaged, count, "{name}: {:?}", bgp.damage.first());
        assert!(bgp.damage.first().is_none_or(|d| d.what.starts_with(what)), "{name}");
    }
}

/// Reading strictly ends at this record; all before it are given.
fn stops_at(path: &Path, record: u64) {
    let mut bgp = Bgp::default();
    let mut options = ReadOptions { strict: true, salvage: true, ..ReadOptions::default() };
    let error = read(&SourceSpec::new(path), &mut options, &mut bgp).expect_err("damaged");
    assert!(matches!(&error, ReadError::Damaged(d) if d.record == record), "{error}");
    assert_eq!(bgp.events.len() as u64, record - 1);
}

#[test]
fn strict_stops_at_the_first_damage() {
    stops_at(&cuts().join("mrt/pyasn-rib.20080501.0644_first109104.bz2"), 12_534);
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn strict_stops_at_the_first_damage_of_an_archive() {
    stops_at(&archives().join("mrt/pyasn-rib.20080501.0644_firstMB.bz2"), 139_292);
}

/// The next hops that stand at the end of a file of updates.
fn last_table(path: &Path) -> HashMap<(IpAddr, String), String> {
    let (_, bgp) = read_bgp(path);
    let mut table = HashMap::new();
    for event in bgp.events {
        let peer = bgp.peers[event.peer as usize].address.expect("known");
        match event.route {
            Some(route) => table.insert((peer, event.prefix), route.next_hop.unwrap().to_string()),
            None => table.remove(&(peer, event.prefix)),
        };
    }
    table
}

#[test]
fn the_table_after_updates() {
    let file = "et-of-rrc15_2010.02_updates.20100227.1600.first-1500-records.gz";
    let table = last_table(&cuts().join("mrt").join(file));
    let mut wanted = HashMap::new();
    let printed = text(&cuts().join(format!("mrt/expect/{file}.bgpdump.xz")));
    for line in printed.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [_, _, kind, peer, _, prefix, ..] = fields[..] else { panic!("{line}") };
        let key = || (peer.parse().expect("an address"), prefix.to_owned());
        match kind {
            "A" => wanted.insert(key(), fields[8].to_owned()),
            "W" => wanted.remove(&key()),
            _ => None,
        };
    }
    assert_eq!(table.len(), 3074);
    assert!(table == wanted);
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn the_table_of_a_day_of_updates() {
    let table = last_table(&archives().join("mrt/ripencc-bgpdump-updates.et-header.2015.gz"));
    let table: HashMap<String, String> =
        table.into_iter().map(|((_, prefix), hop)| (prefix, hop)).collect();
    let wanted = text(&archives().join("tables/pch-20151023-as3856-v4-fib-nexthop.tsv.xz"));
    let wanted: HashMap<String, String> = wanted
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(prefix, hop)| (prefix.to_owned(), hop.to_owned()))
        .collect();
    assert_eq!(table.len(), 577_703);
    assert!(table == wanted);
}

/// A truncated file gives the records before the cut, and a report.
fn cut_short(path: &Path) {
    let whole = read_bgp(path).1.events;
    let bytes = std::fs::read(path).unwrap();
    let mut longest = 0;
    for len in [bytes.len() / 3, bytes.len() / 2, bytes.len() - 9] {
        let mut bgp = Bgp::default();
        let mut options = ReadOptions {
            as_path: true,
            communities: true,
            extended_communities: true,
            salvage: true,
            ..ReadOptions::default()
        };
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
fn a_cut_file_gives_what_comes_before_the_cut() {
    cut_short(&cuts().join("mrt/bgpkit-ripe_rrc15_2010.02_updates.20100227.1610.gz"));
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn a_cut_archive_gives_what_comes_before_the_cut() {
    cut_short(&archives().join("mrt/ripencc-bgpdump-updates.20071015.1505.gz"));
}

/// Reading counts up to the size of the file and to this many records.
fn counts_up(path: &Path, records: u64) {
    let mut seen = Vec::new();
    let mut watch = |progress| seen.push(progress);
    let mut options =
        ReadOptions { progress: Some(&mut watch), salvage: true, ..ReadOptions::default() };
    read(&SourceSpec::new(path), &mut options, &mut Bgp::default()).unwrap();
    assert!(seen.len() > 1 && seen.is_sorted_by_key(|p| (p.bytes_read, p.records)));
    let last = seen.last().expect("called");
    assert_eq!(Some(last.bytes_read), last.bytes_total);
    assert_eq!(last.records, records);
}

#[test]
fn progress_counts_up_to_the_size_of_the_file() {
    counts_up(&cuts().join("mrt/pyasn-rib.20080501.0644_first109104.bz2"), 12_534);
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn progress_counts_up_to_the_size_of_an_archive() {
    let mrt = archives().join("mrt");
    // One record each line.
    let lines = text(&mrt.join("expect/ripencc-bgpdump-bview.20020722.2337.gz.bgp.gz"));
    assert_eq!(lines.lines().count(), 115_521);
    counts_up(&mrt.join("ripencc-bgpdump-bview.20020722.2337.gz"), 115_521);
}
