//! Processors by what identifies them. Names are given to be sold, and a machine in a cloud may have one for several
//! generations.

use std::fmt;
use std::fs;
use std::path::Path;
use std::thread;

use serde::{Deserialize, Serialize};

/// A processor. Of x86 vendor, family, model and stepping are those of `cpuid`; of ARM they are implementer,
/// architecture, part and revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// `AuthenticAMD`, `GenuineIntel`, `0x41`.
    pub vendor: String,
    /// `25`.
    pub family: String,
    /// `17`, `0xd40`.
    pub model: String,
    /// `1`.
    pub stepping: String,
    /// The name, or the architecture if it has none.
    pub name: String,
    /// Cores that this process may use.
    pub cores: usize,
}

impl Processor {
    /// The first processor of the text of `/proc/cpuinfo`.
    pub(super) fn of(info: &str) -> Self {
        let field = |names: [&str; 2]| {
            let of = |line: &str| {
                let (key, value) = line.split_once(':')?;
                names.contains(&key.trim()).then(|| value.trim().to_owned())
            };
            info.lines().find_map(of).filter(|value| !value.is_empty())
        };
        let number = |names| field(names).unwrap_or_default();
        Self {
            vendor: number(["vendor_id", "CPU implementer"]),
            family: number(["cpu family", "CPU architecture"]),
            model: number(["model", "CPU part"]),
            stepping: number(["stepping", "CPU revision"]),
            name: field(["model name", "Model Name"])
                .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// The name of the folder for records of such processors: `AMD-25-17`, `Intel-6-207`, `ARM-8-0xd40`.
    pub fn folder(&self) -> String {
        let vendor = match &*self.vendor {
            "AuthenticAMD" => "AMD",
            "GenuineIntel" => "Intel",
            "0x41" => "ARM",
            other => other,
        };
        let parts = [vendor, &self.family, &self.model];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { "unknown".to_owned() } else { parts.join("-") }
    }
}

impl fmt::Display for Processor {
    /// `AMD EPYC (family 25, model 17, stepping 1), 2 cores`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, model, stepping, name, cores, .. } = self;
        f.write_str(name)?;
        let numbers = [("family", family), ("model", model), ("stepping", stepping)];
        let numbers: Vec<String> = numbers
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| format!("{key} {value}"))
            .collect();
        if !numbers.is_empty() {
            write!(f, " ({})", numbers.join(", "))?;
        }
        write!(f, ", {cores} {}", if *cores == 1 { "core" } else { "cores" })
    }
}

/// A cache of a core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLevel {
    /// 1 to 3, or more.
    pub level: u32,
    /// `Data`, `Instruction`, `Unified`.
    pub contents: String,
    /// Its size.
    pub bytes: u64,
    /// The processors that share it, as `0-1`.
    pub shared_by: String,
}

impl CacheLevel {
    /// All caches in the system's folder of a core.
    pub(super) fn all(folder: &Path) -> Vec<Self> {
        let cache = |index: u32| {
            let read = |what: &str| {
                let file = folder.join(format!("index{index}")).join(what);
                fs::read_to_string(file).map(|text| text.trim().to_owned()).unwrap_or_default()
            };
            Some(Self {
                level: read("level").parse().ok()?,
                contents: read("type"),
                bytes: bytes(&read("size"))?,
                shared_by: read("shared_cpu_list"),
            })
        };
        (0..16).map_while(cache).collect()
    }
}

/// The bytes of `48K`.
fn bytes(size: &str) -> Option<u64> {
    let (number, shift) = match size.strip_suffix('K') {
        Some(number) => (number, 10),
        None => size.strip_suffix('M').map_or((size, 0), |number| (number, 20)),
    };
    number.parse::<u64>().ok().map(|number| number << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_named_with_its_family_and_model() {
        let amd = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n\
                   model name\t: AMD EPYC\nstepping\t: 1\n\nprocessor\t: 1\ncpu family\t: 26\n";
        let amd = Processor { cores: 2, ..Processor::of(amd) };
        assert_eq!(amd.to_string(), "AMD EPYC (family 25, model 17, stepping 1), 2 cores");
        assert_eq!(amd.folder(), "AMD-25-17");
        let intel = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 207\n\
                     model name : Some CPU @ 2.20GHz: fast\n";
        let intel = Processor { cores: 1, ..Processor::of(intel) };
        assert_eq!(intel.to_string(), "Some CPU @ 2.20GHz: fast (family 6, model 207), 1 core");
        assert_eq!(intel.folder(), "Intel-6-207");
        let arm = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\n\
                   CPU architecture: 8\nCPU part\t: 0xd40\nCPU revision\t: 1\n";
        let arm = Processor::of(arm);
        assert_eq!((&*arm.name, arm.folder()), (std::env::consts::ARCH, "ARM-8-0xd40".to_owned()));
        assert_eq!(Processor::of("").folder(), "unknown");
    }

    #[test]
    fn sizes_of_caches() {
        assert_eq!(
            ["48K", "2M", "512", "?"].map(bytes),
            [Some(48 << 10), Some(2 << 20), Some(512), None]
        );
        assert!(CacheLevel::all(Path::new("/no-such-folder")).is_empty());
    }
}
