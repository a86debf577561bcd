//! `fibula export --paths`: all paths of all peers.

use std::fs::File;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampMicrosecondType, UInt32Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value, json};

use crate::common::{Files, cuts, done, execute};

/// Lines of JSON, in order of their text.
fn lines(args: &[&str]) -> Vec<String> {
    let mut command = vec!["export", "--paths"];
    command.extend(args);
    let mut lines: Vec<_> = done(&command).out.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn mrt(name: &str) -> String {
    cuts().join("mrt").join(name).display().to_string()
}

const UPDATES: &str = "bgpkit-ripe_rrc15_2010.02_updates.20100227.1610.gz";

/// What bgpdump printed is a source, too: both must give the same rows. It prints 0 for an absent MED and LOCAL_PREF,
/// and no extended communities.
#[test]
fn rows_are_those_of_bgpdump() {
    let (mut withdrawn, mut aggregated) = (0, 0);
    for name in [
        UPDATES,
        "bgpkit-ripe_rrc01_2000.11_updates.20001104.0124.gz",
        "bgpkit-ripe_rrc03_2010.02_updates.20100227.1600.first-796-records.gz",
        "et-of-rrc15_2010.02_updates.20100227.1600.first-1500-records.gz",
    ] {
        let printed = lines(&[&mrt(&format!("expect/{name}.bgpdump.xz"))]);
        let mut ours = lines(&[&mrt(name)]);
        for line in &mut ours {
            let mut row = line.replace(",\"med\":0", "");
            if let Some((before, list)) = row.split_once(",\"extended_communities\":[") {
                row = format!("{before}{}", list.split_once(']').expect("its end").1);
            }
            *line = row;
        }
        aggregated += ours.iter().filter(|line| line.contains("\"aggregator_address\"")).count();
        ours.sort();
        withdrawn += ours.iter().filter(|line| line.contains("\"withdraw\"")).count();
        assert!(ours.len() > 500, "{name}: {}", ours.len());
        assert!(ours == printed, "{name}");
    }
    assert!(withdrawn > 1000 && aggregated > 500, "{withdrawn} {aggregated}");
}

/// The rows of a batch as JSON has them.
fn objects(batch: &RecordBatch) -> Vec<Value> {
    let row = |row: usize| {
        let mut object = Map::new();
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            if column.is_null(row) {
                continue;
            }
            let value = match field.data_type() {
                DataType::Boolean => json!(column.as_boolean().value(row)),
                DataType::UInt32 => json!(column.as_primitive::<UInt32Type>().value(row)),
                DataType::Timestamp(..) => {
                    let time = column.as_primitive::<TimestampMicrosecondType>().value(row);
                    json!(time as f64 / 1e6)
                }
                DataType::List(_) => {
                    let texts = column.as_list::<i32>().value(row);
                    texts.as_string::<i32>().iter().map(|text| json!(text)).collect()
                }
                DataType::Dictionary(..) => {
                    let column = column.as_dictionary::<Int32Type>();
                    let key = column.key(row).expect("a value");
                    json!(column.values().as_string::<i32>().value(key))
                }
                _ => json!(column.as_string::<i32>().value(row)),
            };
            object.insert(field.name().clone(), value);
        }
        Value::Object(object)
    };
    (0..batch.num_rows()).map(row).collect()
}

#[test]
fn all_formats_have_the_same_rows() {
    let files = Files::new();
    // More rows than a batch has: the same file several times.
    let sources = vec![mrt(UPDATES); 2].join(",");
    let output = |name: &str| {
        let path = files.path(name);
        done(&["export", "--paths", &sources, "-o", &path]);
        path
    };
    let text = std::fs::read_to_string(output("p.jsonl")).unwrap();
    let expected: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(expected.len(), 2 * 7469);
    let parquet = File::open(output("p.parquet")).unwrap();
    let parquet = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap().build().unwrap();
    let arrow = File::open(output("p.arrow")).unwrap();
    let arrow = arrow_ipc::reader::StreamReader::try_new(arrow, None).unwrap();
    for (name, batches) in [
        ("parquet", parquet.collect::<Result<Vec<_>, _>>().unwrap()),
        ("arrow", arrow.collect::<Result<Vec<_>, _>>().unwrap()),
    ] {
        let found: Vec<Value> = batches.iter().flat_map(objects).collect();
        assert!(found == expected, "{name}");
    }
}

#[test]
fn filters() {
    let all = lines(&[&mrt(UPDATES)]);
    let count = |args: &[&str]| {
        let mut command = vec![UPDATES_PATH.as_str()];
        command.extend(args);
        let found = lines(&command);
        assert!(found.iter().all(|line| all.binary_search(line).is_ok()));
        found.len()
    };
    let by_text = |what: &str| all.iter().filter(|line| line.contains(what)).count();
    assert_eq!(count(&[]), all.len());
    let origin = by_text("\"origin_as\":31055,");
    assert!(origin > 0);
    assert_eq!(count(&["--origin-as", "AS31055"]), origin);
    let peer = by_text("\"peer_as\":22548,");
    assert!(peer > 0 && peer < all.len());
    assert_eq!(count(&["--peer", "AS22548"]), peer);
    let with = by_text("\"3549:2835\"");
    assert!(with > 0);
    assert_eq!(count(&["--community", "3549:2835"]), with);
    let through = |line: &&String| {
        let path = line.split("\"as_path\":\"").nth(1).and_then(|rest| rest.split('"').next());
        path.is_some_and(|path| path.split([' ', '{', '}', ',']).any(|hop| hop == "3549"))
    };
    let passing = all.iter().filter(through).count();
    assert!(passing > 0 && passing < all.len());
    assert_eq!(count(&["--path-regex", "_3549_"]), passing);
    let files = Files::new();
    let within = files.with("within.txt", "62.168.0.0/16\n2001::/16\n");
    let inside = by_text("\"prefix\":\"62.168.");
    assert!(inside > 0);
    assert_eq!(count(&["--within", &within]), inside);
    assert_eq!(count(&["--within", &within, "--origin-as", "1"]), 0);
}

static UPDATES_PATH: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| mrt(UPDATES));

/// What a router prints, in which a prefix has several paths.
const PRINTED: &str = "
BGP table version is 7, local router ID is 192.0.2.254
Status codes: s suppressed, d damped, h history, * valid, > best, i - internal
Origin codes: i - IGP, e - EGP, ? - incomplete

   Network          Next Hop            Metric LocPrf Weight Path
*> 10.0.0.0         192.0.2.2                5             0 64501 64502 i
*                   192.0.2.1                     100      0 64500 64502 {1,2} e
*                   192.0.2.1                              0 64500 64503 64502 ?
*>i2001:db8:1234:5678::/64
                    2001:db8::9            100    200      0 64504 i
* i203.0.113.128/25 192.0.2.9              100    200      0 64504 i

Total number of prefixes 3
";

#[test]
fn a_table_as_a_router_prints_it() {
    let files = Files::new();
    let table = files.with("show.txt", PRINTED);
    let rows = done(&["export", "--paths", &table]).out;
    let internal =
        r#""as_path":"64504","origin_as":64504,"origin":"IGP","local_pref":200,"med":100,"best""#;
    let v6 = r#""prefix":"2001:db8:1234:5678::/64","next_hop":"2001:db8::9""#;
    let expected = [
        r#"{"change":"announce","peer_address":"192.0.2.2","peer_as":64501,"prefix":"10.0.0.0/8","next_hop":"192.0.2.2","as_path":"64501 64502","origin_as":64502,"origin":"IGP","med":5,"best":true}"#.to_owned(),
        r#"{"change":"announce","peer_address":"192.0.2.1","peer_as":64500,"prefix":"10.0.0.0/8","next_hop":"192.0.2.1","as_path":"64500 64502 {1,2}","origin":"EGP","local_pref":100,"best":false}"#.to_owned(),
        r#"{"change":"announce","peer_address":"192.0.2.1","peer_as":64500,"prefix":"10.0.0.0/8","path_id":1,"next_hop":"192.0.2.1","as_path":"64500 64503 64502","origin_as":64502,"origin":"INCOMPLETE","best":false}"#.to_owned(),
        format!(r#"{{"change":"announce","peer_address":"2001:db8::9",{v6},{internal}:true}}"#),
        format!(r#"{{"change":"announce","peer_address":"192.0.2.9","prefix":"203.0.113.128/25","next_hop":"192.0.2.9",{internal}:false}}"#),
    ];
    assert_eq!(rows.lines().collect::<Vec<_>>(), expected);
    // A table has the routes that the router chose, or those of a peer.
    let chosen = done(&["export", &table, "--columns", "next_hop,origin_as"]).out;
    let two = "prefix\tnext_hop\torigin_as\n10.0.0.0/8\t192.0.2.2\t64502\n\
               2001:db8:1234:5678::/64\t2001:db8::9\t64504\n";
    assert_eq!(chosen, two);
    let of_peer = done(&["export", &table, "--peer", "192.0.2.1", "--columns", "next_hop"]).out;
    assert_eq!(of_peer, "prefix\tnext_hop\n10.0.0.0/8\t192.0.2.1\n");
    let cut = files.with("cut.txt", &PRINTED[..PRINTED.find("   2001:db8::9").unwrap()]);
    let damaged = execute(&["export", "--paths", "--strict", &cut]);
    assert!(damaged.code == 2 && damaged.err.contains("breaks off"), "{}", damaged.err);
}

#[test]
fn extended_communities_and_aggregators() {
    let files = Files::new();
    let attributes = [
        &[0x40, 1, 1, 0][..],                          // ORIGIN
        &[0x40, 2, 4, 2, 1, 0xfb, 0xf4],               // AS_PATH: 64500
        &[0x40, 3, 4, 192, 0, 2, 1],                   // NEXT_HOP
        &[0xc0, 7, 6, 0x5b, 0xa0, 192, 0, 2, 7],       // AGGREGATOR: AS_TRANS
        &[0xc0, 16, 16, 0, 2, 0xfb, 0xf4, 0, 0, 0, 9], // rt:64500:9
        &[3, 12, 0, 0, 0, 0, 0, 8],                    // an encapsulation
        &[0xc0, 18, 8, 0, 1, 0, 0, 192, 0, 2, 7],      // AS4_AGGREGATOR: 65536
    ]
    .concat();
    let len = attributes.len() as u8;
    let record = [
        &[0x56, 0x29, 0x78, 0x80, 0, 16, 0, 1, 0, 0, 0, 16 + 27 + len][..],
        &[0xfb, 0xf4, 0xfd, 0xe8, 0, 0, 0, 1, 192, 0, 2, 1, 192, 0, 2, 2],
        &[0xff; 16],
        &[0, 27 + len, 2, 0, 0, 0, len],
        &attributes,
        &[24, 198, 51, 100],
    ]
    .concat();
    let path = files.path("updates.mrt");
    std::fs::write(&path, record).unwrap();
    let all = lines(&[&path]);
    let ends = r#""extended_communities":["rt:64500:9","0x030c000000000008"],"aggregator_as":65536,"aggregator_address":"192.0.2.7"}"#;
    assert!(all.len() == 1 && all[0].ends_with(ends), "{all:?}");
    for (community, found) in [
        ("rt:64500:9", 1),
        ("RT:*:9", 1),
        ("1:2,0x030C000000000008", 1),
        ("soo:64500:9", 0),
        ("64500:9", 0),
        ("*:64500:9", 0),
    ] {
        assert_eq!(lines(&[&path, "--community", community]).len(), found, "{community}");
    }
}

#[test]
fn what_has_no_paths_is_refused() {
    let files = Files::new();
    let list = files.with("list.csv", "prefix,site\n10.0.0.0/8,hq\n");
    let broken = mrt("pyasn-rib6.20151101.0600_first78478.bz2");
    let path = files.path("p.parquet");
    for (args, sentence) in [
        (&[&*list][..], "text has no paths of BGP"),
        (&["embedded"], "one route for each prefix"),
        (&[&*UPDATES_PATH, "-o", "x.csv"], "unknown file name ending"),
        (&[&*UPDATES_PATH, "--to", "mmdb"], "parquet, arrow or jsonl"),
        (&[&*UPDATES_PATH, "--community", "64500"], "a community is"),
        (&[&*UPDATES_PATH, "--path-regex", "("], "regex parse error"),
        (&[&*UPDATES_PATH, "--compress"], "cannot be used with"),
        (&[&*broken, "-o", &path], "--salvage"),
    ] {
        let mut command = vec!["export", "--paths"];
        command.extend(args);
        let failed = execute(&command);
        assert_eq!(failed.code, 2, "{args:?}: {}", failed.out);
        assert!(failed.err.contains(sentence), "{args:?}: {}", failed.err);
        assert!(!std::path::Path::new(&path).exists(), "{args:?}");
    }
    let without = execute(&["export", &list, "--origin-as", "1"]);
    assert!(without.code == 2 && without.err.contains("--paths"), "{}", without.err);
    let arrow = execute(&["export", &list, "--to", "arrow"]);
    assert!(arrow.code == 2 && arrow.err.contains("formats of --paths"), "{}", arrow.err);
    let salvaged = lines(&["--salvage", &broken]);
    assert_eq!(salvaged.len(), 11_461);
}
