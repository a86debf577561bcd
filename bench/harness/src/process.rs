//! A contestant's process, and the conversation with it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::peer::Contestant;

/// How long a contestant may take for one answer, at most: to build its table, or to look all keys up.
const PATIENCE: Duration = Duration::from_secs(100);

/// A contestant that runs.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: std::path::PathBuf,
    /// What it calls itself.
    pub version: String,
}

/// What a contestant says about its table.
#[derive(Debug, PartialEq)]
pub struct TableReport {
    /// How long building it took.
    pub build_ns: u64,
    /// Its bytes, if the contestant knows.
    pub bytes: Option<u64>,
    /// What the process has grown by.
    pub resident: Option<u64>,
    /// What a reader should know.
    pub note: String,
}

/// A timed round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Nanoseconds from the first thread's start to the last one's end.
    pub wall_ns: u64,
    /// Nanoseconds that all threads have run.
    pub cpu_ns: u64,
    /// The sum of all hops.
    pub sum: u32,
}

impl Process {
    /// Starts a contestant on these cores. What it writes on standard error goes into a file in `folder`.
    pub fn start(contestant: &Contestant, cores: &[usize], folder: &Path) -> Result<Self, String> {
        let [program, args @ ..] = &contestant.command[..] else {
            return Err("peer.toml has no command to run".to_owned());
        };
        let errors = folder.join(format!("{}.err", contestant.name.replace([':', '/'], "-")));
        let log = File::create(&errors).map_err(|e| format!("{}: {e}", errors.display()))?;
        let mut command = Command::new(program);
        command.args(args).current_dir(&contestant.folder);
        // Large blocks of memory lie on huge pages then, as our tables do; Go's runtime does not use this allocator.
        command.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = pinned(cores, || command.spawn()).map_err(|e| format!("{program}: {e}"))?;
        let output = child.stdout.take().expect("it is piped");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        let mut this = Self { child, input, lines, errors, version: String::new() };
        let hello = this.line()?;
        match hello.strip_prefix("fibula-bench 1 ") {
            Some(version) => this.version = version.to_owned(),
            None => return Err(format!("it does not speak the protocol: {hello}")),
        }
        Ok(this)
    }

    /// Has it build its table.
    pub fn load(&mut self, family: &str, table: &Path) -> Result<TableReport, String> {
        let before = self.resident();
        let answer = self.ask(&format!("load\t{family}\t{}", table.display()))?;
        let mut report = report(&answer).ok_or_else(|| format!("not understood: {answer}"))?;
        report.resident = before.zip(self.resident()).map(|(b, after)| after.saturating_sub(b));
        Ok(report)
    }

    /// Has it read keys.
    pub fn keys(&mut self, path: &Path, threads: usize, batch: usize) -> Result<(), String> {
        self.ask(&format!("keys\t{}\t{threads}\t{batch}", path.display())).map(drop)
    }

    /// Its hops for all keys.
    pub fn answers(&mut self, path: &Path) -> Result<Vec<u8>, String> {
        self.ask(&format!("answer\t{}", path.display()))?;
        let hops = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let _ = fs::remove_file(path);
        Ok(hops)
    }

    /// One timed round.
    pub fn round(&mut self) -> Result<Round, String> {
        let line = self.ask("run\t1")?;
        round(&line).ok_or_else(|| format!("not understood: {line}"))
    }

    fn ask(&mut self, request: &str) -> Result<String, String> {
        // If it has ended, the missing answer says so.
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{request}").and_then(|()| input.flush());
        }
        let line = self.line()?;
        match line.strip_prefix("error ") {
            Some(error) => Err(error.to_owned()),
            None => Ok(line),
        }
    }

    fn line(&mut self) -> Result<String, String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => {
                let _ = self.child.kill();
                Err(format!("no answer in {} seconds", PATIENCE.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
                let text = fs::read(&self.errors).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                Err(format!("it has ended ({status}): {last}"))
            }
        }
    }

    /// Bytes of its memory, reserved huge pages included.
    fn resident(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        };
        Some((kib("VmRSS:")? + kib("HugetlbPages:").unwrap_or_default()) << 10)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        // It may have huge tables to free: that need not be waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `ok`, nanoseconds, bytes or `-`, a note.
fn report(line: &str) -> Option<TableReport> {
    let mut words = line.strip_prefix("ok\t")?.split('\t');
    let build_ns = words.next()?.parse().ok()?;
    let bytes = words.next()?.parse().ok();
    let note = words.next().unwrap_or_default().trim().to_owned();
    Some(TableReport { build_ns, bytes, resident: None, note })
}

fn round(line: &str) -> Option<Round> {
    let numbers: Option<Vec<u64>> =
        line.strip_prefix("time\t")?.split('\t').map(|word| word.parse().ok()).collect();
    match numbers?[..] {
        [wall_ns, cpu_ns, sum] => Some(Round { wall_ns, cpu_ns, sum: u32::try_from(sum).ok()? }),
        _ => None,
    }
}

/// Runs `start` with this thread on some cores: what it starts stays there.
fn pinned<T>(cores: &[usize], start: impl FnOnce() -> T) -> T {
    let Ok(before) = sched_getaffinity(None) else { return start() };
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    // Where the system refuses, contestants run anywhere.
    let _ = sched_setaffinity(None, &set);
    let started = start();
    let _ = sched_setaffinity(None, &before);
    started
}

/// The cores that this process may use, the first one last: it serves most interrupts.
pub fn cores() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    let mut cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect();
    if !cores.is_empty() {
        cores.rotate_left(1);
    }
    cores
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contestant(script: &str) -> Contestant {
        Contestant {
            name: "a:b".to_owned(),
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            folder: ".".into(),
            batch: None,
            slow: 1,
        }
    }

    #[test]
    fn lines_of_contestants() {
        let known = report("ok\t1500\t4096\tavx512").unwrap();
        assert_eq!((known.build_ns, known.bytes, &*known.note), (1500, Some(4096), "avx512"));
        assert_eq!(report("ok\t1500\t-\t").unwrap().bytes, None);
        assert_eq!(report("fine"), None);
        assert_eq!(round("time\t9\t8\t7"), Some(Round { wall_ns: 9, cpu_ns: 8, sum: 7 }));
        assert_eq!([round("time\t9\t8"), round("9\t8\t7")], [None, None]);
    }

    #[test]
    fn contestants_that_end_or_fail() {
        let folder = std::env::temp_dir();
        let start = |script: &str| Process::start(&contestant(script), &cores(), &folder);
        let error = start("echo went wrong >&2; exit 3").err().unwrap();
        assert!(error.contains("exit status: 3") && error.contains("went wrong"), "{error}");
        assert!(start("echo hello; cat").err().unwrap().contains("protocol: hello"));
        let script = "echo 'fibula-bench 1 it 2'; read line; echo error no room; read line; exit 0";
        let mut process = start(script).unwrap();
        assert_eq!(process.version, "it 2");
        assert_eq!(process.round().unwrap_err(), "no room");
        assert!(process.round().unwrap_err().contains("it has ended"));
    }
}
