//! The main job on real tables, captures and archives. They lie outside the repository, in the
//! folder that `FIBULA_SHARED` names or in `shared` beside it; without them these tests say so.

mod common;

use std::collections::HashMap;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use common::{Files, done, said};

fn data() -> Option<PathBuf> {
    let shared = std::env::var_os("FIBULA_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let data = shared.join("data");
    if !data.is_dir() {
        println!("skipped: shared data not found");
        return None;
    }
    Some(data)
}

fn text(path: &Path) -> String {
    let mut text = String::new();
    let file = common::read(path);
    lzma_rust2::XzReader::new(&file[..], true).read_to_string(&mut text).expect("xz with text");
    text
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// One hash map a length, longest first: shares no code with what it checks.
struct ByLength(Vec<HashMap<u32, String>>);

impl ByLength {
    fn new(table: &str) -> Self {
        let mut maps = vec![HashMap::new(); 33];
        for line in table.lines() {
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

#[test]
fn annotating_real_addresses_gives_the_right_as() {
    let Some(data) = data() else { return };
    let table = data.join("tables/ipfire-libloc-20221029-v4-asn.tsv.xz");
    let list = data.join("traffic/ipsum-20260822-v4-addresses.txt.xz");
    let files = Files::new();
    let out = files.path("annotated.txt");
    let fib = files.path("libloc.fib");
    done(&["build", path(&table), "--names", "prefix,asn", "-o", &fib]);
    done(&["annotate", "--table", &fib, "--add", "prefix,asn", path(&list), "-o", &out]);

    let oracle = ByLength::new(&text(&table));
    let (addresses, annotated) = (text(&list), String::from_utf8(common::read(&out)).unwrap());
    let mut rows = 0;
    for (line, addr) in annotated.lines().zip(addresses.lines()) {
        let expected = match oracle.lookup(addr) {
            Some((prefix, asn)) => format!("{addr}\t{prefix}\t{asn}"),
            None => format!("{addr}\t\t"),
        };
        assert_eq!(line, expected);
        rows += 1;
    }
    assert_eq!((rows, annotated.lines().count()), (120_430, 120_430));
}

#[test]
fn a_full_table_builds_from_its_archive() {
    let Some(data) = data() else { return };
    let files = Files::new();
    let fib = files.path("pch.fib");
    let mrt = data.join("mrt/ripencc-bgpdump-updates.et-header.2015.gz");
    let said = done(&["build", path(&mrt), "--columns", "next_hop", "-o", &fib]);
    assert!(said.out.contains("577,703 IPv4"), "{}", said.out);
    assert!(said.out.contains("next_hop (str, 3,771 values)"), "{}", said.out);
    let verified = done(&["verify", "--table", &fib, "--engines", "auto", "--random", "100000"]);
    assert!(verified.out.contains("all 7 agree with the oracle"), "{}", verified.out);
}

/// Whatever its state, a file is decoded or its damage is reported; `said` sees to the panics.
#[test]
fn every_archive_decodes_or_reports_its_damage() {
    let Some(data) = data() else { return };
    let mut seen = 0;
    for folder in ["mrt", "mrt/mrtparse-samples"] {
        for entry in data.join(folder).read_dir().expect("the archives") {
            let file = entry.expect("a readable folder").path();
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            if file.is_dir() || [".md", ".rst", ".conf"].iter().any(|end| name.ends_with(end)) {
                continue;
            }
            let said = said(&["build", "--format", "mrt", path(&file), "-o", "/dev/null"]);
            assert_eq!(said.code, 0, "{name}: {}", said.err);
            // Archives that were cut, or damaged long ago.
            let damaged = name.contains("firstMB") || name.contains("rrc01_2000.11");
            assert!(!damaged || said.err.contains("damage"), "{name}: {}", said.err);
            seen += 1;
        }
    }
    assert!(seen >= 28, "{seen} archives");
}
