//! DPDK's environment (EAL), and its log.

use std::ffi::{CStr, CString};
use std::io;
use std::os::raw::c_char;
use std::sync::OnceLock;
use std::thread;

/// The default arguments of the environment: no files, and 64 MiB of ordinary memory for rings and tables of the
/// devices.
pub const ARGUMENTS: &str = "--no-huge --no-shconf -m 64";

/// How the environment's start went: once in a process.
static STARTED: OnceLock<Result<(), String>> = OnceLock::new();

/// Starts DPDK's environment with these arguments, separated by spaces, for devices of these names. Cards on the PCI
/// bus that are not named are left alone. Telemetry is switched off, and no threads are made for other cores.
///
/// # Errors
/// If DPDK refuses the arguments, or the environment is started already.
pub fn start<'a>(arguments: &str, devices: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
    let mut is_first = false;
    let started = STARTED.get_or_init(|| {
        is_first = true;
        run(words(arguments, devices))
    });
    if !is_first {
        let what = "DPDK's environment is started once in a process, and this was done before";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    of(started)
}

/// Starts the environment with [`ARGUMENTS`] unless it is started.
///
/// # Errors
/// If it did not start.
pub fn started() -> io::Result<()> {
    of(STARTED.get_or_init(|| run(words(ARGUMENTS, []))))
}

fn of(started: &Result<(), String>) -> io::Result<()> {
    started.as_ref().copied().map_err(|what| io::Error::other(what.clone()))
}

/// The command line of the environment.
fn words<'a>(arguments: &str, devices: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut words = vec!["fibula".to_owned()];
    let given: Vec<&str> = arguments.split_whitespace().collect();
    let has = |names: &[&str]| given.iter().any(|word| names.contains(word));
    if !has(&["-l", "-c", "--lcores"]) {
        // One core, on which nothing runs: the router's threads are its own.
        let core = core_affinity::get_core_ids().and_then(|cores| cores.first().copied());
        words.extend(["-l".to_owned(), core.map_or(0, |core| core.id).to_string()]);
    }
    words.push("--no-telemetry".to_owned());
    if !given.iter().any(|word| word.starts_with("--log-level")) {
        words.push("--log-level=error".to_owned());
    }
    let cards = devices.into_iter().map(|device| device.split(',').next().unwrap_or_default());
    let cards: Vec<&str> = cards.filter(|device| device.contains(':')).collect();
    if cards.is_empty() && !has(&["--no-pci", "-a", "--allow"]) {
        words.push("--no-pci".to_owned());
    }
    words.extend(cards.iter().flat_map(|card| ["-a".to_owned(), (*card).to_owned()]));
    words.extend(given.iter().map(|word| (*word).to_owned()));
    words
}

/// Starts it, on a separate thread, because that thread is pinned to the environment's core.
fn run(words: Vec<String>) -> Result<(), String> {
    let start = move || {
        let arguments = words.join(" ");
        let words: Result<Vec<CString>, _> = words.into_iter().map(CString::new).collect();
        let words = words.map_err(|_| "DPDK's arguments hold a zero byte".to_owned())?;
        // It keeps the pointers.
        let words: Vec<*mut c_char> = words.into_iter().map(CString::into_raw).collect();
        let words = words.leak();
        let count = i32::try_from(words.len()).unwrap_or(i32::MAX);
        // SAFETY: so many strings that end with a zero and are never freed, called once in the process.
        let done = unsafe { fibula_dpdk::fib_start(count, words.as_mut_ptr()) };
        if done == 0 {
            return Ok(());
        }
        let what = format!("DPDK's environment does not start with `{arguments}`");
        Err(explain(&what, done).to_string())
    };
    let thread = thread::Builder::new().name("fibula-eal".to_owned()).spawn(start);
    let thread = thread.map_err(|error| format!("no thread for DPDK's start: {error}"))?;
    thread.join().unwrap_or_else(|_| Err("DPDK's start panicked".to_owned()))
}

/// Discards the messages that DPDK has logged.
pub(super) fn clear_log() {
    logged();
}

/// The messages that DPDK has logged since the last call, in one line.
fn logged() -> String {
    let mut text = [0 as c_char; 2048];
    // SAFETY: it writes a string of fewer than so many bytes.
    let text = unsafe {
        fibula_dpdk::fib_log(text.as_mut_ptr(), text.len() as u32);
        CStr::from_ptr(text.as_ptr())
    };
    let text = text.to_string_lossy();
    let lines = text.lines().map(|line| line.trim().trim_start_matches("EAL: "));
    let mut lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.dedup();
    lines.truncate(4);
    lines.join("; ")
}

/// An error of DPDK's, a negative number, with what it logged.
pub fn explain(what: &str, error: i32) -> io::Error {
    let error = io::Error::from_raw_os_error(-error);
    let logged = logged();
    let logged = if logged.is_empty() { logged } else { format!(" (DPDK: {logged})") };
    io::Error::new(error.kind(), format!("{what}: {error}{logged}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_named_and_others_left_alone() {
        let of = |arguments: &str, devices: &[&str]| {
            let mut words = words(arguments, devices.iter().copied());
            words.drain(..words.iter().position(|word| word == "--no-telemetry").unwrap());
            words.join(" ")
        };
        let rest = "--no-telemetry --log-level=error";
        assert_eq!(of("-m 64", &["net_null0,size=60"]), format!("{rest} --no-pci -m 64"));
        assert_eq!(of("", &["net_null0", "0000:01:00.0,x=1"]), format!("{rest} -a 0000:01:00.0"));
        assert_eq!(of("--log-level=debug", &[]), "--no-telemetry --no-pci --log-level=debug");
        assert_eq!(words("-l 3", [])[1], "--no-telemetry");
    }
}
