//! Hostile checkpoints: a sound one with changed sections and right checksums. What opens is a RIB like
//! any other: it answers, it lets go of everything, and what it writes in turn comes back the same.
#![no_main]

use std::sync::LazyLock;

use fibula_core::{
    Addr, AnyPrefix, Attributes, BgpAttributes, Change, NextHop, NextHops, Prefix, Update, Value,
};
use fibula_fuzz::forge::{Edit, Section, assemble, seal, sections};
use fibula_rib::{Peer, Preference, Rib, Snapshot};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    /// The bytes with their checksums made right.
    File(&'a [u8]),
    /// A sound checkpoint, edited.
    Forged(Vec<Edit<'a>>),
}

static SOUND: LazyLock<Vec<Section>> = LazyLock::new(|| {
    let mut rib = Rib::default();
    for asn in 0..2 {
        rib.peer(Peer::new(Some([192, 0, 2, 1].into()), asn));
    }
    let prefixes = ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "::/0", "2001:db8::/32"];
    for (i, text) in (0..).zip(prefixes.iter().cycle().take(12)) {
        let prefix: AnyPrefix = text.parse().expect("a prefix");
        let bgp = BgpAttributes { as_path_len: i, as_path: "1 2", ..Default::default() };
        let values = [Value::Int(i.into()), Value::Str("text"), Value::Null];
        let hop = NextHop { interface: Some(i), ..NextHop::via([192, 0, 2, 1].into()) };
        let next_hops = NextHops { hops: vec![hop; i as usize % 3], ..Default::default() };
        let attributes = match i % 3 {
            0 => Attributes::Values(&values),
            1 => Attributes::Bgp(&bgp),
            _ => Attributes::NextHops(&next_hops),
        };
        let change = Change::Announce(attributes);
        let (vrf, peer, path_id) = (i % 5 / 4, i % 2, i % 4 / 2);
        let update = Update { vrf, peer, path_id, ..Update::new(prefix, change) };
        rib.apply(&update, &mut ()).expect("room");
        if i == 7 {
            rib.mark_stale(1);
        }
    }
    sections(rib.checkpoint("here").to_bytes().expect("storable").as_ref())
});

fuzz_target!(|input: Input<'_>| {
    let file = match input {
        Input::File(bytes) => {
            let mut bytes = bytes.to_vec();
            seal(&mut bytes);
            bytes
        }
        Input::Forged(edits) => {
            let mut sections = SOUND.clone();
            edits.iter().for_each(|edit| edit.apply(&mut sections));
            let file = assemble(&sections);
            assert!(!edits.is_empty() || open(&file).is_some(), "a sound one opens");
            file
        }
    };
    let Some(mut rib) = open(&file) else { return };
    let bytes = rib.checkpoint("again").to_bytes().expect("what was opened can be stored");
    let again = open(bytes.as_ref()).expect("and opened");
    assert_eq!(again.memory().routes, rib.memory().routes);
    for vrf in rib.vrfs().collect::<Vec<_>>() {
        same::<u32>(&rib, &again, vrf);
        same::<u128>(&rib, &again, vrf);
    }
    for peer in 0..rib.peers().len() as u32 {
        rib.peer_down(peer, &mut ());
    }
    assert!(rib.is_empty() && rib.memory().sets == 0);
});

fn open(bytes: &[u8]) -> Option<Rib> {
    let snapshot = Snapshot::from_bytes(bytes).ok()?;
    Some(Rib::from_snapshot(&snapshot, Preference::default()).ok()?.rib)
}

fn same<A: Addr>(rib: &Rib, again: &Rib, vrf: u32) {
    let routes = |rib: &Rib| -> Vec<(Prefix<A>, String)> {
        rib.iter::<A>(vrf)
            .map(|(prefix, best)| (prefix, format!("{:?}", best.attributes)))
            .collect()
    };
    assert_eq!(routes(rib), routes(again));
    for addr in [A::MIN, A::MAX] {
        let found = rib.longest(vrf, addr).map(|(prefix, _)| prefix);
        assert_eq!(found, rib.covering(vrf, Prefix::host(addr)).first().map(|(prefix, _)| *prefix));
    }
    if let Some((prefix, _)) = rib.iter::<A>(vrf).next() {
        assert!(rib.explain(vrf, prefix).is_some_and(|why| !why.to_string().is_empty()));
    }
}
