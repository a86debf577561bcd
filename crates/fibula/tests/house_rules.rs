//! The architecture's rules that a compiler does not check: who may use whom, and where `unsafe`
//! may stand. ARCHITECTURE.md says why.

use std::fs;
use std::path::{Path, PathBuf};

/// What each crate may use of ours, besides itself and dev-dependencies. `any` holds for binaries.
const MAY_USE: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("simd", &[]),
    ("publish", &[]),
    ("filter", &["simd"]),
    ("packet", &["core"]),
    ("flows", &["packet"]),
    ("classify", &["core", "simd", "publish", "filter", "packet"]),
    ("dpdk", &[]),
    ("engines", &["core", "simd"]),
    ("baselines", &["core", "simd", "filter", "engines"]),
    ("accel", &["core", "filter"]),
    ("rib", &["core", "publish"]),
    ("ingest", &["core", "simd"]),
    ("fetch", &["rib"]),
    ("fib", &["core", "engines", "rib"]),
    ("annotate", &["core", "simd", "fib", "packet", "flows", "classify"]),
    ("collect", &["core", "publish", "rib", "flows", "annotate"]),
    ("offload", &["core", "engines", "fib", "annotate", "accel"]),
    ("export", &["core", "rib"]),
    ("rpki", &["core", "ingest", "rib"]),
    ("feeds", &["core", "ingest", "rib", "testkit"]),
    ("alarms", &["core", "rib", "rpki"]),
    ("history", &["core", "rib"]),
    ("server", &["core", "rib", "fib", "feeds", "annotate", "rpki", "alarms", "history"]),
    (
        "router",
        &["core", "simd", "packet", "classify", "dpdk", "publish", "rib", "fib", "ingest", "feeds"],
    ),
    (
        "daemon",
        &[
            "core", "rib", "rpki", "fib", "ingest", "classify", "feeds", "router", "server",
            "alarms", "annotate", "collect", "history", "fibula",
        ],
    ),
    ("testkit", &["core"]),
    (
        "papers",
        &[
            "core",
            "simd",
            "filter",
            "packet",
            "classify",
            "engines",
            "baselines",
            "rib",
            "fib",
            "ingest",
            "router",
            "testkit",
            "fibula",
        ],
    ),
    ("fibula", &["core", "engines", "rib", "fib", "ingest", "testkit", "annotate"]),
    (
        "cli",
        &[
            "core",
            "simd",
            "filter",
            "packet",
            "classify",
            "engines",
            "baselines",
            "rib",
            "fib",
            "ingest",
            "fetch",
            "annotate",
            "export",
            "rpki",
            "alarms",
            "feeds",
            "router",
            "server",
            "daemon",
            "testkit",
            "fibula",
            "accel",
            "offload",
            "collect",
        ],
    ),
];

/// Crates without any unsafe code, which say so to the compiler.
const SAFE_CRATES: &[&str] = &[
    "core", "publish", "packet", "flows", "classify", "fib", "ingest", "fetch", "annotate",
    "collect", "offload", "export", "rpki", "alarms", "history", "server", "daemon", "testkit",
    "papers", "fibula", "cli",
];

/// Files outside those crates that may hold `unsafe`.
const UNSAFE_ROOMS: &[&str] = &[
    "simd/src/",
    "filter/src/probe/",
    "filter/src/blocked/vector.rs",
    "/batch.rs",
    "runmap/long.rs",
    "wideleaf/whole.rs",
    "accel/src/cuda/",
    "accel/src/opencl/",
    "accel/src/resident.rs",
    "accel/tests/resident.rs",
    "rib/src/mapping.rs",
    "feeds/src/bgp/md5.rs",
    "router/src/leaving.rs",
    "router/src/pool.rs",
    "router/src/port/",
    "bindings/c/src/",
    "bindings/duckdb/src/host/",
    "bindings/jvm/src/calls.rs",
    "bindings/python/src/resident.rs",
];

/// Crates with a single file, or folder, of unsafe code: the compiler denies it elsewhere.
const ONE_ROOM_CRATES: &[&str] = &["accel", "rib", "feeds"];

/// Files that may name instructions of a machine: `simd`, and two engines with loops of their own.
const INTRINSICS_ROOMS: &[&str] = &["simd/src/", "dxr/batch.rs", "poptrie/batch.rs"];

fn crates_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/fibula has a parent").into()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Names of our crates in the `[dependencies]` sections (not dev-dependencies) of a manifest.
fn own_dependencies(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        }
        let normal = section == "[dependencies]"
            || section == "[build-dependencies]"
            || (section.starts_with("[target.") && section.ends_with(".dependencies]"));
        let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
        if normal && (name == "fibula" || name.starts_with("fibula-")) {
            found.push(name.strip_prefix("fibula-").unwrap_or(name).to_string());
        }
    }
    found
}

#[test]
fn dependencies_point_one_way() {
    let mut seen = 0;
    for entry in fs::read_dir(crates_dir()).expect("the crates folder") {
        let dir = entry.expect("a readable folder").path();
        let name = dir.file_name().and_then(|n| n.to_str()).expect("a plain name").to_string();
        let allowed = MAY_USE
            .iter()
            .find(|(n, _)| *n == name)
            .unwrap_or_else(|| panic!("crate {name} has no line in MAY_USE"))
            .1;
        for used in own_dependencies(&read(&dir.join("Cargo.toml"))) {
            assert!(allowed.contains(&used.as_str()), "{name} must not use {used}");
        }
        seen += 1;
    }
    assert_eq!(seen, MAY_USE.len());
}

#[test]
fn safe_crates_say_so() {
    for name in SAFE_CRATES {
        let root = crates_dir().join(name).join("src/lib.rs");
        assert!(read(&root).contains("#![forbid(unsafe_code)]"), "{}", root.display());
    }
    let papers = ["bloomfwd", "compressed", "displaced", "hpbf", "planb", "worst"];
    let papers = papers.map(|program| format!("papers/src/{program}/main.rs"));
    for program in papers.iter().map(String::as_str).chain(["cli/src/main.rs"]) {
        let root = crates_dir().join(program);
        assert!(read(&root).contains("#![forbid(unsafe_code)]"), "{}", root.display());
    }
    for name in ONE_ROOM_CRATES {
        let root = crates_dir().join(name).join("src/lib.rs");
        assert!(read(&root).contains("#![deny(unsafe_code)]"), "{}", root.display());
    }
    for binding in ["python", "wasm"] {
        let root = crates_dir().join("../bindings").join(binding).join("src/lib.rs");
        assert!(read(&root).contains("#![deny(unsafe_code)]"), "{}", root.display());
    }
}

#[test]
fn unsafe_and_instructions_stay_in_their_rooms() {
    const UNSAFE: &[&str] =
        &["unsafe {", "unsafe fn", "unsafe impl", "unsafe trait", "unsafe extern"];
    const INTRINSICS: &[&str] = &["core::arch", "std::arch", "target_feature("];
    let mut files = Vec::new();
    sources(&crates_dir(), &mut files);
    sources(&crates_dir().join("../bindings"), &mut files);
    assert!(files.iter().any(|file| file.ends_with("bindings/python/src/lib.rs")));
    assert!(files.len() > 30, "only {} sources found", files.len());
    for file in files {
        let path = file.to_string_lossy().replace('\\', "/");
        let rules = [(UNSAFE, UNSAFE_ROOMS), (INTRINSICS, INTRINSICS_ROOMS)];
        for (words, rooms) in rules {
            if path.ends_with("house_rules.rs") || rooms.iter().any(|room| path.contains(room)) {
                continue;
            }
            for (number, line) in read(&file).lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                let used = words.iter().find(|word| code.contains(**word));
                assert_eq!(used, None, "{path}:{}: outside its rooms", number + 1);
            }
        }
    }
}

/// The walks of ARCHITECTURE.md name files, as `crate/file.rs` or `crate/file.rs: Type::function`: they are
/// there, and have that function.
#[test]
fn walks_lead_somewhere() {
    let text = read(&crates_dir().join("../ARCHITECTURE.md"));
    let (_, walks) = text.split_once("## Five walks").expect("the chapter with the walks");
    let (walks, _) = walks.split_once("\n## ").expect("another chapter");
    let mut steps = 0;
    for step in walks.split('`').skip(1).step_by(2).filter(|step| step.contains(".rs")) {
        let (file, function) = step.split_once(": ").unwrap_or((step, ""));
        let (name, file) = file.split_once('/').unwrap_or_else(|| panic!("{step}: no crate"));
        let code = read(&crates_dir().join(name).join("src").join(file));
        let function = function.rsplit("::").next().unwrap_or_default();
        let is_there = function.is_empty()
            || [format!("fn {function}"), format!("enum {function}"), format!("struct {function}")]
                .iter()
                .any(|d| code.contains(d));
        assert!(is_there, "{step}: not in that file");
        steps += 1;
    }
    assert!(steps > 70, "{steps} steps");
}

/// The table "Where do I...?" of ARCHITECTURE.md names files and folders by their paths: they are there.
#[test]
fn rows_of_where_do_i_lead_somewhere() {
    const FOLDERS: &[&str] =
        &["crates/", "bindings/", "bench/", "docs/", "fuzz/", "testdata/", "tools/"];
    const OF_ONES_OWN: &[&str] = &["NAME", "CPU"];
    let root = crates_dir().join("..");
    let text = read(&root.join("ARCHITECTURE.md"));
    let (_, rows) = text.split_once("## Where do I...?").expect("the chapter with the rows");
    let mut paths = 0;
    for row in rows.lines().filter(|line| line.starts_with('|')) {
        for path in row.split('`').skip(1).step_by(2) {
            if !FOLDERS.iter().any(|folder| path.starts_with(folder))
                || OF_ONES_OWN.iter().any(|word| path.contains(word))
            {
                continue;
            }
            assert!(root.join(path).exists(), "{path}: not there, in the row {row}");
            paths += 1;
        }
    }
    assert!(paths > 70, "{paths} paths");
}

/// Lines of comments keep to 120 columns. Tables and links cannot be wrapped, and code and drawings stay as they are.
#[test]
fn comments_keep_to_120_columns() {
    let root = crates_dir().join("..");
    let mut files = Vec::new();
    for folder in [
        "crates",
        "bindings/c",
        "bindings/python/src",
        "bindings/wasm",
        "fuzz/src",
        "fuzz/fuzz_targets",
        "bench/harness",
        "bench/peer",
        "bench/peers",
    ] {
        sources(&root.join(folder), &mut files);
    }
    let (mut lines, mut long) = (0, Vec::new());
    for file in files {
        let mut is_code = false;
        for (at, line) in read(&file).lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                is_code = false;
                continue;
            };
            let text = comment.trim_start_matches(['/', '!']).trim_start();
            is_code ^= text.starts_with("```");
            let is_whole = is_code || text.starts_with('|') || text.contains("://");
            if line.chars().count() > 120 && !is_whole {
                long.push(format!("{}:{}", file.display(), at + 1));
            }
            lines += 1;
        }
    }
    assert!(lines > 10_000, "{lines} lines");
    assert!(long.is_empty(), "wrap these at 120 columns: {long:#?}");
}

/// What cargo can run of a package: programs, examples and tests by name.
fn targets(dir: &Path) -> [Vec<String>; 3] {
    let manifest = read(&dir.join("Cargo.toml"));
    let value = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
    let (mut section, mut package) = ("", String::new());
    let mut found: [Vec<String>; 3] = Default::default();
    for line in manifest.lines() {
        match line {
            _ if line.starts_with('[') => section = line,
            _ if !line.starts_with("name = ") => {}
            _ if section == "[package]" => package = value(line),
            _ => {
                let kinds = ["[[bin]]", "[[example]]", "[[test]]"];
                let kind = kinds.iter().position(|kind| *kind == section);
                kind.into_iter().for_each(|kind| found[kind].push(value(line)));
            }
        }
    }
    if found[0].is_empty() && dir.join("src/main.rs").exists() {
        found[0].push(package);
    }
    // A file, or a folder with the example's files.
    for entry in fs::read_dir(dir.join("examples")).into_iter().flatten() {
        let path = entry.expect("a readable folder").path();
        found[1].extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    found
}

/// A command of cargo in a document or a comment names a program, an example or a test that its package has, or
/// leaves the name out where the package has one program.
#[test]
fn commands_of_cargo_name_what_there_is() {
    let root = crates_dir().join("..");
    let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    sources(&crates_dir(), &mut files);
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of documents") {
            let path = entry.expect("a readable folder").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|e| e == "md") => files.push(path),
                false => {}
            }
        }
    }
    let packages: Vec<PathBuf> = fs::read_dir(crates_dir())
        .expect("the crates folder")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    let mut commands = 0;
    for file in files {
        let text = read(&file).replace("\n//!", " ").replace("\n///", " ");
        for command in text.split("cargo ").skip(1) {
            let command = command.split(['`', '"', '#', '(']).next().unwrap_or_default();
            let command = command.split("\n\n").next().unwrap_or_default();
            let words: Vec<&str> = command.split_whitespace().take_while(|w| *w != "--").collect();
            let verb = words.first().copied().unwrap_or_default();
            let after = |option: &str| words.iter().skip_while(|w| **w != option).nth(1).copied();
            let package = after("-p").unwrap_or_default();
            let named = ["--bin", "--example", "--test"].map(after);
            let is_placeholder = package.bytes().all(|byte| byte.is_ascii_uppercase());
            if !["run", "test"].contains(&verb) || (is_placeholder && named == [None; 3]) {
                continue;
            }
            let of = |dir: &&PathBuf| {
                let manifest = read(&dir.join("Cargo.toml"));
                package.is_empty() || manifest.contains(&format!("name = \"{package}\"\n"))
            };
            let there: Vec<_> = packages.iter().filter(of).map(|dir| targets(dir)).collect();
            assert!(!there.is_empty(), "{}: no package {package}: {command}", file.display());
            for (kind, name) in named.iter().enumerate() {
                let Some(name) = name else { continue };
                let has = there.iter().any(|all| all[kind].iter().any(|other| other == name));
                assert!(has, "{}: no {name}: cargo {command}", file.display());
            }
            let is_one = there.iter().any(|all| all[0].len() == 1);
            assert!(
                verb == "test" || named != [None; 3] || is_one,
                "{}: which program?: cargo {command}",
                file.display()
            );
            commands += 1;
        }
    }
    assert!(commands > 20, "{commands} commands");
}

/// The run without vectors leaves out one kind of tests, which say so in their path. A pattern for anything else would
/// also leave out tests that are written later.
#[test]
fn the_run_without_vectors_leaves_out_what_says_so() {
    let script = read(&crates_dir().join("../tools/test.sh"));
    let (_, run) = script.split_once("\nscalar=(").expect("the arguments of the run");
    let (run, _) = run.split_once(')').expect("the end of the arguments");
    let skipped: Vec<&str> =
        run.split("--skip ").skip(1).filter_map(|rest| rest.split_whitespace().next()).collect();
    assert_eq!(skipped, ["any_isa::"]);
    let mut files = Vec::new();
    sources(&crates_dir(), &mut files);
    let modules = files.iter().filter(|path| read(path).contains("mod any_isa"));
    assert!(modules.count() >= 8, "the modules that it leaves out");
}

/// The files of the server, from bottom to top: none uses one that comes later.
#[test]
fn the_servers_files_use_what_is_below() {
    const ORDER: [&[&str]; 5] = [
        &[
            "http",
            "table",
            "counts",
            "logs",
            "convert",
            "filter",
            "frozen",
            "metrics_text",
            "options",
            "api",
        ],
        &["site"],
        &["handlers"],
        &["openapi", "endpoints"],
        &["dispatch", "connection", "server"],
    ];
    let source = crates_dir().join("server/src");
    for (at, names) in ORDER.iter().enumerate() {
        let mut files = Vec::new();
        for name in *names {
            let file = source.join(format!("{name}.rs"));
            match file.exists() {
                true => files.push(file),
                false => sources(&source.join(name), &mut files),
            }
        }
        assert!(files.len() >= names.len(), "{names:?}: a file is not there any more");
        for above in ORDER[at + 1..].concat() {
            for path in &files {
                let uses = read(path).contains(&format!("crate::{above}::"));
                assert!(!uses, "{}: uses {above}, which is above it", path.display());
            }
        }
    }
}

/// What a published crate is made of lies in its own folder: its package has nothing else.
#[test]
fn published_crates_keep_to_their_folders() {
    let mut files = Vec::new();
    for entry in fs::read_dir(crates_dir()).expect("the crates") {
        let folder = entry.expect("a readable folder").path();
        if !read(&folder.join("Cargo.toml")).contains("publish = false") {
            sources(&folder.join("src"), &mut files);
        }
    }
    assert!(files.len() > 500);
    let leaves = |path: &PathBuf| {
        let text = read(path);
        let depth = path.strip_prefix(crates_dir()).expect("a file of a crate").iter().count() - 2;
        let included = text.split("include_").skip(1).filter_map(|rest| {
            let (what, rest) = rest.split_once("!(\"")?;
            matches!(what, "str" | "bytes").then(|| rest.split('"').next().unwrap_or_default())
        });
        let mut included = included.map(|name| name.matches("../").count());
        included.any(|up| up > depth) || text.contains("join(\"../")
    };
    files.retain(leaves);
    assert!(
        files.is_empty(),
        "a link in the crate's own testdata leads to the repository's: {files:?}"
    );
}
