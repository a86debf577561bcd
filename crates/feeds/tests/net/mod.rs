//! The loop, over loopback, pipes and folders. Every awaited event happens within moments; the limits are generous, and
//! no time is measured.

mod folder;
mod neighbours;
mod reload;
mod restart;
mod sessions;
mod streams;

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fibula_core::{AnyPrefix, Vrf};
use fibula_feeds::net::{Endpoint, FeedSource, Hub, HubHandle, Listen, ProtocolFactory};
use fibula_feeds::{Board, FeedError, Session, SessionOptions, SourceState, SourceStatus};
use fibula_rib::{FeedEvent, Listener, PathCounts, Peer, Rib, SessionPaths, TableError};

use crate::common::{Lines, Paths, paths};

/// Longer than any step takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(30);

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A table that the test reads while the loop feeds it, and the last position of a source.
#[derive(Clone, Default)]
pub struct Table(pub Arc<Mutex<Rib>>, Arc<Mutex<String>>);

impl Listener for Table {
    fn peer(&mut self, peer: &Peer) -> u32 {
        self.0.lock().unwrap().peer(peer.clone())
    }
    fn value_places(&mut self, columns: &[&str]) -> Vec<usize> {
        self.0.lock().unwrap().value_places(columns)
    }
    fn paths_of(&self, peer: u32) -> Option<PathCounts> {
        Listener::paths_of(&*self.0.lock().unwrap(), peer)
    }
    fn largest_session(&self, peer: u32) -> Option<SessionPaths> {
        Listener::largest_session(&*self.0.lock().unwrap(), peer)
    }
    fn vrf(&mut self, name: &str) -> Vrf {
        self.0.lock().unwrap().vrf(name)
    }
    fn event(&mut self, event: FeedEvent<'_>) -> Result<(), TableError> {
        self.0.lock().unwrap().event(event)
    }
    fn position(&mut self, _: &str, position: &str) {
        position.clone_into(&mut self.1.lock().unwrap());
    }
}

/// A running hub.
pub struct Net {
    pub handle: HubHandle,
    pub board: Arc<Board>,
    pub table: Table,
    reports: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<Result<(), FeedError>>>,
}

impl Net {
    pub fn start(sources: Vec<FeedSource>) -> Self {
        Self::with(Rib::default(), sources)
    }

    /// With the table of a checkpoint.
    pub fn with(rib: Rib, sources: Vec<FeedSource>) -> Self {
        let (board, reports) = (Arc::new(Board::default()), Arc::new(Mutex::new(Vec::new())));
        let reports_in_hub = Arc::clone(&reports);
        let mut hub = Hub::new(Arc::clone(&board), move |report| {
            reports_in_hub.lock().unwrap().push(report.to_string());
        })
        .unwrap();
        for source in sources {
            hub.add(source).unwrap();
        }
        let peers = fibula_feeds::net::speaking(&rib);
        let table = Table(Arc::new(Mutex::new(rib)), Arc::default());
        hub.adopt(&peers, &mut table.clone()).unwrap();
        let (handle, mut fed) = (hub.handle(), table.clone());
        let thread = thread::spawn(move || hub.run(&mut fed));
        Self { handle, board, table, reports, thread: Some(thread) }
    }

    /// Waits until this holds.
    pub fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(
                began.elapsed() < LIMIT,
                "{what}: {:#?}\n{:#?}\n{:?}",
                self.board.all(),
                self.reports(),
                self.paths()
            );
            thread::sleep(ms(1));
        }
    }

    pub fn reports(&self) -> Vec<String> {
        self.reports.lock().unwrap().clone()
    }

    pub fn has_report(&self, text: &str) -> bool {
        self.reports.lock().unwrap().iter().any(|report| report.contains(text))
    }

    pub fn paths(&self) -> Paths {
        paths(&self.table.0.lock().unwrap())
    }

    /// The position that a checkpoint would have.
    pub fn position(&self) -> String {
        self.table.1.lock().unwrap().clone()
    }

    pub fn status(&self, name: &str) -> Option<SourceStatus> {
        self.board.all().into_iter().find(|status| status.name == name)
    }

    pub fn state(&self, name: &str) -> Option<SourceState> {
        self.status(name).map(|status| status.state)
    }

    /// The address on which the source listens.
    pub fn address(&self, name: &str) -> SocketAddr {
        self.status(name).unwrap().endpoint.parse().unwrap()
    }

    /// Waits until the board, which is written after the table, shows this number of connections.
    pub fn wait_connections(&self, name: &str, expected: u64) {
        self.wait("the connections", |net| {
            net.status(name).is_some_and(|status| status.figures.connections == expected)
        });
    }

    /// Number of routes announced by a session.
    pub fn announced(&self, name: &str) -> u64 {
        self.status(name).map_or(0, |status| status.figures.announced)
    }

    pub fn stop(mut self) {
        self.handle.stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Options of sessions that are complete after a moment of silence.
pub fn options() -> SessionOptions {
    SessionOptions { quiet: ms(30), hold: Duration::from_secs(60), ..Default::default() }
}

pub fn speaker(options: SessionOptions) -> ProtocolFactory {
    ProtocolFactory {
        settings: format!("{options:?}"),
        protocol: Arc::new(move |who| {
            let peer = Peer { source: Some(who.name), ..Peer::new(who.remote, 7) };
            let options = SessionOptions { peer, ..options.clone() };
            let session = Session::new(|| Box::new(Lines::default()), options);
            Box::new(session.with_events(who.events))
        }),
    }
}

pub fn source(name: &str, endpoint: Endpoint) -> FeedSource {
    FeedSource { name: name.to_owned(), kind: "test", table: String::new(), endpoint }
}

/// A prefix, or an address alone.
pub fn within(text: &str) -> AnyPrefix {
    text.parse().unwrap_or_else(|_| AnyPrefix::host(text.parse().unwrap()))
}

/// Listens on a free port for addresses within this prefix.
pub fn listen(name: &str, from: &str, options: SessionOptions) -> FeedSource {
    let speakers = vec![(within(from), speaker(options))];
    let address = "127.0.0.1:0".parse().unwrap();
    source(name, Endpoint::Listen(Listen { address, speakers, limit: 4, keys: Vec::new() }))
}

/// Connects from this address.
pub fn connect(from: &str, to: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let from: IpAddr = from.parse().unwrap();
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::new(from, 0)).unwrap();
    connect(&socket, &to).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

pub fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
}

/// Routes of peer 0, AS 1: these prefixes with this value.
pub fn table(prefixes: &[&str], value: u64) -> Paths {
    prefixes.iter().map(|prefix| ((1, prefix.parse().unwrap()), value)).collect()
}
