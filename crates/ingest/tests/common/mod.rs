//! What the tests on shared data have in common.

#![allow(dead_code, reason = "each test uses a part")]

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fibula_core::{Attributes, BgpAttributes, Change, Update};
use fibula_ingest::{
    Consumer, Damage, PeerInfo, ReadOptions, ReadReport, SourceInfo, SourceSpec, read,
};

/// The directory of shared data; says so and gives `None` where there is none.
pub fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = env::var_os("FIBULA_SHARED").map_or(beside, PathBuf::from);
    let data = root.join("data");
    if !data.is_dir() {
        println!("skipped: shared data not found");
        return None;
    }
    Some(data)
}

/// A route or a withdrawal, owned.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub time: u64,
    pub peer: u32,
    pub prefix: String,
    pub path_id: u32,
    pub route: Option<Route>,
}

/// The attributes of an announcement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    pub next_hop: Option<std::net::IpAddr>,
    pub origin_as: Option<u32>,
    pub as_path: String,
    pub as_path_len: u32,
    pub local_pref: Option<u32>,
    pub med: Option<u32>,
    pub origin: Option<u8>,
    pub communities: String,
}

impl Route {
    fn new(a: &BgpAttributes<'_>) -> Self {
        Self {
            next_hop: a.next_hop,
            origin_as: a.origin_as,
            as_path: a.as_path.to_owned(),
            as_path_len: a.as_path_len,
            local_pref: a.local_pref,
            med: a.med,
            origin: a.origin,
            communities: a.communities.to_owned(),
        }
    }
}

/// Keeps all that a BGP source says.
#[derive(Default)]
pub struct Bgp {
    pub info: Option<SourceInfo>,
    pub peers: Vec<PeerInfo>,
    pub events: Vec<Event>,
    pub down: Vec<(u32, u64)>,
    pub damage: Vec<Damage>,
}

impl Consumer for Bgp {
    fn begin(&mut self, info: &SourceInfo) {
        assert!(self.info.replace(info.clone()).is_none(), "begins once");
    }
    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        assert_eq!(index as usize, self.peers.len(), "peers are numbered in order");
        self.peers.push(peer.clone());
    }
    fn peer_down(&mut self, index: u32, time: u64) {
        self.down.push((index, time));
    }
    fn update(&mut self, update: &Update<'_>) {
        assert!(self.info.is_some(), "begins first");
        let route = match update.change {
            Change::Withdraw => None,
            Change::Announce(Attributes::Bgp(a)) => Some(Route::new(a)),
            Change::Announce(_) => panic!("MRT has BGP attributes"),
        };
        self.events.push(Event {
            time: update.time,
            peer: update.peer,
            prefix: update.prefix.to_string(),
            path_id: update.path_id,
            route,
        });
    }
    fn damage(&mut self, damage: &Damage) {
        self.damage.push(damage.clone());
    }
}

/// Reads an MRT file with all attributes.
pub fn read_bgp(path: &Path) -> (ReadReport, Bgp) {
    let mut bgp = Bgp::default();
    let mut options = ReadOptions { as_path: true, communities: true, ..ReadOptions::default() };
    let report = read(&SourceSpec::new(path), &mut options, &mut bgp).expect("readable");
    assert_eq!(report.damaged as usize, bgp.damage.len());
    assert_eq!(report.updates as usize, bgp.events.len());
    (report, bgp)
}

/// The text of a gzip file.
pub fn gunzip(path: &Path) -> String {
    let mut text = String::new();
    let file = File::open(path).expect("present");
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).expect("sound");
    text
}

/// All files below `dir` that are MRT.
pub fn mrt_files(dir: &Path) -> Vec<PathBuf> {
    let list = |dir: PathBuf| {
        let entries = dir.read_dir().into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect::<Vec<_>>()
    };
    let mut files = list(dir.join("mrt"));
    files.extend(list(dir.join("mrt/mrtparse-samples")));
    let is_mrt = |path: &PathBuf| {
        let ext = path.extension().and_then(|ext| ext.to_str());
        !matches!(ext, Some("md" | "rst" | "conf"))
    };
    files.retain(is_mrt);
    files.sort();
    files
}
