//! FRR over FPM: successive connections.

use std::collections::BTreeMap;
use std::time::Duration;

use fibula_core::Addr;
use fibula_feeds::{Protocol, Session, SessionOptions};
use fibula_ingest::fpm::FpmDecoder;
use fibula_rib::Rib;

use crate::common;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn recorded(name: &str) -> Vec<u8> {
    common::recorded(&format!("fpm/{name}"))
}

fn session() -> Session {
    let options = SessionOptions { table: "fpm".to_owned(), ..Default::default() };
    Session::new(|| Box::new(FpmDecoder::default()), options)
}

/// The next hops, by table and prefix.
type Paths = BTreeMap<(String, String), String>;

fn paths(rib: &Rib) -> Paths {
    fn family<A: Addr>(rib: &Rib, vrf: u32, found: &mut Paths) {
        for (prefix, path) in rib.iter::<A>(vrf) {
            let hops = path.attributes.next_hops().unwrap().to_string();
            let name = rib.vrf_name(vrf).unwrap().to_string();
            assert_eq!(found.insert((name, prefix.to_string()), hops), None);
        }
    }
    let mut found = Paths::new();
    for vrf in rib.vrfs() {
        family::<u32>(rib, vrf, &mut found);
        family::<u128>(rib, vrf, &mut found);
    }
    found
}

/// The bytes of the second connection up to the end of what FRR sends at its beginning: the log's first two
/// reads.
const RESENT: [(&str, usize); 2] = [("small-nhg", 312 + 58_260), ("small-inline", 3416 + 62_256)];

/// Routes were removed while there was no connection. They stay in use until the second connection has been quiet for a
/// while; then the table equals that of a reader of the second connection alone.
#[test]
fn routes_that_are_not_sent_again_are_removed() {
    for (name, resent) in RESENT {
        let (mut rib, mut session) = (Rib::default(), session());
        session.connected(s(0), &mut rib, &mut Vec::new()).unwrap();
        let first = recorded(&format!("{name}.c1.fpm.xz"));
        for part in first.chunks(8191) {
            session.bytes(s(1), part, &mut rib, &mut Vec::new()).unwrap();
        }
        session.tick(s(6), &mut rib, &mut Vec::new()).unwrap();
        assert!(session.is_complete());
        let before = paths(&rib);
        // FRR does not send other tables again.
        assert!(before.contains_key(&("fpm/100".to_owned(), "100.67.0.0/16".to_owned())));
        session.disconnected(s(7));

        session.connected(s(10), &mut rib, &mut Vec::new()).unwrap();
        let second = &recorded(&format!("{name}.c2.fpm.xz"))[..resent];
        session.bytes(s(11), second, &mut rib, &mut Vec::new()).unwrap();
        assert!(
            before.keys().all(|key| paths(&rib).contains_key(key)),
            "nothing goes before it is known to be gone"
        );
        session.tick(s(16), &mut rib, &mut Vec::new()).unwrap();
        assert!(session.is_complete());

        let (mut fresh, mut alone) = (Rib::default(), self::session());
        alone.connected(s(0), &mut fresh, &mut Vec::new()).unwrap();
        alone.bytes(s(1), second, &mut fresh, &mut Vec::new()).unwrap();
        assert_eq!(paths(&rib), paths(&fresh), "{name}");
        // 958 routes of the kernel, and the links' own network.
        assert_eq!(paths(&rib).len(), 958 + 1, "{name}");
    }
}
