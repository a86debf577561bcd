//! Results beyond the papers, on tiny tables. Every answer was compared with the oracle's.

use assert_cmd::Command;

const V4: &str = "gen:v4:2024:900:1";
const V6: &str = "gen:v6:2024:900:1";

fn run(program: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::cargo_bin(program).expect("the binary is built");
    let output = command.env_remove("FIBULA_ISA").args(args).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A table of the program, by the names of its columns.
struct Rows {
    names: Vec<String>,
    cells: Vec<Vec<String>>,
}

impl Rows {
    fn of(program: &str, args: &[&str]) -> Self {
        let (code, out, err) = run(program, args);
        assert_eq!(code, Some(0), "{out}{err}");
        let split = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = out.lines();
        let names = split(lines.next().expect("a head"));
        Self { names, cells: lines.map(split).collect() }
    }

    fn column(&self, name: &str) -> Vec<&str> {
        let at = self.names.iter().position(|other| other == name).expect("the column");
        self.cells.iter().map(|row| &*row[at]).collect()
    }

    fn numbers(&self, name: &str) -> Vec<f64> {
        self.column(name).iter().map(|cell| cell.parse().expect("a number")).collect()
    }

    /// The help explains the measured columns.
    fn are_explained(&self, program: &str, given: &[&str]) {
        let (_, help, _) = run(program, &["--help"]);
        let (_, columns) = help.split_once("\nColumns:\n").expect("columns");
        for name in self.names.iter().filter(|name| !given.contains(&&***name)) {
            assert!(columns.split([' ', ',', '\n']).any(|word| word == name), "{program}: {name}");
        }
    }
}

#[test]
fn a_router_whose_packets_displace_the_table() {
    let cores = std::thread::available_parallelism().unwrap().get();
    for (family, table, engines) in [
        ("v4", V4, &["dxr16", "runmap", "dir24-8-prefetch"][..]),
        ("v6", V6, &["planb", "wideleaf"]),
    ] {
        let args = ["--family", family, "-t", table, "--packets", "3000", "--runs", "2"];
        let more = ["--bytes", "64,65,1514", "--array", "1"];
        let engines = [&["none"], engines].concat();
        let names = engines[1..].join(",");
        let rows = Rows::of("displaced", &[&args[..], &more, &["--engines", &names]].concat());
        let neighbours = cores.min(2);
        assert_eq!(rows.column("engine"), engines.repeat(3 * neighbours));
        let bytes: Vec<&str> = rows.column("bytes");
        let each = engines.len() * neighbours;
        assert!(bytes.chunks(each).zip(["64", "65", "1514"]).all(|(of, n)| of == vec![n; each]));
        let ends = rows.numbers("mpps_min").into_iter().zip(rows.numbers("mpps_max"));
        for ((least, most), median) in ends.zip(rows.numbers("mpps")) {
            assert!(0.0 < least && least <= median && median <= most);
        }
        assert!(rows.numbers("alone_ns").iter().all(|ns| *ns > 0.0));
        // On a machine with much to do the neighbour may stand still during a short run.
        let streams = rows.column("neighbour").into_iter().zip(rows.numbers("neighbour_gbs"));
        assert!({ streams }.all(|(neighbour, rate)| neighbour == "stream" || rate == 0.0));
        let lookups = rows.column("lookup_ns").into_iter().zip(rows.column("engine"));
        assert!({ lookups }.all(|(ns, engine)| ns.is_empty() == (engine == "none")));
        let given =
            ["table", "family", "prefixes", "isa", "engine", "bytes", "neighbour", "packets"];
        rows.are_explained("displaced", &given);
    }
}

#[test]
fn the_worst_addresses_of_each_engine() {
    for (family, table, engines) in [("v4", V4, ["dxr18", "radix"]), ("v6", V6, ["planb", "hbs"])] {
        let args = ["--family", family, "-t", table, "--keys", "700", "--candidates", "300"];
        let names = engines.join(",");
        let rows = Rows::of("worst", &[&args[..], &["--runs", "2", "--engines", &names]].concat());
        assert_eq!(rows.column("engine"), engines.map(|name| [name; 2]).concat());
        assert_eq!(rows.column("mode"), ["batch", "dependent"].repeat(2));
        let distinct = rows.numbers("distinct");
        assert!(distinct.iter().all(|keys| (1.0..=700.0).contains(keys)), "{distinct:?}");
        let ends = rows.numbers("worst_ns_min").into_iter().zip(rows.numbers("worst_ns_max"));
        for ((least, most), median) in ends.zip(rows.numbers("worst_ns")) {
            assert!(0.0 < least && least <= median && median <= most);
        }
        let ratios = rows.numbers("worst_ns").into_iter().zip(rows.numbers("rnd_ns"));
        for ((worst, random), ratio) in ratios.zip(rows.numbers("to_rnd")) {
            assert!((worst / random / ratio - 1.0).abs() < 0.05, "{worst} {random} {ratio}");
        }
        rows.are_explained("worst", &["table", "family", "prefixes", "isa", "engine", "mode"]);
    }
}

/// By a model, if it is here; otherwise the program says what to install.
#[test]
fn the_costs_of_the_worst_addresses() {
    let args = ["--counts", "-t", V4, "--keys", "500", "--engines", "bsd-radix,dir24-8"];
    if std::process::Command::new("valgrind").arg("--version").output().is_err() {
        let (code, out, err) = run("worst", &args);
        assert!(code == Some(2) && out.is_empty() && err.contains("valgrind"), "{code:?} {err}");
        return;
    }
    let rows = Rows::of("worst", &args);
    let costs = ["instructions", "lines", "far_lines", "mispredicted"];
    assert_eq!(rows.column("cost"), costs.repeat(4));
    let engines: Vec<&str> = rows.column("engine");
    assert!(engines[..8] == ["bsd-radix"; 8] && engines[8..] == ["dir24-8"; 8], "{engines:?}");
    let most = rows.numbers("most");
    for name in ["rnd", "pfx", "deepest"] {
        assert!(most.iter().zip(rows.numbers(name)).all(|(most, cost)| *most >= cost));
    }
    // One reads an entry or two; the other walks down a tree, and branches do not know the way.
    let [tree, table] = [0, 8].map(|of| [most[of], most[of + 3]]);
    assert!(tree.iter().zip(table).all(|(tree, table)| *tree > 3.0 * table), "{tree:?} {table:?}");
    let given = ["table", "family", "prefixes", "isa", "engine", "mode"];
    rows.are_explained("worst", &given);
}

#[test]
fn engines_over_the_fewest_routes() {
    for (family, table, engines) in
        [("v4", V4, ["runmap", "radix"]), ("v6", V6, ["planb", "miht-batch"])]
    {
        let args = ["--family", family, "-t", table, "--keys", "2000", "--runs", "2"];
        let names = engines.join(",");
        let more = ["--engines", &names, "--same", "0,90"];
        let rows = Rows::of("compressed", &[&args[..], &more].concat());
        assert_eq!(rows.column("engine"), engines.map(|name| [name; 2]).concat().repeat(2));
        assert_eq!(rows.column("traffic"), ["RND", "PFX"].repeat(4));
        assert_eq!(rows.column("same"), [["0"; 4], ["90"; 4]].concat());
        let (routes, fewest) = (rows.numbers("routes"), rows.numbers("fewest"));
        assert!(fewest.iter().zip(&routes).all(|(fewest, routes)| fewest <= routes));
        assert!(4.0 * fewest[4] < 3.0 * fewest[0], "{fewest:?}");
        let smaller = rows.numbers("smaller");
        // Ranges of equal hops are the same from either table, prefixes are fewer.
        assert_eq!((smaller[0], smaller[4]), (1.0, 1.0));
        assert!(smaller[6] > 1.1, "{smaller:?}");
        let given = ["table", "family", "isa", "engine", "traffic"];
        rows.are_explained("compressed", &given);
    }
}

#[test]
fn wrong_options() {
    for (program, args, reason) in [
        ("displaced", &["--bytes", "63"][..], "63 is not in"),
        ("displaced", &["--neighbour", "loud"], "none, stream"),
        ("displaced", &["--family", "v6", "-t", V4], "no IPv6 prefix that may be forwarded to"),
        (
            "displaced",
            &["-t", V4, "--engines", "nonesuch", "--packets", "9"],
            "no engine nonesuch for IPv4",
        ),
        ("worst", &["--family", "v6", "-t", V4], "no IPv6 routes"),
        (
            "worst",
            &["-t", V4, "--engines", "nonesuch", "--keys", "9"],
            "no engine nonesuch for IPv4",
        ),
        ("compressed", &["--family", "v6", "-t", V4], "no IPv6 routes"),
        ("compressed", &["--runs", "0"], "0 is not in"),
    ] {
        let (code, out, err) = run(program, args);
        assert_eq!((code, &*out), (Some(2), ""), "{program} {args:?}: {err}");
        assert!(err.contains(reason), "{program} {args:?}: {err}");
    }
}
