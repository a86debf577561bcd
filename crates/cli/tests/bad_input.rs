//! Input that is missing, damaged or hostile: said plainly, never a panic.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};

use crate::common::{Files, done, execute, execute_with, json, read};

#[test]
fn damage_is_counted_and_placed() {
    let files = Files::new();
    let list = files.with("list.txt", "10.0.0.0/8 a\n10.0.0.300/8 b\n10.0.0.1/8 c\n11.0.0.0/8 d\n");
    let fib = files.path("list.fib");
    let built = done(&["build", &list, "-o", &fib]);
    assert!(built.err.contains("2 of 4 records damaged and skipped"), "{}", built.err);
    assert!(built.err.contains(&format!("{list}: record 2, byte 13")), "{}", built.err);
    assert!(built.out.contains("2 records skipped"), "{}", built.out);
    let masked = done(&["build", &list, "-o", &fib, "--mask-host-bits"]);
    assert!(masked.err.contains("1 of 4"), "{}", masked.err);
    let strict = execute(&["build", &list, "-o", &fib, "--strict"]);
    assert_eq!(strict.code, 2);
    assert!(strict.err.contains("record 2"), "{}", strict.err);
}

#[test]
fn what_is_no_table_is_refused() {
    let files = Files::new();
    let empty = files.with("empty", "");
    let noise: Vec<u8> =
        (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let noise = files.with("noise", noise);
    let prose = files.with("prose.txt", "There are no prefixes here.\nNone at all.\n");
    let out = files.path("out.fib");
    for source in [&empty, &noise, &prose, &files.path("missing"), &files.path("")] {
        for command in ["build", "export"] {
            let run = execute(&[command, source, "-o", &out]);
            assert_eq!(run.code, 2, "{command} {source}: {}", run.out);
            assert!(run.err.contains("fibula: "), "{command} {source}: {}", run.err);
            assert!(!std::path::Path::new(&out).exists(), "{command} {source}");
        }
    }
    assert_eq!(execute(&["build", "embedded", "-o", &files.path("no/folder.fib")]).code, 2);
    assert_eq!(execute(&["build"]).code, 2);
    assert_eq!(execute_with(&["build", "-", "-o", &out], "10.0.0.0/8 7\n").code, 0);
}

#[test]
fn damaged_snapshots_are_refused() {
    let files = Files::new();
    let fib = files.snapshot();
    let good = read(&fib);
    let commands: [&[&str]; 4] =
        [&["lookup", "10.0.0.1"], &["verify", "--random", "10"], &["stats"], &["annotate", "-q"]];
    for cut in [7, 8, 63, 64, good.len() / 2, good.len() - 1] {
        let bad = files.with("cut.fib", &good[..cut]);
        for command in commands {
            let run = execute(&[command, &["-t", &bad]].concat());
            assert_eq!(run.code, 2, "{command:?} at {cut}: {}", run.out);
        }
    }
    for at in (0..good.len()).step_by(good.len() / 60) {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        let bad = files.with("flipped.fib", bad);
        let run = execute(&["lookup", "-t", &bad, "10.0.0.1"]);
        // Padding between sections belongs to nobody: a change there changes nothing.
        assert!(run.code == 2 || run.out.contains("10.0.0.0/8\t64501"), "byte {at}: {}", run.out);
    }
}

#[test]
fn a_compressed_list_that_is_cut_is_refused_or_salvaged() {
    let files = Files::new();
    let lines: String = (0..200).map(|i| format!("10.{i}.0.0/16 {i}\n")).collect();
    let stored = stored_gzip(lines.as_bytes());
    let whole = files.with("whole.txt.gz", &stored);
    let out = files.path("out.fib");
    assert!(done(&["build", &whole, "-o", &out]).out.contains("200 IPv4"));
    let cut = files.with("cut.txt.gz", &stored[..stored.len() / 2]);
    let built = read(&out);
    let run = execute(&["build", &cut, "-o", &out]);
    assert!(run.code == 2 && run.err.contains("the gzip archive is damaged"), "{}", run.err);
    assert_eq!(read(&out), built, "the old file stays");
    let mut flipped = stored.clone();
    flipped[20] ^= 1; // a digit of an address
    let flipped = files.with("flipped.txt.gz", flipped);
    for args in [
        &["build", &flipped, "-o", &out][..],
        &["lookup", "-t", &flipped, "10.1.2.3"],
        &["verify", "-t", &flipped],
        &["stats", "-t", &flipped],
        &["annotate", "-t", &flipped, "--format", "list", &whole],
        &["export", &flipped, "--to", "text"],
        &["replay", "-t", &flipped, "--updates", "churn:10:1"],
    ] {
        let run = execute(args);
        assert_eq!(run.code, 2, "{args:?}: {}", run.out);
        assert!(run.err.contains("checksum"), "{args:?}: {}", run.err);
    }
    let run = execute(&["build", &cut, "-o", &out, "--salvage"]);
    assert!(run.code == 0 && run.err.contains("damaged"), "{}{}", run.out, run.err);
    assert_eq!(execute(&["build", &cut, "-o", &out, "--salvage", "--strict"]).code, 2);
}

/// No command takes an empty file, a server's error page or half a snapshot for a table of nothing.
#[test]
fn what_is_no_table_is_none_in_any_command() {
    let files = Files::new();
    let page = "<!DOCTYPE html>\n<html><title>503</title>\n<p>Service Unavailable</p></html>\n";
    let list = files.with("list.txt", "10.0.0.1\n");
    let empty = files.with("empty.txt", "");
    let tables = [
        (empty.clone(), "no routes in it"),
        (files.with("empty.fib", ""), "empty.fib"),
        (files.with("text.fib", "10.0.0.0/8 1\n"), "text.fib"),
        (files.with("cut", &read(files.snapshot())[..5]), "cut"),
        (files.with("page.csv", page), "an HTML page"),
        (
            files.with("prose.txt", "There are no prefixes here.\nNone at all.\n"),
            "hardly a routing",
        ),
    ];
    for (table, what) in &tables {
        for args in [
            &["lookup", "-t", table, "10.0.0.1"][..],
            &["verify", "-t", table],
            &["stats", "-t", table],
            &["annotate", "-t", table, "--format", "list", &list],
            &["export", table, "--to", "text"],
            &["bench", "-t", table],
            &["build", table, "-o", &files.path("out.fib")],
        ] {
            let run = execute(args);
            assert_eq!(run.code, 2, "{args:?}: {}{}", run.out, run.err);
            assert!(run.err.contains(what), "{args:?}: {}", run.err);
        }
    }
    let meant = files.path("meant.fib");
    done(&["build", &empty, "--allow-empty", "-o", &meant]);
    assert_eq!(execute(&["lookup", "-t", &meant, "10.0.0.1"]).code, 1);
    let piped = execute_with(&["lookup", "-t", "-", "10.0.0.1"], read(files.snapshot()));
    assert!(piped.code == 2 && piped.err.contains("a fibula snapshot in a pipe"), "{}", piped.err);
}

#[test]
fn a_run_that_fails_leaves_the_old_output() {
    let files = Files::new();
    let rows: String = (0..100_000).map(|i| format!("10.1.2.{}\n", i % 256)).collect();
    let list = files.with("list.txt", rows + "not an address\n");
    let out = files.with("out.txt", "old\n");
    let fib = files.snapshot();
    let run = execute(&["annotate", "-t", &fib, "--format", "list", "--strict", &list, "-o", &out]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert_eq!(read(&out), b"old\n");
    done(&["annotate", "-t", &fib, "--format", "list", &list, "-o", &out]);
    assert!(read(&out).starts_with(b"10.1.2.0\t"));
    let folder = std::path::Path::new(&out).parent().unwrap();
    assert_eq!(folder.read_dir().unwrap().count(), 4, "the table, the snapshot, list and output");
}

/// A gzip file whose one block is stored uncompressed.
fn stored_gzip(data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(data.len()).unwrap();
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend(len.to_le_bytes());
    file.extend((!len).to_le_bytes());
    file.extend(data);
    let mut crc = !0u32;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    file.extend((!crc).to_le_bytes());
    file.extend(u32::from(len).to_le_bytes());
    file
}

/// A line that is no question is reported with its number, shortened.
#[test]
fn lookups_of_other_things_are_distinguished() {
    let files = Files::new();
    let fib = files.snapshot();
    let host_bits = execute(&["lookup", "-t", &fib, "10.0.0.1/8"]);
    assert_eq!(host_bits.code, 2);
    assert!(host_bits.err.contains("\"10.0.0.1/8\": "), "{}", host_bits.err);
    assert!(host_bits.err.contains("1 input is no address and no prefix"), "{}", host_bits.err);
    let long = execute_with(&["lookup", "-t", &fib], "x".repeat(1 << 20) + "\ny\n");
    assert_eq!(long.code, 2);
    assert!(long.err.len() < 500 && long.err.contains("2 inputs are no addr"), "{}", long.err);
    assert!(long.out.len() < 500, "{}", long.out);
    // A table and questions cannot both come from standard input.
    for table in ["-", "embedded,-"] {
        let both = execute_with(&["lookup", "-t", table], "10.0.0.0/8 a\n");
        assert_eq!(both.code, 2);
        assert!(both.err.contains("both the table and the questions"), "{}", both.err);
    }
}

/// A name that tells no format gets none; what cannot be written names its file.
#[test]
fn outputs_that_cannot_be() {
    let files = Files::new();
    let fib = files.snapshot();
    for name in ["table.xyz", "table"] {
        let out = files.path(name);
        let run = execute(&["export", &fib, "-o", &out]);
        assert!(run.code == 2 && run.err.contains("--to"), "{}", run.err);
        assert!(!std::path::Path::new(&out).exists());
        assert_eq!(done(&["export", &fib, "--to", "csv", "-o", &out]).out, "");
    }
    #[cfg(target_os = "linux")]
    for args in [
        &["gen", "table", "v4:2015:1000:1", "-o", "/dev/full"][..],
        &["gen", "traffic", "--count", "1000", "-o", "/dev/full"],
        &["export", &fib, "-o", "/dev/full"],
    ] {
        let run = execute(args);
        assert!(run.code == 2 && run.err.contains("/dev/full: No space"), "{args:?}: {}", run.err);
    }
}

/// A record is announced or damaged, never both.
#[test]
fn host_bits_are_damage_or_masked() {
    let files = Files::new();
    let delegated = |network: &str| format!("apnic|JP|ipv6|{network}|32|19990813|allocated\n");
    for (name, text, can_be_masked) in [
        ("a.txt", "10.0.0.0/8 x\n11.0.0.1/8 x\n12.0.0.0/8 x\n".to_owned(), true),
        ("a.csv", "10.0.0.0/8,x\n11.0.0.1/8,x\n12.0.0.0/8,x\n".to_owned(), true),
        (
            "mask.csv",
            "10.0.0.0,255.0.0.0,x\n11.0.0.1,255.0.0.0,x\n12.0.0.0,255.0.0.0,x\n".to_owned(),
            true,
        ),
        ("ranges.csv", "10.0.0.0-10.0.0.255,x\n11.0.0.1/8,x\n12.0.0.0/8,x\n".to_owned(), true),
        ("list.json", "[\"10.0.0.0/8\", \"11.0.0.1/8\", \"12.0.0.0/8\"]".to_owned(), true),
        ("map.json", "{\"10.0.0.0/8\": 1, \"11.0.0.1/8\": 2, \"12.0.0.0/8\": 3}".to_owned(), true),
        ("delegated", ["2001:db8::", "2001:dba::1", "2001:db9::"].map(delegated).concat(), false),
        ("ip-route", "10.0.0.0/8 dev a\n11.0.0.1/8 dev a\n12.0.0.0/8 dev a\n".to_owned(), false),
    ] {
        let file = files.with(name, text);
        for mask in [false, true] {
            let mut args = vec!["stats", "-t", &file, "--json", "--engines", "radix"];
            if mask {
                args.push("--mask-host-bits");
            }
            let stats = json(&args);
            let routes = ["v4", "v6"].map(|family| stats[family]["prefixes"].as_u64().unwrap_or(0));
            let announced = stats["sources"][0]["announced"].as_u64();
            let all = mask && can_be_masked;
            let counts = (announced, stats["damaged"].as_u64(), routes[0] + routes[1]);
            let wanted = if all { (Some(3), Some(0), 3) } else { (Some(2), Some(1), 2) };
            assert_eq!(counts, wanted, "{name}, masked: {mask}");
        }
    }
}

#[test]
fn more_names_than_columns_are_refused() {
    let files = Files::new();
    let (csv, fib) = (files.with("a.csv", "10.0.0.0/8,x\n11.0.0.0/8,y\n"), files.path("a.fib"));
    let refused = execute(&["build", &csv, "--names", "prefix,site,owner", "-o", &fib]);
    assert_eq!(refused.code, 2);
    let wanted = format!(
        "{csv}: 3 names for 2 columns: prefix, site, owner; --names takes one for each column"
    );
    assert!(refused.err.contains(&wanted), "{}", refused.err);
    done(&["build", &csv, "--names", "prefix,site", "-o", &fib]);
}

/// An archive of 256 MiB of blanks and one of 70 MiB, which a megabyte of text could have.
#[test]
fn archives_made_to_fill_memory_are_refused() {
    let mut archive = GzEncoder::new(Vec::new(), Compression::best());
    let blanks = vec![b' '; 1 << 20];
    (0..256).for_each(|_| archive.write_all(&blanks).unwrap());
    let files = Files::new();
    let bomb = files.with("bomb.gz", archive.finish().unwrap());
    let out = files.path("out.fib");
    let keys = format!("file:{bomb}");
    for args in [
        &["classify", &*bomb, "flows.csv"][..],
        &["rpki", &bomb, "embedded"],
        &["bench", "--table", "embedded", "--traffic", &keys, "--engines", "radix"],
    ] {
        let run = execute(args);
        assert_eq!(run.code, 2, "{args:?}: {}", run.err);
        assert!(run.err.contains("256 times its own size"), "{args:?}: {}", run.err);
        assert!(run.err.contains("bomb.gz"), "{args:?}: {}", run.err);
    }
    assert!(!std::path::Path::new(&out).exists());
}

/// Files with holes, which have no data to read, but lengths.
#[test]
fn databases_that_cannot_be_are_refused_before_they_are_read() {
    let files = Files::new();
    let out = files.path("out.fib");
    for (gib, what) in [(1, "its end has no metadata"), (6, "more than 4 GiB")] {
        let name = files.path("sparse.mmdb");
        std::fs::File::create(&name).unwrap().set_len(gib << 30).unwrap();
        let run = execute(&["build", &name, "-o", &out]);
        assert_eq!(run.code, 2, "{}", run.out);
        assert!(run.err.contains(what), "{}", run.err);
    }
}
