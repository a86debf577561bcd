//! A format for tests, in lines, with peers and end marks; and tables as text.
#![allow(dead_code, reason = "each test uses its part")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use fibula_core::{AnyPrefix, Attributes, Change, Update, Value};
use fibula_feeds::Clock;
use fibula_ingest::{
    Damage, Decoder, PeerInfo, PeerState, Sink, SourceInfo, StopReason, Tail, decompress,
};
use fibula_rib::{AttributeSet, Rib};

/// The bytes of a recorded stream in `testdata`.
pub fn recorded(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    let mut bytes = Vec::new();
    decompress(File::open(path).unwrap()).unwrap().1.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Time advances only by sleeping, or by hand.
#[derive(Clone, Default)]
pub struct Fake(pub Rc<Cell<Duration>>);

impl Clock for Fake {
    fn now(&self) -> Duration {
        self.0.get()
    }
    fn sleep(&self, time: Duration) {
        self.0.set(self.0.get() + time);
    }
}

/// `peer INDEX ASN [VIEW]`, `vrf INDEX [NAME]`, `in INDEX` (the routing instance from here on), `remark TEXT`,
/// `hold INDEX PREFIX` (a withdrawal that is held back until the next line), `+ INDEX PREFIX VALUE`, `- INDEX PREFIX`,
/// `down INDEX`, `end INDEX`; another word first is damage, `binary` a misfit.
#[derive(Default)]
pub struct Lines {
    records: u64,
    vrf: u32,
    held: Option<(u32, AnyPrefix)>,
}

impl Decoder for Lines {
    fn decode(&mut self, input: &[u8], _: Tail, sink: &mut dyn Sink) -> Result<usize, StopReason> {
        let mut taken = 0;
        while let Some(len) = input[taken..].iter().position(|&b| b == b'\n') {
            let line = String::from_utf8_lossy(&input[taken..taken + len]);
            if self.records == 0 {
                sink.begin(&SourceInfo::default());
            }
            self.records += 1;
            self.flush(sink);
            let words: Vec<&str> = line.split(' ').collect();
            let number = |word: &str| word.parse::<u32>().unwrap();
            match words[..] {
                ["peer", index, asn, ref view @ ..] => {
                    let view = view.concat();
                    let info = PeerInfo { view, ..PeerInfo::new(None, number(asn), None) };
                    sink.peer(number(index), &info);
                }
                ["vrf", index, ref name @ ..] => sink.vrf(number(index), &name.concat()),
                ["in", index] => self.vrf = number(index),
                ["remark", text] => sink.remark("text", text),
                ["hold", index, prefix] => {
                    self.held = Some((number(index), prefix.parse().unwrap()));
                }
                ["+", index, prefix, value] => {
                    let values = [Value::Int(number(value).into())];
                    let change = Change::Announce(Attributes::Values(&values));
                    let update = Update::new(prefix.parse().unwrap(), change);
                    sink.update(&Update { peer: number(index), vrf: self.vrf, ..update });
                }
                ["-", index, prefix] => {
                    let update = Update::new(prefix.parse().unwrap(), Change::Withdraw);
                    sink.update(&Update { peer: number(index), vrf: self.vrf, ..update });
                }
                ["down", index] => {
                    let peer = number(index);
                    sink.peer_state(&PeerState { peer, time: 0, old: 6, new: 1 });
                }
                ["end", index] => sink.end_of_rib(number(index)),
                ["binary"] => return Err(StopReason::Misfit("not lines".to_owned())),
                _ => {
                    let what = "no such word".into();
                    let damage = Damage { file: "".into(), record: self.records, offset: 0, what };
                    if sink.damage(&damage) == ControlFlow::Break(()) {
                        return Err(StopReason::BySink);
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

    fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    fn flush(&mut self, sink: &mut dyn Sink) {
        if let Some((peer, prefix)) = self.held.take() {
            let update = Update::new(prefix, Change::Withdraw);
            sink.update(&Update { peer, vrf: self.vrf, ..update });
        }
    }
}

/// All paths: the AS of the peer and the prefix, with the integer of the path.
pub type Paths = BTreeMap<(u32, AnyPrefix), u64>;

pub fn value(set: &AttributeSet) -> u64 {
    match set.values()[..] {
        [Value::Int(value)] => value,
        ref other => panic!("{other:?}"),
    }
}

/// The contents of the table's global VRF.
pub fn paths(rib: &Rib) -> Paths {
    let mut all = Paths::new();
    for prefix in fibula_feeds::prefixes(rib, 0) {
        let held = match prefix {
            AnyPrefix::V4(prefix) => rib.paths(0, prefix),
            AnyPrefix::V6(prefix) => rib.paths(0, prefix),
        };
        for path in held {
            let asn = rib.peers()[path.peer].asn;
            assert!(all.insert((asn, prefix), value(&path.attributes)).is_none());
        }
    }
    all
}
