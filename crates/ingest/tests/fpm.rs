//! FRR's messages over FPM, compared with the kernel's table at the same moments: every route, every next hop.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use fibula_core::{Attributes, Change, NextHops, RouteKind, Update, Vrf};
use fibula_ingest::fpm::FpmDecoder;
use fibula_ingest::{Damage, Decoder, Driver, Sink, Tail, decompress};

use crate::common::{archives, cuts};

/// The next hop in FRR's inline form in place of the IPv6 next hop of an IPv4 route.
const STAND_IN: &str = "169.254.0.1";

/// A forwarding table: next hops as the expected files write them.
#[derive(Default)]
struct Fib {
    routes: BTreeMap<(Vrf, String), Vec<String>>,
    tables: HashMap<Vrf, String>,
    /// The route that was withdrawn last, unless another update came after it.
    gone: Option<(Vrf, String)>,
    updates: usize,
}

impl Sink for Fib {
    fn vrf(&mut self, index: Vrf, name: &str) {
        assert_eq!(self.tables.insert(index, name.to_owned()), None, "a table is declared once");
    }
    fn update(&mut self, update: &Update<'_>) {
        self.updates += 1;
        assert_eq!((update.peer, update.path_id, update.time), (0, 0, 0));
        assert!(self.tables.contains_key(&update.vrf), "a table is declared before it is used");
        let key = (update.vrf, update.prefix.to_string());
        let gone = self.gone.take();
        match update.change {
            Change::Withdraw => {
                self.routes.remove(&key);
                self.gone = Some(key);
            }
            Change::Announce(Attributes::NextHops(hops)) => {
                assert_ne!(gone.as_ref(), Some(&key), "a replacement without a hole");
                self.routes.insert(key, written(hops));
            }
            Change::Announce(_) => panic!("FPM has next hops"),
        }
    }
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        panic!("{damage}");
    }
    fn noted(&mut self, what: &'static str) {
        panic!("{what}");
    }
}

/// As the expected files write them, in any order.
fn written(next_hops: &NextHops) -> Vec<String> {
    if next_hops.kind != RouteKind::Unicast {
        assert_eq!(next_hops.hops, []);
        return vec![next_hops.kind.to_string()];
    }
    let hops = next_hops.hops.iter().map(|hop| {
        assert_eq!(hop.weight, 1);
        let gateway = hop.gateway.map_or("-".to_owned(), |gateway| gateway.to_string());
        let device = match hop.interface {
            Some(11) => "dA",
            Some(12) => "dB",
            other => panic!("interface {other:?}"),
        };
        format!("{gateway} {device}")
    });
    let mut hops: Vec<String> = hops.collect();
    hops.sort();
    hops
}

/// A file, which may be compressed.
fn content(path: &Path) -> Vec<u8> {
    let compressed = PathBuf::from(format!("{}.xz", path.display()));
    let path = if path.exists() { path } else { &compressed };
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    decompress(file).and_then(|(_, mut reader)| reader.read_to_end(&mut bytes)).expect("sound");
    bytes
}

/// The kernel's table: `prefix next-hop device[, ...][ table N]`.
fn expected(path: &Path) -> BTreeMap<(Vrf, String), Vec<String>> {
    let text = String::from_utf8(content(path)).expect("text");
    let routes = text.lines().map(|line| {
        let (line, vrf) = match line.split_once(" table ") {
            Some((line, table)) => (line, table.parse().expect("a number")),
            None => (line, 0),
        };
        let (prefix, hops) = line.split_once(' ').expect("a route");
        let mut hops: Vec<String> = hops.split(", ").map(str::to_owned).collect();
        hops.sort();
        ((vrf, prefix.to_owned()), hops)
    });
    routes.collect()
}

/// Whether `ours` equals the kernel's, if an IPv6 gateway of an IPv4 route may be hidden; counts those.
fn is_same(prefix: &str, ours: &[String], kernel: &[String], hidden: &mut usize) -> bool {
    if ours == kernel {
        return true;
    }
    let hide = |hop: &String| match hop.split_once(' ') {
        Some((gateway, device)) if gateway.contains(':') => format!("{STAND_IN} {device}"),
        _ => hop.clone(),
    };
    let mut kernel: Vec<String> = kernel.iter().map(hide).collect();
    kernel.sort();
    *hidden += 1;
    !prefix.contains(':') && ours == kernel
}

/// Replays the captures of a run as its log has them, and compares at each of its marks. Gives for each mark
/// how many routes were the same, and of these how many had a hidden gateway.
fn replay(folder: &Path, name: &str, fibs: &str) -> Vec<(String, usize, usize)> {
    let log = String::from_utf8(content(&folder.join(format!("{name}.fpm.tsv")))).expect("text");
    let (mut marks, mut fib, mut tables) = (Vec::new(), Fib::default(), 0);
    let mut connection: Option<(Driver, Vec<u8>, usize)> = None;
    for line in log.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            [_, "open", number, _] => {
                fib = Fib::default();
                tables += 1;
                let driver = Driver::new(Box::new(FpmDecoder::default()), 1 << 16);
                connection =
                    Some((driver, content(&folder.join(format!("{name}.c{number}.fpm"))), 0));
            }
            [_, "data", _, bytes] => {
                let (driver, stream, at) = connection.as_mut().expect("open");
                let bytes: usize = bytes.parse().expect("a number");
                driver.push(&stream[*at..*at + bytes], &mut fib).expect("sound");
                *at += bytes;
            }
            [_, "mark", _, mark] => {
                let (driver, ..) = connection.as_mut().expect("open");
                driver.flush(&mut fib);
                assert!(!driver.is_holding() && driver.pending().is_empty());
                let mut kernel = expected(&folder.join(format!("{fibs}.{mark}.fib")));
                if tables > 1 {
                    // FRR does not send other tables again.
                    kernel.retain(|(vrf, _), _| *vrf == 0);
                }
                // FRR sends the links' own network, once; the files leave it out.
                let link = fib.routes.remove(&(0, "fe80::/64".to_owned())).expect("sent");
                assert!(link == ["- dA"] || link == ["- dB"], "{link:?}");
                let mut hidden = 0;
                for (key, ours) in &fib.routes {
                    let theirs =
                        kernel.get(key).unwrap_or_else(|| panic!("{mark}: {key:?} is not there"));
                    assert!(
                        is_same(&key.1, ours, theirs, &mut hidden),
                        "{mark}: {key:?} {ours:?} {theirs:?}"
                    );
                }
                assert_eq!(fib.routes.len(), kernel.len(), "{mark}");
                fib.routes.insert((0, "fe80::/64".to_owned()), link);
                marks.push((mark.to_owned(), kernel.len(), hidden));
            }
            [_, "drop" | "close", ..] => {
                let (driver, stream, at) = connection.as_mut().expect("open");
                assert_eq!(*at, stream.len());
                assert_eq!(driver.finish(Tail::Cut, &mut fib).expect("sound"), 0);
            }
            _ => panic!("{line}"),
        }
    }
    marks
}

fn marks(expected: &[(&str, usize, usize)]) -> Vec<(String, usize, usize)> {
    expected.iter().map(|&(mark, routes, hidden)| (mark.to_owned(), routes, hidden)).collect()
}

#[test]
fn with_next_hop_groups_every_route_is_the_kernels() {
    let expected = marks(&[
        ("loaded", 1219, 0),
        ("churned", 984, 0),
        ("reconnected", 958, 0),
        ("ended", 18, 0),
    ]);
    assert_eq!(replay(&cuts().join("fpm"), "small-nhg", "small"), expected);
}

#[test]
fn inline_every_route_is_the_kernels_but_for_hidden_gateways() {
    let expected = marks(&[
        ("loaded", 1219, 10),
        ("churned", 984, 9),
        ("reconnected", 958, 8),
        ("ended", 18, 0),
    ]);
    assert_eq!(replay(&cuts().join("fpm"), "small-inline", "small"), expected);
}

#[test]
#[ignore = "real archives: ./dev check-data"]
fn a_large_table_is_the_kernels() {
    let expected = marks(&[("loaded", 120_019, 0), ("churned", 96_247, 0)]);
    assert_eq!(replay(&archives().join("fpm"), "large-nhg", "large-nhg"), expected);
}

/// The cuts of a stream do not affect its content.
#[test]
fn reads_of_any_length_give_the_same() {
    for name in ["small-nhg.c2.fpm", "small-inline.c1.fpm"] {
        let stream = content(&cuts().join("fpm").join(name));
        let tables = [stream.len(), 1, 5, 1021].map(|step| {
            let (mut fib, mut decoder) = (Fib::default(), FpmDecoder::default());
            let (mut start, mut end) = (0, 0);
            while end < stream.len() {
                end = (end + step).min(stream.len());
                start += decoder.decode(&stream[start..end], Tail::More, &mut fib).expect("sound");
            }
            assert_eq!(decoder.decode(&stream[start..], Tail::End, &mut fib), Ok(end - start));
            (fib.routes, fib.updates, decoder.records())
        });
        assert!(tables.iter().all(|table| *table == tables[0]), "{name}");
    }
}
