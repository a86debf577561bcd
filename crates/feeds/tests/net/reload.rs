//! Sources that are added, removed and changed while others continue.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};

use fibula_feeds::SessionOptions;
use fibula_feeds::net::{Endpoint, FeedSource, FeedSourceError, HubEnded, Listen};

use super::{Net, connect, listen, ms, options, send, source, speaker, table, within};

/// Listens on this address for these prefixes, each with a hold time that distinguishes its settings.
fn door(name: &str, address: SocketAddr, from: &[(&str, u64)]) -> FeedSource {
    let speakers = from.iter().map(|&(from, hold)| {
        (within(from), speaker(SessionOptions { hold: ms(hold), ..options() }))
    });
    let speakers = speakers.collect();
    source(name, Endpoint::Listen(Listen { address, speakers, limit: 9, keys: Vec::new() }))
}

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn sessions_that_did_not_change_are_not_touched() {
    let (address, other) = (free_port(), free_port());
    let before = [("127.0.0.1", 90_000), ("127.0.0.2", 90_000), ("127.0.0.0/8", 90_000)];
    let net = Net::start(vec![door("one", address, &before), door("two", other, &before)]);
    let mut daemons = [1, 2, 3].map(|host| {
        let mut daemon = connect(&format!("127.0.0.{host}"), address);
        send(&mut daemon, &format!("peer 0 {host}\n+ 0 10.0.0.0/8 1\n"));
        daemon
    });
    let mut of_two = connect("127.0.0.1", other);
    send(&mut of_two, "peer 0 4\n+ 0 10.0.0.0/8 1\n");
    net.wait("all", |net| net.paths().len() == 4);

    // The first session keeps its settings; the second has other settings; the third may not connect any more; the
    // source `two` is gone, and its port is that of another one.
    let after = [("127.0.0.1", 90_000), ("127.0.0.2", 80_000)];
    let sources = vec![door("one", address, &after), door("three", other, &[("127.0.0.0/8", 1)])];
    assert!(net.handle.reload(sources).unwrap().is_empty());
    assert_eq!(net.handle.list().unwrap(), ["one", "three"]);
    assert_eq!(net.paths(), table(&["10.0.0.0/8"], 1), "what is gone is gone at once");
    for gone in &mut daemons[1..] {
        assert!(matches!(gone.read(&mut [0]), Ok(0) | Err(_)));
    }
    assert!(matches!(of_two.read(&mut [0]), Ok(0) | Err(_)));
    send(&mut daemons[0], "+ 0 11.0.0.0/8 1\n");
    net.wait("the first", |net| net.paths() == table(&["10.0.0.0/8", "11.0.0.0/8"], 1));
    let first = net.status("one 127.0.0.1").unwrap();
    assert_eq!((first.figures.connections, first.trouble), (1, None));
    let mut names: Vec<String> = net.board.all().into_iter().map(|status| status.name).collect();
    names.sort();
    assert_eq!(names, ["one", "one 127.0.0.1", "one 127.0.0.2", "three"]);
    let mut third = connect("127.0.0.3", address);
    assert!(matches!(third.read(&mut [0]), Ok(0) | Err(_)));
    let mut of_three = connect("127.0.0.3", other);
    send(&mut of_three, "peer 0 5\n+ 0 10.0.0.0/8 1\n");
    net.wait("the new source", |net| net.announced("three 127.0.0.3") == 1);
}

/// The sources that cannot be run are reported, and everything continues as before.
#[test]
fn a_reload_that_fails_changes_nothing() {
    let (address, other, anybody) = (free_port(), free_port(), [("127.0.0.0/8", 90_000)]);
    let before = || vec![door("one", address, &anybody), door("two", other, &anybody)];
    let net = Net::start(before());
    let mut daemon = connect("127.0.0.1", address);
    send(&mut daemon, "peer 0 1\n+ 0 10.0.0.0/8 1\n");
    net.wait("a route", |net| net.paths().len() == 1);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let everywhere = SocketAddr::new([0, 0, 0, 0].into(), other.port());
    let folder = tempfile::tempdir().unwrap();
    for (wanted, what) in [
        (vec![door("a b", address, &anybody)], "it is empty or has white space in it"),
        (
            vec![door("three", address, &anybody), door("three", other, &anybody)],
            "there are two sources called three; rename one",
        ),
        (vec![door("one", taken, &anybody)], "one: cannot listen on "),
        // The sockets that were opened are closed again, and the ones closed for them are open again.
        (
            vec![
                door("one", address, &[]),
                door("three", everywhere, &anybody),
                super::folder::folder(folder.path(), ms(1), None),
                door("two", taken, &anybody),
            ],
            "two: cannot listen on ",
        ),
    ] {
        let failed = net.handle.reload(wanted).unwrap();
        let [failed] = &failed[..] else { panic!("{failed:?}") };
        assert!(failed.to_string().contains(what), "{failed}");
        assert_eq!(net.handle.list().unwrap(), ["one", "two"]);
        assert_eq!(net.paths(), table(&["10.0.0.0/8"], 1), "{what}");
        assert_eq!(net.status("one 127.0.0.1").unwrap().figures.connections, 1, "{what}");
        connect("127.0.0.2", other);
        connect("127.0.0.2", address);
    }
    assert!(!net.has_report("three: listens on"));
    assert!(net.handle.reload(before()).unwrap().is_empty());
    send(&mut daemon, "+ 0 11.0.0.0/8 1\n");
    net.wait("the connection", |net| net.paths() == table(&["10.0.0.0/8", "11.0.0.0/8"], 1));
}

/// New sources have the addresses of removed ones, or addresses that include them.
#[test]
fn addresses_go_from_source_to_source() {
    let (first, second, anybody) = (free_port(), free_port(), [("127.0.0.0/8", 90_000)]);
    let net = Net::start(vec![door("one", first, &anybody), door("two", second, &anybody)]);
    let reload = |sources| assert!(net.handle.reload(sources).unwrap().is_empty());
    let heard_by = |name: &str, address: SocketAddr| {
        let mut daemon = connect("127.0.0.3", address);
        send(&mut daemon, "peer 0 1\n+ 0 10.0.0.0/8 1\n");
        net.wait(name, |net| net.announced(&format!("{name} 127.0.0.3")) == 1);
    };
    reload(vec![door("two", first, &anybody), door("one", second, &anybody)]);
    heard_by("two", first);
    heard_by("one", second);
    let everywhere = SocketAddr::new([0, 0, 0, 0].into(), first.port());
    reload(vec![door("two", everywhere, &anybody), door("three", second, &anybody)]);
    heard_by("two", first);
    heard_by("three", second);
}

#[test]
fn sources_are_added_and_removed() {
    let net = Net::start(vec![]);
    assert!(net.handle.add(listen("lines", "127.0.0.1", options())).unwrap().is_ok());
    let twice = net.handle.add(listen("lines", "127.0.0.1", options())).unwrap();
    assert!(matches!(twice, Err(FeedSourceError::Twice { .. })));
    let address = net.address("lines");
    let taken = net.handle.add(door("other", address, &[])).unwrap().unwrap_err().to_string();
    assert!(taken.starts_with(&format!("other: cannot listen on {address}: ")), "{taken}");
    let mut daemon = connect("127.0.0.1", address);
    send(&mut daemon, "peer 0 1\n+ 0 10.0.0.0/8 1\n");
    net.wait("a route", |net| net.paths().len() == 1);
    assert_eq!(net.handle.remove("other"), Ok(false));
    assert_eq!(net.handle.remove("lines"), Ok(true));
    assert!(net.paths().is_empty() && net.board.all().is_empty());
    assert!(matches!(daemon.read(&mut [0]), Ok(0) | Err(_)));
    let handle = net.handle.clone();
    net.stop();
    assert_eq!(handle.list(), Err(HubEnded));
}

/// Whether a connection without a signature is accepted within a time; the system drops it if there is a key.
#[cfg(target_os = "linux")]
fn connects(from: &str, to: SocketAddr) -> bool {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
    // Linux has connect(2) wait no longer than for data that cannot be sent.
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Send,
        Some(ms(300)),
    )
    .unwrap();
    connect(&socket, &to).is_ok()
}

/// Keys are added, changed and removed with the configuration.
#[cfg(target_os = "linux")]
#[test]
fn tcp_md5_keys_are_those_of_the_configuration() {
    let probe = TcpListener::bind("127.0.0.1:0").unwrap();
    if let Err(error) = fibula_feeds::bgp::set_md5_key(&probe, within("127.0.0.1"), Some(b"key")) {
        println!("SKIPPED: the kernel refuses TCP MD5 keys: {error}");
        return;
    }
    let address = free_port();
    let of = |from: &[&str], signed: &[(&str, &str)]| {
        let from: Vec<_> = from.iter().map(|from| (*from, 90_000)).collect();
        let mut source = door("bgp", address, &from);
        let Endpoint::Listen(listen) = &mut source.endpoint else { unreachable!() };
        listen.keys =
            signed.iter().map(|(from, key)| (within(from), key.as_bytes().to_vec())).collect();
        vec![source]
    };
    let both = ["127.0.0.1", "127.0.0.2"];
    let net = Net::start(of(&both, &[("127.0.0.1", "first"), ("127.0.0.2", "key")]));
    assert_eq!(both.map(|from| connects(from, address)), [false, false]);
    // The first is signed with another key, the second no more.
    assert!(net.handle.reload(of(&both, &[("127.0.0.1", "second")])).unwrap().is_empty());
    assert_eq!(both.map(|from| connects(from, address)), [false, true]);
    // A removed neighbour is refused at once, instead of getting no answer.
    assert!(net.handle.reload(of(&both[1..], &[])).unwrap().is_empty());
    assert_eq!(both.map(|from| connects(from, address)), [true, true]);
    assert!(net.handle.reload(of(&both, &[("127.0.0.2", "key")])).unwrap().is_empty());
    assert_eq!(both.map(|from| connects(from, address)), [true, false]);
}
