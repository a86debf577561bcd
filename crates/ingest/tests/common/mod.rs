//! Shared code of the tests on real files.

#![allow(dead_code, reason = "each test uses a part")]

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use fibula_core::{Attributes, BgpAttributes, Change, Update, Vrf};
use fibula_ingest::{
    Damage, PeerInfo, PeerState, ReadOptions, ReadReport, Sink, SourceInfo, SourceSpec, decompress,
    read,
};

/// The cuts of real files that are always there: `testdata`.
pub fn cuts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// The whole files, in the same folders: `data` in the folder that `FIBULA_SHARED` names, or in `shared` next to the
/// repository.
pub fn archives() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let data = env::var_os("FIBULA_SHARED").map_or(beside, PathBuf::from).join("data");
    assert!(data.is_dir(), "no real archives at {} (set FIBULA_SHARED)", data.display());
    data
}

/// A route or a withdrawal, owned.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub time: u64,
    pub peer: u32,
    /// The name of the routing instance, empty for the main one.
    pub table: String,
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
    pub extended_communities: String,
    /// As bgpdump prints it: AS and address.
    pub aggregator: String,
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
            extended_communities: a.extended_communities.to_owned(),
            aggregator: a
                .aggregator
                .map_or(String::new(), |of| format!("{} {}", of.asn, of.address)),
        }
    }
}

/// Keeps all output of a BGP source.
#[derive(Default)]
pub struct Bgp {
    pub info: Option<SourceInfo>,
    pub peers: Vec<PeerInfo>,
    pub events: Vec<Event>,
    pub tables: Vec<String>,
    pub down: Vec<(u32, u64)>,
    pub complete: Vec<u32>,
    pub ignored: u32,
    pub damage: Vec<Damage>,
}

impl Sink for Bgp {
    fn begin(&mut self, info: &SourceInfo) {
        assert!(self.info.replace(info.clone()).is_none(), "begins once");
    }
    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        assert_eq!(index as usize, self.peers.len(), "peers are numbered in order");
        self.peers.push(peer.clone());
    }
    fn vrf(&mut self, index: Vrf, name: &str) {
        self.tables.push(name.to_owned());
        assert_eq!(index as usize, self.tables.len(), "instances are numbered in order, from 1");
    }
    fn end_of_rib(&mut self, peer: u32) {
        assert!((peer as usize) < self.peers.len());
        self.complete.push(peer);
    }
    fn ignored(&mut self, _: &'static str) {
        self.ignored += 1;
    }
    fn peer_state(&mut self, state: &PeerState) {
        if state.is_down() {
            self.down.push((state.peer, state.time));
        }
    }
    fn update(&mut self, update: &Update<'_>) {
        assert!(self.info.is_some(), "begins first");
        let route = match update.change {
            Change::Withdraw => None,
            Change::Announce(Attributes::Bgp(a)) => Some(Route::new(a)),
            Change::Announce(_) => panic!("BGP attributes are expected"),
        };
        self.events.push(Event {
            time: update.time,
            peer: update.peer,
            table: match update.vrf {
                0 => String::new(),
                vrf => self.tables[vrf as usize - 1].clone(),
            },
            prefix: update.prefix.to_string(),
            path_id: update.path_id,
            route,
        });
    }
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        self.damage.push(damage.clone());
        ControlFlow::Continue(())
    }
}

/// Reads an MRT file with all attributes.
pub fn read_bgp(path: &Path) -> (ReadReport, Bgp) {
    let mut bgp = Bgp::default();
    let mut options = ReadOptions {
        as_path: true,
        communities: true,
        extended_communities: true,
        salvage: true,
        allow_empty: true,
        ..ReadOptions::default()
    };
    let report = read(&SourceSpec::new(path), &mut options, &mut bgp).expect("readable");
    assert_eq!(report.damaged as usize, bgp.damage.len());
    assert_eq!(report.updates as usize, bgp.events.len());
    (report, bgp)
}

/// The text of a compressed file.
pub fn text(path: &Path) -> String {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (_, mut reader) = decompress(file).expect("a known compression");
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("sound");
    text
}

/// The files in this folder, in order of name.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The MRT files of [`cuts`] or [`archives`], in order of name.
pub fn mrt_files(data: &Path) -> Vec<PathBuf> {
    let mut files = files(&data.join("mrt"));
    files.extend(self::files(&data.join("mrt/mrtparse-samples")));
    let is_mrt = |path: &PathBuf| {
        let ext = path.extension().and_then(|ext| ext.to_str());
        !matches!(ext, Some("md" | "rst" | "conf"))
    };
    files.retain(is_mrt);
    files
}

/// The name of a file without its folders.
pub fn name(path: &Path) -> String {
    path.file_name().expect("files have names").to_string_lossy().into_owned()
}
