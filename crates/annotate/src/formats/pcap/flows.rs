//! Sums packets by flow.

use std::collections::HashMap;
use std::net::IpAddr;

use fibula_packet::capture::Time;

use super::packet::{Flow, Protocol};

/// The properties that the packets of a flow share: source, destination, protocol and ports. Packets that are not IP
/// form one flow for each protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) ends: Option<(IpAddr, IpAddr)>,
    pub(super) protocol: Protocol,
    pub(super) ports: Option<(u16, u16)>,
}

/// A flow with its times and totals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) key: Key,
    pub(super) first: Option<Time>,
    pub(super) last: Option<Time>,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// The flows of a capture, in the order of their first packets.
#[derive(Debug, Default)]
pub(super) struct Flows {
    places: HashMap<Key, usize>,
    pub(super) sums: Vec<Sum>,
}

impl Flows {
    pub(super) fn add(&mut self, flow: &Flow, time: Option<Time>, bytes: u64) {
        let key = Key { ends: flow.ends, protocol: flow.protocol, ports: flow.ports };
        let place = *self.places.entry(key).or_insert(self.sums.len());
        if place == self.sums.len() {
            self.sums.push(Sum { key, first: time, last: time, packets: 0, bytes: 0 });
        }
        let sum = &mut self.sums[place];
        // Packets of several interfaces need not be in order of time.
        let order = |time: &Time| (time.seconds, time.nanos);
        sum.first = [sum.first, time].into_iter().flatten().min_by_key(order);
        sum.last = [sum.last, time].into_iter().flatten().max_by_key(order);
        sum.packets += 1;
        sum.bytes = sum.bytes.saturating_add(bytes);
    }
}
