//! The RIB on disk: written atomically, opened and checked, from where the feed then goes on.
//!
//! A checkpoint is a [snapshot](crate::snapshot) file of the best routes of the global VRF, which every
//! command that takes a table opens, with these sections behind:
//!
//! | section | content |
//! |---|---|
//! | `rib/meta` | peers, VRFs' number of updates, the feed's position, as JSON |
//! | `rib/set/end`, `rib/set/bytes` | attribute sets: u64, where each ends in the bytes |
//! | `rib/FAMILY/addr`, `/len`, `/vrf`, `/peer`, `/id`, `/set` | every path: u32 or u128, u8, and u32 each, the set by its place |
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

use fibula_core::{Hop, Prefix, Route, Routes};
use serde::{Deserialize, Serialize};

use crate::rib::set::is_sound;
use crate::snapshot::to_bytes_with;
use crate::{
    AtomicFile, AttributeSet, EnginePart, Peer, Preference, Provenance, Rib, RibFamily, Snapshot,
    SnapshotError, SourceRecord, Table, Vrf,
};

/// A RIB as it was at one moment, ready to be written.
pub struct Checkpoint {
    meta: Meta,
    sets: Vec<Option<AttributeSet>>,
    v4: Paths<u32>,
    v6: Paths<u128>,
}

#[derive(Serialize, Deserialize)]
struct Meta {
    sequence: u64,
    position: String,
    peers: Vec<(Option<IpAddr>, u32)>,
}

/// All paths of a family: the columns of a table.
struct Paths<A> {
    addr: Vec<A>,
    len: Vec<u8>,
    vrf: Vec<u32>,
    peer: Vec<u32>,
    id: Vec<u32>,
    set: Vec<u32>,
}

impl<A: RibFamily> Paths<A> {
    fn of(rib: &Rib) -> Self {
        let room = rib.memory().routes;
        let mut paths = Self {
            addr: Vec::with_capacity(room),
            len: Vec::with_capacity(room),
            vrf: Vec::new(),
            peer: Vec::with_capacity(room),
            id: Vec::with_capacity(room),
            set: Vec::with_capacity(room),
        };
        for vrf in rib.vrfs() {
            rib.all_paths(vrf, |prefix: Prefix<A>, peer, id, set| {
                paths.addr.push(prefix.addr());
                paths.len.push(prefix.len());
                paths.peer.push(peer);
                paths.id.push(id);
                paths.set.push(set);
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
        for (what, numbers) in
            [("vrf", &self.vrf), ("peer", &self.peer), ("id", &self.id), ("set", &self.set)]
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
            meta: Meta { sequence: self.sequence(), position: position.to_owned(), peers },
            sets: self.sets().map(Option::<&AttributeSet>::cloned).collect(),
            v4: Paths::of(self),
            v6: Paths::of(self),
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
        let Self { meta, sets, v4, v6 } = self;
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
    let mut rib = Rib::new(preference);
    for (number, (address, asn)) in (0..).zip(meta.peers) {
        if rib.peer(Peer { address, asn }) != number {
            return Err(bad(format!("peer {number} is there twice")));
        }
    }
    let sets = sets(snapshot, &mut rib)?;
    paths::<u32>(snapshot, &sets, &mut rib)?;
    paths::<u128>(snapshot, &sets, &mut rib)?;
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

fn paths<A: RibFamily>(
    snapshot: &Snapshot,
    sets: &[Option<u32>],
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
    let known_peers = rib.peers().len();
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
        rib.restore(vrf, prefix, (peers[i], ids[i]), set)
            .map_err(|error| bad("set", &error.to_string()))?;
    }
    Ok(())
}
