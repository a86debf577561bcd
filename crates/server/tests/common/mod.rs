//! A server with a table of its own, and a plain map of the announced routes.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Update};
use fibula_feeds::Board;
use fibula_fib::FibOptions;
use fibula_rib::{Live, LiveOptions, Pacing, Peer, Rib};
use fibula_server::client::{Answer, Client, ClientOptions};
use fibula_server::{Server, ServerOptions};
use fibula_testkit::Rng;
use serde_json::Value;

pub const MS: Duration = Duration::from_millis(1);

/// For each table and prefix, the path of each peer: its length and its origin.
pub type Announced = BTreeMap<(&'static str, AnyPrefix), BTreeMap<u32, (u32, u32)>>;

pub struct Lab {
    pub server: Server,
    pub live: Arc<Live>,
    pub board: Arc<Board>,
    pub announced: Announced,
    pub peers: Vec<u32>,
}

/// The peers of every lab: AS64500 and so on, at 10.0.0.1 and so on.
pub const PEERS: u32 = 3;

pub fn peer(number: u32) -> Peer {
    let address = IpAddr::from([10, 0, 0, number as u8 + 1]);
    Peer { source: Some("bmp 10.9.9.9".into()), ..Peer::new(Some(address), 64500 + number) }
}

impl Lab {
    /// A server whose options are changed by `change`; it has the tables `bgp` and `bgp/100`.
    pub fn new(change: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::with_history(1000, change)
    }

    pub fn with_history(history: usize, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let mut rib = Rib::default();
        assert!(rib.name_global("bgp"));
        let pacing = Pacing { bucket: MS, ..Pacing::default() };
        let options = LiveOptions { pacing, history, ..LiveOptions::default() };
        let live = Live::start(rib, &[0], FibOptions::default(), options, |event| {
            eprintln!("{event}");
        });
        let live = Arc::new(live.unwrap());
        assert_eq!(live.vrf("bgp/100"), 1);
        let peers = (0..PEERS).map(|number| live.peer(peer(number))).collect();
        let board = Arc::new(Board::default());
        let mut options = ServerOptions::default();
        options.listen = vec!["127.0.0.1:0".parse().unwrap()];
        change(&mut options);
        let server = Server::start(Arc::clone(&live), Arc::clone(&board), options).unwrap();
        Self { server, live, board, announced: Announced::new(), peers }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    pub fn client(&self) -> Client {
        Client::new(ClientOptions::new(self.url())).unwrap()
    }

    /// A peer announces a path of this length and origin.
    pub fn announce(&mut self, table: &'static str, prefix: &str, peer: u32, path: (u32, u32)) {
        let prefix: AnyPrefix = prefix.parse().unwrap();
        let (as_path_len, origin_as) = path;
        let as_path = as_path(path);
        let bgp = BgpAttributes {
            as_path_len,
            origin_as: Some(origin_as),
            as_path: &as_path,
            next_hop: Some([192, 0, 2, peer as u8].into()),
            origin: Some(0),
            ..BgpAttributes::default()
        };
        self.apply(table, prefix, peer, Change::Announce(Attributes::Bgp(&bgp)));
        self.announced.entry((table, prefix)).or_default().insert(peer, path);
    }

    /// A peer withdraws its path.
    pub fn withdraw(&mut self, table: &'static str, prefix: &str, peer: u32) {
        let prefix: AnyPrefix = prefix.parse().unwrap();
        self.apply(table, prefix, peer, Change::Withdraw);
        if let Some(paths) = self.announced.get_mut(&(table, prefix)) {
            paths.remove(&peer);
            if paths.is_empty() {
                self.announced.remove(&(table, prefix));
            }
        }
    }

    fn apply(&self, table: &str, prefix: AnyPrefix, peer: u32, change: Change<'_>) {
        let (vrf, peer) = (self.live.vrf(table), self.peers[peer as usize]);
        self.live.apply(&Update { vrf, peer, ..Update::new(prefix, change) }).unwrap();
    }

    /// Announces many nested and equal prefixes.
    pub fn fill(&mut self, seed: u64, count: usize) {
        let mut rng = Rng::new(seed);
        for _ in 0..count {
            let table = if rng.chance(0.7) { "bgp" } else { "bgp/100" };
            let prefix = random_prefix(&mut rng).to_string();
            let peer = rng.below(PEERS.into()) as u32;
            if rng.chance(0.2) {
                self.withdraw(table, &prefix, peer);
            } else {
                let path = (1 + rng.below(4) as u32, 64600 + rng.below(5) as u32);
                self.announce(table, &prefix, peer, path);
            }
        }
        self.live.flush().unwrap();
    }

    /// The tables that have routes.
    pub fn tables(&self) -> Vec<&'static str> {
        let mut tables: Vec<_> = self.announced.keys().map(|(table, _)| *table).collect();
        tables.dedup();
        tables
    }

    /// The prefixes of a table that `which` takes.
    pub fn prefixes(&self, table: &str, which: impl Fn(AnyPrefix) -> bool) -> Vec<AnyPrefix> {
        let of_table =
            self.announced.keys().filter(|(known, prefix)| *known == table && which(*prefix));
        of_table.map(|(_, prefix)| *prefix).collect()
    }

    /// The paths of a prefix, the best first: peers with length and origin.
    pub fn paths(&self, table: &'static str, prefix: AnyPrefix) -> Vec<(u32, (u32, u32))> {
        let paths = self.announced.get(&(table, prefix));
        let mut paths: Vec<_> = paths.into_iter().flatten().map(|(p, path)| (*p, *path)).collect();
        paths.sort_by_key(|(peer, (length, _))| (*length, *peer));
        paths
    }
}

pub fn as_path((length, origin): (u32, u32)) -> String {
    let path = (1..length).map(|hop| hop.to_string()).chain([origin.to_string()]);
    path.collect::<Vec<_>>().join(" ")
}

pub fn random_prefix(rng: &mut Rng) -> AnyPrefix {
    if rng.chance(0.6) {
        let address = rng.addr::<u32>() & 0x0303_0101 | 0x0a00_0000;
        AnyPrefix::masked(IpAddr::from(address.to_be_bytes()), rng.below(33) as u8).unwrap()
    } else {
        let address = rng.addr::<u128>() & (3 << 96 | 3 << 64 | 1) | 0x2001 << 112;
        AnyPrefix::masked(IpAddr::from(address.to_be_bytes()), rng.below(129) as u8).unwrap()
    }
}

/// Whether the first covers the second.
pub fn covers(wide: AnyPrefix, narrow: AnyPrefix) -> bool {
    match (wide, narrow) {
        (AnyPrefix::V4(wide), AnyPrefix::V4(narrow)) => wide.covers(narrow),
        (AnyPrefix::V6(wide), AnyPrefix::V6(narrow)) => wide.covers(narrow),
        _ => false,
    }
}

pub fn length(prefix: AnyPrefix) -> u8 {
    match prefix {
        AnyPrefix::V4(prefix) => prefix.len(),
        AnyPrefix::V6(prefix) => prefix.len(),
    }
}

/// The API's JSON for a peer.
pub fn peer_json(number: u32) -> Value {
    let (address, asn) = (format!("10.0.0.{}", number + 1), 64500 + number);
    serde_json::json!({
        "id": number, "name": format!("AS{asn} ({address})"), "address": address, "asn": asn,
        "source": "bmp 10.9.9.9",
    })
}

/// The API's JSON for a path's attributes.
pub fn attributes_json(peer: u32, path: (u32, u32)) -> Value {
    serde_json::json!({
        "kind": "bgp", "next_hop": format!("192.0.2.{peer}"), "as_path": as_path(path),
        "as_path_len": path.0, "origin_as": path.1, "origin": "igp",
    })
}

/// The JSON of an answer, which has to be one.
pub fn json(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

/// Requests a JSON document, which must exist.
pub fn get(client: &mut Client, path: &str) -> Value {
    let answer = client.get(path, &[]).unwrap();
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    assert_eq!(answer.headers["content-type"], "application/json");
    json(&answer)
}

/// The status and the sentence of a refusal.
pub fn refusal(answer: &Answer) -> (u16, String) {
    let problem = json(answer);
    assert_eq!(problem.as_object().map(serde_json::Map::len), Some(1), "{problem}");
    (answer.status, problem["error"].as_str().unwrap().to_owned())
}

/// Sends bytes as they are, and reads to the end of the connection.
pub fn raw(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request).unwrap();
    read_all(&mut stream)
}

/// Reads to the end of the connection, however it ends.
pub fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut part) {
        bytes.extend_from_slice(&part[..count]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
