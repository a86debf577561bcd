//! Compiles `api.c` with all warnings, and runs it on a file.

use std::collections::HashMap;
use std::env;
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use fibula::sources::{Merge, Settings, Silent, Source};
use fibula_core::AnyPrefix;
use fibula_fib::{Fib, FibOptions};
use fibula_testkit::Rng;

/// The folder of the library that was built with these tests.
pub(crate) fn library() -> PathBuf {
    env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Compiles a program for the library that was built with these tests. Returns its path, and the library's folder.
fn compiled(folder: &Path, source: &Path) -> (PathBuf, PathBuf) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("api");
    let library = library();
    let (compiler, standard) = match source.extension().is_some_and(|is| is == "cpp") {
        true => (cpp().expect("a compiler of C++: g++ or clang"), "-std=c++20"),
        false => ("cc", "-std=c11"),
    };
    let output = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-pthread", "-I"])
        .arg(here.join("include"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .arg("-lfibula_c")
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (program, library)
}

/// A compiler of C++ with its library.
fn cpp() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    ["c++", "g++", "clang++"].into_iter().find(runs)
}

/// Runs `api.c`. Returns what it printed.
fn run(arguments: &[&str]) -> String {
    run_source(&api(), arguments, Path::new("/dev/null"))
}

fn api() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api.c")
}

/// Runs a program. Returns what it printed.
fn run_source(source: &Path, arguments: &[&str], input: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (program, library) = compiled(folder.path(), source);
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", library).stdin(File::open(input).unwrap());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The table of a text.
fn file_of(text: &str, folder: &Path) -> Fib {
    let path = folder.join("t.csv");
    std::fs::write(&path, text).unwrap();
    let mut merge = Merge::new(Settings::default());
    merge.add("t", &Source::Feed(path), &mut Silent).unwrap();
    Fib::of_table(merge.finish().unwrap(), &FibOptions::default()).unwrap()
}

#[test]
fn a_file_answers_c_as_it_answers_rust() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.fib");
    let mut rows = "prefix,asn,country\n8.8.8.0/24,15169,Zürich\n0.0.0.0/1,1,\n".to_owned();
    let mut rng = Rng::new(5);
    for number in 0..500 {
        let bits = rng.next_u64();
        let len = 8 + rng.below(25) as u8;
        rows += &format!(
            "{},{number},V4\n",
            AnyPrefix::masked(IpAddr::from((bits as u32).to_be_bytes()), len).unwrap()
        );
        let address = (0x2001_0db8_u128 << 96) | (u128::from(bits) << 32);
        let len = 33 + rng.below(96) as u8;
        rows += &format!(
            "{},{number},V6\n",
            AnyPrefix::masked(IpAddr::from(address.to_be_bytes()), len).unwrap()
        );
    }
    file_of(&rows, folder.path()).write(&path).unwrap();
    let fib = Fib::open(&path).unwrap();

    let mut addresses: Vec<IpAddr> = vec!["8.8.8.8".parse().unwrap(), "255.1.2.3".parse().unwrap()];
    for found in [
        fib.covered("0.0.0.0/0".parse::<AnyPrefix>().unwrap()),
        fib.covered("::/0".parse::<AnyPrefix>().unwrap()),
    ] {
        for found in found.unwrap() {
            addresses.push(match found.prefix().unwrap() {
                AnyPrefix::V4(prefix) => IpAddr::from(prefix.last().to_be_bytes()),
                AnyPrefix::V6(prefix) => IpAddr::from(prefix.last().to_be_bytes()),
            });
        }
    }
    let expected: String = addresses
        .iter()
        .map(|&address| match fib.lookup(address) {
            Some(found) => format!("{address} {}\n", found),
            None => format!("{address} -\n"),
        })
        .collect();
    let texts: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let mut arguments = vec!["file", path.to_str().unwrap()];
    arguments.extend(texts.iter().map(String::as_str));
    let printed = run(&arguments);
    let (head, answers) = printed.split_once('\n').unwrap();
    assert_eq!(head, format!("{} routes, 2 columns, {}", fib.len(), fib.family::<u32>().reason()));
    assert_eq!(answers, expected);
    assert!(
        answers.starts_with("8.8.8.8 8.8.8.0/24 asn=15169 country=Zürich\n255.1.2.3 -\n"),
        "{answers}"
    );
}

#[test]
fn a_table_changes_while_threads_read_it() {
    assert_eq!(run(&["live"]), "done\n");
}

/// Random changes of few prefixes, which lie in each other, and of few values, which many routes share.
#[test]
fn a_changing_table_answers_as_a_list_of_routes() {
    let mut rng = Rng::new(11);
    let mut routes: HashMap<AnyPrefix, u64> = HashMap::new();
    let (mut script, mut expected) = (String::new(), String::new());
    for _ in 0..600 {
        for _ in 0..=rng.below(4) {
            let prefix = AnyPrefix::masked(address(&mut rng), 4 * rng.below(9) as u8).unwrap();
            if rng.below(3) == 0 {
                routes.remove(&prefix);
                script += &format!("- {prefix}\n");
            } else {
                let value = [0, 1, 77, 4_294_967_294][rng.below(4) as usize];
                routes.insert(prefix, value);
                script += &format!("+ {prefix} {value}\n");
            }
        }
        for _ in 0..8 {
            let address = address(&mut rng);
            let host = AnyPrefix::host(address);
            let covering = routes.iter().filter(|(prefix, _)| covers(**prefix, host));
            let longest = covering.max_by_key(|(prefix, _)| len(**prefix));
            script += &format!("? {address}\n");
            expected += &format!(
                "{address} {}\n",
                longest.map_or(u64::from(u32::MAX), |(_, value)| *value)
            );
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("script");
    std::fs::write(&input, script).unwrap();
    // Each change visible when its call returns, and several together.
    for collect_ms in ["0", "1"] {
        assert_eq!(run_source(&api(), &["script", collect_ms], &input), expected);
    }
}

#[test]
fn several_vrfs_change_while_threads_read_them() {
    assert_eq!(run(&["load"]), "done\n");
}

#[test]
fn options_vrfs_routes_files_and_batches() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(&["more", folder.path().to_str().unwrap()]), "done\n");
}

/// One of few addresses of either family.
fn address(rng: &mut Rng) -> IpAddr {
    let bits = (rng.next_u64() as u32) & 0x8181_8181;
    match rng.below(2) {
        0 => IpAddr::from(bits.to_be_bytes()),
        _ => IpAddr::from((u128::from(bits) << 96 | 1).to_be_bytes()),
    }
}

fn covers(prefix: AnyPrefix, other: AnyPrefix) -> bool {
    match (prefix, other) {
        (AnyPrefix::V4(prefix), AnyPrefix::V4(other)) => prefix.covers(other),
        (AnyPrefix::V6(prefix), AnyPrefix::V6(other)) => prefix.covers(other),
        _ => false,
    }
}

fn len(prefix: AnyPrefix) -> u8 {
    match prefix {
        AnyPrefix::V4(prefix) => prefix.len(),
        AnyPrefix::V6(prefix) => prefix.len(),
    }
}

#[test]
fn what_is_wrong_is_refused() {
    assert_eq!(run(&["wrong", env!("CARGO_MANIFEST_DIR")]), "done\n");
}

#[test]
fn the_header_is_cpp_too() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let checked = ["c++", "clang++", "clang"].iter().find_map(|compiler| {
        Command::new(compiler)
            .args(["-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
            .args([here.join("include"), api()])
            .output()
            .ok()
    });
    let output = checked.expect("a compiler of C++: g++ or clang");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_header_for_cpp_does_what_that_for_c_does() {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api.cpp");
    let arguments = [folder.path().to_str().unwrap()];
    assert_eq!(run_source(&source, &arguments, Path::new("/dev/null")), "done\n");
}

#[test]
fn the_programs_of_the_documentation_run() {
    let folder = tempfile::tempdir().unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/c.md");
    let page = std::fs::read_to_string(page).unwrap();
    let programs: Vec<&str> =
        page.split("```c\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    let path = folder.path().join("t.fib");
    file_of("prefix,asn\n8.8.8.0/24,15169\n8.8.0.0/16,3356\n", folder.path()).write(&path).unwrap();
    let printed: Vec<String> = programs
        .iter()
        .map(|program| {
            let source = folder.path().join("program.c");
            std::fs::write(&source, program).unwrap();
            run_source(&source, &[path.to_str().unwrap()], Path::new("/dev/null"))
        })
        .collect();
    assert_eq!(
        printed,
        [
            "08080808 AS15169\n08080909 AS3356\nc0000201 no route\n",
            "1 none 2\n3\n10.1.0.0/16 is one of 2, with 3\n"
        ]
    );
}
