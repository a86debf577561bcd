//! The routes of a prefix: every peer's path, and the reason why the best path is best.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::Arc;
use std::{iter, vec};

use fibula_core::{Addr, AnyPrefix, Prefix, Vrf};
use fibula_rib::{Decision, Rib};

use crate::convert::Names;
use crate::http::answer::{Answer, JSON, Refusal, in_parts};
use crate::http::params::{Params, prefix};
use crate::http::parts::text;
use crate::site::Site;
use crate::table::{TableName, tables};

/// Default and maximum number of prefixes of a table in an answer.
pub(crate) const LIMIT: usize = 100;
pub(crate) const MOST: u64 = 1000;

pub(crate) const VIEWS: &[&str] = &["exact", "covering", "covered"];

/// Maximum number of prefixes that are read under one lock of the RIB, and the number of paths after which it is
/// released.
const STEP: usize = 64;
const PATHS: usize = 1024;
/// Maximum number of paths that are written at once.
const WRITTEN: usize = 64;
/// The memory of a path, its peer and the peer's name, and the maximum that is counted for the paths of a prefix.
const PATH_BYTES: usize = 256;
const PATHS_BYTES: usize = 4 << 20;

pub(crate) fn routes(site: &Arc<Site>, params: &Params) -> Answer {
    let prefix = prefix(&params.rest)?;
    let name = params.text("view").unwrap_or(VIEWS[0]);
    let view = VIEWS.iter().find(|known| **known == name).copied().unwrap_or(VIEWS[0]);
    let limit = params.number("limit").map_or(LIMIT, |limit| limit as usize);
    let table = params.text("table");
    let vrfs = site.live.with_rib(|rib| tables(rib, table))?;
    let peers = site.live.with_rib(|rib| rib.peers().len());
    // A prefix has a path of each peer at most, or a few.
    let held = vrfs.len() * size_of::<Vrf>() + (peers * PATH_BYTES).min(PATHS_BYTES);
    let site = Arc::clone(site);
    let tables: Box<dyn Iterator<Item = Vec<u8>> + Send> = match (prefix, params.prefix("after")?) {
        (AnyPrefix::V4(prefix), None) => {
            Box::new(of_tables(site, vrfs, (prefix, view), None, limit))
        }
        (AnyPrefix::V6(prefix), None) => {
            Box::new(of_tables(site, vrfs, (prefix, view), None, limit))
        }
        (AnyPrefix::V4(prefix), Some(AnyPrefix::V4(after))) => {
            Box::new(of_tables(site, vrfs, (prefix, view), Some(after), limit))
        }
        (AnyPrefix::V6(prefix), Some(AnyPrefix::V6(after))) => {
            Box::new(of_tables(site, vrfs, (prefix, view), Some(after), limit))
        }
        (prefix, Some(after)) => {
            let what =
                format_args!("the parameter after is {after}, of another family than {prefix}");
            return Err(Refusal::bad(what));
        }
    };
    let head = format!("{{\"prefix\":\"{prefix}\",\"view\":\"{view}\",\"tables\":[");
    Ok(in_parts(JSON, held, text(head).chain(tables).chain(text("]}"))))
}

/// The JSON of the tables, in parts.
fn of_tables<A: Addr>(
    site: Arc<Site>,
    vrfs: Vec<Vrf>,
    view: (Prefix<A>, &'static str),
    after: Option<Prefix<A>>,
    limit: usize,
) -> impl Iterator<Item = Vec<u8>> {
    let mut vrfs: vec::IntoIter<Vrf> = vrfs.into_iter();
    let mut is_first = true;
    let mut walk: Option<Walk<A>> = None;
    iter::from_fn(move || {
        let Some(current) = &mut walk else {
            let vrf = vrfs.next()?;
            let name = site.live.with_rib(|rib| TableName::of(rib, vrf)).to_string();
            walk = Some(Walk::new(vrf, view, after, limit));
            let comma = if std::mem::take(&mut is_first) { "" } else { "," };
            let name = serde_json::Value::from(name);
            return Some(format!("{comma}{{\"table\":{name},\"routes\":[").into_bytes());
        };
        if let Some(part) = current.next(&site) {
            return Some(part);
        }
        let truncated = current.truncated;
        walk = None;
        Some(format!("],\"truncated\":{truncated}}}").into_bytes())
    })
}

/// The prefixes of a table that a view has, read in steps, each under one lock of the RIB.
struct Walk<A: Addr> {
    vrf: Vrf,
    view: (Prefix<A>, &'static str),
    /// The last prefix that was read.
    after: Option<Prefix<A>>,
    /// Number of prefixes that may still be read.
    limit: usize,
    /// Prefixes that were read, and whether there are no others to read.
    prefixes: VecDeque<Prefix<A>>,
    is_read: bool,
    truncated: bool,
    /// The decisions of the next prefixes, the names in them, and the number of written paths of the first one.
    found: VecDeque<(Prefix<A>, Decision)>,
    names: Option<Names>,
    written: usize,
    is_first: bool,
}

impl<A: Addr> Walk<A> {
    fn new(
        vrf: Vrf,
        view: (Prefix<A>, &'static str),
        after: Option<Prefix<A>>,
        limit: usize,
    ) -> Self {
        let (prefixes, found) = (VecDeque::new(), VecDeque::new());
        let (is_read, truncated, names, written, is_first) = (false, false, None, 0, true);
        Self {
            vrf,
            view,
            after,
            limit,
            prefixes,
            is_read,
            truncated,
            found,
            names,
            written,
            is_first,
        }
    }

    /// Reads the next prefixes of the view.
    fn read(&mut self, rib: &Rib) {
        let (prefix, view) = self.view;
        let step = self.limit.min(STEP);
        let mut found: Vec<Prefix<A>> = match view {
            "covering" => {
                let all = rib.covering(self.vrf, prefix).into_iter();
                all.map(|(found, _)| found).collect()
            }
            "covered" => {
                let from = self.after.map_or(prefix, |after| after.max(prefix));
                // The last one again, and one more, which shows whether there are more.
                let mut found = rib.part(self.vrf, from, step + 2);
                found.retain(|&found| prefix.covers(found) && Some(found) != self.after);
                found
            }
            _ => vec![prefix],
        };
        let most = if view == "covered" { step } else { self.limit };
        let has_more = found.len() > most;
        found.truncate(most);
        self.limit -= found.len();
        self.after = found.last().copied().or(self.after);
        self.is_read = view != "covered" || !has_more || self.limit == 0;
        self.truncated = has_more && self.is_read;
        self.prefixes = found.into();
    }

    fn decide(&mut self, rib: &Rib) {
        if self.prefixes.is_empty() {
            self.read(rib);
        }
        let mut paths = 0;
        while paths < PATHS
            && let Some(prefix) = self.prefixes.pop_front()
        {
            if let Some(why) = rib.explain(self.vrf, prefix) {
                paths += why.paths().len();
                self.found.push_back((prefix, why));
            }
        }
        let all = self.found.iter().flat_map(|(_, why)| why.paths());
        self.names = Some(Names::of(rib, all.map(|(path, _)| path.peer)));
    }

    /// The next part of the array of routes.
    fn next(&mut self, site: &Site) -> Option<Vec<u8>> {
        while self.found.is_empty() {
            if self.is_read && self.prefixes.is_empty() {
                return None;
            }
            site.live.with_rib(|rib| self.decide(rib));
            self.names = self.names.take().map(|names| site.validated(names));
        }
        let ((prefix, why), names) = (self.found.front()?, self.names.as_ref()?);
        let (paths, begin) = (why.paths(), self.written);
        let end = paths.len().min(begin + WRITTEN);
        let mut part = Vec::new();
        if begin == 0 {
            let comma = if std::mem::take(&mut self.is_first) { "" } else { "," };
            let _ = write!(part, "{comma}{{\"prefix\":\"{prefix}\",\"paths\":[");
        }
        for (at, path) in (begin..end).zip(&paths[begin..end]) {
            if at > 0 {
                part.push(b',');
            }
            let _ = serde_json::to_writer(&mut part, &names.path(A::any(*prefix), path));
        }
        self.written = end;
        if end == paths.len() {
            let why = serde_json::Value::from(why.to_string());
            let _ = write!(part, "],\"why\":{why}}}");
            self.found.pop_front();
            self.written = 0;
        }
        Some(part)
    }
}
