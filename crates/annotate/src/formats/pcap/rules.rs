//! Rows of packets whose keys are flows, for the rules of a packet filter.

use fibula_classify::Flow;
use fibula_packet::capture::Packet;
use fibula_packet::{Frame, LinkType};

use super::PacketRows;
use crate::block::{Block, Row, RowKind};
use crate::rules::{FlowKeys, write_flow};

/// The columns of a packet's row.
const HEADER: &[u8] = b"packet,src,dst,protocol,src_port,dst_port\n";

/// Rows with the flows of packets as keys: all fields that a rule may need.
pub(crate) struct FlowRows {
    names: Vec<String>,
    /// Whether rows are written.
    writes: bool,
}

impl FlowRows {
    pub(super) fn new(writes: bool) -> Self {
        let names = ["src", "dst", "protocol", "src_port", "dst_port"];
        Self { names: names.map(str::to_owned).into(), writes }
    }
}

impl PacketRows for FlowRows {
    type Keys = FlowKeys;

    fn names(&self) -> &[String] {
        &self.names
    }

    fn header(&self) -> &'static [u8] {
        if self.writes { HEADER } else { b"" }
    }

    fn packet(
        &mut self,
        number: u64,
        link: Option<LinkType>,
        packet: &Packet<'_>,
        block: &mut Block<FlowKeys>,
    ) {
        let flow = link.map_or(Flow::default(), |link| {
            Flow::from(&Frame::parse_captured(link, packet.data, packet.length as usize))
        });
        let start = block.text.len();
        let mut insert = start;
        if self.writes {
            write_flow(number, &flow, &mut block.text);
            insert = block.text.len();
            block.text.push(b'\n');
        }
        let end = block.text.len();
        block.keys.packet(flow, packet.length);
        block.keyed_row(Row { start, insert, end, pad: 0, kind: RowKind::Annotate });
    }

    fn fork(&self) -> Option<Self> {
        Some(Self { names: self.names.clone(), writes: self.writes })
    }
}
