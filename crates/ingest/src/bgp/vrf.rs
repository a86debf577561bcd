//! Routing instances: route distinguishers (RFC 4364, 4.2) and the instance numbers in updates.

use std::collections::HashMap;
use std::fmt;

use fibula_core::Vrf;

use crate::Sink;

/// More routing instances than a router has; a stream that names more is hostile or garbled.
const MOST: usize = 4096;
/// Why routes of further instances are ignored.
const TOO_MANY: &str = "routes of more than 4,096 routing instances";

/// A route distinguisher: it identifies the routing instance of a route.
///
/// ```
/// use fibula_ingest::bgp::RouteDistinguisher;
/// assert_eq!(RouteDistinguisher([0, 0, 0xfd, 0xe8, 0, 0, 0, 1]).to_string(), "65000:1");
/// assert_eq!(RouteDistinguisher([0, 1, 192, 0, 2, 1, 0, 7]).to_string(), "192.0.2.1:7");
/// // The AS number has four bytes, so this is another one than "65000:1".
/// assert_eq!(RouteDistinguisher([0, 2, 0, 0, 0xfd, 0xe8, 0, 1]).to_string(), "65000L:1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteDistinguisher(pub [u8; 8]);

impl fmt::Display for RouteDistinguisher {
    /// Different ones have different texts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [high, low, a, b, c, d, e, g] = self.0;
        match u16::from_be_bytes([high, low]) {
            0 => {
                let (asn, number) = (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, g]));
                write!(f, "{asn}:{number}")
            }
            1 => write!(f, "{a}.{b}.{c}.{d}:{}", u16::from_be_bytes([e, g])),
            2 => {
                let (asn, number) = (u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([e, g]));
                let mark = if asn > u16::MAX.into() { "" } else { "L" };
                write!(f, "{asn}{mark}:{number}")
            }
            kind => {
                let number = u64::from_be_bytes([0, 0, a, b, c, d, e, g]);
                write!(f, "type{kind}:{number}")
            }
        }
    }
}

/// Which instance's table: a view of the peer's routes (BMP), and the route distinguisher.
pub(crate) type Name = (&'static str, Option<RouteDistinguisher>);

/// Numbers the routing instances of a source, from 1 on as they appear. 0 is the one without a name.
#[derive(Debug, Default)]
pub(crate) struct Vrfs {
    numbers: HashMap<Name, Vrf>,
    /// Routes come in runs of one instance.
    last: Option<(Name, Vrf)>,
}

impl Vrfs {
    /// The number, declared to the sink if it is new; `None` if there are too many.
    pub(crate) fn number(&mut self, name: Name, sink: &mut dyn Sink) -> Option<Vrf> {
        if name == ("", None) {
            return Some(0);
        }
        if let Some((last, number)) = self.last
            && last == name
        {
            return Some(number);
        }
        let number = match self.numbers.get(&name) {
            Some(&number) => number,
            None if self.numbers.len() >= MOST => {
                sink.ignored(TOO_MANY);
                return None;
            }
            None => {
                let number = self.numbers.len() as Vrf + 1;
                self.numbers.insert(name, number);
                sink.vrf(number, &text(name));
                number
            }
        };
        self.last = Some((name, number));
        Some(number)
    }
}

/// `post-policy`, `65000:1`, `post-policy/65000:1`.
pub(crate) fn text((view, rd): Name) -> String {
    match rd {
        None => view.to_owned(),
        Some(rd) if view.is_empty() => rd.to_string(),
        Some(rd) => format!("{view}/{rd}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Damage;
    use std::ops::ControlFlow;

    #[derive(Default)]
    struct Names(Vec<(Vrf, String)>, u32);

    impl Sink for Names {
        fn update(&mut self, _: &fibula_core::Update<'_>) {}
        fn damage(&mut self, _: &Damage) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
        fn vrf(&mut self, index: Vrf, name: &str) {
            self.0.push((index, name.to_owned()));
        }
        fn ignored(&mut self, _: &'static str) {
            self.1 += 1;
        }
    }

    #[test]
    fn numbers_and_names() {
        let (mut vrfs, mut sink) = (Vrfs::default(), Names::default());
        let rd = |n| RouteDistinguisher([0, 0, 0xfd, 0xe8, 0, 0, n, 1]);
        let names = [
            ("", None),
            ("pre-policy", None),
            ("", Some(rd(0))),
            ("pre-policy", Some(rd(0))),
            ("pre-policy", None),
            ("", Some(RouteDistinguisher([0, 5, 0, 0, 0, 0, 1, 0]))),
        ];
        let numbers = names.map(|name| vrfs.number(name, &mut sink).unwrap());
        assert_eq!(numbers, [0, 1, 2, 3, 1, 4]);
        let wanted = ["pre-policy", "65000:1", "pre-policy/65000:1", "type5:256"];
        let wanted: Vec<_> = (1..).zip(wanted.map(str::to_owned)).collect();
        assert_eq!(sink.0, wanted);
    }

    #[test]
    fn instances_are_bounded() {
        let (mut vrfs, mut sink) = (Vrfs::default(), Names::default());
        for n in 0..MOST as u64 + 2 {
            let name = ("", Some(RouteDistinguisher(n.to_be_bytes())));
            assert_eq!(vrfs.number(name, &mut sink).is_some(), n < MOST as u64);
        }
        assert_eq!((sink.0.len(), sink.1), (MOST, 2));
        let known = ("", Some(RouteDistinguisher(7u64.to_be_bytes())));
        assert_eq!(vrfs.number(known, &mut sink), Some(8));
    }
}
