//! What can be tested of CUDA on a machine without a GPU: that the compiled kernels are those of the text, that an
//! absent driver is a sentence, and the host's code on a driver that computes on the CPU.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use fibula_accel::{DeviceError, Image, Offloaded, Pipeline, list, open};
use fibula_core::{Hop, Lookup};
use fibula_testkit::{probes, tables};

use crate::common::build;

const SCHEMES: [&str; 7] =
    ["runmap", "dir24_8", "sail_l", "planb", "wideleaf", "bloomfwd", "gather"];

/// From the crate's folder, in which tests run: the program may have been built elsewhere.
fn kernels() -> &'static Path {
    Path::new("src/kernels")
}

/// The text of a scheme as a compiler of CUDA reads it.
fn text(scheme: &str) -> String {
    let read = |name: &str| fs::read_to_string(kernels().join(name)).expect("a file of kernels");
    ["cuda.h", "prelude.cl", &format!("{scheme}.cl")].map(read).concat()
}

/// FNV-1a, which tells texts apart where the compiler is not installed.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The version of clang, or a line that says that there is none.
fn compiler() -> Option<String> {
    let run = Command::new("clang").arg("--version").output().ok()?;
    String::from_utf8(run.stdout).ok()?.lines().next().map(str::to_owned)
}

/// The text of a scheme compiled to PTX, which every GPU since Volta takes. Nothing of NVIDIA's is needed.
fn compiled(scheme: &str, compiler: &str) -> String {
    let text = text(scheme);
    let dir = tempfile::tempdir().expect("a folder");
    let (source, ptx) = (dir.path().join("kernels.cu"), dir.path().join("kernels.ptx"));
    fs::write(&source, &text).expect("a file for the compiler");
    let run = Command::new("clang")
        .args(["-x", "cuda", "--target=x86_64-unknown-linux-gnu", "--cuda-device-only"])
        .args(["-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_70", "-O3", "-Wall", "-Werror"])
        // The first version of PTX that knows Volta, of CUDA 9: clang takes it for granted only in what it writes.
        .args(["-Xclang", "-target-feature", "-Xclang", "+ptx60"])
        .args(["-Wno-unused-function", "-S", "-o"])
        .args([&ptx, &source])
        .output()
        .expect("clang");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let body = fs::read_to_string(&ptx).expect("what clang wrote");
    let from =
        format!("// Made by ./dev ptx of cuda.h, prelude.cl and {scheme}.cl, {:016x}", hash(&text));
    format!("{from}\n// {compiler}\n{body}")
}

/// The files of PTX are those that the recorded compiler makes of the text. Where it is not installed, their text is at
/// least the one that they were made of. With `FIBULA_WRITE_PTX` they are written.
#[test]
fn compiled_kernels_are_those_of_the_text() {
    let installed = compiler();
    for scheme in SCHEMES {
        let file = kernels().join(format!("ptx/{scheme}.ptx"));
        if env::var_os("FIBULA_WRITE_PTX").is_some() {
            let compiler = installed.as_deref().expect("clang is installed");
            fs::write(&file, compiled(scheme, compiler)).expect("the file of PTX");
        }
        let recorded = fs::read_to_string(&file).expect("the file of PTX");
        let mut lines = recorded.lines();
        let (from, compiler) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
        let is_of_text = from.ends_with(&format!("{:016x}", hash(&text(scheme))));
        assert!(is_of_text, "{scheme}.cl, prelude.cl or cuda.h has changed: run ./dev ptx");
        let compiler = compiler.trim_start_matches("// ");
        if installed.as_deref() == Some(compiler) {
            assert!(recorded == compiled(scheme, compiler), "{scheme}.ptx differs: run ./dev ptx");
        } else {
            eprintln!("SKIPPED: the compiler of {scheme}.ptx is not installed: {compiler}");
        }
    }
}

/// A machine without a driver is told what to install, as often as it asks.
#[test]
fn an_absent_driver_is_a_sentence() {
    for _ in 0..2 {
        match open("cuda:0") {
            Ok(device) => assert_eq!(device.name(), "cuda:0"),
            Err(error @ DeviceError::Absent { .. }) => {
                let (_, absent) = list();
                let error = error.to_string();
                assert!(absent.iter().any(|other| other.to_string() == error), "{absent:?}");
                assert!(error.contains("driver"), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The driver of `tests/driver`, as the library that is loaded for CUDA's; the folder that it is in.
#[cfg(target_os = "linux")]
fn driver() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let source = Path::new("tests/driver/cuda.c");
    let library = dir.path().join("libcuda.so");
    let run = Command::new("cc")
        .args(["-std=gnu11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden"])
        .arg("-fno-strict-aliasing")
        .args([Path::new("-I"), kernels(), source, Path::new("-o"), &library])
        .args(["-ldl", "-lpthread"])
        .output()
        .expect("a C compiler");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    dir
}

/// These tests in a process of their own, on the driver that computes on the CPU.
#[cfg(target_os = "linux")]
fn on_the_cpu(tests: &[&str], fails: Option<&str>) {
    let driver = driver();
    let mut command = Command::new(env::current_exe().expect("this program"));
    command.args(tests).env("LD_LIBRARY_PATH", driver.path()).env("FIBULA_TEST_DEVICE", "cuda:0");
    command.envs(fails.map(|number| ("DRIVER_FAILS", number)));
    let run = command.output().expect("the tests");
    let out = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{out}{}", String::from_utf8_lossy(&run.stderr));
    assert!(!out.contains(" 0 passed"), "{out}");
}

/// The contract, the pipeline and the conformance of every kernel, through the host's code for CUDA.
#[test]
#[cfg(target_os = "linux")]
fn host_code_on_a_driver_for_the_cpu() {
    let tests = [
        "contract::",
        "pipeline::",
        "resident::",
        "every_kernel::",
        "kernels::",
        "an_absent_driver",
    ];
    on_the_cpu(&tests, None);
}

/// After a fault of the device nothing of it works any more; every key still has its hop.
#[test]
#[cfg(target_os = "linux")]
fn a_fault_goes_to_the_cpu() {
    for number in ["1", "2", "5"] {
        on_the_cpu(&["--ignored", "--exact", "cuda::lookups_on_a_device_that_fails"], Some(number));
    }
}

#[test]
#[ignore = "needs a device that fails: a_fault_goes_to_the_cpu runs it"]
fn lookups_on_a_device_that_fails() {
    let routes = tables::dense::<u32>(1, 1000);
    let engine = build("runmap", &routes).unwrap();
    let device = open("cuda:0").unwrap();
    let image = Image::of(&*engine).unwrap();
    let offloaded = Offloaded { engine: &engine, table: device.upload(image.into()).unwrap() };
    let mut pipeline = Pipeline::new(device.clone(), 3, 1000).unwrap();
    let keys: Vec<u32> = probes::random(&routes, 10_000, 1).collect();
    let mut failures = 0;
    for _ in 0..2 {
        let mut hops = vec![Hop::new(99); keys.len()];
        let summary = pipeline.look_up(&offloaded, &keys, &mut hops);
        assert!(keys.iter().zip(&hops).all(|(&key, &hop)| engine.lookup(key) == hop));
        assert!(summary.on_cpu > 0, "{summary:?}");
        failures += summary.failures;
        let sentence = summary.error.map(|error| error.to_string());
        assert!(sentence.is_none_or(|sentence| sentence.contains("a fault")));
    }
    assert!(failures > 0);
    assert!(device.slot(fibula_core::Family::V4, 10).is_err());
}
