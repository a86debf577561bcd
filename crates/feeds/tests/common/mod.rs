//! A format for tests, in lines, with peers and end marks; and tables as text.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use fibula_core::{AnyPrefix, Attributes, Change, Update, Value};
use fibula_ingest::{Damage, Decoder, PeerInfo, PeerState, Sink, SourceInfo, Stopped, Tail};
use fibula_rib::{AttributeSet, Rib};

/// `peer INDEX ASN`, `+ INDEX PREFIX VALUE`, `- INDEX PREFIX`, `down INDEX`, `end INDEX`; another word
/// first is damage, `binary` a misfit.
#[derive(Default)]
pub struct Lines {
    records: u64,
}

impl Decoder for Lines {
    fn decode(&mut self, input: &[u8], _: Tail, sink: &mut dyn Sink) -> Result<usize, Stopped> {
        let mut taken = 0;
        while let Some(len) = input[taken..].iter().position(|&b| b == b'\n') {
            let line = std::str::from_utf8(&input[taken..taken + len]).unwrap();
            if self.records == 0 {
                sink.begin(&SourceInfo::default());
            }
            self.records += 1;
            let words: Vec<&str> = line.split(' ').collect();
            let number = |word: &str| word.parse::<u32>().unwrap();
            match words[..] {
                ["peer", index, asn] => {
                    let info = PeerInfo::new(None, number(asn), None);
                    sink.peer(number(index), &info);
                }
                ["+", index, prefix, value] => {
                    let values = [Value::Int(number(value).into())];
                    let change = Change::Announce(Attributes::Values(&values));
                    let update = Update::new(prefix.parse().unwrap(), change);
                    sink.update(&Update { peer: number(index), ..update });
                }
                ["-", index, prefix] => {
                    let update = Update::new(prefix.parse().unwrap(), Change::Withdraw);
                    sink.update(&Update { peer: number(index), ..update });
                }
                ["down", index] => {
                    let peer = number(index);
                    sink.peer_state(&PeerState { peer, time: 0, old: 6, new: 1 });
                }
                ["end", index] => sink.end_of_rib(number(index)),
                ["binary"] => return Err(Stopped::Misfit("not lines".to_owned())),
                _ => {
                    let what = "no such word".into();
                    let damage = Damage { file: "".into(), record: self.records, offset: 0, what };
                    if sink.damage(&damage) == ControlFlow::Break(()) {
                        return Err(Stopped::BySink);
                    }
                }
            }
            taken += len + 1;
        }
        Ok(taken)
    }

    fn records(&self) -> u64 {
        self.records
    }
}

/// All paths: the AS of the peer and the prefix, with the one integer that they carry.
pub type Paths = BTreeMap<(u32, AnyPrefix), u64>;

pub fn value(set: &AttributeSet) -> u64 {
    match set.values()[..] {
        [Value::Int(value)] => value,
        ref other => panic!("{other:?}"),
    }
}

/// What the table holds in the global VRF.
pub fn paths(rib: &Rib) -> Paths {
    let mut all = Paths::new();
    for prefix in fibula_feeds::prefixes(rib, 0) {
        let held = match prefix {
            AnyPrefix::V4(prefix) => rib.paths(0, prefix),
            AnyPrefix::V6(prefix) => rib.paths(0, prefix),
        };
        for path in held {
            let asn = rib.peers()[path.peer as usize].asn;
            assert!(all.insert((asn, prefix), value(&path.attributes)).is_none());
        }
    }
    all
}
