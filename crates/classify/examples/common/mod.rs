//! What the examples share.

use std::net::Ipv4Addr;

use fibula_classify::text::{self, RuleFormat, RuleOptions};
use fibula_classify::{Field, FiveTuple, Flow, Rules};
use fibula_testkit::classbench::{Filter, Packet};

/// A generated packet as the classifier sees it. All have ports, as ClassBench's packets have, whatever their protocol
/// is.
pub fn flow(packet: &Packet) -> Flow {
    let ports = Some((packet.src_port, packet.dst_port));
    let (src, dst) = (Ipv4Addr::from(packet.src).into(), Ipv4Addr::from(packet.dst).into());
    let mut flow = Flow::try_from(&FiveTuple { src, dst, protocol: 6, ports }).expect("one family");
    flow.set(Field::Protocol, packet.protocol.into());
    flow
}

/// A generated set as rules, through the text that ClassBench writes.
pub fn rules(set: &[Filter]) -> Rules {
    let lines: String = set.iter().map(|filter| format!("{filter}\n")).collect();
    let read = text::read(lines.as_bytes(), RuleFormat::Classbench, &RuleOptions::default());
    read.expect("the generator writes what is read").rules
}
