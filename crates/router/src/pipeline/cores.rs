//! Assigns threads to cores.
//!
//! Cores that share an L3 cache are a group. Lookup threads have one group for themselves where there are several, so
//! that nothing else evicts the tables (PlanB, section 3.7). The first core serves most interrupts and comes last.

use std::fs;
use std::path::Path;

/// The cores of the threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cores {
    /// On separate cores, chosen by their caches; on any cores if there are fewer cores than threads.
    #[default]
    Auto,
    /// On these, in the order of [`Pipeline::workers`](super::Pipeline::workers): receiving, lookup, transmitting.
    List(Vec<usize>),
    /// On any cores.
    Free,
}

/// Whether threads can run on these cores.
///
/// # Errors
/// With the first core that this process may not use, and the cores that it may use.
pub fn check(cores: &[usize]) -> Result<(), String> {
    check_in(&groups().concat(), cores)
}

fn check_in(allowed: &[usize], cores: &[usize]) -> Result<(), String> {
    // If the system does not list the cores, pinning a thread shows whether its core exists.
    match cores.iter().find(|core| !allowed.is_empty() && !allowed.contains(core)) {
        None => Ok(()),
        Some(core) => {
            let all: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            Err(format!(
                "there is no core {core} for this process: it may use {} (see `taskset -p $$` and `lscpu -e`)",
                all.join(", ")
            ))
        }
    }
}

/// The cores that this process may use, in groups that share an L3 cache.
pub fn groups() -> Vec<Vec<usize>> {
    let allowed = core_affinity::get_core_ids().unwrap_or_default();
    let allowed: Vec<usize> = allowed.into_iter().map(|core| core.id).collect();
    groups_in(Path::new("/sys/devices/system/cpu"), &allowed)
}

fn groups_in(folder: &Path, allowed: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &core in allowed {
        if groups.iter().any(|group| group.contains(&core)) {
            continue;
        }
        // A core without a known cache is with all others like it.
        let shared =
            l3(&folder.join(format!("cpu{core}/cache"))).unwrap_or_else(|| allowed.to_vec());
        let is_free = |core: &usize| groups.iter().all(|group| !group.contains(core));
        let group = allowed.iter().copied().filter(|core| shared.contains(core)).filter(is_free);
        groups.push(group.collect());
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// The cores of an L3 cache.
fn l3(caches: &Path) -> Option<Vec<usize>> {
    let read = |path: &Path, name: &str| fs::read_to_string(path.join(name)).ok();
    let indexes = (0..8).map(|index| caches.join(format!("index{index}")));
    let mut l3 = indexes.filter(|path| read(path, "level").is_some_and(|l| l.trim() == "3"));
    list(&read(&l3.next()?, "shared_cpu_list")?)
}

/// The numbers of a list such as `0-3,8`.
pub fn list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last > 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// A core for each thread; `lookups` has the threads that look up. No cores if there are not enough.
pub(super) fn assign(groups: &[Vec<usize>], lookups: &[bool]) -> Vec<Option<usize>> {
    let cores: usize = groups.iter().map(Vec::len).sum();
    if lookups.len() > cores {
        return vec![None; lookups.len()];
    }
    let wanted = lookups.iter().filter(|looks_up| **looks_up).count();
    let others = lookups.len() - wanted;
    // The smallest group that has room for all lookups, and leaves enough cores outside for the others, if there is
    // one.
    let mut order: Vec<&Vec<usize>> = groups.iter().collect();
    order.sort_by_key(|group| {
        let (fits, apart) = (group.len() >= wanted, cores - group.len() >= others);
        let size = if fits { group.len() } else { usize::MAX - group.len() };
        (!fits, !apart, size)
    });
    let cores = |group: &&Vec<usize>| group.iter().rev().copied().collect::<Vec<_>>();
    let mut left: Vec<usize> = order.iter().flat_map(cores).collect();
    let for_lookups: Vec<usize> = left.drain(..wanted).collect();
    // The others get cores from the other end, where no lookup thread is.
    let first = order.first().map_or(0, |group| group.len().saturating_sub(wanted));
    let first = first.min(left.len());
    left.rotate_left(first);
    let (mut for_lookups, mut left) = (for_lookups.into_iter(), left.into_iter());
    let next = |looks_up: &bool| if *looks_up { for_lookups.next() } else { left.next() };
    lookups.iter().map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(list("7"), Some(vec![7]));
        assert_eq!((list(""), list("1-"), list("x"), list("0-99999999")), (None, None, None, None));
    }

    #[test]
    fn cores_that_are_not_there_are_named() {
        assert_eq!(check_in(&[0, 1, 4], &[4, 0]), Ok(()));
        assert_eq!(check_in(&[], &[7]), Ok(()), "nobody knows");
        let error = check_in(&[0, 1, 4], &[1, 2, 9]).unwrap_err();
        assert!(error.starts_with("there is no core 2 for this process: it may use 0, 1, 4 ("));
    }

    #[test]
    fn groups_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for core in 0..4 {
            write(&format!("cpu{core}/cache/index0/level"), "1\n");
            write(&format!("cpu{core}/cache/index0/shared_cpu_list"), &format!("{core}\n"));
            write(&format!("cpu{core}/cache/index3/level"), "3\n");
            let shared = if core < 2 { "0-1\n" } else { "2-3\n" };
            write(&format!("cpu{core}/cache/index3/shared_cpu_list"), shared);
        }
        assert_eq!(groups_in(folder.path(), &[0, 1, 2, 3]), [[0, 1], [2, 3]]);
        assert_eq!(groups_in(folder.path(), &[1, 3]), [[1], [3]], "some cores are others'");
        let nowhere = folder.path().join("none");
        assert_eq!(groups_in(&nowhere, &[0, 1, 2]), [[0, 1, 2]]);
        assert!(groups_in(folder.path(), &[]).is_empty());
    }

    #[test]
    fn lookups_have_a_cache_for_themselves() {
        let two = [vec![0, 1, 2, 3], vec![4, 5, 6, 7]];
        let (rx, lookup, tx) = (false, true, false);
        let some = |cores: &[usize]| cores.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(assign(&two, &[rx, lookup, lookup, tx]), some(&[7, 3, 2, 6]));
        assert_eq!(assign(&two[..1], &[rx, lookup, tx]), some(&[2, 3, 1]), "there is one group");
        assert_eq!(
            assign(&[vec![0, 1], vec![2, 3, 4]], &[rx, lookup, lookup, lookup]),
            some(&[1, 4, 3, 2])
        );
        assert_eq!(
            assign(&[vec![0, 1], vec![2, 3]], &[lookup; 3]),
            some(&[1, 0, 3]),
            "no group has room"
        );
        assert_eq!(assign(&[vec![0, 1]], &[rx, lookup, tx]), [None; 3], "too few cores");
        assert_eq!(assign(&[], &[]), []);
    }
}
