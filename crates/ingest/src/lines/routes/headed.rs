//! Routes in columns below a header, as `route -n` and `netstat -rn` print them.

use std::net::{Ipv4Addr, Ipv6Addr};

use fibula_core::{AnyPrefix, Prefix};

use super::{Route, V6, destination};

const HEADERS: [&str; 3] =
    ["Destination Gateway Genmask", "Destination Next Hop Flag", "Destination Gateway Flags"];

pub(super) fn is_header(words: &[&str]) -> bool {
    let line = words.join(" ");
    HEADERS.iter().any(|header| line.starts_with(header))
}

/// The columns of a header, by their positions among the words of a row.
#[derive(Clone, Copy)]
pub(super) struct Columns {
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
    pub(super) fn of(words: &[&str]) -> Self {
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

pub(super) fn by_columns(words: &[&str], columns: Columns) -> Option<Route> {
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
