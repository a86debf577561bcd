//! A table that cannot be made live.

use std::sync::atomic::Ordering;

use fibula_core::{Attributes, Change, PerFamily, Update};
use fibula_rib::{Live, LiveError, LiveOptions, Makers, Rib};

use crate::engines::{Behaviour, maker};

#[test]
fn a_table_that_no_engine_takes_is_an_error_with_all_reasons() {
    let mut rib = Rib::default();
    let change = Change::Announce(Attributes::Values(&[]));
    rib.apply(&Update { vrf: 3, ..Update::new("10.0.0.0/8".parse().unwrap(), change) }, &mut ())
        .unwrap();
    let broken = Behaviour { name: "broken", ..Behaviour::default() };
    broken.broken.store(true, Ordering::Relaxed);
    let small = Behaviour { name: "small", most: 0, ..Behaviour::default() };
    let engines = PerFamily::<Makers> {
        v4: vec![maker(broken), maker(small)],
        v6: vec![maker(Behaviour::default())],
    };
    let error = Live::start(rib, &[3], engines, LiveOptions::default(), |_| {}).err().unwrap();
    assert!(matches!(&error, LiveError::NoEngine { vrf: 3, refused, .. } if refused.len() == 2));
    assert_eq!(
        error.to_string(),
        "no engine takes the IPv4 table of VRF 3: engine broken panicked while it was built; engine \
         small: the table needs 1 routes, the scheme holds 0"
    );
}
