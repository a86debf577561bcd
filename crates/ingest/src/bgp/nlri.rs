//! Lists of routes in a message: prefixes (RFC 4271, 4.3), with path identifiers (RFC 7911), and in VPNs with
//! labels and route distinguishers (RFC 4364, RFC 4659, RFC 8277).

use fibula_core::{Change, Update};

use super::attributes::MpRoutes;
use super::cursor::{Afi, Cursor, DecodeFault};
use super::message::{AddPath, PeerEncoding};
use super::vrf::Vrfs;
use crate::Sink;

/// Why routes of another family are ignored.
pub(crate) const OTHER_FAMILY: &str = "routes of other address families than IPv4 and IPv6 unicast";
const VPN: u8 = 128;

/// A list of routes of one family.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nlri<'a> {
    afi: Afi,
    is_vpn: bool,
    list: Cursor<'a>,
}

impl<'a> Nlri<'a> {
    /// Routes in the fields that an UPDATE itself has.
    pub(super) fn plain(list: Cursor<'a>) -> Self {
        Self { afi: Afi::V4, is_vpn: false, list }
    }

    /// Routes in an attribute, if they are of a family that is read: unicast and, if `with_vpns`, VPNs.
    pub(super) fn multiprotocol(routes: MpRoutes<'a>, with_vpns: bool) -> Option<Self> {
        let afi = Afi::from_code(routes.afi)?;
        let is_vpn = routes.safi == VPN && with_vpns;
        (routes.safi == 1 || is_vpn).then_some(Self { afi, is_vpn, list: routes.nlri })
    }

    /// Gives the sink an update for each route. Without `vrfs` there is one table.
    pub(super) fn emit(
        self,
        from: PeerEncoding,
        change: Change<'_>,
        time: u64,
        mut vrfs: Option<&mut Vrfs>,
        sink: &mut dyn Sink,
    ) -> Result<(), DecodeFault> {
        let Self { afi, is_vpn, mut list } = self;
        let add_path = match from.add_path(afi, is_vpn) {
            AddPath::Absent => false,
            AddPath::Present => true,
            AddPath::Unknown => self.is_undeclared_add_path(),
        };
        let mut number = |rd, sink: &mut dyn Sink| match &mut vrfs {
            Some(vrfs) => vrfs.number((from.view, rd), sink),
            None => Some(0),
        };
        let mut vrf = None;
        if !is_vpn && !list.is_empty() {
            vrf = number(from.rd, sink);
        }
        while !list.is_empty() {
            let path_id = if add_path { list.u32("path identifier")? } else { 0 };
            let prefix = if is_vpn {
                let (rd, prefix) = list.vpn_prefix(afi)?;
                vrf = number(Some(rd), sink);
                prefix
            } else {
                list.prefix(afi)?
            };
            if let Some(vrf) = vrf {
                let update = Update { vrf, peer: from.peer, path_id, time, prefix, change };
                sink.update(&update);
            }
        }
        Ok(())
    }

    /// Whether the list has path identifiers that were not announced. Before RFC 8050 defined MRT records for them,
    /// BIRD and others wrote such lists into ordinary records, and a BMP stream may begin after the message that
    /// announces them. Read without identifiers, the zeros of a small identifier are several default routes in a row,
    /// or the list does not end at its length; read with them, the whole list is valid.
    fn is_undeclared_add_path(self) -> bool {
        let defaults = self.walk(false);
        defaults.is_none_or(|defaults| defaults > 1) && self.walk(true).is_some()
    }

    /// How many default routes there are; `None` if the list makes no sense.
    fn walk(mut self, has_ids: bool) -> Option<u32> {
        let (list, mut defaults) = (&mut self.list, 0);
        while !list.is_empty() {
            if has_ids {
                list.u32("path identifier").ok()?;
            }
            defaults += u32::from(list.rest().first() == Some(&0));
            match self.is_vpn {
                true => list.vpn_prefix(self.afi).map(drop).ok()?,
                false => list.prefix(self.afi).map(drop).ok()?,
            }
        }
        Some(defaults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collected;

    const RD: [u8; 8] = [0, 0, 0xfd, 0xe8, 0, 0, 0, 1];

    /// The routes of an attribute's list, with the names of the instances.
    fn routes(afi: u16, bytes: &[u8], from: PeerEncoding) -> (Option<DecodeFault>, Vec<String>) {
        let routes = MpRoutes { afi, safi: VPN, nlri: Cursor::new(bytes) };
        let (mut sink, mut vrfs) = (Collected::default(), Vrfs::default());
        let nlri = Nlri::multiprotocol(routes, true).unwrap();
        let fault = nlri.emit(from, Change::Withdraw, 0, Some(&mut vrfs), &mut sink).err();
        (fault, [sink.vrfs, sink.lines].concat())
    }

    #[test]
    fn vpn_routes() {
        let route = |labels: &[u8], bits: u8, prefix: &[u8]| {
            let len = bits + 64 + 8 * labels.len() as u8;
            [&[len], labels, &RD, prefix].concat()
        };
        let list = [
            route(&[0, 0x10, 1], 24, &[192, 0, 2]),
            // Two labels; the label of withdrawals; a default route with label 0.
            route(&[0, 0x10, 0, 0, 0x20, 1], 9, &[10, 128]),
            route(&[0x80, 0, 0], 32, &[10, 0, 0, 1]),
            route(&[0, 0, 0], 0, &[]),
        ]
        .concat();
        let from = PeerEncoding { view: "pre-policy", ..PeerEncoding::default() };
        let (fault, lines) = routes(1, &list, from);
        assert_eq!(fault, None);
        let wanted = [
            "1 = pre-policy/65000:1",
            "- 0 192.0.2.0/24 of 1",
            "- 0 10.128.0.0/9 of 1",
            "- 0 10.0.0.1/32 of 1",
            "- 0 0.0.0.0/0 of 1",
        ];
        assert_eq!(lines, wanted);
        let with_id = [&[0, 0, 0, 9][..], &route(&[0, 0x10, 1], 16, &[0x20, 1])].concat();
        for add_path in [AddPath::Present, AddPath::Unknown] {
            let from = PeerEncoding { add_path_vpn_v6: add_path, ..PeerEncoding::default() };
            let (fault, lines) = routes(2, &with_id, from);
            assert_eq!(fault, None);
            assert_eq!(lines, ["1 = 65000:1", "- 0 2001::/16#9 of 1"]);
        }
    }

    #[test]
    fn malformed_vpn_routes() {
        let what =
            |bytes: &[u8]| routes(1, bytes, PeerEncoding::default()).0.map(|f| f.what.into_owned());
        let long = [&[121, 0, 0x10, 1][..], &RD, &[10; 5]].concat();
        assert_eq!(what(&long).unwrap(), "prefix length 33 exceeds 32");
        assert_eq!(what(&[87, 0, 0x10, 1]).unwrap(), "VPN route needs 11 bytes, 3 are left");
        let short = [&[80, 0, 0x10, 1][..], &RD[..7]].concat();
        assert_eq!(what(&short).unwrap(), "route distinguisher needs 8 bytes, 7 are left");
        // No label ends the stack.
        assert_eq!(
            what(&[&[72][..], &[2; 9]].concat()).unwrap(),
            "label needs 3 bytes, 0 are left"
        );
    }
}
