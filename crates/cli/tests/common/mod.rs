//! What the tests of the command share.
#![allow(dead_code, reason = "each test file uses its part")]

#[cfg(unix)]
pub mod daemon;
pub mod fpm;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// The command, with nothing forced by the environment or the user's configuration.
pub fn fibula(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fibula").expect("the binary is built");
    for name in ["FIBULA_ISA", "FIBULA_TABLE", "FIBULA_OFFLINE"] {
        command.env_remove(name);
    }
    command.env("FIBULA_CONFIG", "").args(args);
    command
}

/// The output and the exit code of a command.
pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs the command to its end.
pub fn execute(args: &[&str]) -> CommandOutput {
    execute_with(args, "")
}

/// Runs the command with this standard input.
pub fn execute_with(args: &[&str], input: impl Into<Vec<u8>>) -> CommandOutput {
    let output = fibula(args).write_stdin(input).output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    let code = output.status.code().expect("no signal ends it");
    let result = CommandOutput { code, out: text(output.stdout), err: text(output.stderr) };
    assert!(!result.err.contains("panicked"), "{}", result.err);
    result
}

/// As [`execute`], and it must succeed.
pub fn done(args: &[&str]) -> CommandOutput {
    let result = execute(args);
    assert_eq!(result.code, 0, "{args:?}: {}{}", result.out, result.err);
    result
}

/// The standard output of a command that must go well, as JSON.
pub fn json(args: &[&str]) -> Value {
    serde_json::from_str(&done(args).out).expect("output is JSON")
}

/// A folder with files.
pub struct Files(TempDir);

impl Files {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for temporary files"))
    }

    /// The path of a file that need not exist.
    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a plain path").to_owned()
    }

    /// Writes a file and gives its path.
    pub fn with(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).expect("a file can be written");
        path
    }

    /// The small table of both families, built to a snapshot.
    pub fn snapshot(&self) -> String {
        let (csv, fib) = (self.with("table.csv", TABLE), self.path("table.fib"));
        done(&["build", &csv, "-o", &fib]);
        fib
    }
}

/// Nested routes of both families, with an integer and a text column.
pub const TABLE: &str = "\
prefix,asn,country
0.0.0.0/0,64500,CH
10.0.0.0/8,64501,DE
10.1.0.0/16,64502,FR
10.1.2.0/24,64503,NL
255.255.255.255/32,64504,SE
2001:db8::/32,64505,CH
2001:db8:1::/48,64506,DE
2001:db8:1::1/128,64507,FR
";

/// The cuts of real files that are always there: `testdata`.
pub fn cuts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// The whole files, in the same folders: `data` in the folder that `FIBULA_SHARED` names, or in
/// `shared` beside the repository.
pub fn archives() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let data = env::var_os("FIBULA_SHARED").map_or(beside, PathBuf::from).join("data");
    assert!(data.is_dir(), "no real archives at {} (set FIBULA_SHARED)", data.display());
    data
}

/// The MRT files of [`cuts`] or [`archives`], in order of name.
pub fn mrt_files(data: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["mrt", "mrt/mrtparse-samples"] {
        let folder = data.join(folder);
        let entries = fs::read_dir(&folder);
        let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let paths = entries.map(|entry| entry.expect("a readable folder").path());
        files.extend(paths.filter(|path| path.is_file()));
    }
    files.retain(|path| ![".md", ".rst", ".conf"].iter().any(|end| name(path).ends_with(end)));
    files.sort();
    files
}

/// The name of a file without its folders.
pub fn name(path: &Path) -> String {
    path.file_name().expect("files have names").to_string_lossy().into_owned()
}

/// A path as an argument.
pub fn arg(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

pub fn read(path: impl AsRef<Path>) -> Vec<u8> {
    let path: PathBuf = path.as_ref().into();
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
