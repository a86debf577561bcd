//! The circumstances of a measurement: machine, system, commit, command and time.

mod processor;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use processor::{CacheLevel, Processor};

/// What a record says about its measurement, so that two records can be compared, or not. Facts that the system does
/// not give are empty.
///
/// ```
/// use fibula_testkit::measure::Stamp;
/// let stamp = Stamp::take();
/// assert!(!stamp.processor.folder().is_empty() && !stamp.command.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamp {
    /// The time, `2026-11-28 06:10 UTC`.
    pub date: String,
    /// The arguments of the process, the first one being its program.
    pub command: String,
    /// The commit of the checkout in which the program lies; `None` if it lies elsewhere.
    pub commit: Option<Commit>,
    /// The processor.
    pub processor: Processor,
    /// The caches of its first core.
    pub caches: Vec<CacheLevel>,
    /// The setting of huge pages.
    pub huge_pages: HugePages,
    /// The name and release of the kernel.
    pub kernel: String,
    /// Processes that ran or waited to run on average: of the last minute, five and fifteen minutes.
    pub load: [f64; 3],
}

/// The state of a checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its hash.
    pub id: String,
    /// Whether files differ from it that git tracks, other than records and pages (`bench/records`, `docs`).
    pub is_dirty: bool,
}

/// How the system gives huge pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePages {
    /// When transparent ones are given: `always`, `madvise`, `never`.
    pub transparent: String,
    /// How many of the default size are reserved.
    pub reserved: u64,
}

impl Stamp {
    /// Of this process, now.
    pub fn take() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let program = env::current_exe().ok();
        Self {
            date: utc(now),
            command: command(env::args_os()),
            commit: program.as_deref().and_then(checkout).and_then(|folder| commit(&folder)),
            processor: Processor::of(&info),
            caches: CacheLevel::all(Path::new("/sys/devices/system/cpu/cpu0/cache")),
            huge_pages: HugePages::now(),
            kernel: ["ostype", "osrelease"].map(kernel).join(" ").trim().to_owned(),
            load: load(&fs::read_to_string("/proc/loadavg").unwrap_or_default()),
        }
    }
}

impl HugePages {
    fn now() -> Self {
        let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let reserved = info.lines().find_map(|line| line.strip_prefix("HugePages_Total:"));
        Self {
            transparent: chosen(&setting.unwrap_or_default()).to_owned(),
            reserved: reserved.and_then(|number| number.trim().parse().ok()).unwrap_or_default(),
        }
    }
}

/// The word in brackets: `madvise` of `always [madvise] never`.
fn chosen(words: &str) -> &str {
    let word = words.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    word.map_or("", |(word, _)| word)
}

fn kernel(name: &str) -> String {
    let text = fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).unwrap_or_default();
    text.trim().to_owned()
}

fn load(text: &str) -> [f64; 3] {
    let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
    [(); 3].map(|()| numbers.next().unwrap_or_default())
}

/// The arguments as a shell takes them.
fn command<T: AsRef<OsStr>>(arguments: impl Iterator<Item = T>) -> String {
    let quoted = |word: T| {
        let word = word.as_ref().to_string_lossy().into_owned();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word,
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    };
    arguments.map(quoted).collect::<Vec<_>>().join(" ")
}

/// The folder above a file that is a checkout; of a worktree, `.git` is a file.
fn checkout(file: &Path) -> Option<PathBuf> {
    file.ancestors().skip(1).find(|folder| folder.join(".git").exists()).map(Path::to_owned)
}

/// The commit of a checkout; `None` if git is not installed or finds no commit.
fn commit(folder: &Path) -> Option<Commit> {
    let git = |arguments: &[&str]| {
        let run = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
        run.status.success().then(|| String::from_utf8_lossy(&run.stdout).trim().to_owned())
    };
    let id = git(&["rev-parse", "HEAD"])?;
    // A run of several measurements writes records, and the pages that show them.
    let written = [":(top,exclude)bench/records", ":(top,exclude)docs"];
    let status = ["status", "--porcelain", "--untracked-files=no", "--", ":(top)"];
    let changes = git(&[&status[..], &written].concat())?;
    Some(Commit { id, is_dirty: !changes.is_empty() })
}

/// A time in seconds since 1970, as `2026-11-21 17:05 UTC`.
///
/// ```
/// assert_eq!(fibula_testkit::measure::utc(0), "1970-01-01 00:00 UTC");
/// ```
pub fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days from 1 March of year 0, in 400-year cycles of 146,097 days: leap days come last.
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + cycle * 400 + next;
    format!("{year:04}-{month:02}-{day_of_month:02} {:02}:{:02} UTC", rest / 3600, rest / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_as_a_shell_takes_them() {
        let words = ["target/dist/fibula", "--table", "a table's", "", "gen:v4:2024:1:1"];
        let text = command(words.into_iter());
        assert_eq!(text, r"target/dist/fibula --table 'a table'\''s' '' gen:v4:2024:1:1");
    }

    #[test]
    fn settings_and_loads() {
        assert_eq!(chosen("always [madvise] never\n"), "madvise");
        assert_eq!(chosen(""), "");
        assert_eq!(load("0.25 1.50 2.00 1/120 4711\n"), [0.25, 1.5, 2.0]);
        assert_eq!(load("0.25"), [0.25, 0.0, 0.0]);
    }

    #[test]
    fn a_program_of_a_checkout_names_its_commit() {
        let folder = checkout(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")));
        // A package that was unpacked is no checkout.
        let Some(folder) = folder else { return };
        let Some(commit) = commit(&folder) else { return };
        assert!(commit.id.len() >= 40 && commit.id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(checkout(Path::new("/no-such-folder/target/fibula")), None);
    }

    /// Records that a run has written do not make the next measurement of the run one of changed code.
    #[test]
    fn records_and_pages_are_no_changes() {
        let folder = env::temp_dir().join(format!("fibula-stamp-{}", std::process::id()));
        let git = |arguments: &[&str]| {
            let mut run = Command::new("git");
            run.arg("-C").arg(&folder).args(["-c", "user.name=a", "-c", "user.email=a@b.c"]);
            assert!(run.args(arguments).output().unwrap().status.success(), "git {arguments:?}");
        };
        let write = |name: &str, text: &str| {
            fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
            fs::write(folder.join(name), text).unwrap();
        };
        let files = ["src/a", "bench/records/b", "docs/c"];
        files.iter().for_each(|name| write(name, "old"));
        for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "all"]] {
            git(arguments);
        }
        // Of a folder inside, too: paths are those of the checkout.
        let is_dirty = || commit(&folder.join("src")).map(|commit| commit.is_dirty);
        write("bench/records/b", "new");
        write("docs/c", "new");
        assert_eq!(is_dirty(), Some(false));
        write("src/a", "new");
        assert_eq!(is_dirty(), Some(true));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn times() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(utc(4_107_542_400), "2100-03-01 00:00 UTC");
    }
}
