//! Two network namespaces with a cable between them: the test in one, daemons in the other.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The addresses of the collector and of the daemons.
pub const COLLECTOR: &str = "10.77.0.1";
pub const DAEMON: &str = "10.77.0.2";
pub const COLLECTOR_V6: &str = "2001:db8:77::1";
pub const DAEMON_V6: &str = "2001:db8:77::2";
pub const PORT: u16 = 1790;

const INSIDE: &str = "FIBULA_LIVE_NAMESPACE";

/// The daemons' namespace, and a folder for their files.
pub struct World {
    cable: Cable,
    pub dir: tempfile::TempDir,
}

impl World {
    /// Runs the test of this name a second time, inside a namespace, and there the scenario. Prints the reason if
    /// something is missing: root, or one of these programs.
    pub fn run(test: &str, programs: &[&str], scenario: impl FnOnce(&Self)) {
        if let Ok(id) = std::env::var(INSIDE) {
            return scenario(&Self { cable: Cable::of(&id), dir: tempfile::tempdir().unwrap() });
        }
        let is_there = |program: &&&str| {
            let folders = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/lib/frr"];
            folders.iter().any(|folder| PathBuf::from(folder).join(program).exists())
        };
        let missing = ["ip"].iter().chain(programs).find(|program| !is_there(program));
        let is_root = output("id", &["-u"]).trim() == "0";
        if missing.is_some() || !is_root {
            let what =
                missing.map_or("root".to_owned(), |program| format!("the program {program}"));
            eprintln!("not tested: {test} needs {what}");
            return;
        }
        // Tests run side by side.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}x{number}", std::process::id());
        let cable = Cable::of(&id);
        let _removal = Removal(&cable);
        cable.ip(&format!("netns add {}", cable.collector));
        cable.plug();
        let itself = std::env::current_exe().unwrap();
        let status = Command::new("ip")
            .args(["netns", "exec", &cable.collector])
            .arg(itself)
            .args(["--ignored", "--exact", test, "--nocapture"])
            .env(INSIDE, &id)
            .status()
            .unwrap();
        assert!(status.success(), "{test}");
    }

    /// A command that runs with the daemons.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.cable.daemon, program]);
        command.current_dir(self.dir.path());
        command
    }

    /// The daemons' machine loses its power: the cable fails, then processes and connections disappear without a
    /// message, and a fresh machine takes its place.
    pub fn reboot(&self, process: Process) {
        self.cable.ip(&format!("-n {} link del veth0", self.cable.daemon));
        process.kill();
        self.cable.ip(&format!("netns del {}", self.cable.daemon));
        self.cable.plug();
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// What a command prints; it must succeed.
pub fn output(program: &str, arguments: &[&str]) -> String {
    let out = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8(out.stdout).unwrap()
}

/// A process that is killed when its value is dropped.
pub struct Process(Child);

impl Process {
    pub fn spawn(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// Kills the process, so that it sends no last message.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The names of the two namespaces.
struct Cable {
    collector: String,
    daemon: String,
}

impl Cable {
    fn of(id: &str) -> Self {
        Self { collector: format!("fibc{id}"), daemon: format!("fibd{id}") }
    }

    fn ip(&self, line: &str) {
        output("ip", &line.split(' ').collect::<Vec<_>>());
    }

    /// Makes the daemons' namespace and connects it.
    fn plug(&self) {
        let Self { collector, daemon } = self;
        self.ip(&format!("netns add {daemon}"));
        self.ip(&format!(
            "link add veth0 netns {collector} type veth peer name veth0 netns {daemon}"
        ));
        for (name, v4, v6) in [(collector, COLLECTOR, COLLECTOR_V6), (daemon, DAEMON, DAEMON_V6)] {
            self.ip(&format!("-n {name} addr add {v4}/24 dev veth0"));
            self.ip(&format!("-n {name} addr add {v6}/64 dev veth0 nodad"));
            self.ip(&format!("-n {name} link set veth0 up"));
            self.ip(&format!("-n {name} link set lo up"));
        }
    }
}

/// Removes the namespaces, and what still runs in them.
struct Removal<'a>(&'a Cable);

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        for name in [&self.0.collector, &self.0.daemon] {
            // Daemons in the background, all started by the test.
            let pids = Command::new("ip").args(["netns", "pids", name]).output();
            for pid in pids.iter().flat_map(|out| out.stdout.split(|&b| b == b'\n')) {
                if let Ok(pid) = std::str::from_utf8(pid).unwrap_or_default().parse::<u32>() {
                    let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
                }
            }
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}
