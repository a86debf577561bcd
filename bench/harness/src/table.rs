//! The routes of a definition's table.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fibula_core::{Addr, Hop, Prefix, Routes};
use fibula_testkit::fib::{GenSpec, HopModel};

/// The hops of generated tables, as `fibula bench` gives them.
const HOPS: HopModel = HopModel::Hash(256);

/// Why a table could not be had.
#[derive(Debug)]
pub enum TableError {
    /// Its file is not on this machine.
    Absent(String),
    /// Something is wrong with it.
    Wrong(String),
}

/// Generates the table, or has `fibula export` read its file, in any format.
pub fn routes<A: Addr>(name: &str, fibula: &Path) -> Result<Routes<A>, TableError> {
    if let Some(file) = name.strip_prefix("shared:") {
        let path = data().join(file);
        if !path.exists() {
            return Err(TableError::Absent(format!("{} is not there", path.display())));
        }
        return exported(&path, fibula).map_err(TableError::Wrong);
    }
    let spec: GenSpec = name
        .parse()
        .map_err(|error| TableError::Wrong(format!("{name}: {error}; or shared:FILE")))?;
    if spec.family != A::FAMILY {
        return Err(TableError::Wrong(format!("{name} is of IP{}", spec.family)));
    }
    Ok(spec.with_hops(HOPS).generate())
}

/// Real tables are not in the repository.
fn data() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    std::env::var_os("FIBULA_SHARED").map_or(beside, PathBuf::from).join("data/tables")
}

fn exported<A: Addr>(path: &Path, fibula: &Path) -> Result<Routes<A>, String> {
    let run = Command::new(fibula)
        .args(["export", "--to", "tsv"])
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}; --fibula names the command", fibula.display()))?;
    if !run.status.success() {
        return Err(String::from_utf8_lossy(&run.stderr).trim().to_owned());
    }
    of_lines(&String::from_utf8_lossy(&run.stdout))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Lines of a prefix and its values, below a header. Equal values are one hop.
fn of_lines<A: Addr>(text: &str) -> Result<Routes<A>, String> {
    let mut hops: HashMap<&str, u32> = HashMap::new();
    let mut routes = Vec::new();
    for line in text.lines().skip(1) {
        let (prefix, values) = line.split_once('\t').unwrap_or((line, ""));
        if prefix.contains(':') != (A::BITS == 128) {
            continue;
        }
        let prefix: Prefix<A> = prefix.parse().map_err(|error| format!("{prefix}: {error}"))?;
        let next = hops.len() as u32;
        routes.push((prefix, Hop::new(*hops.entry(values).or_insert(next))));
    }
    if routes.is_empty() {
        return Err(format!("no routes of IP{}", A::FAMILY));
    }
    Ok(routes.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_hop() {
        let text = "prefix\tasn\n10.0.0.0/8\t1\n11.0.0.0/8\t2\n::/0\t9\n12.0.0.0/8\t1\n";
        let routes: Routes<u32> = of_lines(text).unwrap();
        let hops: Vec<_> = routes.iter().map(|route| route.hop.to_bits()).collect();
        assert_eq!(hops, [0, 1, 0]);
        assert_eq!(of_lines::<u128>(text).unwrap().len(), 1);
        assert!(of_lines::<u128>("prefix\n10.0.0.0/8\n").unwrap_err().contains("IPv6"));
    }

    #[test]
    fn generated_tables_are_of_their_family() {
        let none = Path::new("no-such-command");
        assert_eq!(routes::<u32>("gen:v4:2024:500:1", none).unwrap().len(), 500);
        assert!(matches!(routes::<u128>("gen:v4:2024:500:1", none), Err(TableError::Wrong(_))));
        let absent = routes::<u32>("shared:no-such-table", none);
        assert!(matches!(absent, Err(TableError::Absent(_))));
    }
}
