//! Signals that end a command early, and notify a server or a router.

#[cfg(unix)]
use fibula_daemon::{DaemonHandle, Notice};

#[cfg(unix)]
use crate::failure::Failure;

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

/// A bit for each signal that is ignored; none if the system does not report it.
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

/// A socket that has a byte to read once the process is asked to end (INT, TERM). The signals do nothing else then.
#[cfg(unix)]
pub fn wake() -> Result<std::os::unix::net::UnixStream, Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::low_level::pipe::register;
    let made = || {
        let (wakes, wake) = std::os::unix::net::UnixStream::pair()?;
        register(SIGINT, wake.try_clone()?)?;
        register(SIGTERM, wake)?;
        Ok(wakes)
    };
    made().map_err(|error| Failure::io("cannot wait for signals", &error))
}

/// What a signal asks of a command that does not end by itself.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To end (INT, TERM).
    Stop,
    /// To read its files again (HUP).
    Reload,
}

/// Sockets that have a byte to read once a signal has asked. The signals do nothing else then.
#[cfg(unix)]
pub fn asked() -> Result<[(Asked, std::os::unix::net::UnixStream); 2], Failure> {
    let made = || {
        let (reloads, reload) = std::os::unix::net::UnixStream::pair()?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGHUP, reload)?;
        Ok(reloads)
    };
    let reloads = made().map_err(|error| Failure::io("cannot wait for signals", &error))?;
    Ok([(Asked::Stop, wake()?), (Asked::Reload, reloads)])
}

/// The signals of a server or a router, which are kept from now on.
#[cfg(unix)]
pub struct Listening(signal_hook::iterator::Signals);

/// Keeps INT and TERM, and HUP if something can be read again, until somebody is notified of them.
#[cfg(unix)]
pub fn listen(reloads: bool) -> Result<Listening, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let signals = [SIGINT, SIGTERM].into_iter().chain(reloads.then_some(SIGHUP));
    let signals = signal_hook::iterator::Signals::new(signals);
    signals.map(Listening).map_err(|error| Failure::io("cannot wait for signals", &error))
}

#[cfg(unix)]
impl Listening {
    /// Notifies `handle` of signals, on a thread that ends with the process: HUP reloads, the others stop.
    pub fn notify(mut self, handle: DaemonHandle) -> Result<(), Failure> {
        let run = move || {
            for signal in self.0.forever() {
                if signal == signal_hook::consts::SIGHUP {
                    handle.notify(Notice::Reload);
                } else {
                    tracing::info!("stopping: signal {signal}");
                    handle.notify(Notice::Stop);
                }
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(run);
        thread.map(drop).map_err(|error| Failure::io("cannot wait for signals", &error))
    }
}
