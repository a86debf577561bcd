//! Texts of libraries name no option of the command, because Python, C and HTTP have other names for them. Where a text
//! has to, Python words it anew (`bindings/python/src/wording.rs`).

use std::fs;
use std::path::{Path, PathBuf};

/// The libraries that other front ends than the command use.
const LIBRARIES: &[&str] = &[
    "core", "rib", "fib", "annotate", "classify", "export", "ingest", "feeds", "server", "rpki",
    "fibula",
];

/// Where texts name options of the command, and why.
const MAY_NAME: &[(&str, &str)] = &[
    ("ingest/src/text/", "notes and errors of tables, which Python words anew"),
    ("ingest/src/columnar.rs", "errors of tables, which Python words anew"),
    ("fibula/src/sources/", "errors of sources, which Python words anew"),
    ("rib/src/table.rs", "errors of building a table, which Python words anew"),
    ("rpki/src/error.rs", "hints, which only the command shows"),
    ("classify/src/text/", "options of iptables"),
];

/// The options that a line of source names in a text: not in comments, and not in a command between backquotes.
fn options(line: &str) -> Vec<&str> {
    let line = line.trim_start();
    if line.starts_with("//") {
        return Vec::new();
    }
    let outside = line.split('`').step_by(2);
    let words =
        outside.flat_map(|part| part.split(|c: char| c.is_whitespace() || "(\"'".contains(c)));
    words
        .filter(|word| {
            word.strip_prefix("--")
                .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
        })
        .collect()
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn libraries_name_no_options_of_the_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    LIBRARIES.iter().for_each(|library| sources(&root.join(library).join("src"), &mut files));
    sources(&root.join("../bindings/c/src"), &mut files);
    sources(&root.join("../bindings/python/src"), &mut files);
    let mut wrong = Vec::new();
    for path in files {
        let shown = path.strip_prefix(root).unwrap().display().to_string();
        let is_test = shown.contains("/tests") || shown.contains("any_isa");
        if is_test || MAY_NAME.iter().any(|(file, _)| shown.starts_with(file)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for (at, line) in text.lines().enumerate() {
            let found = options(line);
            if !found.is_empty() {
                wrong.push(format!("{shown}:{}: {}", at + 1, found.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "these texts name options of the command:\n{}", wrong.join("\n"));
    let unused = |(file, _): &&(&str, &str)| !root.join(file).exists();
    assert_eq!(MAY_NAME.iter().filter(unused).count(), 0);
}
