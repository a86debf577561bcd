//! A table with names is read alike whatever the order of its columns, or it is refused, or a note says that there is
//! another way. The fuzz target `columns` tests the same.

use proptest::sample::{Index, select};

use super::*;

const NAMES: &[&str] = &[
    "prefix",
    "network",
    "ip",
    "cidr",
    "start",
    "end",
    "first",
    "last",
    "netmask",
    "length",
    "broadcast",
    "count",
    "site",
    "gateway",
    "asn",
    "bgp_prefix",
];

fn any_cell() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "10.0.0.0",
            "10.0.0.255",
            "192.0.2.7",
            "10.0.0.0/8",
            "192.0.2.0/24",
            "255.255.255.0",
            "0.0.0.255",
            "8",
            "24",
            "1700000000",
            "10.0.0.0-10.0.0.9",
            "2001:db8::",
            "2001:db8::/32",
            "hq",
            "",
        ][..],
    )
}

fn any_column() -> impl Strategy<Value = Vec<&'static str>> {
    // Most columns have values of one kind.
    prop_oneof![
        3 => (any_cell(), any_cell()).prop_map(|(cell, other)| vec![cell, cell, cell, other]),
        1 => proptest::collection::vec(any_cell(), 4),
    ]
}

/// The prefixes; `None` if the table is refused, also since most of its rows are damaged, or has a note.
fn prefixes(columns: &[(&str, &Vec<&str>)]) -> Option<Vec<String>> {
    let line = |cells: Vec<&str>| cells.join(",") + "\n";
    let mut text = line(columns.iter().map(|(name, _)| *name).collect());
    for row in 0..4 {
        text += &line(columns.iter().map(|(_, cells)| cells[row]).collect());
    }
    let mut sink = Collected::default();
    let mut decoder = TextDecoder::new(TextOptions::default(), Format::Csv);
    decoder.decode(text.as_bytes(), Tail::End, &mut sink).ok()?;
    let prefix = |line: String| line.split(' ').next().unwrap_or_default().to_owned();
    (sink.noted.is_empty() && sink.damage.len() <= 2)
        .then(|| sink.lines.into_iter().map(prefix).collect())
}

proptest! {
    // The same cases each time: new ones are for the fuzz target.
    #![proptest_config(ProptestConfig {
        cases: 2000,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_order_of_columns_changes_nothing(
        names in proptest::sample::subsequence(NAMES, 2..6),
        columns in proptest::collection::vec(any_column(), 6),
        turns in proptest::collection::vec(any::<Index>(), 6),
    ) {
        let table: Vec<_> = names.into_iter().zip(&columns).collect();
        let mut other = table.clone();
        for (at, turn) in turns.iter().enumerate().take(table.len()) {
            other.swap(at, turn.index(table.len()));
        }
        if let (Some(one), Some(two)) = (prefixes(&table), prefixes(&other)) {
            prop_assert_eq!(one, two, "{:?} and {:?}", table, other);
        }
    }
}
