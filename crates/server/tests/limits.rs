//! Clients that ask for too much, or are too slow.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Lab, MS, raw, read_all, refusal};

fn connect(lab: &Lab) -> TcpStream {
    let stream = TcpStream::connect(lab.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

#[test]
fn half_a_head_gets_408_and_silence_an_end() {
    let lab = Lab::new(|options| options.limits.idle_time = 200 * MS);
    let answer = raw(lab.address(), b"GET /v1/peers HTT");
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout"), "{answer}");
    assert!(answer.ends_with(r#"{"error":"the head of the request took too long"}"#), "{answer}");
    assert_eq!(raw(lab.address(), b""), "");
    assert_eq!(raw(lab.address(), b"PRI * HT"), "");
    // One answered request, and then silence.
    let begin = Instant::now();
    let answer = raw(lab.address(), b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("{\"status\":\"ok\"}"),
        "{answer}"
    );
    assert!(begin.elapsed() >= 200 * MS);
    // One byte now and then does not help.
    let mut stream = connect(&lab);
    let drip = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: aaaaaaaaaaaaaaaaaaaaaaaaaa";
    let sent = drip.iter().take_while(|byte| {
        thread::sleep(10 * MS);
        stream.write_all(&[**byte]).is_ok()
    });
    assert!(sent.count() < drip.len() || read_all(&mut stream).starts_with("HTTP/1.1 408"));
}

/// Clients that leave give their places back at once, whatever they had sent.
#[test]
fn clients_that_leave_hold_no_place() {
    let mut lab = Lab::new(|options| options.limits.connections = 8);
    lab.fill(1, 100);
    let bulk = "POST /v1/lookup?table=bgp HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n\
                content-length: 1000\r\n\r\n10.0.0.1\n";
    for sent in [
        "",
        "P",
        "PRI * HTTP/2.0\r",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "G",
        "GET /v1/peers HTT",
        "GET /v1/changes HTTP/1.1\r\nhost: localhost\r\n\r\n",
        bulk,
    ] {
        for _ in 0..16 {
            let mut stream = connect(&lab);
            if stream.write_all(sent.as_bytes()).is_err() {
                break; // refused: those before are not gone yet
            }
            thread::sleep(2 * MS);
        }
        let begin = Instant::now();
        while raw(lab.address(), b"GET /healthz HTTP/1.0\r\n\r\n").contains("503") {
            assert!(begin.elapsed() < Duration::from_secs(10), "{sent:?} holds its place");
            thread::sleep(5 * MS);
        }
    }
}

#[test]
fn connections_beyond_the_limit_get_503() {
    let lab = Lab::new(|options| options.limits.connections = 2);
    let mut held = [connect(&lab), connect(&lab)];
    for stream in &mut held {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut begin = [0; 15];
        stream.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200 OK");
    }
    let answer = read_all(&mut connect(&lab));
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("too many connections"),
        "{answer}"
    );
    drop(held);
    let begin = Instant::now();
    while raw(lab.address(), b"GET /healthz HTTP/1.0\r\n\r\n").contains("503") {
        assert!(begin.elapsed().as_secs() < 20, "places are not given back");
        thread::sleep(5 * MS);
    }
}

#[test]
fn watchers_and_bulk_lookups_beyond_the_limit_get_429() {
    let mut lab = Lab::new(|options| {
        options.limits.watchers = 1;
        options.limits.bulk = 1;
        options.limits.slow = 0;
    });
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 1));
    let mut watcher = connect(&lab);
    watcher.write_all(b"GET /v1/changes HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut begin = [0; 15];
    watcher.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    let mut client = lab.client();
    let answer = client.get("/v1/changes", &[]).unwrap();
    assert_eq!((refusal(&answer).0, answer.headers["retry-after"].to_str().unwrap()), (429, "10"));
    let mut bulk = connect(&lab);
    bulk.write_all(
        b"POST /v1/lookup HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n\
                     content-length: 1000\r\n\r\n10.0.0.1\n",
    )
    .unwrap();
    bulk.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    let answer = client.post("/v1/lookup", "text/plain", "10.0.0.1\n").unwrap();
    let (status, sentence) = refusal(&answer);
    assert!(status == 429 && sentence.contains("too many bulk lookups"), "{sentence}");
    let (status, sentence) = refusal(&client.get("/v1/histogram", &[]).unwrap());
    assert!(status == 429 && sentence.contains("whole tables"), "{sentence}");
    drop((watcher, bulk));
    let begin = Instant::now();
    while client.post("/v1/lookup", "text/plain", "10.0.0.1\n").unwrap().status != 200 {
        assert!(begin.elapsed().as_secs() < 20, "places are not given back");
        thread::sleep(5 * MS);
    }
}

/// Clients that request much and read nothing are disconnected, and others are served meanwhile.
#[test]
fn a_client_that_reads_no_answer_is_disconnected() {
    let mut lab = Lab::new(|options| options.limits.stall_time = 300 * MS);
    lab.fill(1, 500);
    let mut stream = connect(&lab);
    // Sends requests without reading answers, until the server stops reading requests.
    let request = b"GET /v1/routes/0.0.0.0/0?view=covered HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    let begin = Instant::now();
    while stream.write_all(request).is_ok() {
        assert!(begin.elapsed().as_secs() < 20, "it is never cut off");
    }
    assert_eq!(lab.client().get("/healthz", &[]).unwrap().status, 200);
}

#[test]
fn it_ends_although_clients_are_there() {
    let mut lab = Lab::new(|_| {});
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 1));
    let address = lab.address();
    let mut idle = connect(&lab);
    let mut watcher = connect(&lab);
    watcher.write_all(b"GET /v1/changes HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut half = connect(&lab);
    half.write_all(
        b"POST /v1/lookup HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n\
                     content-length: 1000\r\n\r\n10.0.0.1\n",
    )
    .unwrap();
    thread::sleep(50 * MS);
    let begin = Instant::now();
    lab.server.stop();
    // Stopping takes less than a second on an idle machine; waiting for the clients would take half a minute.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert_eq!(read_all(&mut idle), "");
    let events = read_all(&mut watcher);
    assert!(events.ends_with("0\r\n\r\n"), "an end, not a break: {events}");
    assert!(TcpStream::connect(address).is_err());
}
