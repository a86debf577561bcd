//! The BGP table of a router as it prints it for `show ip bgp` or `show bgp`: Cisco's systems, Quagga and FRR.
//! RouteViews publishes such texts (`oix-full-snapshot`).
//!
//! ```text
//!    Network          Next Hop            Metric LocPrf Weight Path
//! *> 10.0.0.0         192.0.2.1                0             0 64500 64501 i         no length: that of the class
//! *  198.51.100.0/24  192.0.2.1                              0 64500 {64502,64503} ?
//! *>i                 192.0.2.9              100    200      0 64504 i               another path to the same prefix
//! *> 2001:db8:100:200::/64
//!                     2001:db8::9                            0 64500 i               what is too long goes on below
//! ```
//! The names above the columns give the places of the fields: the numbers end where their names end, and each may be
//! missing. The peers are not printed. The next hop stands for the peer's address, and the first AS of a path that is
//! not internal for its AS. Several paths to a prefix by one of these peers get path identifiers, from 0.

mod row;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;

use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Update, Vrf};

use self::row::{Columns, Flags, Row, is_header, is_prompt, network};
use super::bgpdump::path_facts;
use super::{Form, excerpt};
use crate::bgp::RouteFacts;
use crate::{PeerInfo, Sink, SourceInfo};

const BROKEN_OFF: &str = "the row above this one breaks off before its path";

pub(super) fn is_line(line: &str) -> bool {
    is_header(line) || line.starts_with("BGP table version is ")
}

pub(super) struct ShowBgp {
    /// All paths, and not only those that the router has chosen.
    all: bool,
    /// Outside of a table there are none, and lines mean nothing.
    columns: Option<Columns>,
    vrf: Vrf,
    /// Numbers of routing instances, by their route distinguishers.
    vrfs: HashMap<String, Vrf>,
    /// That of the last row that has one.
    prefix: Option<AnyPrefix>,
    /// The row that goes on in the next line.
    open: Option<Row>,
    peers: HashMap<PeerInfo, u32>,
    /// The peers of the prefix's paths so far.
    taken: HashMap<u32, u32>,
    as_path: String,
}

impl ShowBgp {
    pub(super) fn new(all: bool) -> Self {
        Self {
            all,
            columns: None,
            vrf: 0,
            vrfs: HashMap::new(),
            prefix: None,
            open: None,
            peers: HashMap::new(),
            taken: HashMap::new(),
            as_path: String::new(),
        }
    }

    fn row(
        &mut self,
        line: &str,
        columns: Columns,
        sink: &mut dyn Sink,
    ) -> Result<(), Cow<'static, str>> {
        let wrong = |what: &str| Cow::from(format!("{what}: {}", excerpt(line.trim())));
        if !line.is_ascii() {
            return Err(wrong("not ASCII"));
        }
        let (lead, rest) = line.split_at(columns.network.min(line.len()));
        let flags = Flags::read(lead).ok_or_else(|| wrong("not a row of the table"))?;
        let has_network = !rest.starts_with(' ');
        let goes_on = !has_network && lead.trim_start().is_empty() && self.open.is_some();
        let broken_off = self.open.take_if(|_| !goes_on).is_some();
        let mut at = columns.network;
        let mut row = self.open.take().unwrap_or(Row { flags, next_hop: None });
        if has_network {
            let text = rest.split(' ').next().unwrap_or_default();
            at += text.len();
            self.taken.clear();
            self.prefix = network(text);
            self.prefix.ok_or_else(|| wrong("not a prefix"))?;
        }
        let prefix = self.prefix.ok_or_else(|| wrong("a path without a prefix above it"))?;
        match row.read(line, at, columns).map_err(wrong)? {
            Some(path) => self.path(prefix, row, &path, sink).map_err(wrong)?,
            None => self.open = Some(row),
        }
        if broken_off { Err(BROKEN_OFF.into()) } else { Ok(()) }
    }

    fn path(
        &mut self,
        prefix: AnyPrefix,
        row: Row,
        path: &row::Path<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), &'static str> {
        path.write(&mut self.as_path).ok_or("not an AS path")?;
        if row.flags.is_gone {
            sink.ignored("paths that are history");
            return Ok(());
        }
        if !self.all && !row.flags.is_best {
            sink.ignored("paths that the router did not choose");
            return Ok(());
        }
        let (origin_as, as_path_len, facts) = path_facts(&self.as_path);
        let next_hop = row.next_hop.filter(|address| !address.is_unspecified());
        RouteFacts { path: Some(facts), next_hop }.note(None, sink);
        let first = self.as_path.split(' ').next().and_then(|asn| asn.parse().ok());
        let asn = first.filter(|_| !row.flags.is_internal).unwrap_or(0);
        let peer = self.peer(PeerInfo::new(next_hop, asn, None), sink);
        let next = self.taken.entry(peer).or_insert(0);
        let path_id = *next;
        *next += 1;
        let attributes = BgpAttributes {
            next_hop,
            origin_as,
            as_path_len,
            as_path: &self.as_path,
            local_pref: path.local_pref,
            med: path.metric,
            origin: Some(path.origin),
            best: Some(row.flags.is_best),
            ..BgpAttributes::default()
        };
        let change = Change::Announce(Attributes::Bgp(&attributes));
        sink.update(&Update { vrf: self.vrf, peer, path_id, ..Update::new(prefix, change) });
        Ok(())
    }

    /// `Route Distinguisher: 64500:1 (default for vrf blue)`
    fn enter(&mut self, distinguisher: &str, sink: &mut dyn Sink) {
        let name = distinguisher.split_whitespace().next().unwrap_or_default();
        let next = self.vrfs.len() as Vrf + 1;
        self.vrf = *self.vrfs.entry(name.to_owned()).or_insert_with(|| {
            sink.vrf(next, name);
            next
        });
        self.prefix = None;
    }

    fn peer(&mut self, peer: PeerInfo, sink: &mut dyn Sink) -> u32 {
        // Each takes a line: 2^32 of them do not occur.
        let next = self.peers.len() as u32;
        *self.peers.entry(peer).or_insert_with_key(|peer| {
            sink.peer(next, peer);
            next
        })
    }
}

impl Form for ShowBgp {
    fn info(&self) -> SourceInfo {
        SourceInfo { format: "show-bgp", bgp: true, ..SourceInfo::default() }
    }

    fn line(&mut self, line: &str, sink: &mut dyn Sink) -> Result<(), Cow<'static, str>> {
        if is_header(line) {
            self.columns = Columns::of(line);
            self.prefix = None;
        } else if let Some(rest) = line.strip_prefix("Route Distinguisher:") {
            self.enter(rest, sink);
        } else if is_end(line) {
            (self.columns, self.vrf) = (None, 0);
        } else {
            let Some(columns) = self.columns else { return Ok(()) };
            return self.row(line, columns, sink);
        }
        if self.open.take().is_some() { Err(BROKEN_OFF.into()) } else { Ok(()) }
    }

    fn end(&mut self) -> Result<(), Cow<'static, str>> {
        match self.open.take() {
            Some(_) => Err("the last row breaks off before its path".into()),
            None => Ok(()),
        }
    }
}

/// What routers print below a table, and the prompt at which the next command is typed.
fn is_end(line: &str) -> bool {
    ["Total number of prefixes", "Displayed ", "Processed "].iter().any(|end| line.starts_with(end))
        || is_prompt(line)
}
