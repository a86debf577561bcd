//! Bloomfwd's paper: every experiment on a tiny table.

use assert_cmd::Command;
use fibula::sources::Source;
use fibula_core::{Lookup, Routes};
use fibula_simd::Isa;

const V4: &str = "gen:v4:2015:800:1";
const V6: &str = "gen:v6:2015:800:1";
const HEAD: &str = "table,family,prefixes,isa";
const TAIL: &str = "mlps,mlps_min,mlps_max,memory_bytes,build_ms";

/// The rows of an experiment, by column; the columns must be these, between those of all.
fn rows(args: &[&str], columns: &str) -> Vec<Vec<String>> {
    let all = [&["--keys", "500", "--runs", "2"][..], args].concat();
    let out = done(&all);
    let mut lines = out.lines();
    let comma = if columns.is_empty() { "" } else { "," };
    assert_eq!(lines.next(), Some(&*format!("{HEAD}{comma}{columns},{TAIL}")), "{args:?}");
    let width = 9 + columns.split(',').filter(|name| !name.is_empty()).count();
    let rows: Vec<Vec<String>> =
        lines.map(|line| line.split(',').map(str::to_owned).collect()).collect();
    for row in &rows {
        assert_eq!(row.len(), width, "{row:?}");
        let [mlps, min, max, bytes, build] = &row[width - 5..] else { unreachable!() };
        if mlps.is_empty() {
            assert!([min, max, bytes, build].iter().all(|cell| cell.is_empty()), "{row:?}");
            continue;
        }
        let number = |text: &str| text.parse::<f64>().expect("a number");
        // The median of two runs is the mean of them.
        let mean = (number(min) + number(max)) / 2.0;
        assert!(number(min) > 0.0 && (number(mlps) - mean).abs() <= 0.0011, "{row:?}");
        assert!(number(bytes) > 0.0 && number(build) >= 0.0, "{row:?}");
    }
    rows
}

/// Runs the program, and it must go well: its standard output.
fn done(args: &[&str]) -> String {
    let (code, out, err) = run(args);
    assert_eq!(code, Some(0), "{args:?}: {out}{err}");
    out
}

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::cargo_bin("bloomfwd").expect("the binary is built");
    let output = command.env_remove("FIBULA_ISA").args(args).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The bytes of an engine over a generated table.
fn bytes(table: &str, engine: &str) -> String {
    let Ok(Source::Generated(spec)) = Source::parse(table) else { panic!("{table}") };
    let table = fibula::sources::generated(spec);
    let routes: &Routes<u32> = table.routes();
    let entry =
        fibula_baselines::registry().find::<u32>(engine).expect("the registry has the engine");
    entry.build(routes, Isa::detect()).expect("the table fits").memory().total().to_string()
}

/// The last column but one is the engine's memory.
fn memory(row: &[String]) -> &str {
    &row[row.len() - 2]
}

fn column(rows: &[Vec<String>], at: usize) -> Vec<&str> {
    rows.iter().map(|row| row[at].as_str()).collect()
}

#[test]
fn hash_functions() {
    let rows = rows(
        &["--figure", "1", "-t", V4],
        "filter_hash,table_hash,false_positives,level_prefixes,level_bits,level_hashes",
    );
    // Five rates with the paper's numbers of positions, and three of them with one.
    assert_eq!(rows.len(), 3 * 3 * (5 + 3));
    assert_eq!(rows[0][..7], [V4, "v4", "800", &rows[0][3], "murmur", "murmur", "0.01"]);
    assert_eq!(column(&rows[..8], 6), ["0.01", "0.1", "0.3", "0.6", "0.9", "0.01", "0.1", "0.3"]);
    let positions = ["7 7", "4 4", "2 2", "1 1", "1 1", "1 1", "1 1", "1 1"];
    assert_eq!(column(&rows[..8], 9), positions);
    let last = &rows[71];
    assert_eq!((&*last[4], &*last[5], &*last[6], &*last[9]), ("h2", "h2", "0.3", "1 1"));
    // The levels' prefixes are those of the table, whatever the functions and the rate.
    assert!(column(&rows, 7).iter().all(|prefixes| *prefixes == last[7]));
}

#[test]
fn threads() {
    let args = ["--figure", "2", "-t", V4, "--threads", "2,3"];
    let rows = rows(&args, "engine,threads,speedup");
    assert_eq!(rows.len(), 5 * 3);
    assert_eq!(column(&rows, 5).concat(), "111112222233333");
    assert!(rows[..5].iter().all(|row| row[6] == "1"));
    let engines = ["bloomfwd-baseline", "bloomfwd", "bloomfwd-compiled", "miht", "miht-batch"];
    assert_eq!(column(&rows[10..], 4), engines);
    let number = |text: &str| text.parse::<f64>().unwrap();
    for (at, row) in rows.iter().enumerate() {
        let alone = &rows[at % 5];
        assert_eq!(memory(row), bytes(V4, &row[4]), "{row:?}");
        let (a, b, half) = (number(&row[7]), number(&alone[7]), 0.0005);
        let speedup = (a - half) / (b + half) - half..=(a + half) / (b - half) + half;
        assert!(speedup.contains(&number(&row[6])), "{row:?} {alone:?}");
    }
}

#[test]
fn matching_addresses() {
    let rows = rows(&["--figure", "3", "-t", V4], "engine,matching_percent");
    assert_eq!(column(&rows, 5), ["0", "20", "40", "60", "80", "100"]);
    let bytes = bytes(V4, "bloomfwd");
    assert!(rows.iter().all(|row| memory(row) == bytes));
}

#[test]
fn real_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.txt");
    std::fs::write(&path, "192.0.2.1\n198.51.100.7\t3\n2001:db8::1\n").unwrap();
    let list = path.to_str().unwrap();
    let args = ["--figure", "4", "-t", V4, "--addresses", list];
    let both = rows(&args, "engine,traffic");
    assert_eq!(both.len(), 2 * 4);
    assert_eq!(column(&both[..4], 5), ["RND"; 4]);
    assert_eq!(column(&both[4..], 5), [&*format!("file:{list}"); 4]);
    let args = ["--figure", "4", "-t", V6, "--family", "v6", "--addresses", list];
    assert_eq!(rows(&args, "engine,traffic").len(), 2 * 4);
}

#[test]
fn sizes_of_tables() {
    let rows = rows(&["--figure", "5", "-t", V4], "engine,part");
    assert_eq!(column(&rows, 2), ["50", "100", "200", "400", "800"]);
    assert_eq!(column(&rows, 5), ["1/16", "1/8", "1/4", "1/2", "1/1"]);
    let sizes: Vec<u64> = rows.iter().map(|row| memory(row).parse().unwrap()).collect();
    assert!(sizes.is_sorted() && sizes[0] < sizes[4], "{sizes:?}");
    assert_eq!(memory(&rows[4]), bytes(V4, "bloomfwd"));
}

#[test]
fn several_tables() {
    let tables = format!("{V4},gen:v4:2015:500:2");
    let rows = rows(&["--figure", "6", "-t", &tables], "engine");
    assert_eq!(column(&rows, 2), ["800", "800", "800", "800", "500", "500", "500", "500"]);
    let engines = ["bloomfwd", "bloomfwd-compiled", "miht", "miht-batch"];
    assert_eq!(column(&rows[..4], 4), engines);
    for row in &rows {
        assert_eq!(memory(row), bytes(&row[0], &row[4]), "{row:?}");
    }
}

#[test]
fn levels() {
    let columns = "engine,levels,lengths,estimated_prefixes,actual_prefixes";
    let figure7 = rows(&["--figure", "7", "-t", V6], columns);
    assert_eq!(column(&figure7, 5), ["none", "8", "7", "6", "5", "4", "3", "", ""]);
    assert_eq!(column(&figure7[7..], 4), ["miht", "miht-batch"]);
    for row in &figure7[..7] {
        let count = row[6].split(' ').count();
        assert!(row[5] == "none" && count > 8 || row[5].parse() == Ok(count), "{row:?}");
        assert!(row[6].ends_with(" 64"), "{row:?}");
        let prefixes = |at: usize| row[at].parse::<u64>().unwrap();
        assert!(prefixes(8) <= prefixes(7), "{row:?}");
    }
    let tables = format!("{V6},gen:v6:2015:500:2");
    assert_eq!(rows(&["--figure", "8", "-t", &tables], columns).len(), 2 * 7);
}

/// The paper's table 5, and into a file.
#[test]
fn sizes_of_filters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table5.csv");
    assert_eq!(done(&["--figure", "table5", "--csv", path.to_str().unwrap()]), "");
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 7 * 2 * 5);
    assert_eq!(
        lines[0],
        "table,group,prefixes,false_positives,m_bits,k_hashes,expected_rate,fibula_bits"
    );
    for line in [
        "AS65000,G1,971555,0.01,9312412,7,",
        "AS65000,G2,113397,0.9,24868,1,",
        "DE-CIX,G2,209488,0.6,222732,1,",
    ] {
        assert!(lines.iter().any(|other| other.starts_with(line)), "{line}");
    }
}

#[test]
fn wrong_options() {
    for (args, reason) in [
        (&["--figure", "9"][..], "invalid value '9'"),
        (&[], "--figure"),
        (&["--figure", "4"], "there are none"),
        (&["--figure", "4", "-t", V4, "--addresses", "no-such-file"], "no-such-file"),
        (&["--figure", "3", "--addresses", "list"], "--addresses is for --figure 4"),
        (&["--figure", "3", "--threads", "2"], "--threads is for --figure 2"),
        (&["--figure", "table5", "--table", V4], "the paper's own tables"),
        (&["--figure", "3", "--table", V6], "no IPv4 routes"),
        (&["--figure", "7", "--table", V4], "no IPv6 routes"),
        (&["--figure", "3", "--table", "gen:v4:x"], "gen:v4:x"),
        (&["--figure", "3", "--keys", "0"], "0 is not in"),
        (&["--figure", "3", "-t", V4, "--csv", "no/such/folder.csv"], "no/such/folder.csv"),
    ] {
        let (code, out, err) = run(args);
        assert_eq!(code, Some(2), "{args:?}: {out}{err}");
        assert!(err.contains(reason), "{args:?}: {err}");
        assert_eq!(out, "", "{args:?}");
    }
}

/// The choice of the least expected time has no more of it than the others, and the model knows the traffic.
#[test]
fn choices_of_levels() {
    let table = "gen:v6:2024:3000:1";
    let args = ["--figure", "choices", "--table", table, "--keys", "3000", "--runs", "2"];
    let (code, out, err) = run(&args);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(err.contains("costs in nanoseconds"), "{err}");
    let mut lines = out.lines();
    let columns = "choice,lengths,actual_prefixes,traffic,modelled_ns";
    assert_eq!(lines.next(), Some(&*format!("{HEAD},{columns},{TAIL}")));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 2 * (2 * 6 + 3));
    for (rows, traffic) in rows.chunks(rows.len() / 2).zip(["RND", "PFX"]) {
        let time = |row: &Vec<&str>| row[8].parse::<f64>().unwrap();
        let chosen = rows.iter().find(|row| row[4] == format!("cheapest for {traffic}")).unwrap();
        assert!(time(chosen) > 0.0 && !chosen[9].is_empty(), "{chosen:?}");
        for row in rows {
            assert_eq!(row[7], traffic);
            assert!(time(chosen) <= time(row) + 0.001, "{chosen:?} {row:?}");
        }
    }
}
