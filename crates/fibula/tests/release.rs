//! What a release must not forget: one version everywhere, the compiler that is promised is the one that tests, and the
//! commands that documents name are there.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The value behind `key` at the beginning of a line, without quotes.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(|rest| rest.trim().trim_matches('"'))
}

#[test]
fn one_version_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let manifest = read("Cargo.toml");
    let ours: Vec<&str> =
        manifest.lines().filter(|line| line.contains("path = \"crates/")).collect();
    assert!(ours.len() > 20, "{} crates of ours", ours.len());
    for line in ours {
        assert!(line.contains(&format!("version = \"{version}\"")), "Cargo.toml: {line}");
    }
    assert_eq!(value(&read("CITATION.cff"), "version:"), Some(version), "CITATION.cff");
    let changes = read("CHANGELOG.md");
    assert!(changes.contains(&format!("\n## {version} (")), "CHANGELOG.md has no {version}");
    assert!(read("RELEASE.md").contains(&format!("version {version};")), "RELEASE.md");
}

/// The oldest compiler that is promised is the one that all tests run with.
#[test]
fn the_promised_compiler_is_the_tested_one() {
    let (manifest, toolchain) = (read("Cargo.toml"), read("rust-toolchain.toml"));
    let promised = value(&manifest, "rust-version =").expect("a rust-version");
    let tested = value(&toolchain, "channel =").expect("a channel");
    assert_eq!(tested.strip_prefix(promised), Some(".0"), "{tested} tests, {promised} is promised");
}

/// The Markdown files of the project that its readers see.
fn pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    let mut folders = vec![root(), root().join("docs"), root().join("bindings/python")];
    folders.extend(["docs/adr", "docs/engines"].map(|folder| root().join(folder)));
    for folder in folders {
        for entry in fs::read_dir(&folder).expect("a folder of pages") {
            let path = entry.expect("a readable folder").path();
            if path.extension().is_some_and(|ending| ending == "md") {
                let text = fs::read_to_string(&path).expect("a page");
                pages.push((path.display().to_string(), text));
            }
        }
    }
    assert!(pages.len() > 60, "{} pages", pages.len());
    pages
}

/// `./dev NAME` in a page is a command of `dev`.
#[test]
fn commands_of_dev_are_there() {
    let dev = read("dev");
    let (_, list) = dev.split_once("\ncase $command in\n").expect("the list of commands");
    let known =
        |name: &str| list.lines().any(|line| line.trim_start().starts_with(&format!("{name})")));
    let mut named = 0;
    for (page, text) in pages() {
        for rest in text.split("./dev").skip(1) {
            // A line may break behind `./dev`; prose about the program itself names no command.
            let Some(rest) = rest.strip_prefix([' ', '\n']) else { continue };
            let name: String =
                rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            let is_code = rest[name.len()..].starts_with(['`', ' ', '\n', '\\', ')', '"']);
            if name.is_empty() || !is_code {
                continue;
            }
            assert!(known(&name), "{page}: ./dev {name} is no command");
            named += 1;
        }
    }
    assert!(named > 60, "{named} commands");
}

/// A page that is linked is there, and so is the heading that the link names.
#[test]
fn links_between_pages_lead_somewhere() {
    let mut links = 0;
    for (page, text) in pages() {
        let folder = Path::new(&page).parent().expect("a folder");
        for rest in text.split("](").skip(1) {
            let Some((target, _)) = rest.split_once(')') else { continue };
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            if target.contains("://") || target.contains(char::is_whitespace) {
                continue;
            }
            let path = if file.is_empty() { PathBuf::from(&page) } else { folder.join(file) };
            assert!(path.exists(), "{page}: {target} leads nowhere");
            if !heading.is_empty() && path.extension().is_some_and(|ending| ending == "md") {
                let headings = headings(&fs::read_to_string(&path).expect("a page"));
                assert!(headings.iter().any(|h| h == heading), "{page}: no heading {target}");
            }
            links += 1;
        }
    }
    assert!(links > 150, "{links} links");
}

/// The book's summary has each page once.
#[test]
fn the_book_has_every_page() {
    let summary = read("docs/SUMMARY.md");
    for folder in ["", "engines/"] {
        for entry in fs::read_dir(root().join("docs").join(folder)).expect("a folder of pages") {
            let name = entry.expect("a readable folder").file_name();
            let name = name.to_str().expect("a plain name");
            if name.ends_with(".md") && name != "SUMMARY.md" {
                let times = summary.matches(&format!("]({folder}{name})")).count();
                assert_eq!(times, 1, "docs/{folder}{name} in docs/SUMMARY.md");
            }
        }
    }
}

/// The anchors that a forge gives the headings of a page.
fn headings(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        if is_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String =
            kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect();
        let again = found.iter().filter(|other| **other == anchor).count();
        found.push(if again == 0 { anchor } else { format!("{anchor}-{again}") });
    }
    found
}
