//! Compiles the programs of the fast path for the kernel, where clang is there. Without it the router is built without
//! them, and says so when they are asked for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=FIBULA_CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where")).join("forward.o");
    // The programs read words of tables and packets in the order of little-endian machines.
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|is| is == value);
    let is_possible = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENDIAN", "little");
    if !is_possible || !compile(&out) {
        fs::write(&out, []).expect("the folder for what is built can be written");
    }
}

/// Whether there is a compiler. Stops the build if it does not compile the programs.
fn compile(out: &Path) -> bool {
    let clang = env::var("FIBULA_CLANG").unwrap_or_else(|_| "clang".to_owned());
    if clang.is_empty() {
        return false;
    }
    let mut command = Command::new(&clang);
    command.args([
        "-target",
        "bpfel",
        "-mcpu=v3",
        "-O2",
        "-Wall",
        "-Wno-pass-failed",
        "-Werror",
        "-c",
    ]);
    match command.arg("bpf/forward.c").arg("-o").arg(out).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            panic!(
                "{clang} does not compile bpf/forward.c (FIBULA_CLANG names another compiler; empty: none):\n{said}"
            )
        }
        Err(_) => false,
    }
}
