//! A session with a non-blocking socket: the simplest owner of sockets.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fibula_core::AnyPrefix;
use fibula_feeds::bgp::{BgpSession, Neighbour};
use fibula_feeds::{Protocol, SourceState};
use fibula_rib::Rib;

use super::world::{COLLECTOR, DAEMON, PORT};

/// A route's attributes, in one line.
pub type Routes = BTreeMap<AnyPrefix, String>;

pub struct Collector {
    pub listener: TcpListener,
    pub session: BgpSession,
    pub rib: Rib,
    stream: Option<TcpStream>,
    out: Vec<u8>,
    began: Instant,
    /// The time of the last data.
    last: Duration,
    /// The reasons why connections ended or were refused, and the events of the session.
    pub log: Arc<Mutex<Vec<String>>>,
}

pub fn neighbour(asn: u32) -> Neighbour {
    let address: IpAddr = DAEMON.parse().unwrap();
    Neighbour { asn: Some(asn), ..Neighbour::new(address, 65000, [10, 77, 0, 1].into()) }
}

impl Collector {
    pub fn new(neighbour: Neighbour) -> Self {
        let listener = TcpListener::bind((COLLECTOR, PORT)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let events = Arc::clone(&log);
        let session = BgpSession::new(neighbour)
            .with_events(move |event| events.lock().unwrap().push(event.to_string()));
        let (rib, began) = (Rib::default(), Instant::now());
        let (out, last) = (Vec::new(), Duration::ZERO);
        Self { listener, session, rib, stream: None, out, began, last, log }
    }

    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Runs until this holds, for a minute at most.
    pub fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            if !self.step() {
                std::thread::sleep(Duration::from_millis(2));
            }
            let state = self.session.state();
            let log = self.log.lock().unwrap();
            assert!(began.elapsed().as_secs() < 60, "{what}: it is {state:?}, {log:#?}");
        }
        eprintln!("{:8.3} s: {what}", self.now().as_secs_f64());
    }

    pub fn until_up(&mut self) {
        self.until("the whole table of the neighbour", |c| c.session.state() == SourceState::Up);
    }

    /// Runs until the log has a line with this; the lines are taken out.
    pub fn until_logged(&mut self, part: &str) -> String {
        let mut found = None;
        self.until(&format!("\"{part}\" in the log"), |collector| {
            let mut log = collector.log.lock().unwrap();
            found = log.iter().find(|line| line.contains(part)).cloned();
            if found.is_some() {
                log.clear();
            }
            found.is_some()
        });
        found.unwrap()
    }

    pub fn refresh(&mut self) {
        let now = self.now();
        assert!(self.session.refresh(now, &mut self.rib, &mut self.out).unwrap());
    }

    /// Sends the last message and closes the connection; the routes stay.
    pub fn close(&mut self) {
        self.session.close(&mut self.out);
        self.write();
        self.stream = None;
        let now = self.now();
        self.session.disconnected(now);
    }

    /// Whether something happened.
    fn step(&mut self) -> bool {
        let mut is_busy = self.accept();
        let mut ended = None;
        let now = self.now();
        if let Some(stream) = &mut self.stream {
            let mut buffer = vec![0; 64 << 10];
            match stream.read(&mut buffer) {
                Ok(0) => ended = Some("the connection is closed".to_owned()),
                Ok(len) => {
                    let got = &buffer[..len];
                    let taken = self.session.bytes(now, got, &mut self.rib, &mut self.out);
                    ended = taken.err().map(|error| error.to_string());
                    is_busy = true;
                    self.last = now;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => ended = Some(error.to_string()),
            }
        }
        if self.session.deadline().is_some_and(|deadline| now >= deadline) {
            let ticked = self.session.tick(now, &mut self.rib, &mut self.out);
            ended = ended.or(ticked.err().map(|error| error.to_string()));
        }
        self.write();
        if let Some(why) = ended {
            self.session.disconnected(now);
            self.stream = None;
            self.log.lock().unwrap().push(why);
        }
        is_busy
    }

    fn accept(&mut self) -> bool {
        let Ok((mut stream, from)) = self.listener.accept() else { return false };
        assert_eq!(from.ip(), self.session.neighbour().address);
        let now = self.now();
        match self.session.admit(now, &mut self.out) {
            Ok(()) => {
                stream.set_nonblocking(true).unwrap();
                stream.set_nodelay(true).unwrap();
                self.stream = Some(stream);
                self.out.clear();
                self.session.connected(now, &mut self.rib, &mut self.out).unwrap();
            }
            Err(refusal) => {
                let _ = stream.write_all(&refusal.farewell);
                self.log.lock().unwrap().push(refusal.why);
            }
        }
        true
    }

    fn write(&mut self) {
        // The output is some hundred bytes, which fit in the socket's buffer.
        if let Some(stream) = &mut self.stream {
            let _ = stream.write_all(&self.out);
        }
        self.out.clear();
    }

    /// Whether the prefix has a route.
    pub fn has(&self, prefix: &str) -> bool {
        !self.rib.paths::<u32>(0, prefix.parse().unwrap()).is_empty()
    }

    pub fn routes_count(&self) -> usize {
        self.rib.len::<u32>(0) + self.rib.len::<u128>(0)
    }

    /// Whether nothing arrived for a second.
    pub fn is_quiet(&self) -> bool {
        self.now() > self.last + Duration::from_secs(1)
    }

    /// All routes of both families: next hop, AS path, MED, communities.
    pub fn routes(&self) -> Routes {
        let mut routes = Routes::new();
        for prefix in fibula_feeds::prefixes(&self.rib, 0) {
            let paths = match prefix {
                AnyPrefix::V4(prefix) => self.rib.paths(0, prefix),
                AnyPrefix::V6(prefix) => self.rib.paths(0, prefix),
            };
            assert_eq!(paths.len(), 1, "{prefix}");
            let bgp = paths[0].attributes.bgp().unwrap();
            let med = bgp.med.map_or(String::new(), |med| med.to_string());
            let (hop, path, communities) = (bgp.next_hop.unwrap(), bgp.as_path, bgp.communities);
            routes.insert(prefix, format!("{hop} [{path}] {med} {communities}"));
        }
        routes
    }

    pub fn assert_routes(&self, wanted: &Routes) {
        let routes = self.routes();
        let differs = |(prefix, line): &(&AnyPrefix, &String)| wanted.get(*prefix) != Some(*line);
        let wrong: Vec<_> = routes.iter().filter(differs).take(5).collect();
        let missing: Vec<_> = wanted.keys().filter(|p| !routes.contains_key(p)).take(5).collect();
        let log = self.log.lock().unwrap();
        assert!(
            wrong.is_empty() && missing.is_empty(),
            "{} of {}; wrong {wrong:#?}, missing {missing:?}; {:?}, {log:?}",
            routes.len(),
            wanted.len(),
            self.session.figures(),
        );
        eprintln!("           {} routes are equal", routes.len());
    }
}
