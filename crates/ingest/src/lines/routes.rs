//! A kernel's routes in the output of its tools: `ip route`, `ip -6 route`, `route -n`, `netstat -rn`, also of BSD.
//!
//! ```text
//! default via 192.0.2.1 dev eth0 proto dhcp metric 100      ip route
//! 10.0.0.0/8 dev eth1 scope link
//! blackhole 198.51.100.0/24
//! 203.0.113.0/24 proto bird                                  next hops on the lines behind
//!         nexthop via 192.0.2.1 dev eth0 weight 1
//!
//! Destination     Gateway         Genmask         Flags Metric Ref    Use Iface
//! 10.0.0.0        192.0.2.1       255.0.0.0       UG    0      0        0 eth0
//!
//! Destination        Gateway            Flags     Netif Expire          netstat -rn of BSD
//! 192.168.1          link#1             U           em0                 192.168.1.0/24
//! ```
//! If a prefix has several routes, the one with the lowest metric is used, as in the kernel.

mod headed;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_core::{Addr, AnyPrefix, Attributes, Change, ColumnKind, Update, Value};

use self::headed::{Columns, by_columns, is_header};
use super::{Form, excerpt};
use crate::{ColumnDecl, Sink, SourceInfo};

const KINDS: [&str; 11] = [
    "unicast",
    "local",
    "broadcast",
    "anycast",
    "multicast",
    "throw",
    "unreachable",
    "prohibit",
    "blackhole",
    "nat",
    "unknown",
];
const COLUMNS: [(&str, ColumnKind); 4] = [
    ("gateway", ColumnKind::Str),
    ("interface", ColumnKind::Str),
    ("metric", ColumnKind::Int),
    ("kind", ColumnKind::Str),
];
const V4: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

pub(super) fn is_line(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_kernel = line.starts_with("Kernel IP") && line.contains("routing table");
    if is_kernel || is_title(line) || is_header(&words) {
        return true;
    }
    let words = match *words {
        [kind, ref rest @ ..] if KINDS.contains(&kind) => {
            return rest.first().is_some_and(|word| destination(word, None).is_some());
        }
        _ => &words[..],
    };
    matches!(*words, [to, "via" | "dev" | "proto" | "scope" | "metric" | "nhid", ..]
        if destination(to, None).is_some())
}

/// Lines of BSD's `netstat -rn` above the headers of its families.
fn is_title(line: &str) -> bool {
    matches!(line.trim(), "Routing tables" | "Internet:" | "Internet6:")
}

/// The prefix of a destination; `default` is of this family, or IPv4.
fn destination(text: &str, family: Option<IpAddr>) -> Option<AnyPrefix> {
    if text == "default" {
        let ip = family.unwrap_or(V4);
        return AnyPrefix::masked(ip, 0).ok();
    }
    match text.split_once('/') {
        Some((ip, len)) => AnyPrefix::new(ip.parse().ok()?, len.parse().ok()?).ok(),
        None => Some(AnyPrefix::host(text.parse().ok()?)),
    }
}

#[derive(Default)]
pub(super) struct Routes {
    /// The lowest metric of each prefix.
    metrics: HashMap<AnyPrefix, u64>,
    /// `route -n` prints columns, for IPv6 others than for IPv4.
    columns: Option<Columns>,
    /// An address of the family of the routes so far.
    family: Option<IpAddr>,
    /// The route whose next hops stand on the lines behind it.
    open: Option<Route>,
}

/// A route as it is announced.
struct Route {
    to: AnyPrefix,
    gateway: Option<String>,
    interface: Option<String>,
    metric: u64,
    kind: String,
}

/// Where a route leads: `via 192.0.2.1 dev eth0 metric 100` and words that do not matter here.
#[derive(Default)]
struct Hop {
    gateway: Option<String>,
    interface: Option<String>,
    metric: u64,
    /// An address of the route's family, if the words contain one.
    family: Option<IpAddr>,
}

impl Hop {
    fn read(words: &[&str]) -> Option<Self> {
        let mut hop = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                // `via inet6 fe80::1`: the family is printed if it is not that of the route.
                "via" => match *words.next()? {
                    "inet6" => hop.go_by(words.next()?, Some(V4)),
                    "inet" => hop.go_by(words.next()?, Some(V6)),
                    gateway => hop.go_by(gateway, gateway.parse().ok()),
                },
                // Only IPv6 routes have a preference.
                "pref" => hop.family = Some(V6),
                "dev" => hop.interface = Some((*words.next()?).to_owned()),
                "metric" => hop.metric = words.next()?.parse().ok()?,
                _ => {}
            }
        }
        Some(hop)
    }

    fn go_by(&mut self, gateway: &str, family: Option<IpAddr>) {
        self.gateway = Some(gateway.to_owned());
        self.family = family;
    }
}

impl Form for Routes {
    /// The lowest metric counts, and more next hops stand on lines of their own.
    fn takes(&self) -> bool {
        true
    }

    fn info(&self) -> SourceInfo {
        let decl = |(name, kind): (&str, ColumnKind)| ColumnDecl { name: name.to_owned(), kind };
        let columns = COLUMNS.map(decl).to_vec();
        SourceInfo { format: "routes", columns, ..SourceInfo::default() }
    }

    fn line(&mut self, line: &str, sink: &mut dyn Sink) -> Result<(), Cow<'static, str>> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with("Kernel IP") || is_title(line) {
            return Ok(());
        }
        if is_header(&words) {
            self.columns = Some(Columns::of(&words));
            return Ok(());
        }
        let is_next_hop = words[0] == "nexthop" && self.columns.is_none();
        let route = match self.columns {
            Some(columns) => by_columns(&words, columns),
            None if is_next_hop => self.next_hop(&words[1..]),
            None => self.by_words(&words),
        };
        let Some(route) = route else {
            self.open = None;
            return Err(format!("not a route: {}", excerpt(line.trim())).into());
        };
        match self.metrics.get(&route.to) {
            Some(&known) if !is_next_hop && known <= route.metric => {
                sink.ignored("routes with a higher metric than another to the same prefix");
                self.open = None;
            }
            _ => {
                self.metrics.insert(route.to, route.metric);
                route.announce(sink);
                self.open = Some(route);
            }
        }
        Ok(())
    }
}

impl Routes {
    fn by_words(&mut self, words: &[&str]) -> Option<Route> {
        let (kind, words) = match *words {
            [kind, ref rest @ ..] if KINDS.contains(&kind) => (kind, rest),
            _ => ("unicast", words),
        };
        let [to, ref attributes @ ..] = *words else { return None };
        let Hop { gateway, interface, metric, family } = Hop::read(attributes)?;
        let to = destination(to, family.or(self.family))?;
        self.family = Some(match to {
            AnyPrefix::V4(prefix) => prefix.addr().to_ip(),
            AnyPrefix::V6(prefix) => prefix.addr().to_ip(),
        });
        Some(Route { to, gateway, interface, metric, kind: kind.to_owned() })
    }

    /// Another next hop of the route before, which then has all of them, in order.
    fn next_hop(&mut self, words: &[&str]) -> Option<Route> {
        let mut route = self.open.take()?;
        let hop = Hop::read(words)?;
        for (all, one) in [(&mut route.gateway, hop.gateway), (&mut route.interface, hop.interface)]
        {
            let one = one.unwrap_or_else(|| "-".to_owned());
            *all = Some(all.take().map_or_else(|| one.clone(), |all| format!("{all} {one}")));
        }
        Some(route)
    }
}

impl Route {
    fn announce(&self, sink: &mut dyn Sink) {
        let values = [
            self.gateway.as_deref().map_or(Value::Null, Value::Str),
            self.interface.as_deref().map_or(Value::Null, Value::Str),
            Value::Int(self.metric),
            Value::Str(&self.kind),
        ];
        sink.update(&Update::new(self.to, Change::Announce(Attributes::Values(&values))));
    }
}
