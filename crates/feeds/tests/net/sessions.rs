//! Accepted connections: which are allowed, how many, and their effects on each other.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fibula_feeds::net::{Endpoint, Listen, ProtocolFactory};
use fibula_feeds::{FeedError, Figures, Protocol, SessionOptions, SourceState};
use fibula_rib::{Limits, Listener, Rib};

use super::{LIMIT, Net, connect, listen, ms, options, send, source, table, within};

const DUMP: &str = "peer 0 1\n+ 0 10.0.0.0/8 1\n+ 0 11.0.0.0/8 1\n+ 0 2001:db8::/32 1\n";
const ALL: [&str; 3] = ["10.0.0.0/8", "11.0.0.0/8", "2001:db8::/32"];

#[test]
fn a_daemon_that_reconnects_is_swept() {
    let net = Net::start(vec![listen("lines", "127.0.0.0/8", options())]);
    let address = net.address("lines");
    let session = "lines 127.0.0.1";
    let mut daemon = connect("127.0.0.1", address);
    send(&mut daemon, DUMP);
    net.wait("the first dump", |net| net.state(session) == Some(SourceState::Up));
    assert_eq!(net.paths(), table(&ALL, 1));

    // Cut in the middle of a line, which is ignored.
    send(&mut daemon, "+ 0 12.0.0.0/8 1\n+ 0 13.0.0.0/");
    net.wait("an update", |net| net.paths().len() == 4);
    drop(daemon);
    net.wait("the loss", |net| net.state(session) == Some(SourceState::Lost));
    assert_eq!(net.paths().len(), 4, "it serves on");
    let trouble = net.status(session).unwrap().trouble.unwrap();
    assert_eq!(trouble, "the other end closed the connection");

    let mut daemon = connect("127.0.0.1", address);
    send(&mut daemon, "peer 0 1\n+ 0 10.0.0.0/8 2\n");
    net.wait("the sweep", |net| net.state(session) == Some(SourceState::Up));
    assert_eq!(net.paths(), table(&ALL[..1], 2));
    let status = net.status(session).unwrap();
    assert_eq!((status.figures.connections, status.trouble), (2, None));
    assert_eq!(net.state("lines"), Some(SourceState::Up));

    // A peer with an end mark is complete at the mark.
    send(&mut daemon, "+ 0 12.0.0.0/8 2\n");
    daemon.shutdown(Shutdown::Write).unwrap();
    net.wait("the second loss", |net| net.state(session) == Some(SourceState::Lost));
    let lost = format!("{session}: disconnected behind byte {}: ", DUMP.len() + 30);
    assert!(net.has_report(&lost), "{lost} {:?}", net.reports());
    net.stop();
}

/// All peers of a connection are one source, however many there are: the largest is cut, not an honest neighbour.
#[test]
fn a_full_table_cuts_the_largest_session() {
    let mut rib = Rib::default();
    rib.set_limits(Limits { paths: 100, ..Limits::default() });
    let net = Net::with(rib, vec![listen("lines", "127.0.0.0/8", options())]);
    let address = net.address("lines");
    let mut honest = connect("127.0.0.2", address);
    send(&mut honest, "peer 0 7\n+ 0 192.0.2.0/24 1\n");
    net.wait("the first route", |net| net.paths().len() == 1);
    // A hundred peers with a route each.
    let mut hostile = connect("127.0.0.1", address);
    let flood = |i: u32| format!("peer {i} {}\n+ {i} 10.{i}.0.0/16 1\n", 1000 + i);
    send(&mut hostile, &(0..99).map(flood).collect::<String>());
    net.wait("the flood", |net| net.paths().len() == 100);
    send(&mut honest, "+ 0 198.51.100.0/24 1\n");
    net.wait("room", |net| net.paths().len() == 2);
    assert!(net.has_report("lines 127.0.0.1: the table is full (limits.routes), and this session"));
    let closed = "lines 127.0.0.1: disconnected behind byte ";
    net.wait("the end", |net| net.has_report(closed));
    assert_eq!(hostile.read(&mut [0; 1]).unwrap_or(0), 0, "it is closed");
    net.wait("the honest one", |net| net.state("lines 127.0.0.2") == Some(SourceState::Up));

    // The one that fills the table is cut itself, and only it.
    let mut hostile = connect("127.0.0.1", address);
    send(&mut hostile, &(0..200).map(flood).collect::<String>());
    net.wait("its end", |net| {
        net.has_report("all peers together have 100 routes, which is the limit")
    });
    assert_eq!(net.paths().len(), 100);
    send(&mut honest, "+ 0 203.0.113.0/24 1\n");
    net.wait("room", |net| net.paths().len() == 3);
    net.stop();
}

#[test]
fn routes_of_a_daemon_that_stays_away_are_removed() {
    let options = SessionOptions { hold: ms(50), ..options() };
    let net = Net::start(vec![listen("lines", "127.0.0.1", options)]);
    let mut daemon = connect("127.0.0.1", net.address("lines"));
    send(&mut daemon, DUMP);
    net.wait("the dump", |net| net.paths().len() == 3);
    drop(daemon);
    net.wait("the end of the hold time", |net| net.paths().is_empty());
    net.wait("the report", |net| net.has_report("the connection did not come back"));
    // The address is named in the configuration, so its session is still shown.
    net.wait("the state", |net| net.state("lines 127.0.0.1") == Some(SourceState::Idle));
}

#[test]
fn two_routers_are_two_sessions_and_strangers_are_forgotten() {
    let options = SessionOptions { hold: ms(50), ..options() };
    let net = Net::start(vec![listen("lines", "127.0.0.0/8", options)]);
    let address = net.address("lines");
    let mut routers = ["127.0.0.2", "127.0.0.3"].map(|from| connect(from, address));
    send(&mut routers[0], "peer 0 1\n+ 0 10.0.0.0/8 1\n");
    send(&mut routers[1], "peer 0 2\n+ 0 10.0.0.0/8 2\n+ 0 11.0.0.0/8 2\n");
    net.wait("both", |net| net.paths().len() == 3);
    let [first, second] = routers;
    drop(second);
    net.wait("the end of the second", |net| net.paths() == table(&["10.0.0.0/8"], 1));
    net.wait("the board", |net| net.status("lines 127.0.0.3").is_none());
    net.wait("the first", |net| net.state("lines 127.0.0.2") == Some(SourceState::Up));
    drop(first);
}

#[test]
fn strangers_and_crowds_are_refused() {
    let net = Net::start(vec![listen("lines", "127.0.0.0/30", options())]);
    let address = net.address("lines");
    let is_refused = |from: &str| {
        let mut stream = connect(from, address);
        match stream.read(&mut [0]) {
            Ok(0) => true,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => true,
            other => panic!("{other:?}"),
        }
    };
    assert!((0..50).all(|_| is_refused("127.0.0.9")));
    let refused = net.reports().iter().filter(|report| report.contains("refused")).count();
    assert_eq!(refused, 5, "a flood is not reported one by one");
    assert_eq!(net.status("lines").unwrap().figures.connections, 0);
    let trouble = "refused 127.0.0.9: it is not among the addresses that may connect";
    net.wait("the trouble", |net| net.status("lines").unwrap().trouble.as_deref() == Some(trouble));

    // A client that connects and sends nothing leaves no session behind, and does not fill the log.
    let net = Net::start(vec![listen("lines", "127.0.0.0/8", options())]);
    let address = net.address("lines");
    for host in 1..20 {
        drop(connect(&format!("127.0.1.{host}"), address));
        net.wait("its end", |net| {
            net.status("lines").unwrap().figures.connections == host && net.board.all().len() == 1
        });
    }
    let reported = net.reports().iter().filter(|report| report.contains("connected")).count();
    assert!((20..30).contains(&reported), "{reported}");
    // The limit is four sessions, whatever their connections do.
    let mut daemons: Vec<_> =
        (1..5).map(|host| connect(&format!("127.0.0.{host}"), address)).collect();
    for daemon in &mut daemons {
        send(daemon, DUMP);
    }
    net.wait("four", |net| (1..5).all(|host| net.announced(&format!("lines 127.0.0.{host}")) == 3));
    let mut fifth = connect("127.0.0.5", address);
    assert!(matches!(fifth.read(&mut [0]), Ok(0) | Err(_)));
    assert!(net.has_report("refused 127.0.0.5: there are as many sessions as may be"));
    assert_eq!(net.board.all().len(), 5);
    // One of the four addresses may connect again.
    let mut again = connect("127.0.0.2", address);
    send(&mut again, DUMP);
    net.wait("the return", |net| net.announced("lines 127.0.0.2") == 6);
}

/// A daemon whose machine lost power does not close its connection. The next connection replaces it.
#[test]
fn the_newest_connection_is_the_session() {
    let net = Net::start(vec![listen("lines", "127.0.0.1", options())]);
    let address = net.address("lines");
    let mut dead = connect("127.0.0.1", address);
    send(&mut dead, "peer 0 1\n+ 0 10.0.0.0/8 1\n+ 0 11.0.0.0/8 1\n+ 0 12.");
    net.wait("the first", |net| net.paths().len() == 2);
    let mut alive = connect("127.0.0.1", address);
    send(&mut alive, "peer 0 1\n+ 0 10.0.0.0/8 2\n");
    net.wait("the sweep", |net| net.paths() == table(&["10.0.0.0/8"], 2));
    assert!(net.has_report("the other end opened a new connection"));
    assert!(matches!(dead.read(&mut [0]), Ok(0) | Err(_)), "it is closed");
    net.wait_connections("lines 127.0.0.1", 2);
}

#[test]
fn garbage_is_counted_and_hurts_nobody() {
    let limits = SessionOptions { longest_record: 1 << 20, ..options() };
    let net = Net::start(vec![listen("lines", "127.0.0.0/8", limits)]);
    let address = net.address("lines");
    let mut sound = connect("127.0.0.1", address);
    send(&mut sound, DUMP);
    // Eight megabytes of damaged lines.
    let mut mad = connect("127.0.0.2", address);
    let line = [&b"\xff\xfe\0what"[..], &[b'x'; 1000], b"\n"].concat();
    let lines = 8_000;
    (0..lines).for_each(|_| mad.write_all(&line).unwrap());
    let damaged = |net: &Net| net.status("lines 127.0.0.2").map(|status| status.figures.damaged);
    net.wait("the damage", |net| damaged(net) == Some(lines));
    let reported = net.reports().iter().filter(|report| report.contains("no such word")).count();
    assert!((5..=20).contains(&reported), "{reported}");
    // Then bytes without the end of a record: the connection is closed.
    let endless = vec![b'y'; 1 << 16];
    while mad.write_all(&endless).is_ok() {}
    net.wait("the end", |net| net.status("lines 127.0.0.2").is_none());
    net.wait("why", |net| net.has_report(": a record of more than"));
    // Bytes that are not a line are an error at once.
    let mut other = connect("127.0.0.3", address);
    send(&mut other, "binary\n");
    net.wait("the misfit", |net| {
        net.has_report("lines 127.0.0.3: disconnected behind byte 7: not lines")
    });
    assert_eq!(net.paths(), table(&ALL, 1));
    send(&mut sound, "- 0 10.0.0.0/8\n");
    net.wait("the sound one", |net| net.paths().len() == 2);
}

/// A daemon that floods until the test ends, beside one that sends a line now and then.
#[test]
fn a_flood_does_not_starve_a_quiet_daemon_nor_a_stop() {
    let options = SessionOptions { quiet: LIMIT, longest_resync: ms(50), ..options() };
    let net = Net::start(vec![listen("lines", "127.0.0.0/8", options)]);
    let address = net.address("lines");
    let is_over = Arc::new(AtomicBool::new(false));
    let flood = {
        let is_over = Arc::clone(&is_over);
        let mut stream = connect("127.0.0.2", address);
        thread::spawn(move || {
            send(&mut stream, "peer 0 2\n");
            let lines: String =
                (0..1000).map(|i| format!("+ 0 10.{}.0.0/16 1\n", i % 200)).collect();
            let mut written = 0_u64;
            while stream.write_all(lines.as_bytes()).is_ok() {
                written += lines.len() as u64;
            }
            assert!(is_over.load(Ordering::SeqCst), "the flood was cut after {written} bytes");
        })
    };
    let mut quiet = connect("127.0.0.1", address);
    send(&mut quiet, "peer 0 1\n");
    for value in 1..20 {
        let before = net.announced("lines 127.0.0.2");
        net.wait("the flood", |net| net.announced("lines 127.0.0.2") > before);
        send(&mut quiet, &format!("+ 0 192.0.2.0/24 {value}\n"));
        let key = (1, "192.0.2.0/24".parse().unwrap());
        net.wait("the quiet one", |net| net.paths().get(&key) == Some(&value));
    }
    // Overdue work is not delayed either.
    net.wait("its time", |net| net.state("lines 127.0.0.2") == Some(SourceState::Up));
    is_over.store(true, Ordering::SeqCst);
    net.stop(); // in the middle of it
    flood.join().unwrap();
}

#[test]
fn a_daemon_that_connects_without_end_is_reported_now_and_then() {
    let net = Net::start(vec![listen("lines", "127.0.0.1", options())]);
    let address = net.address("lines");
    (0..200).for_each(|_| drop(connect("127.0.0.1", address)));
    let connections = |net: &Net| net.status("lines 127.0.0.1").unwrap().figures.connections;
    net.wait("all", |net| connections(net) == 200);
    let reports = net.reports().iter().filter(|report| report.contains("connected")).count();
    assert!((20..200).contains(&reports), "{reports} of 400");
}

#[test]
fn nothing_happens_without_a_cause() {
    let net = Net::start(vec![listen("lines", "127.0.0.1", options())]);
    let mut daemon = connect("127.0.0.1", net.address("lines"));
    send(&mut daemon, DUMP);
    net.wait("the dump", |net| net.state("lines 127.0.0.1") == Some(SourceState::Up));
    // The board may be written once more. After that the loop does not wake.
    net.wait("silence", |net| {
        let before = net.handle.turns();
        thread::sleep(ms(300));
        net.handle.turns() == before
    });
}

#[test]
fn a_refresh_requests_everything_again() {
    let net = Net::start(vec![listen("lines", "127.0.0.0/8", options())]);
    let address = net.address("lines");
    let mut daemons = ["127.0.0.1", "127.0.0.2"].map(|from| connect(from, address));
    for (asn, daemon) in daemons.iter_mut().enumerate() {
        send(daemon, &format!("peer 0 {asn}\n+ 0 10.0.0.0/8 1\n"));
    }
    net.wait("both", |net| net.paths().len() == 2);
    assert_eq!(net.handle.refresh("lines 127.0.0.2"), Ok(1));
    assert!(matches!(daemons[1].read(&mut [0]), Ok(0) | Err(_)), "it has to come again");
    assert_eq!(net.paths().len(), 2, "its routes serve meanwhile");
    assert_eq!(net.handle.refresh("lines"), Ok(1));
    assert_eq!(net.handle.refresh("other"), Ok(0));
}

/// A protocol that sends: it passes on received bytes to `talk`, and sends a last message.
struct Talker {
    /// The number of bytes to send for each received byte.
    talk: usize,
    figures: Figures,
    state: SourceState,
}

impl Protocol for Talker {
    fn connected(
        &mut self,
        _: Duration,
        _: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        self.state = SourceState::Up;
        out.extend(b"hello\n");
        Ok(())
    }
    fn bytes(
        &mut self,
        _: Duration,
        bytes: &[u8],
        _: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        self.figures.bytes += bytes.len() as u64;
        out.extend(vec![b'.'; bytes.len() * self.talk]);
        match bytes.contains(&b'!') {
            true => {
                out.extend(b"what?\n");
                Err(FeedError::Misfit("shouted at".to_owned()))
            }
            false => Ok(()),
        }
    }
    fn disconnected(&mut self, _: Duration) {
        self.state = SourceState::Lost;
    }
    fn tick(
        &mut self,
        _: Duration,
        _: &mut dyn Listener,
        _: &mut Vec<u8>,
    ) -> Result<(), FeedError> {
        Ok(())
    }
    fn deadline(&self) -> Option<Duration> {
        None
    }
    fn refresh(
        &mut self,
        _: Duration,
        _: &mut dyn Listener,
        out: &mut Vec<u8>,
    ) -> Result<bool, FeedError> {
        out.extend(b"again\n");
        Ok(true)
    }
    fn close(&mut self, out: &mut Vec<u8>) {
        out.extend(b"bye\n");
    }
    fn end(&mut self, _: &mut dyn Listener) -> Result<(), FeedError> {
        Ok(())
    }
    fn adopt(&mut self, _: u32, _: Duration) {}
    fn state(&self) -> SourceState {
        self.state
    }
    fn figures(&self) -> Figures {
        self.figures.clone()
    }
}

fn talkers(talk: usize) -> Net {
    let protocol = Arc::new(move |_| -> Box<dyn Protocol> {
        Box::new(Talker { talk, figures: Figures::default(), state: SourceState::Idle })
    });
    let speakers = vec![(within("127.0.0.1"), ProtocolFactory { settings: "".into(), protocol })];
    let address = "127.0.0.1:0".parse().unwrap();
    let listen = Listen { address, speakers, limit: 4, keys: Vec::new() };
    Net::start(vec![source("talk", Endpoint::Listen(listen))])
}

#[test]
fn words_are_sent_also_the_last_ones() {
    let net = talkers(1);
    let mut stream = connect("127.0.0.1", net.address("talk"));
    send(&mut stream, "abc");
    let mut received = [0; 9];
    stream.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"hello\n...");
    assert_eq!(net.handle.refresh("talk"), Ok(1));
    stream.read_exact(&mut received[..6]).unwrap();
    assert_eq!(&received[..6], b"again\n");
    // Many bytes are in flight to the hub when it stops: the other end must still receive the last message.
    net.stop();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "bye\n");
}

#[test]
fn a_protocol_that_gives_up_reports_the_reason() {
    let net = talkers(0);
    let mut stream = connect("127.0.0.1", net.address("talk"));
    send(&mut stream, "abc!");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "hello\nwhat?\n");
    net.wait("the report", |net| net.has_report("disconnected behind byte 4: shouted at"));
}

/// Ten thousand bytes for each received byte: the connection is closed, because the other end never reads.
#[test]
fn slow_receivers_are_bounded() {
    let net = talkers(10_000);
    let mut stream = connect("127.0.0.1", net.address("talk"));
    while stream.write_all(&[b'a'; 100]).is_ok() {
        thread::sleep(ms(1));
    }
    net.wait("the end", |net| net.has_report("the other end does not read"));
    // The loop still serves other connections.
    let mut other = connect("127.0.0.1", net.address("talk"));
    other.read_exact(&mut [0; 6]).unwrap();
}
