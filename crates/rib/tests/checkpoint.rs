//! Checkpoints: their contents are restored, damage is refused, and a process that is killed while it writes one leaves
//! a file that can be opened.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use fibula_core::{
    AnyPrefix, Attributes, BgpAttributes, Change, NextHop, NextHops, Prefix, RouteKind, Update,
    Value,
};
use fibula_rib::snapshot::SnapshotErrorKind;
use fibula_rib::{AttributeSet, Peer, Preference, Rib, Snapshot};
use fibula_testkit::Rng;

/// The same feed for every caller: update number `i`.
fn update(i: u64, rib: &mut Rib) -> (u32, AnyPrefix, u32, u32, Option<BgpAttributes<'static>>) {
    let mut rng = Rng::new(i);
    let vrf = if rng.chance(0.1) { 5 } else { 0 };
    let prefix = if rng.chance(0.6) {
        AnyPrefix::V4(Prefix::masked(rng.addr::<u32>() & 0xff00_0fff, rng.below(33) as u8).unwrap())
    } else {
        AnyPrefix::V6(Prefix::masked(rng.addr::<u128>(), rng.below(129) as u8).unwrap())
    };
    let peer = rng.below(3) as u32;
    let peer = rib.peer(Peer::new(Some([192, 0, 2, peer as u8].into()), 64500 + peer));
    let attributes = BgpAttributes {
        as_path_len: rng.below(5) as u32,
        origin_as: Some(rng.below(50) as u32),
        next_hop: Some([192, 0, 2, rng.below(9) as u8].into()),
        as_path: ["64500 64501", ""][rng.below(2) as usize],
        ..BgpAttributes::default()
    };
    (vrf, prefix, peer, rng.below(2) as u32, (!rng.chance(0.3)).then_some(attributes))
}

fn apply(i: u64, rib: &mut Rib) {
    let (vrf, prefix, peer, path_id, announced) = update(i, rib);
    let change = match &announced {
        Some(attributes) => Change::Announce(Attributes::Bgp(attributes)),
        None => Change::Withdraw,
    };
    rib.apply(&Update { vrf, peer, path_id, ..Update::new(prefix, change) }, &mut ()).unwrap();
}

type Everything = BTreeMap<(u32, String), Vec<(u32, u32, AttributeSet)>>;

fn everything(rib: &Rib) -> Everything {
    let mut all = Everything::new();
    for vrf in rib.vrfs() {
        let path = |p: fibula_rib::Path| (p.peer, p.path_id, p.attributes);
        for (prefix, _) in rib.iter::<u32>(vrf) {
            let mut paths: Vec<_> = rib.paths(vrf, prefix).into_iter().map(path).collect();
            paths[1..].sort_by_key(|path| (path.0, path.1)); // only the best has a place
            all.insert((vrf, prefix.to_string()), paths);
        }
        for (prefix, _) in rib.iter::<u128>(vrf) {
            let mut paths: Vec<_> = rib.paths(vrf, prefix).into_iter().map(path).collect();
            paths[1..].sort_by_key(|path| (path.0, path.1)); // only the best has a place
            all.insert((vrf, prefix.to_string()), paths);
        }
    }
    all
}

fn rib_after(updates: u64) -> Rib {
    let mut rib = Rib::default();
    (0..updates).for_each(|i| apply(i, &mut rib));
    rib
}

#[test]
fn a_written_checkpoint_is_restored() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rib.fib");
    for updates in [0, 1, 3000] {
        let rib = rib_after(updates);
        rib.checkpoint("here").write(&path).unwrap();
        let restored = Rib::open(&path, Preference::default()).unwrap();
        assert_eq!(restored.position, "here");
        assert_eq!(restored.rib.sequence(), updates);
        assert_eq!(restored.rib.peers(), rib.peers());
        assert!(everything(&restored.rib) == everything(&rib));
        assert_eq!(restored.rib.memory().sets, rib.memory().sets);
        // To every other command it is a table.
        let snapshot = Snapshot::open(&path).unwrap();
        assert_eq!(snapshot.family::<u32>().len(), rib.len::<u32>(0));
        for (prefix, best) in rib.iter::<u128>(0) {
            let stored = snapshot.family::<u128>();
            let route = stored.get(stored.matched(prefix.first()).unwrap());
            if route.prefix == prefix {
                let row = route.hop.index().unwrap();
                let origin = best.attributes.bgp().unwrap().origin_as.unwrap();
                assert_eq!(snapshot.columns().value(1, row), Value::Int(origin.into()));
            }
        }
    }
}

/// A checkpoint that is given up leaves the existing file, and no other file.
#[test]
fn given_up_it_leaves_the_file_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rib.fib");
    let write = |updates, given_up| {
        rib_after(updates).checkpoint("").write_unless(&path, &AtomicBool::new(given_up)).unwrap()
    };
    assert!(!write(1, true));
    assert!(!path.exists());
    assert!(write(2, false));
    assert!(!write(3, true));
    let restored = Rib::open(&path, Preference::default()).unwrap();
    assert_eq!(everything(&restored.rib), everything(&rib_after(2)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn other_files_and_damage_are_refused() {
    let bytes = rib_after(300).checkpoint("").to_bytes().unwrap();
    let table = fibula_rib::Table::default();
    let none = fibula_rib::EnginePart::none();
    let plain = Snapshot::from_bytes(fibula_rib::to_bytes(&table, &none, &none).unwrap()).unwrap();
    let error = Rib::from_snapshot(&plain, Preference::default()).err().unwrap();
    assert_eq!(error.kind(), SnapshotErrorKind::Invalid);
    assert!(error.to_string().contains("without a RIB"), "{error}");
    let mut rng = Rng::new(3);
    for _ in 0..300 {
        let mut damaged = bytes.as_ref().to_vec();
        let at = rng.below(damaged.len() as u64) as usize;
        damaged[at] ^= 1 << rng.below(8);
        assert!(Snapshot::from_bytes(&damaged[..]).is_err());
        assert!(Snapshot::from_bytes(&bytes.as_ref()[..at]).is_err());
    }
}

/// A file of the previous version, which had neither next hops nor restarts.
#[test]
#[cfg(target_endian = "little")]
fn files_of_version_1_are_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/checkpoint-1.fib");
    let restored = Rib::open(&path, Preference::default()).unwrap();
    let mut rib = rib_after(60);
    let values = [Value::Int(7), Value::Null, Value::Str("text")];
    let change = Change::Announce(Attributes::Values(&values));
    let prefix = "203.0.113.0/24".parse().unwrap();
    rib.apply(&Update { peer: 1, ..Update::new(prefix, change) }, &mut ()).unwrap();
    assert!(everything(&restored.rib) == everything(&rib) && rib.memory().routes > 30);
    assert_eq!((restored.rib.sequence(), &*restored.position), (61, "40"));
    assert_eq!(restored.rib.peers(), rib.peers());
    assert!(restored.rib.resyncing().is_empty());
    // The file is still a table, and a feed that continues from it writes the current version.
    let snapshot = Snapshot::open(&path).unwrap();
    assert_eq!(snapshot.family::<u32>().len(), rib.len::<u32>(0));
    let again = restored.rib.checkpoint("41").to_bytes().unwrap();
    let again = Rib::from_snapshot(&Snapshot::from_bytes(again).unwrap(), Preference::default());
    assert!(everything(&again.unwrap().rib) == everything(&rib));
}

/// Columns keep the names that the sources gave them, whatever the order, and the file has a date.
#[test]
fn values_keep_their_names() {
    let mut rib = Rib::default();
    let bgp = BgpAttributes { origin_as: Some(7), as_path_len: 1, ..Default::default() };
    let announce = |rib: &mut Rib, prefix: &str, attributes: Attributes<'_>| {
        let change = Change::Announce(attributes);
        rib.apply(&Update::new(prefix.parse().unwrap(), change), &mut ()).unwrap();
    };
    rib.peer(Peer::new(None, 0));
    assert_eq!(rib.value_places(&["site", "owner"]), [0, 1]);
    announce(&mut rib, "10.0.0.0/8", Attributes::Values(&[Value::Str("a"), Value::Int(1)]));
    // A second source has another order, a column of its own, and one that BGP's routes have as well.
    assert_eq!(rib.value_places(&["owner", "note", "origin_as"]), [1, 2, 3]);
    let values = [Value::Null, Value::Int(2), Value::Str("x"), Value::Str("AS9")];
    announce(&mut rib, "11.0.0.0/8", Attributes::Values(&values));
    announce(&mut rib, "12.0.0.0/8", Attributes::Bgp(&bgp));
    let file = |rib: &Rib| Snapshot::from_bytes(rib.checkpoint("").to_bytes().unwrap()).unwrap();
    let snapshot = file(&rib);
    let again = Rib::from_snapshot(&snapshot, Preference::default()).unwrap().rib;
    for snapshot in [&snapshot, &file(&again)] {
        let columns = snapshot.columns();
        let rest = ["local_pref", "med", "as_path", "communities", "site", "owner", "note"];
        assert!(columns.names().skip(3).eq(rest), "{columns:?}");
        let stored = snapshot.family::<u32>();
        let value = |index: usize, name: &str| {
            let row = stored.get(index).hop.index().unwrap();
            columns.value(columns.find(name).unwrap(), row)
        };
        assert_eq!((value(0, "site"), value(0, "owner")), (Value::Str("a"), Value::Int(1)));
        assert_eq!((value(1, "owner"), value(1, "note")), (Value::Int(2), Value::Str("x")));
        let origins = [0, 1, 2].map(|index| value(index, "origin_as"));
        assert_eq!(origins, [Value::Null, Value::Str("AS9"), Value::Str("7")]);
        assert!(snapshot.provenance().created > 1_600_000_000);
    }
}

/// Next hops are restored, and other commands see them as columns of the table.
#[test]
fn next_hops_are_stored() {
    let mut rib = Rib::default();
    let hop = |last, interface| NextHop {
        interface,
        ..NextHop::via(std::net::Ipv4Addr::new(192, 0, 2, last).into())
    };
    let tables = [
        ("10.0.0.0/8", RouteKind::Unicast, vec![hop(9, None), hop(1, Some(3))]),
        ("11.0.0.0/8", RouteKind::Unicast, vec![hop(2, Some(4))]),
        ("12.0.0.0/8", RouteKind::Blackhole, vec![]),
    ];
    for (prefix, kind, hops) in tables {
        let next_hops = NextHops { kind, hops };
        let change = Change::Announce(Attributes::NextHops(&next_hops));
        rib.apply(&Update::new(prefix.parse().unwrap(), change), &mut ()).unwrap();
    }
    rib.peer(Peer::new(None, 0));
    let snapshot = Snapshot::from_bytes(rib.checkpoint("").to_bytes().unwrap()).unwrap();
    let again = Rib::from_snapshot(&snapshot, Preference::default()).unwrap().rib;
    assert!(everything(&again) == everything(&rib));
    let (columns, stored) = (snapshot.columns(), snapshot.family::<u32>());
    assert!(columns.names().eq(["next_hop", "interface", "weight", "kind"]));
    let rows: Vec<Vec<Value<'_>>> = (0..3)
        .map(|i| stored.get(i).hop.index().unwrap())
        .map(|row| (0..4).map(|column| columns.value(column, row)).collect())
        .collect();
    let text = Value::Str;
    assert_eq!(rows[0], [text("192.0.2.1 192.0.2.9"), text("3 -"), text("1 1"), text("unicast")]);
    assert_eq!(rows[1], [text("192.0.2.2"), text("4"), text("1"), text("unicast")]);
    assert_eq!(rows[2], [Value::Null, Value::Null, Value::Null, text("blackhole")]);
}

const CHILD: &str = "FIBULA_TEST_CHECKPOINT";

/// Not a test, but the process that the next test kills. It continues from the checkpoint that it finds.
#[test]
fn the_one_that_is_killed() {
    let Some(path) = env::var_os(CHILD) else { return };
    let path = Path::new(&path);
    let mut rib = match Rib::open(path, Preference::default()) {
        Ok(restored) => restored.rib,
        Err(_) if !path.exists() => Rib::default(),
        Err(error) => panic!("{error}"),
    };
    for i in rib.sequence().. {
        apply(i, &mut rib);
        if i % 20 == 0 {
            rib.checkpoint(&i.to_string()).write(path).unwrap();
        }
    }
}

#[test]
fn a_killed_process_leaves_a_checkpoint() {
    const KILLS: usize = 60;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rib.fib");
    let mut rng = Rng::new(u64::from(std::process::id()));
    let (mut last, mut progress) = (0, 0);
    for kill in 0..KILLS {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "checkpoint::the_one_that_is_killed"])
            .env(CHILD, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Every other child is killed after it has written a checkpoint; the others at any time from the start on.
        // There is no file before the first one's.
        let before = fs::read(&path).ok();
        let until = Instant::now() + Duration::from_secs(60);
        while kill % 2 == 0 && fs::read(&path).ok() == before && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_micros(rng.below(40_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let restored = Rib::open(&path, Preference::default()).unwrap();
        let sequence = restored.rib.sequence();
        assert!(sequence >= last, "a checkpoint went back");
        progress += usize::from(sequence > last);
        last = sequence;
        if kill % 10 == 9 {
            assert!(everything(&restored.rib) == everything(&rib_after(sequence)));
        }
        assert_eq!(restored.position, (sequence - 1).to_string());
        // A killed writer leaves its temporary file beside the checkpoint, which is ignored.
        for entry in fs::read_dir(&directory).unwrap() {
            let other = entry.unwrap().path();
            if other != path {
                fs::remove_file(other).unwrap();
            }
        }
    }
    assert!(progress >= KILLS / 2, "{progress} children came to write something");
}
