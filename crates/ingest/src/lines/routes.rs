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

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_core::{Addr, AnyPrefix, Attributes, Change, ColumnKind, Prefix, Update, Value};

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
const ROUTE_HEADERS: [&str; 3] =
    ["Destination Gateway Genmask", "Destination Next Hop Flag", "Destination Gateway Flags"];

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

fn is_header(words: &[&str]) -> bool {
    let line = words.join(" ");
    ROUTE_HEADERS.iter().any(|header| line.starts_with(header))
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

/// The columns of a header, by their positions among the words of a row.
#[derive(Clone, Copy)]
struct Columns {
    family: Headed,
    /// `netstat` has none.
    metric: Option<usize>,
    interface: Option<usize>,
}

/// Whose header it is.
#[derive(Clone, Copy, PartialEq)]
enum Headed {
    V4,
    V6,
    Bsd,
}

impl Columns {
    fn of(words: &[&str]) -> Self {
        let family = match words.get(1..3) {
            Some(["Gateway", "Genmask"]) => Headed::V4,
            Some(["Gateway", "Flags"]) => Headed::Bsd,
            _ => Headed::V6,
        };
        // `Next Hop` is one column.
        let spare = usize::from(family == Headed::V6);
        let at = |names: &[&str]| Some(words.iter().position(|word| names.contains(word))? - spare);
        Self {
            family,
            metric: at(&["Metric", "Met"]),
            interface: at(&["Iface", "If", "Netif", "Interface"]),
        }
    }
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

fn by_columns(words: &[&str], columns: Columns) -> Option<Route> {
    let some = |text: &str| match text {
        "0.0.0.0" | "*" | "::" | "[::]" | "-" => None,
        text if text.starts_with("link#") => None,
        text => Some(text.to_owned()),
    };
    let (to, gateway, flags) = match columns.family {
        Headed::V4 => {
            let [to, gateway, mask, flags, ..] = *words else { return None };
            let len = u32::from(mask.parse::<Ipv4Addr>().ok()?);
            let len = (len.leading_ones() == len.count_ones()).then(|| len.count_ones() as u8)?;
            let addr = if to == "default" { 0 } else { to.parse::<Ipv4Addr>().ok()?.into() };
            (Prefix::<u32>::new(addr, len).ok()?.into(), gateway, flags)
        }
        Headed::V6 => {
            let [to, gateway, flags, ..] = *words else { return None };
            let unspecified = to.strip_prefix("[::]").map(|len| format!("::{len}"));
            (destination(unspecified.as_deref().unwrap_or(to), Some(V6))?, gateway, flags)
        }
        Headed::Bsd => {
            let [to, gateway, flags, ..] = *words else { return None };
            (of_bsd(to, gateway)?, gateway, flags)
        }
    };
    let metric = match columns.metric.map(|at| words.get(at)) {
        None => 0,
        // The kernel's own reject routes: the last of all.
        Some(Some(&"-1")) => u32::MAX.into(),
        Some(text) => text?.parse().ok()?,
    };
    let is_bsd = columns.family == Headed::Bsd;
    let kind = match flags {
        _ if flags.contains('!') || (is_bsd && flags.contains('R')) => "unreachable",
        _ if is_bsd && flags.contains('B') => "blackhole",
        _ => "unicast",
    };
    let interface = columns.interface.and_then(|at| words.get(at)).and_then(|text| some(text));
    Some(Route { to, gateway: some(gateway), interface, metric, kind: kind.to_owned() })
}

/// A destination of BSD: zeros at the end of an IPv4 network may be left out (`10/8`, `192.168.1`). Without a length,
/// the octets that are there give it; scopes are those of link-local networks (`fe80::%em0/64`).
fn of_bsd(text: &str, gateway: &str) -> Option<AnyPrefix> {
    if text == "default" {
        let is_v6 = gateway.contains(':') && !gateway.starts_with("link");
        return destination(text, is_v6.then_some(V6));
    }
    if text.contains(':') {
        let (address, len) = text.split_once('/').map_or((text, None), |(ip, len)| (ip, Some(len)));
        let address = address.split('%').next()?.parse::<Ipv6Addr>().ok()?;
        let len = len.map_or(Some(128), |len| len.parse().ok())?;
        return AnyPrefix::new(address.into(), len).ok();
    }
    let (octets, len) = text.split_once('/').map_or((text, None), |(ip, len)| (ip, Some(len)));
    let mut address = [0u8; 4];
    let mut count = 0;
    for octet in octets.split('.') {
        *address.get_mut(count)? = octet.parse().ok()?;
        count += 1;
    }
    let len = len.map_or(Some(count as u8 * 8), |len| len.parse().ok())?;
    AnyPrefix::new(Ipv4Addr::from(address).into(), len).ok()
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

#[cfg(test)]
mod tests {
    use super::super::decode;
    use crate::Format;

    #[test]
    fn ip_route() {
        let sink = decode(
            Format::Routes,
            "default via 192.0.2.1 dev eth0 proto dhcp metric 100\n\
             default via 192.0.2.9 dev eth1 metric 200\n\
             10.0.0.0/8 dev eth1 proto kernel scope link src 10.0.0.9\n\
             192.0.2.77 via inet6 fe80::1 dev eth0 onlink\n\
             blackhole 198.51.100.0/24\n\
             203.0.113.0/24 proto bird metric 32\n\
             \tnexthop via 192.0.2.1 dev eth0 weight 1\n\
             \tnexthop dev ppp0 weight 1\n",
        );
        assert_eq!(
            sink.lines,
            [
                "0.0.0.0/0 = 192.0.2.1, eth0, 100, unicast",
                "10.0.0.0/8 = null, eth1, 0, unicast",
                "192.0.2.77/32 = fe80::1, eth0, 0, unicast",
                "198.51.100.0/24 = null, null, 0, blackhole",
                "203.0.113.0/24 = null, null, 32, unicast",
                "203.0.113.0/24 = 192.0.2.1, eth0, 32, unicast",
                "203.0.113.0/24 = 192.0.2.1 -, eth0 ppp0, 32, unicast",
            ]
        );
        assert_eq!((sink.damage.len(), sink.ignored), (0, 1));
        let sink = decode(
            Format::Routes,
            "fe80::/64 dev eth0 proto kernel metric 256 pref medium\ndefault dev tun0 metric 1024\n\
             nonsense\nnexthop via ::1\n10.0.0.1/8 dev x\n",
        );
        assert_eq!(sink.lines[1], "::/0 = null, tun0, 1024, unicast");
        assert_eq!((sink.lines.len(), sink.damage.len()), (2, 3));
    }

    #[test]
    fn the_family_of_the_default_route() {
        for (text, to) in [
            ("default via inet6 fe80::1 dev eth0", "0.0.0.0/0"),
            ("default dev wg0 metric 1024 pref medium", "::/0"),
            ("default via fe80::1 dev eth0 metric 1024 pref medium", "::/0"),
            ("default via inet 192.0.2.1 dev eth0 pref high", "::/0"),
            ("fe80::/64 dev eth0\ndefault via inet6 fe80::1 dev eth0", "0.0.0.0/0"),
            ("default dev ppp0 scope link", "0.0.0.0/0"),
            ("blackhole default metric 1024 pref medium", "::/0"),
        ] {
            let sink = decode(Format::Routes, &format!("{text}\n"));
            let line = sink.lines.last().expect("a route");
            assert_eq!((line.split(' ').next(), sink.damage.len()), (Some(to), 0), "{text}");
        }
        // The next lines have the same family.
        let text = "default dev wg0 metric 1024 pref medium\n2001:db8::/32 dev wg0 metric 1024 pref medium\n";
        let sink = decode(Format::Routes, text);
        let expected =
            ["::/0 = null, wg0, 1024, unicast", "2001:db8::/32 = null, wg0, 1024, unicast"];
        assert_eq!(sink.lines, expected);
    }

    #[test]
    fn route_n() {
        let sink = decode(
            Format::Routes,
            "Kernel IP routing table\n\
             Destination     Gateway         Genmask         Flags Metric Ref    Use Iface\n\
             0.0.0.0         192.0.2.1       0.0.0.0         UG    100    0        0 eth0\n\
             10.0.0.0        0.0.0.0         255.0.0.0       U     0      0        0 eth1\n\
             198.51.100.0    -               255.255.255.0   !     200    -        0 -\n\
             10.0.0.0        0.0.0.0         255.0.255.0     U     0      0        0 eth1\n",
        );
        assert_eq!(
            sink.lines,
            [
                "0.0.0.0/0 = 192.0.2.1, eth0, 100, unicast",
                "10.0.0.0/8 = null, eth1, 0, unicast",
                "198.51.100.0/24 = null, null, 200, unreachable",
            ]
        );
        assert_eq!(sink.damage.len(), 1);
        let sink = decode(
            Format::Routes,
            "Kernel IPv6 routing table\n\
             Destination                    Next Hop                   Flag Met Ref Use If\n\
             2001:db8::/32                  [::]                       U    256 1     0 eth0\n\
             [::]/0                         fe80::1                    UG   1024 1    0 eth0\n",
        );
        assert_eq!(
            sink.lines,
            ["2001:db8::/32 = null, eth0, 256, unicast", "::/0 = fe80::1, eth0, 1024, unicast"]
        );
    }

    #[test]
    fn columns_by_the_header() {
        let sink = decode(
            Format::Routes,
            "Kernel IP routing table\n\
             Destination     Gateway         Genmask         Flags Metric Ref    Use Iface    MSS   Window irtt\n\
             10.0.0.0        192.0.2.1       255.0.0.0       UG    100    0        0 eth0     0     0      0\n",
        );
        assert_eq!(sink.lines, ["10.0.0.0/8 = 192.0.2.1, eth0, 100, unicast"]);
        let sink = decode(
            Format::Routes,
            "Kernel IPv6 routing table\n\
             Destination                    Next Hop                   Flag Met Ref Use If\n\
             [::]/96                        [::]                       !n   -1  1     0 lo\n\
             ::/0                           fe80::1                    UG   1024 1    0 eth0\n",
        );
        assert_eq!(
            sink.lines,
            ["::/96 = null, lo, 4294967295, unreachable", "::/0 = fe80::1, eth0, 1024, unicast"]
        );
        assert_eq!(sink.damage.len(), 0);
    }

    #[test]
    fn bsd() {
        let sink = decode(
            Format::Routes,
            "Routing tables\n\nInternet:\n\
             Destination        Gateway            Flags     Netif Expire\n\
             default            192.168.1.1        UGS         em0\n\
             10/8               192.168.1.9        UGS         em0\n\
             127.0.0.1          link#2             UH          lo0\n\
             169.254            link#1             UCS         em0      !\n\
             192.168.1          link#1             U           em0\n\
             198.51.100.0/24    127.0.0.1          UGSB        lo0\n\n\
             Internet6:\n\
             Destination                       Gateway                       Flags     Netif Expire\n\
             default                           fe80::1%em0                   UGS         em0\n\
             ::/96                             ::1                           UGRS        lo0\n\
             fe80::%em0/64                     link#1                        U           em0\n\
             192.168.1.2.3      link#1             U           em0\n",
        );
        assert_eq!(
            sink.lines,
            [
                "0.0.0.0/0 = 192.168.1.1, em0, 0, unicast",
                "10.0.0.0/8 = 192.168.1.9, em0, 0, unicast",
                "127.0.0.1/32 = null, lo0, 0, unicast",
                "169.254.0.0/16 = null, em0, 0, unicast",
                "192.168.1.0/24 = null, em0, 0, unicast",
                "198.51.100.0/24 = 127.0.0.1, lo0, 0, blackhole",
                "::/0 = fe80::1%em0, em0, 0, unicast",
                "::/96 = ::1, lo0, 0, unreachable",
                "fe80::/64 = null, em0, 0, unicast",
            ]
        );
        assert_eq!(sink.damage.len(), 1);
    }
}
