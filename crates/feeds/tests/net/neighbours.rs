//! BGP neighbours at a hub: which of two connections becomes the session.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use fibula_feeds::SourceState;
use fibula_feeds::bgp::{BgpSession, Neighbour};
use fibula_feeds::net::{Endpoint, Listen, ProtocolFactory};

use super::{Net, connect, source, within};
use crate::bgp::speaker::{FOUR, IPV4, KEEPALIVE, PATH, RESTART, message, open, split, update};

/// A hub with a neighbour at 127.0.0.1.
fn collector(limit: Option<u32>) -> Net {
    let protocol = Arc::new(move |who: fibula_feeds::net::SessionContext| {
        let remote = who.remote.unwrap();
        let ours = [10, 0, 0, 1].into();
        let neighbour = Neighbour::new(remote, 65000, ours);
        // No hold time: nothing is sent because of time.
        let neighbour = Neighbour { most_routes: limit, hold_time: 0, ..neighbour };
        Box::new(BgpSession::new(neighbour).with_events(who.events)) as _
    });
    let speakers =
        vec![(within("127.0.0.1"), ProtocolFactory { settings: String::new(), protocol })];
    let address = "127.0.0.1:0".parse().unwrap();
    let listen = Listen { address, speakers, limit: 4, keys: Vec::new() };
    Net::start(vec![source("bgp", Endpoint::Listen(listen))])
}

/// The next message, as `TYPE BODY` in hex.
fn receive(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; 19];
    stream.read_exact(&mut bytes).unwrap();
    let len = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    bytes.resize(len, 0);
    stream.read_exact(&mut bytes[19..]).unwrap();
    split(&bytes).remove(0)
}

/// A connection whose session is established, and that has announced 10.0.0.0/8.
fn established(net: &Net, parameters: &[&str]) -> TcpStream {
    let before = net.announced("bgp 127.0.0.1");
    let mut stream = connect("127.0.0.1", net.address("bgp"));
    let messages = [open(parameters), message(KEEPALIVE), update(PATH, "08 0a")].concat();
    stream.write_all(&messages).unwrap();
    assert!(receive(&mut stream).starts_with("01 "));
    assert_eq!(receive(&mut stream), KEEPALIVE);
    net.wait("the route", |net| net.announced("bgp 127.0.0.1") > before);
    stream
}

fn routes(net: &Net) -> usize {
    net.table.0.lock().unwrap().len::<u32>(0)
}

fn is_connected(net: &Net) -> bool {
    matches!(net.state("bgp 127.0.0.1"), Some(SourceState::Resync | SourceState::Up))
}

/// RFC 4271, 6.8: without graceful restart an established session is not given up for a new connection, which any
/// program at that address can open.
#[test]
fn an_established_session_stays() {
    let net = collector(None);
    let mut first = established(&net, &[IPV4, FOUR]);
    let mut second = connect("127.0.0.1", net.address("bgp"));
    second.write_all(&open(&[IPV4, FOUR])).unwrap();
    assert_eq!(receive(&mut second), "03 0607", "Cease/Connection Collision Resolution");
    assert_eq!(second.read(&mut [0]).unwrap_or(0), 0, "it is closed");
    // A KEEPALIVE on the first connection tests whether it is alive, and it continues.
    assert_eq!(receive(&mut first), KEEPALIVE);
    first.write_all(&update(PATH, "08 0b")).unwrap();
    net.wait("its next route", |net| net.announced("bgp 127.0.0.1") == 2);
    assert!(is_connected(&net));
    assert_eq!(routes(&net), 2);
    let why = "refused 127.0.0.1: neighbour 127.0.0.1: it has an established session already";
    assert!(net.has_report(why), "{:?}", net.reports());
    net.wait("the trouble", |net| net.status("bgp").unwrap().trouble.as_deref() == Some(why));
    assert_eq!(net.status("bgp").unwrap().figures.connections, 1);
}

/// A dead first connection is reset by the KEEPALIVE, and the neighbour's next attempt is accepted.
#[test]
fn a_dead_session_makes_room() {
    let net = collector(None);
    let first = established(&net, &[IPV4, FOUR]);
    drop(first);
    net.wait("the loss", |net| !is_connected(net));
    established(&net, &[IPV4, FOUR]);
}

/// With graceful restart a new connection means that the neighbour has restarted (RFC 4724, 4.2); before a session
/// is established, that it has given up the old one.
#[test]
fn otherwise_the_newest_connection_is_the_session() {
    let net = collector(None);
    let mut unfinished = connect("127.0.0.1", net.address("bgp"));
    unfinished.write_all(&open(&[IPV4, FOUR, RESTART])).unwrap();
    assert!(receive(&mut unfinished).starts_with("01 "));
    assert_eq!(receive(&mut unfinished), KEEPALIVE);
    let mut first = established(&net, &[IPV4, FOUR, RESTART]);
    assert_eq!(unfinished.read(&mut [0]).unwrap_or(0), 0, "it is closed");
    let mut second = established(&net, &[IPV4, FOUR, RESTART]);
    let mut rest = Vec::new();
    let _ = first.read_to_end(&mut rest);
    assert!(split(&rest).iter().all(|message| !message.starts_with("03")), "{:?}", split(&rest));
    second.write_all(&update(PATH, "08 0b")).unwrap();
    net.wait("its next route", |net| routes(net) == 2);
    assert!(net.has_report("the other end opened a new connection"));
}

/// After too many routes the neighbour is refused for a while, without reports of connections that begin and end.
#[test]
fn a_neighbour_over_its_limit_is_refused() {
    let net = collector(Some(1));
    let mut first = established(&net, &[IPV4, FOUR]);
    first.write_all(&update(PATH, "08 0b")).unwrap();
    assert_eq!(receive(&mut first), "03 060100010100000001");
    net.wait("the end", |net| !is_connected(net));
    let mut second = connect("127.0.0.1", net.address("bgp"));
    assert_eq!(receive(&mut second), "03 0605", "Cease/Connection Rejected");
    net.wait("the report", |net| {
        net.has_report("refused 127.0.0.1: neighbour 127.0.0.1: it exceeded")
    });
    assert_eq!(net.status("bgp 127.0.0.1").unwrap().figures.connections, 1);
}
