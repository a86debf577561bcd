//! Every command of `fibula` that a page names is there, with each option that the page gives it. `pages.rs` runs those
//! that need no router, no data of the reader's own, and no rights.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Files, done, execute};

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("RELEASE.md")];
    // Decisions also name commands that were rejected.
    for folder in ["docs", "docs/engines"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            pages.extend(path.extension().is_some_and(|ending| ending == "md").then_some(path));
        }
    }
    pages
}

/// The commands in a page's blocks and in its lines, without what follows a pipe, a redirection or a comment.
fn commands(text: &str) -> Vec<String> {
    let (mut blocks, mut prose) = (String::new(), String::new());
    for (at, part) in text.split("\n```").enumerate() {
        let kept = if at % 2 == 1 { &mut blocks } else { &mut prose };
        *kept += part;
        *kept += "\n";
    }
    let blocks = blocks.replace("\\\n", " ");
    let lines = blocks.lines().map(|line| line.trim_start_matches(['$', '#', ' ']));
    let mut found: Vec<&str> = lines.collect();
    found.extend(prose.split('`').skip(1).step_by(2));
    let pieces = found.iter().flat_map(|code| code.split(['|', ';']).map(str::trim_start));
    let ends = [" # ", " && ", " > ", " &"];
    let cut = |code: &str| ends.iter().filter_map(|end| code.find(end)).min().unwrap_or(code.len());
    let commands = pieces.filter_map(|code| code.strip_prefix("fibula "));
    commands.map(|code| code[..cut(code)].replace('\n', " ")).collect()
}

/// Whether the help has this option, and not only one that begins so.
fn has(help: &str, option: &str) -> bool {
    help.match_indices(option).any(|(at, _)| {
        let behind = help[at + option.len()..].chars().next();
        !behind.is_some_and(|c| c.is_ascii_alphanumeric() || c == '-')
    })
}

#[test]
fn options_of_the_pages_are_there() {
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let mut options = 0;
    for page in pages() {
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let is_name = |word: &&&str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
            let Some(name) = words.first().filter(is_name).filter(|word| !word.starts_with('-'))
            else {
                continue;
            };
            let mut path = vec![(*name).to_owned()];
            let inner = words.get(1).filter(|word| ["traffic", "table", "filter"].contains(word));
            path.extend(inner.map(ToString::to_string));
            let help = helps.entry(path.clone()).or_insert_with(|| {
                let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
                let help = execute(&args);
                assert_eq!(help.code, 0, "{}: fibula {command}", page.display());
                help.out
            });
            for word in words.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
                let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
                let option = &word[..end.unwrap_or(word.len())];
                let name = page.display();
                assert!(has(help, option), "{name}: {option} is no option of fibula {command}");
                options += 1;
            }
        }
    }
    assert!(options > 200, "{options} options");
}

/// The configuration files of the pages are accepted, once the files and folders that they name are there.
#[test]
#[cfg(target_os = "linux")]
fn configurations_of_the_pages_are_accepted() {
    for (page, command, more) in [
        ("docs/serve.md", "serve", ""),
        ("docs/router.md", "route", ""),
        ("docs/alarms.md", "serve", "\n[[kernel]]\n"),
    ] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(page)).unwrap();
        let (_, block) = text.split_once("\n```toml\n").unwrap();
        let (block, _) = block.split_once("\n```").unwrap();
        let files = Files::new();
        for folder in ["/etc/fibula", "/var/lib/fibula", "/srv/collector/updates", "/run/fibula"] {
            fs::create_dir_all(files.path(&folder[1..])).unwrap();
        }
        files.with("etc/fibula/edge1", "secret\n");
        files.with("etc/fibula/webhook", "secret\n");
        files.with("etc/fibula/sites.csv", "prefix,site\n10.0.0.0/8,lab\n");
        files.with("run/fibula/ris", "");
        files.with("in.pcap", b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\x04\0\x01\0\0\0");
        let mut config = format!("{block}{more}");
        for path in ["/etc/", "/var/lib/", "/srv/", "/run/"] {
            config = config.replace(&format!("\"{path}"), &format!("\"{}", files.path(&path[1..])));
        }
        let config =
            config.replace("pcap:in.pcap:out.pcap", &format!("pcap:{}:", files.path("in.pcap")));
        let config = files.with("config.toml", config);
        done(&[command, "--config", &config, "--check"]);
    }
}
