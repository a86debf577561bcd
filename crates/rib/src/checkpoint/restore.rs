//! Restores the RIB from a file, and checks everything in it.

use fibula_core::{Addr, Prefix, Vrf};

use super::{Meta, Restored, VERSION};
use crate::rib::VrfNames;
use crate::rib::set::is_sound;
use crate::snapshot::Sections;
use crate::{Peer, Pod, Preference, Rib, Snapshot, SnapshotError, ValueNames};

pub(super) const META: &str = "rib/meta";

pub(super) fn restore(
    snapshot: &Snapshot,
    preference: Preference,
) -> Result<Restored, SnapshotError> {
    let sections = snapshot.raw();
    if snapshot.sections().all(|(name, _)| name != META) {
        let reason = "a snapshot without a RIB: no checkpoint that replay wrote";
        return Err(SnapshotError::invalid(reason));
    }
    let meta: Meta = sections.json(META)?;
    if meta.version > VERSION {
        return Err(SnapshotError::invalid(format!(
            "a checkpoint of version {}, this program reads versions 1 to {VERSION}: use the program \
             that wrote it, or build the RIB again from its feed",
            meta.version
        )));
    }
    let bad = |reason: String| sections.blame(META, reason);
    let mut rib = Rib::new(preference);
    let mut sources = meta.sources.into_iter();
    for (number, (address, asn)) in (0..).zip(meta.peers) {
        let source = sources.next().flatten().map(Into::into);
        if rib.peer(Peer { address, asn, source }) != number {
            return Err(bad(format!("peer {number} occurs twice")));
        }
    }
    for peer in meta.resyncing {
        if peer as usize >= rib.peers().len() {
            return Err(bad(format!("peer {peer} starts over, and is not there")));
        }
        rib.mark_stale(peer);
    }
    let mut names = VrfNames::default();
    for (vrf, name) in meta.vrfs {
        if name.is_empty() || !names.set(vrf, &name) {
            return Err(bad(format!("VRF {vrf} has no name, or one that occurs twice")));
        }
    }
    rib.set_vrf_names(names);
    let sets = sets(sections, &mut rib)?;
    let has_stale = meta.version > 1;
    paths::<u32>(sections, &sets, has_stale, &mut rib)?;
    paths::<u128>(sections, &sets, has_stale, &mut rib)?;
    rib.release_sets(sets.into_iter().flatten().collect());
    rib.set_sequence(meta.sequence);
    rib.set_value_names(ValueNames::new(meta.columns));
    Ok(Restored { rib, position: meta.position, feed: meta.feed })
}

/// The sets' numbers in the RIB, by place; `None` for places that are free.
fn sets(sections: &Sections, rib: &mut Rib) -> Result<Vec<Option<u32>>, SnapshotError> {
    const END: &str = "rib/set/end";
    let ends = sections.array::<u64>(END)?;
    let bytes = sections.array::<u8>("rib/set/bytes")?;
    let mut start = 0;
    let mut sets = Vec::with_capacity(ends.len());
    for (index, &end) in ends.iter().enumerate() {
        let set = usize::try_from(end).ok().and_then(|end| bytes.get(start..end));
        let Some(set) = set else {
            return Err(sections.blame_item::<u64>(
                END,
                index,
                "the end of a set is outside the bytes",
            ));
        };
        start = end as usize;
        if set.is_empty() {
            sets.push(None);
            continue;
        }
        if !is_sound(set) {
            return Err(sections.blame_item::<u64>(END, index, "not an attribute set"));
        }
        let number = rib.restore_set(set);
        sets.push(Some(
            number.map_err(|e| sections.blame_item::<u64>(END, index, &e.to_string()))?,
        ));
    }
    if start != bytes.len() {
        return Err(sections.blame_item::<u64>(
            END,
            ends.len(),
            "there are bytes behind the last set",
        ));
    }
    Ok(sets)
}

fn paths<A: Addr + Pod>(
    sections: &Sections,
    sets: &[Option<u32>],
    has_stale: bool,
    rib: &mut Rib,
) -> Result<(), SnapshotError> {
    let name = |what: &str| format!("rib/{}/{what}", A::FAMILY);
    let addrs = sections.array::<A>(&name("addr"))?;
    let lens = sections.array::<u8>(&name("len"))?;
    let numbers = ["vrf", "peer", "id", "set"];
    let columns = numbers.map(|what| sections.array::<u32>(&name(what)));
    let [vrfs, peers, ids, places] = columns;
    let (vrfs, peers, ids, places) = (vrfs?, peers?, ids?, places?);
    let lengths = [lens.len(), vrfs.len(), peers.len(), ids.len(), places.len()];
    if lengths.iter().any(|&len| len != addrs.len()) {
        let reason = format!("the columns of {} routes have {lengths:?} items", addrs.len());
        return Err(sections.blame_item::<A>(&name("addr"), 0, &reason));
    }
    let stale = stale(sections, &name("stale"), has_stale, addrs.len())?;
    let mut stale = stale.iter().peekable();
    let (known_peers, resyncing) = (rib.peers().len(), rib.resyncing());
    for i in 0..addrs.len() {
        let bad = |what: &str, reason: &str| sections.blame_item::<u32>(&name(what), i, reason);
        let prefix = Prefix::new(addrs[i], lens[i])
            .map_err(|error| sections.blame_item::<A>(&name("addr"), i, &error.to_string()))?;
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

/// The places of the stale paths, among this number of paths.
fn stale(
    sections: &Sections,
    name: &str,
    is_there: bool,
    paths: usize,
) -> Result<Vec<u32>, SnapshotError> {
    if !is_there {
        return Ok(Vec::new());
    }
    let places = sections.array::<u32>(name)?;
    let is_ascending = places.windows(2).all(|pair| pair[0] < pair[1]);
    if !is_ascending || places.last().is_some_and(|&last| last as usize >= paths) {
        let reason = format!("the places of stale paths do not ascend below {paths}");
        return Err(sections.blame_item::<u32>(name, 0, &reason));
    }
    Ok(places.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FeedMark;
    use crate::checkpoint::Checkpoint;

    fn open(checkpoint: Checkpoint) -> Result<Restored, SnapshotError> {
        let snapshot = Snapshot::from_bytes(checkpoint.to_bytes().unwrap()).unwrap();
        restore(&snapshot, Preference::default())
    }

    #[test]
    fn later_versions_are_refused_with_advice() {
        let mut checkpoint = Rib::default().checkpoint("");
        checkpoint.meta.version = VERSION + 1;
        let error = open(checkpoint).err().unwrap().to_string();
        assert!(error.contains("version 5, this program reads versions 1 to 4"), "{error}");
        assert!(error.contains("build the RIB again"), "{error}");
    }

    /// Names of values and the feed came with version 3.
    #[test]
    fn version_2_is_read_without_names_and_feed() {
        let mut rib = Rib::default();
        rib.value_places(&["site"]);
        let feed = FeedMark { names: vec!["a".into()], events: 1, digest: 2 };
        let restored = open(rib.checkpoint("").of_feed(feed.clone())).unwrap();
        assert_eq!(restored.feed, Some(feed));
        assert_eq!(restored.rib.value_names().names(), ["site"]);
        let mut json = serde_json::to_value(&rib.checkpoint("").meta).unwrap();
        let fields = json.as_object_mut().unwrap();
        fields["version"] = 2.into();
        assert!(fields.remove("columns").is_some() && fields.remove("feed").is_some());
        let mut checkpoint = rib.checkpoint("");
        checkpoint.meta = serde_json::from_value(json).unwrap();
        let restored = open(checkpoint).unwrap();
        assert!(restored.feed.is_none() && restored.rib.value_names().names().is_empty());
    }

    #[test]
    fn stale_paths_that_make_no_sense_are_refused() {
        let mut rib = Rib::default();
        let peers = [1, 2].map(|asn| rib.peer(Peer::new(None, asn)));
        for peer in peers {
            let change = fibula_core::Change::Announce(fibula_core::Attributes::Values(&[]));
            let update = fibula_core::Update::new("10.0.0.0/8".parse().unwrap(), change);
            rib.apply(&fibula_core::Update { peer, ..update }, &mut ()).unwrap();
        }
        rib.mark_stale(peers[0]);
        let forged = |stale: Vec<u32>, resyncing: Vec<u32>| {
            let mut checkpoint = rib.checkpoint("");
            let mut paths = checkpoint.columns();
            assert_eq!((&*paths.v4.stale, &*checkpoint.meta.resyncing), (&[0][..], &[0][..]));
            paths.v4.stale = stale;
            checkpoint.meta.resyncing = resyncing;
            let bytes = checkpoint.with_columns(paths).unwrap();
            restore(&Snapshot::from_bytes(bytes).unwrap(), Preference::default())
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
