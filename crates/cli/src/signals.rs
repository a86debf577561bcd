//! What happens when somebody ends a command early.

/// Removes unfinished output files when the process is asked to end (INT, TERM, HUP), and then ends it as
/// the signal would have. A signal that was ignored when the process began (`nohup`, a job in the
/// background of a script) stays ignored.
#[cfg(unix)]
pub fn clean_up() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let ignored = ignored();
    let signals = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|n| ignored >> (n - 1) & 1 == 0);
    // Without a handler or a thread, signals end the process as they always did.
    let Ok(mut signals) = Signals::new(signals) else { return };
    let thread = std::thread::Builder::new().name("signals".to_owned()).stack_size(64 << 10);
    let _ = thread.spawn(move || {
        for signal in signals.forever() {
            fibula_rib::remove_unfinished();
            let _ = emulate_default_handler(signal);
        }
    });
}

/// A bit for each signal that is ignored; none where the system does not tell.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(not(unix))]
pub fn clean_up() {}
