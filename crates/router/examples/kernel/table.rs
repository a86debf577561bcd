//! The kernel's routes, neighbours and addresses, as the command `ip` says them, made into the tables of a router.

use std::collections::HashMap;
use std::error::Error;
use std::net::IpAddr;
use std::process::Command;

use fibula_core::{Hop, Prefix, Routes};
use fibula_router::View;
use fibula_router::egress::{Adjacency, Egress, EgressPort, Group, GroupId, Member, Paths};
use fibula_router::forward::Side;
use fibula_testkit::Oracle;
use serde_json::Value;

/// A port's interface.
pub struct Device {
    pub name: String,
    pub mac: [u8; 6],
    pub mtu: u32,
}

/// All that forwarding needs.
pub struct Table {
    /// What `ip` said.
    pub said: Vec<Vec<u8>>,
    /// The machine's own addresses.
    pub local: Vec<IpAddr>,
    v4: Oracle<u32>,
    v6: Oracle<u128>,
    groups: Vec<GroupId>,
    paths: Paths,
}

const QUESTIONS: [&str; 4] = [
    "-j -4 route show table main",
    "-j -6 route show table main",
    "-j address show",
    "-j neighbour show",
];

impl Table {
    pub fn read(devices: &[Device]) -> Result<Self, Box<dyn Error>> {
        let mut said = Vec::new();
        for question in QUESTIONS {
            let output = Command::new("ip").args(question.split(' ')).output()?;
            if !output.status.success() {
                return Err(
                    format!("ip {question}: {}", String::from_utf8_lossy(&output.stderr)).into()
                );
            }
            said.push(output.stdout);
        }
        let parsed = said
            .iter()
            .map(
                |text| if text.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(text) },
            )
            .collect::<Result<Vec<Value>, _>>()?;
        let number = |name: &Value| devices.iter().position(|device| name == &device.name[..]);
        let mut builder = Builder::new(devices, &number, &parsed[2], &parsed[3]);
        let v4 = builder.routes(&parsed[0], &number)?;
        let v6 = builder.routes(&parsed[1], &number)?;
        let groups = (0..builder.egress.groups.len() as GroupId).collect();
        Ok(Self {
            said,
            local: builder.local,
            v4: Oracle::new(&Routes::from_iter(v4.into_iter().filter_map(
                |(ip, len, hop)| match ip {
                    IpAddr::V4(ip) => Some((Prefix::new(u32::from(ip), len).ok()?, hop)),
                    IpAddr::V6(_) => None,
                },
            ))),
            v6: Oracle::new(&Routes::from_iter(v6.into_iter().filter_map(
                |(ip, len, hop)| match ip {
                    IpAddr::V6(ip) => Some((Prefix::new(u128::from(ip), len).ok()?, hop)),
                    IpAddr::V4(_) => None,
                },
            ))),
            groups,
            paths: Paths::new(builder.egress),
        })
    }

    pub fn view(&self) -> View<'_> {
        View {
            v4: Side { engine: &self.v4, groups: &self.groups },
            v6: Side { engine: &self.v6, groups: &self.groups },
            egress: &self.paths,
        }
    }
}

struct Builder {
    egress: Egress,
    local: Vec<IpAddr>,
    macs: HashMap<(u16, IpAddr), [u8; 6]>,
}

/// Networks with the lengths of their prefixes, and their groups' numbers.
type ExpectedAnswers = Vec<(IpAddr, u8, Hop)>;
type Number<'a> = dyn Fn(&Value) -> Option<usize> + 'a;

impl Builder {
    fn new(devices: &[Device], number: &Number<'_>, addresses: &Value, neighbours: &Value) -> Self {
        let mut ports: Vec<_> = devices
            .iter()
            .map(|device| EgressPort { mac: device.mac, mtu: device.mtu, ..EgressPort::default() })
            .collect();
        let mut local = Vec::new();
        for device in each(addresses) {
            for address in each(&device["addr_info"]).filter_map(|info| ip(&info["local"])) {
                local.push(address);
                if let Some(port) = number(&device["ifname"]) {
                    ports[port].addresses.push(address);
                }
            }
        }
        let macs: HashMap<_, _> = each(neighbours)
            .filter_map(|said| {
                let port = number(&said["dev"])? as u16;
                Some(((port, ip(&said["dst"])?), mac(said["lladdr"].as_str()?)?))
            })
            .collect();
        let neighbours = macs.clone();
        Self { egress: Egress { ports, neighbours, ..Egress::default() }, local, macs }
    }

    /// The routes, with the number of a group of each.
    fn routes(
        &mut self,
        said: &Value,
        number: &Number<'_>,
    ) -> Result<ExpectedAnswers, Box<dyn Error>> {
        let mut routes = Vec::new();
        for route in each(said) {
            let text = route["dst"].as_str().ok_or("a route without a prefix")?;
            let is_v6 = text.contains(':') || text_of(&route["gateway"]).contains(':');
            let (network, len) = match text.split_once('/') {
                Some((network, len)) => (network.to_owned(), len.parse()?),
                None if text == "default" => (if is_v6 { "::" } else { "0.0.0.0" }.to_owned(), 0),
                None => (text.to_owned(), if is_v6 { 128 } else { 32 }),
            };
            let group = match text_of(&route["type"]) {
                "blackhole" => Group::Blackhole,
                "unreachable" => Group::Unreachable,
                "prohibit" => Group::Prohibit,
                _ if text_of(&route["dev"]) == "lo" => Group::Local,
                _ => Group::Forward(self.members(route, number)),
            };
            let group = match self.egress.groups.iter().position(|known| *known == group) {
                Some(known) => known,
                None => {
                    self.egress.groups.push(group);
                    self.egress.groups.len() - 1
                }
            };
            routes.push((network.parse()?, len, Hop::new(group as u32)));
        }
        Ok(routes)
    }

    /// The ways of a route that can be used, each as often as its weight says.
    fn members(&mut self, route: &Value, number: &Number<'_>) -> Vec<Member> {
        let one = [route.clone()];
        let hops = route["nexthops"].as_array().map_or(&one[..], |hops| &hops[..]);
        let mut members = Vec::new();
        for hop in hops {
            let is_down = each(&hop["flags"]).any(|flag| flag == "dead" || flag == "linkdown");
            let Some(port) = number(&hop["dev"]).filter(|_| !is_down) else { continue };
            let port = port as u16;
            let member = match ip(&hop["gateway"]).or_else(|| ip(&hop["via"]["host"])) {
                None => Member::OnLink(port),
                Some(gateway) => {
                    let mac = self.macs.get(&(port, gateway)).copied();
                    let adjacency = Adjacency { port, gateway, mac };
                    let known =
                        self.egress.adjacencies.iter().position(|known| *known == adjacency);
                    Member::Gateway(known.unwrap_or_else(|| {
                        self.egress.adjacencies.push(adjacency);
                        self.egress.adjacencies.len() - 1
                    }) as u32)
                }
            };
            let weight = hop["weight"].as_u64().unwrap_or(1).clamp(1, 256) as usize;
            members.extend(std::iter::repeat_n(member, weight));
        }
        members
    }
}

fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn ip(value: &Value) -> Option<IpAddr> {
    value.as_str()?.parse().ok()
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok());
    let mac = [(); 6].map(|()| bytes.next().flatten());
    Some([mac[0]?, mac[1]?, mac[2]?, mac[3]?, mac[4]?, mac[5]?])
}
