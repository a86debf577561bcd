//! With feature `dpdk`: compiles the shim against the system's DPDK, and makes the bindings of its header.

fn main() {
    println!("cargo::rerun-if-changed=shim");
    #[cfg(feature = "dpdk")]
    dpdk::build();
}

#[cfg(feature = "dpdk")]
mod dpdk {
    use std::env;
    use std::path::PathBuf;
    use std::process::Command;

    /// What the shim calls by name. The devices' drivers are loaded by DPDK itself.
    const LIBRARIES: &[&str] = &["rte_eal", "rte_mempool", "rte_mbuf", "rte_ethdev", "rte_kvargs"];

    pub fn build() {
        for name in ["PKG_CONFIG_PATH", "LIBCLANG_PATH", "FIBULA_DPDK_CPU"] {
            println!("cargo::rerun-if-env-changed={name}");
        }
        let mut code = cc::Build::new();
        code.file("shim/shim.c").include("shim").opt_level(3).std("gnu11");
        code.force_frame_pointer(false);
        // Found by an offset, not by a call: a driver gives back packets one at a time.
        code.flag("-ftls-model=initial-exec");
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
        code.compile("fibula_dpdk_shim");
        for folder in pkg_config("--libs-only-L") {
            println!("cargo::rustc-link-search=native={}", folder.trim_start_matches("-L"));
        }
        for library in LIBRARIES {
            println!("cargo::rustc-link-lib=dylib={library}");
        }
        let header = "shim/shim.h";
        let to = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("shim.rs");
        bindgen::Builder::default()
            .header(header)
            .allowlist_item("fib_.*|FIB_.*")
            .constified_enum_module("fib_kind")
            .layout_tests(true)
            .generate_comments(true)
            .generate()
            .unwrap_or_else(|error| {
                panic!("no bindings of {header} (Debian: apt install libclang-dev): {error}")
            })
            .write_to_file(to)
            .expect("cargo's folder can be written to");
    }

    fn pkg_config(what: &str) -> Vec<String> {
        let hint = "feature dpdk needs DPDK's headers and pkg-config (Debian: apt install libdpdk-dev pkg-config libclang-dev)";
        let run = Command::new("pkg-config").args([what, "libdpdk"]).output();
        let run = run.unwrap_or_else(|error| panic!("pkg-config: {error}: {hint}"));
        let error = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{}: {hint}", error.trim());
        String::from_utf8_lossy(&run.stdout).split_whitespace().map(str::to_owned).collect()
    }
}
