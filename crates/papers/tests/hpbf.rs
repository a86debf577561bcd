//! The megaflow cache's experiments on tiny sets. Every form was compared with the megaflows before.

use assert_cmd::Command;

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::cargo_bin("hpbf").expect("the binary is built");
    let output = command.env_remove("FIBULA_ISA").args(args).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The rows of an experiment, each a map by column.
fn rows(args: &[&str], head: &str) -> Vec<Vec<String>> {
    // The packets of figure 8 are one burst.
    let packets = if args[1] == "8" { &[][..] } else { &["--packets", "96"] };
    let args = [args, &["--runs", "2", "--rules", "30"], packets].concat();
    let (code, out, err) = run(&args);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some(head));
    lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn number(cell: &str) -> f64 {
    cell.parse().expect("a number")
}

#[test]
fn hashes_of_a_batch() {
    let rows = rows(&["--figure", "8"], "form,isa,left,hash_ns");
    assert_eq!(rows.len(), 5 * 32);
    let left = |rows: &[Vec<String>]| rows[0][2].clone();
    let lefts: Vec<String> = rows.chunks(5).map(left).collect();
    assert_eq!(lefts, (1..=32).map(|left| left.to_string()).collect::<Vec<_>>());
    assert!(rows.iter().all(|row| number(&row[3]) > 0.0));
}

#[test]
fn throughput_by_subtables() {
    let head = "form,isa,batch,subtables,megaflows,traversed,mpps,lookup_ns,lookup_ns_min,extract_ns,bytes_per_megaflow";
    for extra in [&[][..], &["--tagged", "30"]] {
        let args = [&["--figure", "9", "--tables", "1,4", "--batch", "32,64"], extra].concat();
        let rows = rows(&args, head);
        let forms: Vec<&str> = rows.iter().map(|row| &*row[0]).collect();
        let each = ["murmur", "crc", "gather", "transposed", "packed", "packed"];
        assert_eq!(forms, each.repeat(2));
        for (row, subtables) in rows.iter().zip([1, 1, 1, 1, 1, 1, 7, 7, 7, 7, 7, 7]) {
            assert_eq!(
                (&*row[3], &*row[4]),
                (&*subtables.to_string(), &*(30 * subtables).to_string())
            );
            // 96 packets meet four of seven subtables on average, by chance some more or fewer.
            let average = f64::from(subtables + 1) / 2.0;
            assert!((number(&row[5]) - average).abs() < 1.0, "{row:?}");
            assert!(row[6..].iter().all(|cell| number(cell) > 0.0), "{row:?}");
        }
    }
    let rows = rows(&["--figure", "ovs", "--ghz", "2"], &format!("{head},lookup_cycles"));
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| (number(&row[11]) / number(&row[7]) - 2.0).abs() < 0.1));
}

#[test]
fn shares_of_time() {
    let head = "form,isa,subtables,megaflows,traversed,lookup_ns,hash_percent,find_percent,compare_percent";
    let rows = rows(&["--figure", "table1"], head);
    assert_eq!(
        rows.iter().map(|row| &*row[0]).collect::<Vec<_>>(),
        ["murmur", "crc", "gather", "transposed"]
    );
    assert!(rows.iter().all(|row| number(&row[6]) > 0.0));
}

#[test]
fn parts_of_the_search() {
    let head = "step,form,isa,batch,hits,subtables,megaflows,traversed,lookup_ns,lookup_ns_min,lookup_ns_max,\
                extract_ns,gain,hits_percent";
    let rows = rows(&["--figure", "parts", "--tables", "1,3", "--hits", "100,0"], head);
    let steps = [
        "crc",
        "transposed",
        "columns",
        "hash",
        "batch",
        "filters",
        "packing",
        "lanes",
        "all but packing",
        "all but filters and lanes",
    ];
    assert_eq!(rows.iter().map(|row| &*row[0]).collect::<Vec<_>>(), steps.repeat(4));
    for (rows, (hits, subtables)) in rows.chunks(10).zip([("96", 1), ("0", 1), ("96", 5), ("0", 5)])
    {
        for (at, row) in rows.iter().enumerate() {
            assert_eq!((&*row[4], &*row[5]), (hits, &*subtables.to_string()), "{row:?}");
            assert_eq!(&*row[13], if hits == "0" { "0" } else { "100" }, "{row:?}");
            // Packets without a megaflow meet all subtables.
            if hits == "0" {
                assert_eq!(number(&row[7]), f64::from(subtables), "{row:?}");
            }
            assert_eq!(row[12].is_empty(), at == 0, "{row:?}");
            assert!(number(&row[9]) <= number(&row[8]) && number(&row[8]) <= number(&row[10]));
        }
    }
}

#[test]
fn what_is_no_experiment() {
    let (code, out, err) = run(&["--figure", "7"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("table1, 8, 9, ovs, parts"), "{err}");
}

/// Options that a figure does not use are refused, before anything is measured or written.
#[test]
fn options_of_other_figures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let file = path.to_str().unwrap();
    for (args, reason) in [
        (&["--figure", "8", "--tables", "1"][..], "--tables is for --figure 9 and parts"),
        (&["--figure", "ovs", "--tables", "1"], "--tables is for --figure 9 and parts"),
        (&["--figure", "table1", "--batch", "64"], "--batch is for --figure 9 and ovs"),
        (
            &["--figure", "8", "--packets", "64"],
            "--packets is for --figure table1, 9, ovs and parts",
        ),
        (&["--figure", "9", "--hits", "50"], "--hits is for --figure parts"),
        (&["--figure", "8", "--ghz", "2"], "--ghz is for --figure 9 and ovs"),
        (&["--figure", "9", "--export", file], "--export is for --figure ovs"),
        (&["--figure", "ovs", "--export", file, "--csv", file], "leave --csv out"),
        (&["--figure", "ovs", "--ghz", "nan"], "0.001 to 100"),
        (&["--figure", "ovs", "--ghz", "0"], "0.001 to 100"),
        (&["--figure", "ovs", "--ghz=-2"], "0.001 to 100"),
    ] {
        let (code, out, err) = run(args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(reason), "{args:?}: {err}");
        assert!(!path.exists(), "{args:?}");
    }
}

/// The files for Open vSwitch: each packet belongs to one of the megaflows at least, read from the files.
#[test]
fn packets_and_megaflows_for_open_vswitch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ovs");
    let (code, out, err) = run(&[
        "--figure",
        "ovs",
        "--rules",
        "5",
        "--packets",
        "64",
        "--export",
        path.to_str().unwrap(),
    ]);
    assert_eq!((code, &*out, &*err), (Some(0), "", ""));
    let text = std::fs::read_to_string(path.join("flows.sh")).unwrap();
    let between = |line: &str, from: &str, to: &str| {
        line.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned()
    };
    let address = |text: &str| -> (u32, u32) {
        let (value, mask) = text.split_once('/').unwrap();
        let of = |text: &str| text.parse::<std::net::Ipv4Addr>().unwrap().to_bits();
        (of(value), of(mask))
    };
    let flows: Vec<_> = text
        .lines()
        .skip(1)
        .map(|line| {
            assert!(
                line.contains("in_port(1),") && line.ends_with("proto=6,frag=no)' 2")
                    || line.contains(",tcp(dst=")
            );
            let port = line.contains("tcp(dst=").then(|| between(line, "tcp(dst=", ")"));
            let port: Option<u16> = port.map(|port| port.parse().unwrap());
            (address(&between(line, "src=", ",")), address(&between(line, ",dst=", ",")), port)
        })
        .collect();
    assert_eq!(flows.len(), 16 * 5);
    let bytes = std::fs::read(path.join("packets.pcap")).unwrap();
    let packets = bytes[24..].chunks(16 + 64);
    assert_eq!(packets.len(), 64);
    for packet in packets {
        let frame = &packet[16..];
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        let port = u16::from_be_bytes([frame[36], frame[37]]);
        let is_of =
            |&((src, src_mask), (dst, dst_mask), to): &((u32, u32), (u32, u32), Option<u16>)| {
                word(26) & src_mask == src
                    && word(30) & dst_mask == dst
                    && to.is_none_or(|to| to == port)
            };
        assert!(flows.iter().any(is_of), "{frame:?}");
    }
}
