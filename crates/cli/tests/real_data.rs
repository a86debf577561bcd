//! The main job on real tables, captures and archives.

use std::collections::HashMap;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::Path;

use crate::common::{Files, archives, arg, cuts, done, execute, mrt_files, name};

fn text(path: &Path) -> String {
    let mut text = String::new();
    let file = crate::common::read(path);
    lzma_rust2::XzReader::new(&file[..], true).read_to_string(&mut text).expect("xz with text");
    text
}

/// One hash map a length, longest first: shares no code with what it checks.
struct ByLength(Vec<HashMap<u32, String>>);

impl ByLength {
    fn new(table: &str) -> Self {
        let mut maps = vec![HashMap::new(); 33];
        for line in table.lines().filter(|line| !line.starts_with(';')) {
            let (prefix, value) = line.split_once('\t').expect("prefix TAB value");
            let (addr, len) = prefix.split_once('/').expect("a length");
            let addr: Ipv4Addr = addr.parse().expect("an address");
            let len: usize = len.parse().expect("a number");
            maps[len].insert(u32::from(addr), value.to_owned());
        }
        Self(maps)
    }

    fn lookup(&self, addr: &str) -> Option<(String, &str)> {
        let addr = u32::from(addr.parse::<Ipv4Addr>().expect("an address"));
        (0..=32u32).rev().find_map(|len| {
            let network = addr & u32::MAX.checked_shl(32 - len).unwrap_or(0);
            let value = self.0[len as usize].get(&network)?;
            Some((format!("{}/{len}", Ipv4Addr::from(network)), value.as_str()))
        })
    }
}

/// Annotates a list with a table; returns how many addresses there are, and how many have a route.
fn annotate(table: &Path, list: &Path) -> (usize, usize) {
    let files = Files::new();
    let (fib, out) = (files.path("table.fib"), files.path("annotated.txt"));
    done(&["build", arg(table), "--names", "prefix,asn", "-o", &fib]);
    done(&["annotate", "--table", &fib, "--add", "prefix,asn", arg(list), "-o", &out]);

    let oracle = ByLength::new(&text(table));
    let (addresses, annotated) =
        (text(list), String::from_utf8(crate::common::read(&out)).unwrap());
    assert_eq!(addresses.lines().count(), annotated.lines().count());
    let (mut rows, mut matched) = (0, 0);
    for (line, addr) in annotated.lines().zip(addresses.lines()) {
        let expected = match oracle.lookup(addr) {
            Some((prefix, asn)) => {
                matched += 1;
                format!("{addr}\t{prefix}\t{asn}")
            }
            None => format!("{addr}\t\t"),
        };
        assert_eq!(line, expected);
        rows += 1;
    }
    (rows, matched)
}

#[test]
fn annotating_real_addresses_gives_the_right_as() {
    let table = cuts().join("tables/ipasn_20140513-41-61.dat.xz");
    let list = cuts().join("traffic/ipsum-20260822-v4-addresses-40-62.txt.xz");
    assert_eq!(annotate(&table, &list), (7530, 1912));
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn annotating_all_real_addresses_gives_the_right_as() {
    let table = archives().join("tables/ipfire-libloc-20221029-v4-asn.tsv.xz");
    let list = archives().join("traffic/ipsum-20260822-v4-addresses.txt.xz");
    assert_eq!(annotate(&table, &list), (120_430, 119_275));
}

/// Builds a table with this column from updates and verifies it.
fn builds(mrt: &Path, peer: &str, column: &str, prefixes: &str, values: &str) {
    let files = Files::new();
    let fib = files.path("updates.fib");
    let result = done(&["build", arg(mrt), "--peer", peer, "--columns", column, "-o", &fib]);
    assert!(result.out.contains(prefixes), "{}", result.out);
    assert!(result.out.contains(values), "{}", result.out);
    let verified = done(&["verify", "--table", &fib, "--engines", "auto", "--random", "100000"]);
    assert!(verified.out.contains("agree with the oracle"), "{}", verified.out);
}

/// The numbers of prefixes, and those of one peer's values, are those of the lines that bgpdump prints.
#[test]
fn a_table_builds_from_its_updates() {
    let mrt = cuts().join("mrt/et-of-rrc15_2010.02_updates.20100227.1600.first-1500-records.gz");
    builds(&mrt, "most", "origin_as", "2,416 IPv4", "origin_as (int, 267 values)");
    builds(&mrt, "most", "origin_as", "215 prefixes that only others have", "267 values");
    builds(&mrt, "best", "origin_as", "2,631 IPv4", "the best paths of 5 peers, of 11");
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn a_full_table_builds_from_its_archive() {
    let mrt = archives().join("mrt/ripencc-bgpdump-updates.et-header.2015.gz");
    builds(&mrt, "best", "next_hop", "577,703 IPv4", "next_hop (str, 3,771 values)");
}

/// Builds a table of each MRT file; whatever its state, it is decoded or its damage is reported, and
/// `execute` checks that nothing panics. Returns the names of all files and of those with damage.
fn build_each(data: &Path) -> (Vec<String>, Vec<String>) {
    let (mut all, mut damaged) = (Vec::new(), Vec::new());
    for file in mrt_files(data) {
        let name = name(&file);
        // Some are cut, and of one the only record is damaged.
        let asked = ["--format", "mrt", "--salvage", "--allow-empty"];
        let result = execute(&[&["build"], &asked[..], &[arg(&file), "-o", "/dev/null"]].concat());
        assert_eq!(result.code, 0, "{name}: {}", result.err);
        if result.err.contains("damage") {
            damaged.push(name.clone());
        }
        all.push(name);
    }
    (all, damaged)
}

#[test]
fn every_cut_decodes_or_reports_its_damage() {
    let (all, damaged) = build_each(&cuts());
    assert_eq!(all.len(), 24, "{all:?}");
    let wanted = [
        "bgpkit-ripe_rrc01_2000.11_updates.20001104.0124.gz",
        "made-updates.broken-off",
        "pyasn-bview.20140112.1600_3samples.bz2",
        "pyasn-rib.20080501.0644_first109104.bz2",
        "pyasn-rib.20140523.0600_first40888.bz2",
        "pyasn-rib6.20151101.0600_first78478.bz2",
    ];
    assert_eq!(damaged, wanted);
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn every_archive_decodes_or_reports_its_damage() {
    let (all, damaged) = build_each(&archives());
    assert!(all.len() >= 32, "{all:?}");
    let is_damaged = |name: &String| {
        ["firstMB", "3samples", "rrc01_2000.11", "trailing_bits"].iter().any(|it| name.contains(it))
    };
    assert_eq!(damaged, all.into_iter().filter(is_damaged).collect::<Vec<_>>());
}
