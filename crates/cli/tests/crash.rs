//! Commands that fail or are killed at any moment: an output file is the old one or the new one, whole, the
//! exit code says which, and nothing else stays behind.
//!
//! strace makes system calls fail (the disk is full, the device is broken) or kills the process in their
//! place, one call of one run after the other. Each run here takes four calls of each kind;
//! `FIBULA_CRASH=all` (`./dev crash`) takes every call there is.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{Files, TABLE, fibula};

const OLD: &str = "what was there before\n";

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A command that writes a file.
struct Writer {
    name: &'static str,
    /// `OUT` stands for the output.
    args: Vec<String>,
}

fn writers(files: &Files) -> Vec<Writer> {
    let table = files.with("table.csv", TABLE);
    let fib = files.snapshot();
    let rows = files.with("rows.csv", "ip,bytes\n".to_owned() + &"10.1.2.3,1\n".repeat(20_000));
    let parquet = files.path("rows.parquet");
    let done = fibula(&["export", &fib, "--family", "v4", "-o", &parquet]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let writer = |name, args: &[&str]| Writer {
        name,
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
    };
    vec![
        writer("build", &["build", &table, "-o", "OUT"]),
        writer("annotate", &["annotate", "-t", &fib, &rows, "-o", "OUT"]),
        writer("parquet", &["annotate", "-t", &fib, "-c", "start", &parquet, "-o", "OUT"]),
        writer("export", &["export", &fib, "--to", "mmdb", "-o", "OUT"]),
        writer(
            "replay",
            &["replay", "-t", &fib, "-u", "churn:50:1", "--measure", "1", "--checkpoint", "OUT"],
        ),
    ]
}

#[cfg(target_os = "linux")]
#[test]
fn a_call_that_fails_or_kills_leaves_the_old_output_or_the_new_one() {
    let inputs = Files::new();
    let all = std::env::var_os("FIBULA_CRASH").is_some_and(|value| value == "all");
    let mut tried = 0;
    for writer in writers(&inputs) {
        // In a folder of its own, so that what stays behind shows.
        let outputs = Files::new();
        let out = outputs.path(&format!("{}.out", writer.name));
        let folder = Path::new(&out).parent().unwrap();
        let clean = run(&writer, &out, &[]);
        let trace = inputs.path("trace");
        assert!(clean.status.success(), "{}: {}", writer.name, message(&clean));
        let whole = complete(&out);
        assert!(whole, "{}: nothing was written", writer.name);
        before(&writer, &out);
        run(&writer, &out, &["-o", &trace, "-e", "trace=%file,%desc"]);
        let trace = fs::read_to_string(&trace).unwrap();
        for call in ["openat", "write", "fsync", "renameat", "flock", "fchmod"] {
            let count = trace.lines().filter(|line| line.contains(&format!(" {call}("))).count();
            // The mode is that of the old file, if there is one.
            assert!(count > 0 || call == "fchmod", "{} never calls {call}", writer.name);
            for nth in sites(count, all) {
                for how in ["error=ENOSPC", "error=EIO", "signal=KILL"] {
                    before(&writer, &out);
                    let inject = format!("inject={call}:{how}:when={nth}");
                    let quiet = format!("trace={call}");
                    let ended =
                        run(&writer, &out, &["-o", "/dev/null", "-e", &quiet, "-e", &inject]);
                    let what = format!("{} with {inject}: {}", writer.name, message(&ended));
                    tried += 1;
                    assert!(!what.contains("panicked"), "{what}");
                    let old =
                        fs::read(&out).map_or(writer.name == "replay", |now| now == OLD.as_bytes());
                    assert!(old || complete(&out), "half a file: {what}");
                    assert!(!(ended.status.success() && old), "no file, and no word: {what}");
                    let killed = how == "signal=KILL";
                    let left: Vec<_> =
                        names(folder).into_iter().filter(|name| name.starts_with('.')).collect();
                    assert!(killed || left.is_empty(), "{left:?} stays behind: {what}");
                    if !left.is_empty() {
                        drop(fs::remove_file(&out));
                        assert!(run(&writer, &out, &[]).status.success(), "{what}");
                        let now = names(folder);
                        assert_eq!(now.len(), 1, "the next run leaves {now:?}: {what}");
                    }
                }
            }
        }
    }
    assert!(tried > 100, "only {tried} calls failed");
}

/// Puts the old output there.
#[cfg(target_os = "linux")]
fn before(writer: &Writer, out: &str) {
    let _ = fs::remove_file(out);
    // A replay goes on from its checkpoint, if there is one.
    if writer.name != "replay" {
        fs::write(out, OLD).unwrap();
    }
}

/// Whether the file is a whole one, by what stands at its end or by reading it.
fn complete(path: &str) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    if path.ends_with("annotate.out") {
        // The last line is whole.
        return bytes.ends_with(b"\n")
            && bytes.iter().filter(|&&byte| byte == b'\n').count() == 20_001;
    }
    if path.ends_with("parquet.out") {
        return bytes.len() > 100 && bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1");
    }
    if path.ends_with("export.out") {
        return bytes.windows(14).any(|window| window == b"\xab\xcd\xefMaxMind.com");
    }
    let answer = fibula(&["lookup", "-t", path, "10.1.2.3"]).output().unwrap();
    answer.status.success() && bytes.len() > 1000
}

/// Which calls of so many are tried.
#[cfg(target_os = "linux")]
fn sites(count: usize, all: bool) -> Vec<usize> {
    let mut sites: Vec<usize> = if all {
        (1..=count).collect()
    } else {
        // The writers' calls are the last ones, but for those that close everything.
        vec![count / 2, count.saturating_sub(2), count.saturating_sub(1), count]
    };
    sites.retain(|&site| site > 0);
    sites.dedup();
    sites
}

/// Runs the command to its end, under strace if there are arguments for it.
fn run(writer: &Writer, out: &str, strace: &[&str]) -> Output {
    let binary = assert_cmd::cargo::cargo_bin("fibula");
    let mut command = if strace.is_empty() {
        Command::new(binary)
    } else {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq"]).args(strace).arg("--").arg(binary);
        command
    };
    command.args(writer.args.iter().map(|arg| if arg == "OUT" { out } else { arg }));
    let output = command.stdin(Stdio::null()).output();
    output.expect("the command starts (./dev installs strace)")
}

fn message(output: &Output) -> String {
    format!("{}, {}", output.status, String::from_utf8_lossy(&output.stderr))
}

/// The command, with no signal ignored: these tests may themselves be a job in the background of a script.
fn with_default_signals() -> Command {
    let binary = assert_cmd::cargo::cargo_bin("fibula");
    if cfg!(target_os = "linux") {
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(binary);
        command
    } else {
        Command::new(binary)
    }
}

/// Runs that a signal ends in the middle: what was there before is there after, whole, and nothing beside
/// it, but for the signal that no process sees.
#[test]
fn a_signal_leaves_the_old_output() {
    use std::os::unix::process::ExitStatusExt;
    let files = Files::new();
    let fib = files.snapshot();
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("KILL", 9)] {
        for old in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("rows.csv");
            if old {
                fs::write(&out, OLD).unwrap();
            }
            let mut command = with_default_signals();
            command.args(["annotate", "-t", &fib, "--format", "csv", "-", "-o"]).arg(&out);
            let mut run = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let mut pipe = run.stdin.take().unwrap();
            pipe.write_all(b"ip\n").unwrap();
            // More than all buffers on the way, so that some of it has been written.
            pipe.write_all(&b"10.1.2.3\n".repeat(1 << 18)).unwrap();
            let kill = Command::new("kill").args(["-s", name, &run.id().to_string()]).status();
            assert!(kill.unwrap().success());
            assert_eq!(run.wait().unwrap().signal(), Some(number));
            assert_eq!(fs::read_to_string(&out).ok().as_deref(), old.then_some(OLD));
            let expected = usize::from(old) + usize::from(name == "KILL");
            assert_eq!(names(folder.path()).len(), expected, "{name}: {:?}", names(folder.path()));
        }
    }
}

/// `nohup` holds: a signal that was ignored before stays ignored.
#[cfg(target_os = "linux")]
#[test]
fn an_ignored_signal_stays_ignored() {
    let files = Files::new();
    let (fib, out) = (files.snapshot(), files.path("rows.csv"));
    let script = r#"trap "" HUP; exec "$0" annotate -t "$1" --format csv - -o "$2""#;
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(assert_cmd::cargo::cargo_bin("fibula")).args([&fib, &out]);
    let mut run = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut pipe = run.stdin.take().unwrap();
    pipe.write_all(b"ip\n").unwrap();
    // More than the pipe holds: the command is there, and reads.
    pipe.write_all(&b"10.1.2.3\n".repeat(1 << 18)).unwrap();
    let kill = Command::new("kill").args(["-s", "HUP", &run.id().to_string()]).status();
    assert!(kill.unwrap().success());
    pipe.write_all(b"10.1.2.3\n").unwrap();
    drop(pipe);
    assert!(run.wait().unwrap().success());
    assert_eq!(fs::read_to_string(&out).unwrap().lines().count(), (1 << 18) + 2);
}

/// Names of open descriptors are written to: the file that standard output was redirected to stays itself.
#[test]
fn standard_output_by_name_is_not_replaced() {
    use std::os::unix::fs::MetadataExt;
    let files = Files::new();
    let (fib, rows) = (files.snapshot(), files.with("rows.csv", "ip\n10.1.2.3\n"));
    let (plain, redirected) = (files.path("plain.csv"), files.path("redirected.csv"));
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let args = ["annotate", "-t", &fib, &rows, "-o"];
        fibula(&args).arg(&plain).assert().success();
        let file = fs::File::create(&redirected).unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("fibula"));
        let status = command.args(args).arg(name).stdout(file.try_clone().unwrap()).status();
        assert!(status.unwrap().success());
        let inode = file.metadata().unwrap().ino();
        assert_eq!(fs::metadata(&redirected).unwrap().ino(), inode, "{name}");
        assert_eq!(fs::read(&redirected).unwrap(), fs::read(&plain).unwrap(), "{name}");
    }
}
