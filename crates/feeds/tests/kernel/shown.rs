//! Two forms of a kernel's tables as text: the output of `ip`, and the contents of a RIB.

use std::collections::BTreeMap;
use std::process::Command;

use fibula_core::{Addr, NextHops, RouteKind};
use fibula_rib::Rib;
use serde_json::Value;

/// Next hops, by table, prefix and metric.
pub type Shown = BTreeMap<(u32, String, u32), Vec<String>>;

/// Runs `ip`, and returns its output.
#[track_caller]
pub fn ip(arguments: &str) -> String {
    let run = Command::new("ip").args(arguments.split_whitespace()).output().expect("iproute2");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "ip {arguments}: {errors}");
    String::from_utf8(run.stdout).unwrap()
}

fn json(arguments: &str) -> Vec<Value> {
    let text = ip(arguments);
    if text.trim().is_empty() { Vec::new() } else { serde_json::from_str(&text).unwrap() }
}

fn number(value: &Value) -> u32 {
    value.as_u64().map_or(0, |number| number.try_into().unwrap())
}

/// The kernel's routes: every route of every table, of the kept types. Of routes with the same metric the first counts.
pub fn kernel() -> Shown {
    let links = json("-j link show");
    let interfaces: BTreeMap<String, u32> = links
        .iter()
        .map(|link| (link["ifname"].as_str().unwrap().to_owned(), number(&link["ifindex"])))
        .collect();
    let mut shown = Shown::new();
    for family in ["-4", "-6"] {
        for route in json(&format!("{family} -j route show table all")) {
            let kind = route["type"].as_str().unwrap_or("unicast");
            let Some(kind) = RouteKind::ALL.into_iter().find(|known| known.name() == kind) else {
                continue;
            };
            let table = match route["table"].as_str() {
                None | Some("main") => 0,
                Some("local") => 255,
                Some("default") => 253,
                Some(number) => number.parse().unwrap(),
            };
            let prefix = match (route["dst"].as_str().unwrap(), family) {
                ("default", "-4") => "0.0.0.0/0".to_owned(),
                ("default", _) => "::/0".to_owned(),
                (prefix, _) if prefix.contains('/') => prefix.to_owned(),
                (address, "-4") => format!("{address}/32"),
                (address, _) => format!("{address}/128"),
            };
            let alone = [route.clone()];
            let hops = route["nexthops"].as_array().map_or(&alone[..], Vec::as_slice);
            let mut hops: Vec<String> = match kind {
                RouteKind::Unicast | RouteKind::Local => {
                    hops.iter().filter_map(|hop| written(hop, &interfaces)).collect()
                }
                _ => Vec::new(),
            };
            hops.sort();
            if kind == RouteKind::Unicast && hops.is_empty() {
                continue;
            }
            hops.insert(0, kind.to_string());
            shown.entry((table, prefix, number(&route["metric"]))).or_insert(hops);
        }
    }
    shown
}

/// A next hop; `None` if its interface is down.
fn written(hop: &Value, interfaces: &BTreeMap<String, u32>) -> Option<String> {
    let flags = hop["flags"].as_array().map_or(&[][..], Vec::as_slice);
    if flags.iter().any(|flag| flag == "dead") {
        return None;
    }
    let gateway = hop["gateway"].as_str().or(hop["via"]["host"].as_str()).unwrap_or("-");
    let interface = hop["dev"].as_str().map_or(0, |name| interfaces[name]);
    let weight = hop["weight"].as_u64().unwrap_or(1);
    Some(format!("{gateway} {interface} {weight}"))
}

/// The table's routes: every path, not only the best ones.
pub fn fed(rib: &Rib) -> Shown {
    let mut shown = Shown::new();
    for vrf in rib.vrfs() {
        let name = rib.vrf_name(vrf).map_or("", |name| name);
        let table = match name.strip_prefix("kernel").unwrap_or_else(|| panic!("table {name:?}")) {
            "" => 0,
            number => number[1..].parse().unwrap(),
        };
        family::<u32>(rib, vrf, table, &mut shown);
        family::<u128>(rib, vrf, table, &mut shown);
    }
    shown
}

fn family<A: Addr>(rib: &Rib, vrf: u32, table: u32, shown: &mut Shown) {
    for (prefix, best) in rib.iter::<A>(vrf) {
        let paths = rib.paths(vrf, prefix);
        assert_eq!(paths.iter().map(|path| path.path_id).min(), Some(best.path_id), "{prefix}");
        for path in paths {
            let NextHops { kind, hops } = path.attributes.next_hops().expect("of a kernel");
            let mut hops: Vec<String> = hops
                .iter()
                .map(|hop| {
                    let gateway = hop.gateway.map_or("-".to_owned(), |gateway| gateway.to_string());
                    format!("{gateway} {} {}", hop.interface.unwrap_or(0), hop.weight)
                })
                .collect();
            hops.sort();
            hops.insert(0, kind.to_string());
            shown.insert((table, prefix.to_string(), path.path_id), hops);
        }
    }
}

/// The differences between the two.
pub fn differences(kernel: &Shown, fed: &Shown) -> Vec<String> {
    let keys = kernel.keys().chain(fed.keys().filter(|key| !kernel.contains_key(key)));
    keys.filter(|key| kernel.get(key) != fed.get(key))
        .map(|key| format!("{key:?}: kernel {:?}, fed {:?}", kernel.get(key), fed.get(key)))
        .collect()
}
