//! The RIB on disk: written atomically, opened and checked, from where the feed then goes on.
//!
//! A checkpoint is a [snapshot](crate::snapshot) file of the best routes of the global VRF, which every
//! command that takes a table opens, with these sections behind:
//!
//! | section | content |
//! |---|---|
//! | `rib/meta` | version, peers, number of updates, the feed's position, peers that start over, as JSON |
//! | `rib/set/end`, `rib/set/bytes` | attribute sets: u64, where each ends in the bytes |
//! | `rib/FAMILY/addr`, `/len`, `/vrf`, `/peer`, `/id`, `/set` | every path: u32 or u128, u8, and u32 each, the set by its place |
//!
//! | `rib/FAMILY/stale` | u32: the places of the paths that are stale, ascending; see [`Rib::mark_stale`] |
//!
//! Version 1 has no next hops among its sets, and no `stale`: it is read as well. Later versions than
//! this program's are refused.
//!
//! Engines are not in it: the default ones compile a million routes in less time than it takes to read
//! their tables back and check them.
//!
//! Everything is checked when it is opened, as with snapshots: damage is refused, and a file that was
//! forged, checksums included, gives another table, or a refusal, and nothing else.

mod columns;

use std::io::Write;
use std::net::IpAddr;
use std::path::Path;

use fibula_core::{Addr, Hop, Kind, PerFamily, Prefix, Route, Routes, Vrf};
use serde::{Deserialize, Serialize};

use crate::rib::SavedPath;
use crate::rib::set::is_sound;
use crate::snapshot::to_bytes_with;
use crate::{
    AtomicFile, AttributeSet, EnginePart, Peer, Preference, Provenance, Rib, Snapshot,
    SnapshotError, SourceRecord, StoredFamily, Table,
};

/// The format's version.
const VERSION: u32 = 2;

/// A RIB as it was at one moment, ready to be written.
pub struct Checkpoint {
    meta: Meta,
    sets: Vec<Option<AttributeSet>>,
    paths: PerFamily<AllPaths>,
}

#[derive(Serialize, Deserialize)]
struct Meta {
    #[serde(default = "first_version")]
    version: u32,
    sequence: u64,
    position: String,
    peers: Vec<(Option<IpAddr>, u32)>,
    #[serde(default)]
    resyncing: Vec<u32>,
}

/// The version of files that name none.
fn first_version() -> u32 {
    1
}

struct AllPaths;

impl Kind for AllPaths {
    type Of<A: Addr> = Paths<A>;
}

/// All paths of a family: the columns of a table.
struct Paths<A> {
    addr: Vec<A>,
    len: Vec<u8>,
    vrf: Vec<u32>,
    peer: Vec<u32>,
    id: Vec<u32>,
    set: Vec<u32>,
    /// The places of those that are stale.
    stale: Vec<u32>,
}

impl<A: StoredFamily> Paths<A> {
    fn of(rib: &Rib) -> Self {
        let room = rib.memory().routes;
        let mut paths = Self {
            addr: Vec::with_capacity(room),
            len: Vec::with_capacity(room),
            vrf: Vec::new(),
            peer: Vec::with_capacity(room),
            id: Vec::with_capacity(room),
            set: Vec::with_capacity(room),
            stale: Vec::new(),
        };
        for vrf in rib.vrfs() {
            rib.all_paths(vrf, |prefix: Prefix<A>, path: SavedPath| {
                if path.is_stale {
                    paths.stale.push(paths.addr.len() as u32);
                }
                paths.addr.push(prefix.addr());
                paths.len.push(prefix.len());
                paths.peer.push(path.peer);
                paths.id.push(path.path_id);
                paths.set.push(path.set);
            });
            paths.vrf.resize(paths.addr.len(), vrf);
        }
        paths
    }

    /// The best routes of the global VRF: the first path of each prefix is the best.
    fn routes(&self) -> Routes<A> {
        let global = self.vrf.partition_point(|&vrf| vrf == 0);
        let prefix = |i: usize| Prefix::masked(self.addr[i], self.len[i]).unwrap_or(Prefix::ALL);
        let is_first = |&i: &usize| i == 0 || prefix(i) != prefix(i - 1);
        let route = |i: usize| Route { prefix: prefix(i), hop: Hop::new(self.set[i]) };
        Routes::from_unsorted((0..global).filter(is_first).map(route).collect())
    }

    fn sections(self, into: &mut Vec<(String, Vec<u8>)>) {
        let mut put = |what: &str, bytes: &[u8]| {
            into.push((format!("rib/{}/{what}", A::FAMILY), bytes.to_vec()));
        };
        put("addr", bytemuck::cast_slice(&self.addr));
        put("len", &self.len);
        let Self { vrf, peer, id, set, stale, .. } = &self;
        for (what, numbers) in
            [("vrf", vrf), ("peer", peer), ("id", id), ("set", set), ("stale", stale)]
        {
            put(what, bytemuck::cast_slice(numbers));
        }
    }
}

impl Rib {
    /// The table as it is, copied, to be written; `position` is the feed's own word for where it is.
    ///
    /// ```
    /// use fibula_rib::{Preference, Rib};
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().join("rib.fib");
    /// Rib::default().checkpoint("record 17").write(&path)?;
    /// let restored = Rib::open(&path, Preference::default())?;
    /// assert_eq!((restored.rib.sequence(), &*restored.position), (0, "record 17"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn checkpoint(&self, position: &str) -> Checkpoint {
        let peers = self.peers().iter().map(|peer| (peer.address, peer.asn)).collect();
        Checkpoint {
            meta: Meta {
                version: VERSION,
                sequence: self.sequence(),
                position: position.to_owned(),
                peers,
                resyncing: self.resyncing(),
            },
            sets: self.sets().map(Option::<&AttributeSet>::cloned).collect(),
            paths: PerFamily { v4: Paths::of(self), v6: Paths::of(self) },
        }
    }

    /// Opens a checkpoint.
    ///
    /// # Errors
    /// If the file cannot be read, is no checkpoint, or is damaged in any way.
    pub fn open(path: impl AsRef<Path>, preference: Preference) -> Result<Restored, SnapshotError> {
        let path = path.as_ref();
        restore(&Snapshot::open(path)?, preference).map_err(|error| error.in_file(path))
    }

    /// The RIB in a snapshot that is a checkpoint.
    ///
    /// # Errors
    /// If it is none, or if its sections make no sense.
    pub fn from_snapshot(
        snapshot: &Snapshot,
        preference: Preference,
    ) -> Result<Restored, SnapshotError> {
        restore(snapshot, preference)
    }
}

/// A RIB as a checkpoint had it.
pub struct Restored {
    /// The table.
    pub rib: Rib,
    /// Where the feed was, in its own words.
    pub position: String,
}

impl Checkpoint {
    /// Writes the file; it appears whole or not at all.
    ///
    /// # Errors
    /// If the operating system refuses, or if the table cannot be stored.
    pub fn write(self, path: &Path) -> Result<(), SnapshotError> {
        let bytes = self.to_bytes().map_err(|error| error.in_file(path))?;
        let written = AtomicFile::create(path).and_then(|mut file| {
            file.write_all(bytes.as_ref())?;
            file.commit()
        });
        written.map_err(|e| SnapshotError::io(path, "cannot write the checkpoint", e))
    }

    /// The file in memory.
    ///
    /// # Errors
    /// If the table cannot be stored.
    pub fn to_bytes(self) -> Result<crate::AlignedBytes, SnapshotError> {
        let Self { meta, sets, paths: PerFamily { v4, v6 } } = self;
        let source = SourceRecord {
            name: format!("RIB after {} updates", meta.sequence),
            format: "checkpoint".to_owned(),
            ..SourceRecord::default()
        };
        let table = Table {
            v4: v4.routes(),
            v6: v6.routes(),
            columns: columns::of(&sets).map_err(|e| SnapshotError::invalid(e.to_string()))?,
            provenance: Provenance { sources: vec![source], ..Provenance::default() },
        };
        let json = serde_json::to_vec(&meta).map_err(|e| SnapshotError::invalid(e.to_string()))?;
        let (mut ends, mut bytes) = (Vec::<u64>::with_capacity(sets.len()), Vec::new());
        for set in &sets {
            bytes.extend_from_slice(set.as_ref().map_or(&[], |set| set.as_bytes()));
            ends.push(bytes.len() as u64);
        }
        let mut more = vec![
            ("rib/meta".to_owned(), json),
            ("rib/set/end".to_owned(), bytemuck::cast_slice(&ends).to_vec()),
            ("rib/set/bytes".to_owned(), bytes),
        ];
        v4.sections(&mut more);
        v6.sections(&mut more);
        to_bytes_with(&table, &EnginePart::none(), &EnginePart::none(), more)
    }
}

/// The most that the meta section may hold: millions of peers are none.
const MAX_META: usize = 16 << 20;

fn restore(snapshot: &Snapshot, preference: Preference) -> Result<Restored, SnapshotError> {
    const META: &str = "rib/meta";
    let json = snapshot.array::<u8>(META).map_err(|_| {
        SnapshotError::invalid("a snapshot without a RIB: no checkpoint that replay wrote")
    })?;
    let bad = |reason: String| snapshot.blame::<u8>(META, 0, &reason);
    if json.len() > MAX_META {
        return Err(bad(format!("{} bytes of JSON are too many", json.len())));
    }
    let meta: Meta =
        serde_json::from_slice(&json).map_err(|e| bad(format!("not the expected JSON: {e}")))?;
    if meta.version > VERSION {
        return Err(SnapshotError::invalid(format!(
            "a checkpoint of version {}, this program reads versions 1 to {VERSION}: use the program \
             that wrote it, or build the RIB again from its feed",
            meta.version
        )));
    }
    let mut rib = Rib::new(preference);
    for (number, (address, asn)) in (0..).zip(meta.peers) {
        if rib.peer(Peer { address, asn }) != number {
            return Err(bad(format!("peer {number} is there twice")));
        }
    }
    for peer in meta.resyncing {
        if peer as usize >= rib.peers().len() {
            return Err(bad(format!("peer {peer} starts over, and is not there")));
        }
        rib.mark_stale(peer);
    }
    let sets = sets(snapshot, &mut rib)?;
    let has_stale = meta.version > 1;
    paths::<u32>(snapshot, &sets, has_stale, &mut rib)?;
    paths::<u128>(snapshot, &sets, has_stale, &mut rib)?;
    rib.release_sets(sets.into_iter().flatten().collect());
    rib.set_sequence(meta.sequence);
    Ok(Restored { rib, position: meta.position })
}

/// The sets' numbers in the RIB, by place; `None` for places that are free.
fn sets(snapshot: &Snapshot, rib: &mut Rib) -> Result<Vec<Option<u32>>, SnapshotError> {
    const END: &str = "rib/set/end";
    let ends = snapshot.array::<u64>(END)?;
    let bytes = snapshot.array::<u8>("rib/set/bytes")?;
    let mut start = 0;
    let mut sets = Vec::with_capacity(ends.len());
    for (index, &end) in ends.iter().enumerate() {
        let set = usize::try_from(end).ok().and_then(|end| bytes.get(start..end));
        let Some(set) = set else {
            return Err(snapshot.blame::<u64>(END, index, "the end of a set is outside the bytes"));
        };
        start = end as usize;
        if set.is_empty() {
            sets.push(None);
            continue;
        }
        if !is_sound(set) {
            return Err(snapshot.blame::<u64>(END, index, "not an attribute set"));
        }
        let number = rib.restore_set(set);
        sets.push(Some(number.map_err(|e| snapshot.blame::<u64>(END, index, &e.to_string()))?));
    }
    if start != bytes.len() {
        return Err(snapshot.blame::<u64>(END, ends.len(), "there are bytes behind the last set"));
    }
    Ok(sets)
}

fn paths<A: StoredFamily>(
    snapshot: &Snapshot,
    sets: &[Option<u32>],
    has_stale: bool,
    rib: &mut Rib,
) -> Result<(), SnapshotError> {
    let name = |what: &str| format!("rib/{}/{what}", A::FAMILY);
    let addrs = snapshot.array::<A>(&name("addr"))?;
    let lens = snapshot.array::<u8>(&name("len"))?;
    let numbers = ["vrf", "peer", "id", "set"];
    let columns = numbers.map(|what| snapshot.array::<u32>(&name(what)));
    let [vrfs, peers, ids, places] = columns;
    let (vrfs, peers, ids, places) = (vrfs?, peers?, ids?, places?);
    let lengths = [lens.len(), vrfs.len(), peers.len(), ids.len(), places.len()];
    if lengths.iter().any(|&len| len != addrs.len()) {
        let reason = format!("the columns of {} routes have {lengths:?} items", addrs.len());
        return Err(snapshot.blame::<A>(&name("addr"), 0, &reason));
    }
    let stale = stale(snapshot, &name("stale"), has_stale, addrs.len())?;
    let mut stale = stale.iter().peekable();
    let (known_peers, resyncing) = (rib.peers().len(), rib.resyncing());
    for i in 0..addrs.len() {
        let bad = |what: &str, reason: &str| snapshot.blame::<u32>(&name(what), i, reason);
        let prefix = Prefix::new(addrs[i], lens[i])
            .map_err(|error| snapshot.blame::<A>(&name("addr"), i, &error.to_string()))?;
        if peers[i] as usize >= known_peers {
            return Err(bad("peer", "there is no such peer"));
        }
        let set = sets.get(places[i] as usize).copied().flatten();
        let set = set.ok_or_else(|| bad("set", "there is no such attribute set"))?;
        let vrf: Vrf = vrfs[i];
        let is_stale = stale.next_if(|&&place| place as usize == i).is_some();
        if is_stale && resyncing.binary_search(&peers[i]).is_err() {
            return Err(bad("peer", "a path is stale, but its peer does not start over"));
        }
        rib.restore(vrf, prefix, (peers[i], ids[i]), set, is_stale)
            .map_err(|error| bad("set", &error.to_string()))?;
    }
    Ok(())
}

/// The places of the paths that are stale, of so many.
fn stale(
    snapshot: &Snapshot,
    name: &str,
    is_there: bool,
    paths: usize,
) -> Result<Vec<u32>, SnapshotError> {
    if !is_there {
        return Ok(Vec::new());
    }
    let places = snapshot.array::<u32>(name)?;
    let is_ascending = places.windows(2).all(|pair| pair[0] < pair[1]);
    if !is_ascending || places.last().is_some_and(|&last| last as usize >= paths) {
        let reason = format!("the places of stale paths do not ascend below {paths}");
        return Err(snapshot.blame::<u32>(name, 0, &reason));
    }
    Ok(places.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(checkpoint: Checkpoint) -> Result<Restored, SnapshotError> {
        let snapshot = Snapshot::from_bytes(checkpoint.to_bytes().unwrap()).unwrap();
        restore(&snapshot, Preference::default())
    }

    #[test]
    fn later_versions_are_refused_with_advice() {
        let mut checkpoint = Rib::default().checkpoint("");
        checkpoint.meta.version = VERSION + 1;
        let error = open(checkpoint).err().unwrap().to_string();
        assert!(error.contains("version 3, this program reads versions 1 to 2"), "{error}");
        assert!(error.contains("build the RIB again"), "{error}");
    }

    #[test]
    fn stale_paths_that_make_no_sense_are_refused() {
        let mut rib = Rib::default();
        let peers = [1, 2].map(|asn| rib.peer(Peer { address: None, asn }));
        for peer in peers {
            let change = fibula_core::Change::Announce(fibula_core::Attributes::Values(&[]));
            let update = fibula_core::Update::new("10.0.0.0/8".parse().unwrap(), change);
            rib.apply(&fibula_core::Update { peer, ..update }, &mut ()).unwrap();
        }
        rib.mark_stale(peers[0]);
        let forged = |stale: Vec<u32>, resyncing: Vec<u32>| {
            let mut checkpoint = rib.checkpoint("");
            assert_eq!(
                (&*checkpoint.paths.v4.stale, &*checkpoint.meta.resyncing),
                (&[0][..], &[0][..])
            );
            checkpoint.paths.v4.stale = stale;
            checkpoint.meta.resyncing = resyncing;
            open(checkpoint)
        };
        assert!(forged(vec![0], vec![0]).is_ok() && forged(vec![], vec![0, 1]).is_ok());
        for (stale, resyncing) in [
            (vec![2], vec![0]),
            (vec![0, 0], vec![0]),
            (vec![1, 0], vec![0, 1]),
            (vec![1], vec![0]),
            (vec![0], vec![]),
            (vec![], vec![2]),
        ] {
            let refused = forged(stale.clone(), resyncing.clone()).is_err();
            assert!(refused, "{stale:?} {resyncing:?}");
        }
    }
}
