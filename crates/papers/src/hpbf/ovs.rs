//! Megaflows and packets of a figure as files for Open vSwitch.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;

use fibula_classify::{Field, Match};
use fibula_papers::out::Failure;

use super::sets::Set;

/// Writes `flows.sh`, which puts the megaflows into the datapath of a running switch, and `packets.pcap`.
pub fn write(folder: &Path, set: &Set) -> Result<(), Failure> {
    let failed =
        |path: &Path, error: std::io::Error| Failure::from(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let mut flows = String::from("set -e\n");
    for megaflow in &set.megaflows {
        let _ =
            writeln!(flows, "ovs-appctl dpctl/add-flow netdev@ovs-netdev '{}' 2", key(megaflow));
    }
    let path = folder.join("flows.sh");
    std::fs::write(&path, flows).map_err(|error| failed(&path, error))?;
    let path = folder.join("packets.pcap");
    std::fs::write(&path, pcap(set)).map_err(|error| failed(&path, error))
}

/// A megaflow as `ovs-dpctl(8)` writes it.
fn key(megaflow: &Match) -> String {
    let (flow, mask) = (megaflow.flow(), megaflow.mask());
    let address = |field| {
        let of = |number: u128| Ipv4Addr::from_bits(number as u32);
        format!("{}/{}", of(flow.get(field)), of(mask.get(field)))
    };
    let mut key = format!(
        "recirc_id(0),in_port({}),packet_type(ns=0,id=0),eth_type(0x0800),ipv4(src={},dst={},proto=6,frag=no)",
        flow.get(Field::InPort),
        address(Field::Ipv4Src),
        address(Field::Ipv4Dst),
    );
    if mask.get(Field::DstPort) != 0 {
        let _ = write!(key, ",tcp(dst={})", flow.get(Field::DstPort));
    }
    key
}

/// The frames in their order.
fn pcap(set: &Set) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 1u32] {
        bytes.extend(word.to_le_bytes());
    }
    for frame in &set.frames {
        let len = frame.len() as u32;
        for word in [0, 0, len, len] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}
