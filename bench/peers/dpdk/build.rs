//! Compiles the loops over DPDK's tables against the system's DPDK, and makes the bindings of their header.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The libraries whose functions the loops call, beside those of `fibula-dpdk`.
const LIBRARIES: &[&str] = &["rte_lpm", "rte_fib", "rte_rib", "rte_rcu"];
/// The header of `fibula-dpdk`.
const SHIM: &str = "../../../crates/dpdk/shim";

fn main() {
    for file in ["rival.c", "rival.h", "tables.c", "tables.h", SHIM] {
        println!("cargo::rerun-if-changed={file}");
    }
    for name in ["PKG_CONFIG_PATH", "LIBCLANG_PATH", "FIBULA_DPDK_CPU"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let mut code = cc::Build::new();
    code.files(["rival.c", "tables.c"]).include(".").include(SHIM).opt_level(3).std("gnu11");
    code.force_frame_pointer(false).flag("-ftls-model=initial-exec");
    for flag in pkg_config("--cflags") {
        match flag.strip_prefix("-I") {
            // Warnings in DPDK's headers are not ours.
            Some(folder) => code.flag("-isystem").flag(folder),
            None => code.flag(&flag),
        };
    }
    // Debian's DPDK is for any x86-64 with SSE4.2; what is measured is compiled for this machine.
    if let Ok(cpu) = env::var("FIBULA_DPDK_CPU") {
        code.flag(format!("-march={cpu}"));
    }
    code.compile("peer_dpdk");
    for library in LIBRARIES {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
    let to = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("rival.rs");
    bindgen::Builder::default()
        .header("rival.h")
        .clang_arg(format!("-I{SHIM}"))
        .allowlist_file(".*(rival|tables)\\.h")
        .constified_enum_module("fib_kind")
        .generate()
        .unwrap_or_else(|error| panic!("no bindings (Debian: apt install libclang-dev): {error}"))
        .write_to_file(to)
        .expect("cargo's folder can be written to");
}

fn pkg_config(what: &str) -> Vec<String> {
    let hint = "DPDK's headers and pkg-config are needed (Debian: apt install libdpdk-dev pkg-config libclang-dev)";
    let run = Command::new("pkg-config").args([what, "libdpdk"]).output();
    let run = run.unwrap_or_else(|error| panic!("pkg-config: {error}: {hint}"));
    let error = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{}: {hint}", error.trim());
    String::from_utf8_lossy(&run.stdout).split_whitespace().map(str::to_owned).collect()
}
