//! `fibula plot`: pictures are whole, say what they show, and have a mark for every route that they should.

use std::fs;
use std::path::Path;

use crate::common::{Files, done, execute};

/// The numbers of elements with these names.
fn count(picture: &str, element: &str) -> usize {
    picture.matches(&format!("<{element} ")).count()
}

fn is_whole(picture: &str) {
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture:.200}");
    assert_eq!(picture.matches("<svg").count(), 1);
    assert_eq!(count(picture, "text"), picture.matches("</text>").count());
}

fn has_texts(picture: &str, texts: &[&str]) {
    for text in texts {
        assert!(picture.contains(&format!("\n{text}")), "{text:?} is not in {picture}");
    }
}

#[test]
fn lengths_have_a_bar_each() {
    let files = Files::new();
    let (fib, svg) = (files.snapshot(), files.path("lengths.svg"));
    let output = done(&["plot", &fib, "-o", &svg]);
    assert!(output.out.is_empty() && output.err.contains("lengths.svg: "), "{}", output.err);
    let both = fs::read_to_string(&svg).unwrap();
    is_whole(&both);
    has_texts(
        &both,
        &[
            "Prefix lengths of ",
            "IPv4: 5 routes (/0 20.0 %, /8 20.0 %, /16 20.0 %)",
            "IPv6: 3 routes (/32 33.3 %, /48 33.3 %, /128 33.3 %)",
            "routes (logarithmic)",
            "prefix length in bits",
        ],
    );
    let bars = |picture: &str, colour: &str| picture.matches(&format!("fill=\"{colour}\"")).count();
    assert_eq!((bars(&both, "#0072B2"), bars(&both, "#D55E00")), (5, 3));
    let v6 = done(&["plot", &fib, "--family", "v6", "--linear"]).out;
    is_whole(&v6);
    has_texts(&v6, &["IPv6: 3 routes", "routes\n"]);
    assert_eq!((bars(&v6, "#0072B2"), bars(&v6, "#D55E00")), (0, 3));
}

#[test]
fn a_map_has_the_cells_that_are_covered() {
    let files = Files::new();
    let list =
        "prefix,asn\n0.0.0.0/0,1\n0.0.0.0/8,2\n0.1.0.0/16,3\n64.0.0.0/2,2\n255.255.255.255/32,4\n";
    let csv = files.with("list.csv", list);
    let map = done(&["plot", &csv, "--chart", "hilbert"]).out;
    is_whole(&map);
    has_texts(
        &map,
        &["IPv4 in ", "5 routes; 0.0.0.0/0 on a Hilbert curve", "that have a route", "240\n"],
    );
    // Full: a square of 16 x 16 cells, and below it one of 128 x 128. Last comes the cell in the last corner.
    let full: Vec<&str> = map.lines().filter(|line| line.contains("#440154\" d=")).collect();
    let lines = |line: &str| (line.matches("h16M").count(), line.matches("h128").count());
    assert_eq!((full.len(), lines(full[0])), (1, (16, 128)));
    assert!(map.contains("stroke=\"#FDE725\" d=\"M255 0.5h1\""), "{map}");
    // Columns that are not kept do not make values different.
    let hops = |columns: &str| {
        let arguments =
            ["plot", &csv, "--chart", "hilbert", "--show", "hops", "--columns", columns];
        done(&arguments).out
    };
    assert!(hops("asn").contains("stroke=\"#FDE725\" d=\"M0 0.5h16"));
    has_texts(&hops("asn"), &["different values of"]);
}

#[test]
fn the_map_of_a_table_with_only_ipv6_is_that_of_ipv6() {
    let files = Files::new();
    let csv = files.with("six.csv", "prefix,asn\n2000::/19,1\n3fff:ffff::/32,2\nfe80::/10,3\n");
    let map = done(&["plot", &csv, "--chart", "hilbert"]).out;
    is_whole(&map);
    let about = "3 routes; 2000::/3 on a Hilbert curve, 16 x 16 squares of a /11, cells of a /19";
    has_texts(&map, &["IPv6 in ", about, "2000\n", "3fe0\n"]);
    assert!(map.contains("stroke=\"#440154\" d=\"M0 0.5h1\""), "{map}");
    assert!(map.contains("stroke=\"#FDE725\" d=\"M255 0.5h1\""), "{map}");
    let lengths = done(&["plot", &csv]).out;
    assert!(!lengths.contains("\nIPv4") && lengths.contains("\nIPv6: 3 routes"));
    let refused = execute(&["plot", &csv, "--chart", "hilbert", "--family", "v4"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("no IPv4 routes to draw"), "{}", refused.err);
    assert!(refused.err.contains("--family v6 draws the others"), "{}", refused.err);
}

#[test]
fn a_map_of_any_table_is_small() {
    let map = done(&["plot", "gen:v4:2024:300000:1", "--chart", "hilbert", "--show", "hops"]).out;
    is_whole(&map);
    assert!(map.len() < 700_000, "{} bytes", map.len());
    assert!(count(&map, "path") >= 5, "several colours");
}

#[test]
fn an_empty_table_is_refused_or_drawn_as_such() {
    let files = Files::new();
    let (csv, svg) = (files.with("none.csv", "prefix,asn\n"), files.path("none.svg"));
    for kind in ["lengths", "hilbert"] {
        let refused = execute(&["plot", &csv, "--chart", kind, "-o", &svg]);
        assert_eq!(refused.code, 2, "{}", refused.err);
        assert!(refused.err.contains("no routes in it"), "{}", refused.err);
        assert!(!Path::new(&svg).exists());
        let drawn = done(&["plot", &csv, "--chart", kind, "--allow-empty"]).out;
        is_whole(&drawn);
        let text = if kind == "lengths" { "The table has no routes." } else { "0 routes" };
        has_texts(&drawn, &[text]);
        assert!(!drawn.contains("<path"));
    }
}

#[test]
fn outputs_that_cannot_be_written_are_refused() {
    let files = Files::new();
    let csv = files.with("list.csv", "prefix\n10.0.0.0/8\n");
    let refused = execute(&["plot", &csv, "-o", &files.path("missing/map.svg")]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("missing/map.svg: No such file or directory"), "{}", refused.err);
    let refused = execute(&["plot", &csv, "-o", &csv]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("is input and output"), "{}", refused.err);
    assert_eq!(fs::read_to_string(&csv).unwrap(), "prefix\n10.0.0.0/8\n");
    for (wrong, why) in [
        (["--show", "hops"], "--show is for --chart hilbert"),
        (["--chart", "pie"], "possible values: lengths, hilbert"),
    ] {
        let refused = execute(&["plot", &csv, wrong[0], wrong[1]]);
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains(why), "{}", refused.err);
    }
    let refused = execute(&["plot", &csv, "--chart", "hilbert", "--linear"]);
    assert!(refused.code == 2 && refused.err.contains("--linear is for --chart lengths"));
}
