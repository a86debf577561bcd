//! Checkpoints: the RIB in a file. It is written atomically and checked when opened, and the feed can continue from
//! it.
//!
//! A checkpoint is a [snapshot](crate::snapshot) file of the best routes of the global VRF, which every command that
//! takes a table can open, with these additional sections. `FILE#NAME` is another VRF's table ([`table_choice`]).
//!
//! | section | content |
//! |---|---|
//! | `rib/meta` | version, peers, number of updates, the feed with its position, peers that start over, names of values, of peers' sources and of VRFs, as JSON |
//! | `rib/set/end`, `rib/set/bytes` | attribute sets: u64, where each ends in the bytes |
//! | `rib/FAMILY/addr`, `/len`, `/vrf`, `/peer`, `/id`, `/set` | every path: u32 or u128, u8, and u32 each, the set by its place |
//! | `rib/FAMILY/stale` | u32: the places of the paths that are stale, ascending; see [`Rib::mark_stale`] |
//!
//! Peers are numbered anew, by their places in `rib/meta`, since those that were given up leave gaps.
//!
//! Version 1 has no next hops in its sets, and no `stale`. Version 2 has neither the names of the values nor the
//! feed, so a program that continues from it cannot check that its feed is the same. Version 3 has no names of
//! sources and VRFs. All are read. Versions newer than this program's are refused.
//!
//! A checkpoint has no engines: compiling the default ones for a million routes is faster than reading and checking
//! their tables.
//!
//! Everything is checked when the file is opened, as for snapshots. Damage is refused. A file forged together with
//! its checksums can give a wrong table or an error, and nothing worse.

pub(crate) mod columns;
mod paths;
mod restore;
mod tables;

use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fibula_core::{PerFamily, Vrf};
use serde::{Deserialize, Serialize};

use crate::chunks::Chunks;
use crate::rib::{Copies, Staleness};
use crate::snapshot::{format, to_bytes_with};
use crate::{
    AlignedBytes, AtomicFile, AttributeSet, EnginePart, FeedMark, Peer, Preference, Provenance,
    Rib, Snapshot, SnapshotError, SourceRecord, Table, ValueNames,
};
use paths::{AllPaths, Paths, PeerPlaces};
use restore::restore;
pub use tables::table_choice;

/// The format's version.
const VERSION: u32 = 4;

/// A RIB at one moment, ready to be written. It shares memory with the RIB, which copies the parts that it changes
/// afterwards.
pub struct Checkpoint {
    meta: Meta,
    sets: Chunks<Option<AttributeSet>>,
    paths: Vec<(Vrf, PerFamily<Copies>)>,
    staleness: Staleness,
    places: PeerPlaces,
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
    /// The names of the values in the sources.
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    feed: Option<FeedMark>,
    /// The source of each peer.
    #[serde(default)]
    sources: Vec<Option<String>>,
    /// The VRFs that have names.
    #[serde(default)]
    vrfs: Vec<(Vrf, String)>,
}

/// The version of files without names.
fn first_version() -> u32 {
    1
}

impl Rib {
    /// Makes a checkpoint of the table. `position` is the feed's own description of its position.
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
        let peers = self.peers().iter().map(|(_, peer)| (peer.address, peer.asn)).collect();
        let places = PeerPlaces::of(self.peers());
        let source = |peer: &Peer| peer.source.as_deref().map(str::to_owned);
        Checkpoint {
            meta: Meta {
                version: VERSION,
                sequence: self.sequence(),
                position: position.to_owned(),
                peers,
                resyncing: self.resyncing().into_iter().map(|peer| places.get(peer)).collect(),
                columns: self.value_names().names().to_vec(),
                feed: None,
                sources: self.peers().iter().map(|(_, peer)| source(peer)).collect(),
                vrfs: self.vrf_names().iter().map(|(vrf, name)| (vrf, name.to_owned())).collect(),
            },
            sets: self.sets().clone(),
            paths: self.copies(),
            staleness: self.staleness(),
            places,
        }
    }

    /// Opens a checkpoint.
    ///
    /// # Errors
    /// If the file cannot be read, is not a checkpoint, or is damaged in any way.
    pub fn open(path: impl AsRef<Path>, preference: Preference) -> Result<Restored, SnapshotError> {
        let path = path.as_ref();
        restore(&Snapshot::open(path)?, preference).map_err(|error| error.in_file(path))
    }

    /// Restores the RIB from a snapshot that is a checkpoint.
    ///
    /// # Errors
    /// If it is not a checkpoint, or its sections are inconsistent.
    pub fn from_snapshot(
        snapshot: &Snapshot,
        preference: Preference,
    ) -> Result<Restored, SnapshotError> {
        restore(snapshot, preference)
    }
}

/// A RIB restored from a checkpoint.
pub struct Restored {
    /// The table.
    pub rib: Rib,
    /// The position of the feed, in the feed's own words.
    pub position: String,
    /// The feed and its events so far; `None` in files of older versions, and if the feed was not named.
    pub feed: Option<FeedMark>,
}

impl Checkpoint {
    /// Names the feed whose events the RIB includes, so that a program that continues from it can check that its feed
    /// is the same.
    #[must_use]
    pub fn of_feed(mut self, feed: FeedMark) -> Self {
        self.meta.feed = Some(feed);
        self
    }

    /// Writes the file, completely or not at all.
    ///
    /// # Errors
    /// If an I/O operation fails, or the table cannot be stored.
    pub fn write(self, path: &Path) -> Result<(), SnapshotError> {
        self.write_after(path, || ())
    }

    /// Like [`Checkpoint::write`], but gives up soon after `given_up` is set, and then leaves the existing file.
    /// Returns whether the file was written.
    ///
    /// # Errors
    /// The errors of [`Checkpoint::write`].
    pub fn write_unless(self, path: &Path, given_up: &AtomicBool) -> Result<bool, SnapshotError> {
        let paths = self.columns();
        if given_up.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let bytes = self.with_columns(paths).map_err(|error| error.in_file(path))?;
        write_unless(&bytes, path, given_up)
    }

    /// Like [`Checkpoint::write`], but calls `ready` when everything is computed and before the file is touched, for
    /// example to wait there until another checkpoint is written.
    ///
    /// # Errors
    /// The errors of [`Checkpoint::write`].
    pub fn write_after(self, path: &Path, ready: impl FnOnce()) -> Result<(), SnapshotError> {
        let bytes = self.to_bytes().map_err(|error| error.in_file(path));
        ready();
        write_unless(&bytes?, path, &AtomicBool::new(false)).map(|_| ())
    }

    /// The contents of the file, in memory.
    ///
    /// # Errors
    /// If the table cannot be stored.
    pub fn to_bytes(self) -> Result<AlignedBytes, SnapshotError> {
        let paths = self.columns();
        self.with_columns(paths)
    }

    /// The paths in columns.
    fn columns(&self) -> PerFamily<AllPaths> {
        let v4 = self.paths.iter().map(|(vrf, copies)| (*vrf, &copies.v4));
        let v6 = self.paths.iter().map(|(vrf, copies)| (*vrf, &copies.v6));
        let of = (&self.staleness, &self.places);
        PerFamily { v4: Paths::of(v4, of), v6: Paths::of(v6, of) }
    }

    fn with_columns(
        self,
        PerFamily { v4, v6 }: PerFamily<AllPaths>,
    ) -> Result<AlignedBytes, SnapshotError> {
        let meta = self.meta;
        let sets: Vec<_> = self.sets.iter().cloned().collect();
        let source = SourceRecord {
            name: format!("RIB after {} updates", meta.sequence),
            format: "checkpoint".to_owned(),
            ..SourceRecord::default()
        };
        let names = ValueNames::new(meta.columns.clone());
        let columns = columns::of(&sets, &names);
        let table = Table {
            v4: v4.routes(),
            v6: v6.routes(),
            columns: columns.map_err(|e| SnapshotError::invalid(e.to_string()))?,
            provenance: Provenance { sources: vec![source], ..Provenance::of_now() },
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

fn write_unless(
    bytes: &AlignedBytes,
    path: &Path,
    given_up: &AtomicBool,
) -> Result<bool, SnapshotError> {
    /// Number of bytes that are copied in a few milliseconds.
    const PIECE: usize = 4 << 20;
    let written = AtomicFile::create_read_only(path, &format::MAGIC).and_then(|mut file| {
        for piece in bytes.as_ref().chunks(PIECE) {
            if given_up.load(Ordering::Relaxed) {
                return Ok(false);
            }
            file.write_all(piece)?;
        }
        file.commit().map(|()| true)
    });
    written.map_err(|e| SnapshotError::io(path, "cannot write the checkpoint", e))
}
