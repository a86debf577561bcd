//! A live table whose compiler has ended.

use fibula_core::{
    Addr, Attributes, BuildError, Change, Family, Follow, Hop, Lookup, Memory, PerFamily, Update,
    unstored,
};
use fibula_rib::{Event, FeedEvent, Live, LiveOptions, Maker, Makers, Peer, Rib, TableError};

/// A panic in a caller's function ends the compiler. Calls that wait for the compiler return an error.
#[test]
fn a_compiler_that_panics_is_an_error_and_no_wait() {
    let engines = PerFamily::<Makers> { v4: vec![broken::<u32>()], v6: vec![broken::<u128>()] };
    let events = |event: Event| panic!("{event}");
    let live = Live::start(Rib::default(), &[0], engines, LiveOptions::default(), events).unwrap();
    let peer = live.peer(Peer::new(None, 1));
    let change = Change::Announce(Attributes::Values(&[]));
    let update = |prefix: &str| Update { peer, ..Update::new(prefix.parse().unwrap(), change) };
    live.apply(&update("10.0.0.0/8")).unwrap();
    let error = live.flush().unwrap_err();
    assert_eq!(error, TableError::Stopped { vrf: 0, family: Family::V4 });
    assert!(error.to_string().contains("IPv4 table of VRF 0 panicked"), "{error}");
    assert_eq!(live.apply(&update("11.0.0.0/8")), Err(error));
    // The other family continues, and published generations stay in use.
    live.apply(&update("::/0")).unwrap();
    assert_eq!(live.current::<u32>(0).unwrap().number(), 1);
    live.event(FeedEvent::Down(peer)).unwrap();
}

/// Accepts only an empty table.
fn broken<A: Addr>() -> Maker<A> {
    Maker::new("broken", |routes| match routes.is_empty() {
        true => Ok(unstored(Empty)),
        false => Err(BuildError::Config { engine: "broken", reason: "not empty".into() }),
    })
}

struct Empty;

impl<A: Addr> Lookup<A> for Empty {
    fn lookup(&self, _: A) -> Hop {
        Hop::NONE
    }
    fn lookup_batch(&self, _: &[A], hops: &mut [Hop]) {
        hops.fill(Hop::NONE);
    }
    fn memory(&self) -> Memory {
        Memory::default()
    }
}

impl<A: Addr> Follow<A> for Empty {}
