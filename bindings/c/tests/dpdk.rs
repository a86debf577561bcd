//! DPDK's tables beside ours, with the same calls, where DPDK is installed; elsewhere these tests say that they were
//! left out.

use std::path::Path;
use std::process::Command;

use crate::program::library;

/// What pkg-config says of DPDK; `None` if it is not installed.
fn pkg_config(what: &str) -> Option<Vec<String>> {
    let output = Command::new("pkg-config").args([what, "libdpdk"]).output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| text.split_whitespace().map(str::to_owned).collect())
}

/// Compiles and runs a program with DPDK. Returns what it printed.
fn run(source: &str, arguments: &[&str]) -> Option<String> {
    let (Some(flags), Some(libraries)) = (pkg_config("--cflags"), pkg_config("--libs")) else {
        eprintln!("{source}: SKIPPED, libdpdk-dev and pkg-config are not installed");
        return None;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let library = library();
    // Warnings in DPDK's headers are not ours.
    let flags = flags.iter().flat_map(|flag| match flag.strip_prefix("-I") {
        Some(folder) => vec!["-isystem", folder],
        None => vec![flag.as_str()],
    });
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-pthread", "-I"])
        .arg(here.join("include"))
        .args(flags)
        .arg(here.join(source))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .arg("-lfibula_c")
        .args(&libraries)
        .output()
        .unwrap_or_else(|error| panic!("cc: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output =
        Command::new(program).args(arguments).env("LD_LIBRARY_PATH", &library).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_same_calls_have_the_same_results() {
    if let Some(printed) = run("tests/rte.c", &[]) {
        assert!(printed.ends_with("done\n"), "{printed}");
    }
}

/// DPDK's names may mean our functions, and then DPDK need not be started.
#[test]
fn names_of_dpdk_mean_our_functions() {
    if let Some(printed) = run("tests/rte_replace.c", &[]) {
        assert_eq!(printed, "done\n");
    }
}

/// The example: two lcores read while one writes, and the answers of both tables are equal.
#[test]
fn lcores_read_while_one_writes() {
    if let Some(printed) = run("examples/dpdk.c", &["5000", "0.2"]) {
        assert_eq!(printed.matches("addresses are equal").count(), 2, "{printed}");
        assert_eq!(printed.matches("2 lcores look up").count(), 4, "{printed}");
    }
}
