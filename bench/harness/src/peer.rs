//! Peers, the programs that take part: folders of `bench/peers` with a `peer.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::definition::FamilyName;

/// How a peer is compiled and started.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The folder.
    #[serde(skip)]
    pub folder: PathBuf,
    /// What it is, in a line.
    pub about: String,
    /// Commands that it needs.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Packages of pkg-config that it needs.
    #[serde(default)]
    pub packages: Vec<String>,
    /// How what it needs is installed.
    #[serde(default)]
    pub hint: String,
    /// Whether it needs root.
    #[serde(default)]
    pub root: bool,
    /// A command that fails where it cannot take part, and says why, in its folder.
    #[serde(default)]
    pub possible: Vec<String>,
    /// The command that compiles it, in its folder; `{target}` and `{profile}` stand for the harness's.
    pub build: Vec<String>,
    /// The command that starts it; a variant adds its arguments.
    pub run: Vec<String>,
    /// Keys that it gets at a time, if not as many as the definition says.
    pub batch: Option<usize>,
    /// Threads that it can have; more are not measured.
    pub threads: Option<usize>,
    /// It gets one of so many keys, because it takes too long for all.
    #[serde(default = "one")]
    pub slow: usize,
    /// The families it has tables for; both if there are none.
    #[serde(default)]
    pub families: Vec<FamilyName>,
    /// Its variants. A peer without any takes each variant's name as its argument.
    #[serde(default)]
    pub variants: BTreeMap<String, Variant>,
}

/// A variant of a peer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// The flag of the processor that it needs, as `/proc/cpuinfo` has it.
    pub flag: Option<String>,
    /// As [`Peer::families`].
    #[serde(default)]
    pub families: Vec<FamilyName>,
}

fn one() -> usize {
    1
}

/// How peers in Rust are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// To be measured.
    Release,
    /// To be compared, with less time for the compiler.
    Answers,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Answers => "answers",
        }
    }
}

/// A contestant that can be started.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// `PEER` or `PEER:VARIANT`.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Where it is started.
    pub folder: PathBuf,
    /// As [`Peer::batch`].
    pub batch: Option<usize>,
    /// As [`Peer::slow`].
    pub slow: usize,
}

impl Peer {
    /// Reads the `peer.toml` of a folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join("peer.toml");
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut peer: Self =
            toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        peer.folder = folder.to_owned();
        Ok(peer)
    }

    /// Why it cannot be compiled or run here.
    pub fn lacks(&self) -> Option<String> {
        let hint = if self.hint.is_empty() { String::new() } else { format!(" ({})", self.hint) };
        if let Some(missing) = self.needs.iter().find(|command| !is_there(command)) {
            return Some(format!("{missing} is not installed{hint}"));
        }
        for package in &self.packages {
            let found = Command::new("pkg-config").args(["--exists", package]).status();
            if !found.is_ok_and(|status| status.success()) {
                return Some(format!("pkg-config does not find {package}{hint}"));
            }
        }
        if self.root && !rustix::process::geteuid().is_root() {
            return Some("it needs root".to_owned());
        }
        let [program, args @ ..] = &self.possible[..] else { return None };
        let run = Command::new(program).args(args).current_dir(&self.folder).output();
        match run {
            Ok(run) if run.status.success() => None,
            Ok(run) => Some(String::from_utf8_lossy(&run.stderr).trim().replace('\n', " ")),
            Err(error) => Some(format!("{program}: {error}")),
        }
    }

    /// Compiles it; an error is the end of what the compiler says.
    pub fn build(&self, target: &Path, profile: Profile) -> Result<(), String> {
        let [program, args @ ..] = &self.build[..] else { return Ok(()) };
        let fill = |text: &String| filled(text, target, profile);
        let run = Command::new(fill(program))
            .args(args.iter().map(fill))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{program}: {error}"))?;
        if run.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&run.stderr);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(3)..].join(" | ");
        Err(format!("it does not compile: {last}"))
    }

    /// The contestant of this name, or why it cannot take part.
    pub fn contestant(
        &self,
        name: &str,
        family: FamilyName,
        threads: usize,
        (target, profile): (&Path, Profile),
    ) -> Result<Contestant, String> {
        let known = name.split_once(':').map(|(_, variant)| (variant, self.variants.get(variant)));
        let variant = match known {
            Some((name, None)) if self.variants.is_empty() => {
                Variant { args: vec![name.to_owned()], ..Variant::default() }
            }
            Some((name, None)) => {
                let all: Vec<&str> = self.variants.keys().map(String::as_str).collect();
                return Err(format!("it has no variant {name}: {}", all.join(", ")));
            }
            Some((_, Some(variant))) => variant.clone(),
            None => Variant::default(),
        };
        for families in [&self.families, &variant.families] {
            if !families.is_empty() && !families.contains(&family) {
                return Err(format!("it has no tables for IP{}", family.name()));
            }
        }
        if self.threads.is_some_and(|most| threads > most) {
            return Err(format!("it is not measured with {threads} threads"));
        }
        if let Some(flag) = variant.flag.as_ref().filter(|flag| !has_flag(flag)) {
            return Err(format!("this processor has no {flag}"));
        }
        let fill = |text: &String| filled(text, target, profile);
        let command = self.run.iter().chain(&variant.args).map(fill).collect();
        Ok(Contestant {
            name: name.to_owned(),
            command,
            folder: self.folder.clone(),
            batch: self.batch,
            slow: self.slow,
        })
    }
}

/// A word of a command, with the folder and the profile of what is compiled.
fn filled(text: &str, target: &Path, profile: Profile) -> String {
    text.replace("{target}", &target.to_string_lossy()).replace("{profile}", profile.name())
}

/// All peers of a folder, by name.
pub fn all(folder: &Path) -> Result<BTreeMap<String, Peer>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut peers = BTreeMap::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.join("peer.toml").exists() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            peers.insert(name, Peer::read(&path)?);
        }
    }
    Ok(peers)
}

fn is_there(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).is_file())
}

fn has_flag(flag: &str) -> bool {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| line.split_whitespace().any(|word| word == flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers() -> BTreeMap<String, Peer> {
        all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers")).unwrap()
    }

    #[test]
    fn the_peers_of_the_repository() {
        let peers = peers();
        assert!(peers.contains_key("fibula") && peers.len() > 3, "{:?}", peers.keys());
        for (name, peer) in peers {
            assert!(!peer.build.is_empty() && !peer.run.is_empty(), "{name}");
        }
    }

    #[test]
    fn contestants_say_why_they_are_absent() {
        let all = peers();
        let target = (Path::new("/target"), Profile::Release);
        let fibula = all["fibula"].contestant("fibula:runmap", FamilyName::V4, 1, target).unwrap();
        assert_eq!(fibula.command.last().map(String::as_str), Some("runmap"));
        assert_eq!(fibula.command[0], "/target/peers/release/peer-fibula");
        let error = all["iptrie"].contestant("iptrie:no-such", FamilyName::V4, 1, target);
        assert!(error.unwrap_err().contains("patricia"));
        let mut peer = all["iptrie"].clone();
        peer.needs = vec!["no-such-command".to_owned()];
        peer.hint = "install it".to_owned();
        assert_eq!(peer.lacks().unwrap(), "no-such-command is not installed (install it)");
        (peer.needs, peer.possible) =
            (vec![], ["sh", "-c", "echo no tag >&2; exit 1"].map(str::to_owned).to_vec());
        assert_eq!(peer.lacks().unwrap(), "no tag");
        peer.possible[2] = "exit 0".to_owned();
        assert_eq!(peer.lacks(), None);
        peer.families = vec![FamilyName::V6];
        assert!(peer.contestant("iptrie:lc", FamilyName::V4, 1, target).is_err());
    }
}
