//! The glossary of CONTRIBUTING.md as far as a test can check it: public types have names that say what they hold, and
//! one name has one meaning in all libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that say nothing about what a type holds.
const BANNED: &[&str] = &[
    "Asked", "Happened", "Heard", "Kind", "Place", "Places", "Report", "Rest", "Said", "Shape",
    "Stopped", "Thing", "Told", "Way", "Ways", "What", "Who",
];

/// Names that several libraries use, and the reason.
const SHARED: &[(&str, &[&str], &str)] = &[
    ("Address", &["annotate", "baselines", "engines"], "of a cell; the integer of a scheme"),
    ("Alarm", &["alarms", "server"], JSON),
    ("Alarms", &["alarms", "server"], "the rules at work; a list in JSON"),
    ("Answer", &["engines", "server"], "of a stored code; the body of an HTTP response"),
    ("Attributes", &["core", "server"], JSON),
    (
        "Batch",
        &["baselines", "classify", "engines"],
        "packets with their columns; a scheme's batch loop",
    ),
    ("Bgp", &["daemon", "server"], "the settings, and the JSON form of the attributes"),
    (
        "Change",
        &["core", "rib", "server"],
        "of one route by one peer; of a best route; its JSON form",
    ),
    ("Checkpoint", &["daemon", "rib"], SETTINGS),
    ("Columns", &["filter", "rib"], "words of keys; values of routes"),
    ("Config", &["baselines", "engines"], "the parameters of a scheme"),
    ("Counters", &["filter", "rib"], "of a counting filter; of a live table"),
    ("Counts", &["annotate", "classify"], "of rows; of searches"),
    ("Difference", &["rib", "testkit"], "between two tables; between an engine and the oracle"),
    ("Entry", &["baselines", "engines"], "a word of SAIL_L's tables; an engine of a registry"),
    (
        "Event",
        &["feeds", "rib", "router"],
        "what a session, a live table, a pipeline reports to its owner",
    ),
    ("Filter", &["filter", "testkit"], "a Bloom filter; a filter of ClassBench, in its own terms"),
    (
        "Histogram",
        &["baselines", "engines", "server"],
        "of prefix lengths, as Bloomfwd's paper has it; of times",
    ),
    ("History", &["rib", "server"], JSON),
    ("HistoryGap", &["history", "server"], JSON),
    ("Interface", &["ingest", "packet"], "of a capture file; of the kernel"),
    ("Kernel", &["daemon", "simd"], "the settings of the source `kernel`; a vector loop"),
    ("Limits", &["daemon", "rib", "server"], SETTINGS),
    ("Lookup", &["core", "server"], "the engines' contract, and the JSON form of an answer"),
    ("Match", &["classify", "fib"], "a value under a mask; a matched route"),
    ("Neighbour", &["daemon", "feeds", "ingest"], "the settings; of BGP; of ARP and ND"),
    ("NextHop", &["core", "server"], JSON),
    ("NextHops", &["core", "server"], JSON),
    ("Packet", &["packet", "router", "testkit"], "in a capture, in a pool, of ClassBench"),
    ("Path", &["rib", "server"], JSON),
    ("Peer", &["rib", "server"], JSON),
    ("Pipeline", &["accel", "router"], "slots of a device; stages of packets"),
    ("Problem", &["daemon", "server"], "of a configuration; of a request (RFC 9457)"),
    ("Range", &["classify", "core"], "of ports; of addresses"),
    ("Reader", &["classify", "rib"], "of a shared classifier; of a live table"),
    ("Route", &["core", "daemon", "server"], "the JSON form; the daemon `fibula route`"),
    ("Routes", &["core", "server"], JSON),
    ("SourceStatus", &["feeds", "server"], JSON),
    ("Stamp", &["router", "testkit"], "of tables in use; of a measurement"),
    ("Step", &["packet", "rib"], "in reading a capture; in the choice of the best path"),
    (
        "Table",
        &["classify", "rib", "router", "simd"],
        "of rules; of routes; rte_fib's; an aligned array",
    ),
    ("Tables", &["daemon", "server"], "the settings of several tables; JSON"),
    ("Time", &["daemon", "packet"], "of a packet; of a log line"),
    (
        "Update",
        &["baselines", "core", "engines"],
        "of a route; of SAIL's bitmaps, as its paper has it",
    ),
];

const SETTINGS: &str = "the settings of the same thing in a configuration file";

const JSON: &str = "the JSON form of the same thing, as OpenAPI names it";

fn crates_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/fibula has a parent").into()
}

/// The public types of a module, in its file and its public modules, and those that it exports again.
fn types(file: &Path, modules: &Path, out: &mut BTreeSet<String>) {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(item) = line.strip_prefix("pub ") else { continue };
        let item = item.strip_prefix("unsafe ").unwrap_or(item);
        let (keyword, name) = item.split_once(' ').unwrap_or_default();
        let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        match keyword {
            "struct" | "enum" | "trait" | "type" | "union" => {
                out.insert(name);
            }
            "use" => {
                let mut list = item["use ".len()..].to_owned();
                while !list.contains(';') {
                    list.push_str(lines.next().expect("the end of a use"));
                }
                if !list.starts_with("fibula_") {
                    out.extend(exported(&list));
                }
            }
            "mod" if item.ends_with(';') => {
                let inner = modules.join(&name);
                let file = [inner.with_extension("rs"), inner.join("mod.rs")]
                    .into_iter()
                    .find(|file| file.exists());
                types(&file.unwrap_or_else(|| panic!("{}: no file", inner.display())), &inner, out);
            }
            _ => {}
        }
    }
}

/// The types among the names that a `use` brings in: they begin with a capital and are not all capitals.
fn exported(list: &str) -> impl Iterator<Item = String> + '_ {
    let names = list.trim_end_matches(|c| c != ';').trim_end_matches(';').split(['{', '}', ',']);
    names
        .filter_map(|path| path.rsplit([':', ' ']).find(|name| !name.is_empty()))
        .filter(|name| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase))
        .map(str::to_owned)
}

/// The public types by name, and the libraries that have one.
fn public_types() -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let dirs = fs::read_dir(crates_dir()).expect("the crates folder");
    let mut dirs: Vec<PathBuf> = dirs.map(|dir| dir.expect("a readable folder").path()).collect();
    dirs.sort();
    for dir in dirs {
        let (name, root) = (
            dir.file_name().expect("a name").to_string_lossy().into_owned(),
            dir.join("src/lib.rs"),
        );
        // The papers' programs share code; nobody else uses it.
        if name == "papers" || !root.exists() {
            continue;
        }
        let mut types_of = BTreeSet::new();
        types(&root, &dir.join("src"), &mut types_of);
        types_of.into_iter().for_each(|of| found.entry(of).or_default().push(name.clone()));
    }
    found
}

#[test]
fn public_types_say_what_they_hold() {
    let all = public_types();
    assert!(all.len() > 300, "only {} types found", all.len());
    for name in BANNED {
        assert_eq!(
            all.get(*name),
            None,
            "{name} says nothing: see the glossary in CONTRIBUTING.md"
        );
    }
}

#[test]
fn a_public_name_has_one_meaning() {
    let mut wrong = Vec::new();
    for (name, crates) in public_types().into_iter().filter(|(_, crates)| crates.len() > 1) {
        let shared = SHARED.iter().find(|(shared, ..)| *shared == name);
        let allowed = shared
            .is_some_and(|(_, allowed, _)| crates.iter().all(|of| allowed.contains(&of.as_str())));
        if !allowed {
            wrong.push((name, crates));
        }
    }
    assert!(wrong.is_empty(), "rename one of each, or list them with a reason: {wrong:?}");
}
