//! Paths as text and in tables: all those of real archives, compared with a search written from the draft's text.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use fibula_core::{Attributes, Change, Hop, Routes, Update, Value};
use fibula_ingest::{Damage, ReadOptions, Sink, SourceSpec};
use fibula_rib::{ColumnKind, ColumnsBuilder, SelectedPeer, Table};
use fibula_rpki::{
    Aspas, PathReport, PathValidity, ReceivedFrom, Relations, RpkiError, add_path_column,
    renamed_path_column,
};
use fibula_testkit::Rng;

use PathValidity::{Invalid, Unknown, Valid};

/// The text of a path, as the draft verifies it: "the AS_PATH is invalid if apexes of the up-ramp and down-ramp are
/// apart by more than one hop", tried for each place of the apexes.
fn searched(aspas: &Aspas, text: &str, from: ReceivedFrom) -> Option<PathValidity> {
    let (mut ases, mut outside) = (Vec::new(), String::new());
    let mut depth = 0;
    for character in text.chars() {
        depth += i32::from("([".contains(character)) - i32::from(")]".contains(character));
        outside.push(if depth > 0 || ")]".contains(character) { ' ' } else { character });
    }
    if outside.contains('{') {
        return Some(Invalid);
    }
    for asn in outside.split_whitespace() {
        let asn: u32 = asn.parse().unwrap();
        if ases.last() != Some(&asn) {
            ases.push(asn);
        }
    }
    if ases.is_empty() {
        return None;
    }
    if ases.contains(&0) {
        return Some(Invalid);
    }
    ases.reverse(); // the origin is AS(1)
    let n = ases.len();
    let outcome = |may_descend: bool| {
        // Whether there are apexes with nothing but such hops outside of them.
        let exist = |is_good: &dyn Fn(u32, u32) -> bool| {
            let climbs = |k: usize| (0..k).all(|i| is_good(ases[i], ases[i + 1]));
            let falls = |l: usize| (l..n - 1).all(|i| is_good(ases[i + 1], ases[i]));
            match may_descend {
                false => climbs(n - 1),
                true => (0..n).any(|k| climbs(k) && (k..=k + 1).any(|l| l >= n || falls(l))),
            }
        };
        let attested = |x, y| aspas.providers(x).map(|all: &[u32]| all.contains(&y));
        if !exist(&|x, y| attested(x, y) != Some(false)) {
            Invalid
        } else if !exist(&|x, y| attested(x, y) == Some(true)) {
            Unknown
        } else {
            Valid
        }
    };
    let (up, down) = (outcome(false), outcome(true));
    Some(match from {
        ReceivedFrom::Provider => down,
        ReceivedFrom::Unknown if up != down => Unknown,
        _ => up,
    })
}

/// The paths of an archive, and how often each occurs.
#[derive(Default)]
struct Paths(BTreeMap<String, u64>);

impl Sink for Paths {
    fn update(&mut self, update: &Update<'_>) {
        if let Change::Announce(Attributes::Bgp(bgp)) = update.change {
            *self.0.entry(bgp.as_path.to_owned()).or_default() += 1;
        }
    }

    fn damage(&mut self, _: &Damage) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Archives of RIPE and Route Views: cuts that are always there, and whole ones beside the repository.
fn archives() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all: Vec<PathBuf> = [
        "bgpkit-ripe_rrc00_2000.01_bview.20000111.0032.first-20-records.gz",
        "bgpkit-ripe_rrc15_2010.02_updates.20100227.1610.gz",
        "pyasn-rib6.20151101.0600_first78478.bz2",
    ]
    .map(|name| root.join("testdata/mrt").join(name))
    .into();
    let beside = root.join("../shared");
    let shared = std::env::var_os("FIBULA_SHARED").map_or(beside, PathBuf::from).join("data/mrt");
    for name in [
        "ripencc-bgpdump-bview.20020722.2337.gz",
        "ripencc-bgpdump-updates.20160811.1600.gz",
        "pyasn-rib.20140523.0600_firstMB.bz2",
    ] {
        match shared.join(name).is_file() {
            true => all.push(shared.join(name)),
            false => eprintln!("no {name} at {} (set FIBULA_SHARED)", shared.display()),
        }
    }
    all
}

/// ASPAs that could be of the ASes of these paths: seven of ten attest, and name most of those behind which they are.
fn attested(paths: &Paths) -> Aspas {
    let mut rng = Rng::new(17);
    let mut above = BTreeMap::<u32, BTreeSet<u32>>::new();
    for text in paths.0.keys() {
        let ases: Vec<u32> = text.split(' ').map_while(|word| word.parse().ok()).collect();
        for pair in ases.windows(2).filter(|pair| pair[0] != pair[1]) {
            above.entry(pair[1]).or_default().insert(pair[0]);
        }
        above.entry(ases.first().copied().unwrap_or(1)).or_default();
    }
    let mut aspas = Vec::new();
    for (customer, neighbours) in above {
        if rng.chance(0.7) {
            let mut providers: Vec<u32> =
                neighbours.into_iter().filter(|_| rng.chance(0.8)).collect();
            if providers.is_empty() {
                providers.push(0);
            }
            aspas.push((customer, providers));
        }
    }
    aspas.into_iter().collect()
}

#[test]
fn all_paths_of_archives() {
    let mut seen = [0u64; 3];
    for archive in archives() {
        let mut paths = Paths::default();
        let mut options = ReadOptions::default();
        // Some are the beginning of an archive.
        (options.as_path, options.salvage) = (true, true);
        fibula_ingest::read(&SourceSpec::new(&archive), &mut options, &mut paths).unwrap();
        assert!(paths.0.len() > 50, "{}: {} paths", archive.display(), paths.0.len());
        let aspas = attested(&paths);
        for from in ReceivedFrom::ALL {
            for (text, count) in &paths.0 {
                let validity = aspas.verify_text(text, from);
                assert_eq!(
                    validity,
                    searched(&aspas, text, from),
                    "{text:?} from {from}: {aspas:?}"
                );
                if let Some(validity) = validity {
                    seen[validity as usize] += count;
                }
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 1000), "all kinds occur: {seen:?}");
}

/// A table of routes with these paths, each from one of these peers.
fn table(rows: &[(Value<'_>, Value<'_>)], peers: &[(&str, u32)]) -> Table {
    let columns = [("as_path", ColumnKind::Str), ("peer", ColumnKind::Str)];
    let mut builder = ColumnsBuilder::new(&columns);
    let mut routes = Vec::new();
    for (at, &(path, peer)) in rows.iter().enumerate() {
        let hop = Hop::new(builder.push(&[path, peer]).unwrap());
        let addr = 0x0a00_0000 | (at as u32) << 8;
        routes.push((fibula_core::Prefix::new(addr, 24).unwrap(), hop));
    }
    let mut table = Table {
        v4: routes.into_iter().collect::<Routes<u32>>(),
        columns: builder.finish().unwrap(),
        ..Table::default()
    };
    table.provenance.peers = peers
        .iter()
        .map(|&(address, asn)| {
            let address: Option<IpAddr> = address.parse().ok();
            SelectedPeer { index: 0, address, asn, routes: 1, of: 1 }
        })
        .collect();
    table
}

fn column<'a>(table: &'a Table, name: &str) -> Vec<Option<&'a str>> {
    let at = table.columns.find(name).unwrap();
    let text = |row| match table.columns.value(at, row) {
        Value::Str(text) => Some(text),
        _ => None,
    };
    (0..table.columns.len()).map(text).collect()
}

#[test]
fn tables_get_a_column() {
    let aspas: Aspas = [(1, vec![10]), (2, vec![10]), (10, vec![0])].into_iter().collect();
    let text = |text: &'static str| Value::Str(text);
    let relations =
        Relations::parse(b"2,provider\n7,customer\n8,peer", ReceivedFrom::Peer).unwrap();
    // Down from 10 to 2: from a provider only.
    let path = text("2 10 1");
    let rows = [
        (path, text("192.0.2.7")),      // AS 7 is a customer
        (path, text("192.0.2.2")),      // AS 2
        (path, text("2001:db8::9")),    // an address with two ASes: the first one of the path
        (path, text("AS8")),            // a peer without an address
        (path, Value::Null),            // no peer
        (Value::Null, text("AS8")),     // no path
        (text("(9) [8]"), text("AS8")), // none outside of the confederation
        (text("10 {1,2}"), text("AS8")),
        (text("10 1"), text("AS8")),
    ];
    let peers =
        [("192.0.2.7", 7), ("192.0.2.2", 2), ("2001:db8::9", 7), ("2001:db8::9", 8), ("-", 8)];
    let made = add_path_column(table(&rows, &peers), &aspas, &relations).unwrap();
    made.check().unwrap();
    assert_eq!(made.columns.names().collect::<Vec<_>>(), ["as_path", "peer", "aspa"]);
    let (valid, invalid) = (Some("valid"), Some("invalid"));
    let expected = [invalid, valid, valid, invalid, valid, None, None, invalid, valid];
    assert_eq!(column(&made, "aspa"), expected);
    let report = PathReport::new(&made).unwrap();
    assert_eq!((report.v4.routes, report.v4.without, report.invalid()), ([4, 3, 0], 2, 3));
    assert_eq!(report.v6, Default::default());

    // The column is replaced, and another one of the name is not.
    let again = add_path_column(made, &Aspas::default(), &Relations::default()).unwrap();
    assert_eq!(again.columns.names().collect::<Vec<_>>(), ["as_path", "peer", "aspa"]);
    let unknown = Some("unknown");
    let expected = [unknown, unknown, unknown, unknown, unknown, None, None, invalid, unknown];
    assert_eq!(column(&again, "aspa"), expected);
    let mut other = table(&[(path, text("x"))], &[]);
    other.columns = other.columns.renamed(&["as_path".to_owned(), "aspa".to_owned()]);
    assert_eq!(renamed_path_column(&other.columns), Some(("aspa".to_owned(), "aspa_2".to_owned())));
    let made = add_path_column(other, &aspas, &relations).unwrap();
    assert_eq!((column(&made, "aspa_2"), column(&made, "aspa")), (vec![Some("x")], vec![valid]));
}

#[test]
fn tables_without_paths_are_refused() {
    let (aspas, relations) = (Aspas::default(), Relations::default());
    let mut bad = table(&[(Value::Str("1 x"), Value::Null)], &[]);
    let error = add_path_column(bad.clone(), &aspas, &relations).unwrap_err();
    assert_eq!(error.to_string(), "column as_path: \"1 x\" is no AS path");
    bad.columns = bad.columns.renamed(&["path".to_owned(), "peer".to_owned()]);
    let error = add_path_column(bad, &aspas, &relations).unwrap_err();
    assert!(matches!(error, RpkiError::NoPaths { .. }));
    let text = error.to_string();
    assert_eq!(text, "no column as_path with the AS paths of routes; there are: path, peer");
    // A file in which each path is one AS has a column of numbers.
    let mut builder = ColumnsBuilder::new(&[("as_path", ColumnKind::Int)]);
    let hop = Hop::new(builder.push(&[Value::Int(64500)]).unwrap());
    let routes = [(fibula_core::Prefix::new(0x0a00_0000u32, 8).unwrap(), hop)];
    let columns = builder.finish().unwrap();
    let numbers = Table { v4: routes.into_iter().collect(), columns, ..Table::default() };
    let made = add_path_column(numbers, &aspas, &relations).unwrap();
    assert_eq!(column(&made, "aspa"), [Some("valid")]);
}
