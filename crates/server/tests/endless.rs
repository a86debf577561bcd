//! Servers that do not end their answers: the client gives up.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use fibula_server::client::{Client, ClientError, ClientOptions};

/// A server that answers every request with this head, and then with the same bytes for ever.
fn endless(head: &'static str, part: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(head.as_bytes());
            while stream.write_all(part).is_ok() {}
        }
    });
    address
}

fn client(address: SocketAddr) -> Client {
    let mut options = ClientOptions::new(format!("http://{address}"));
    options.answer_bytes = 1 << 20;
    Client::new(options).unwrap()
}

#[test]
fn answers_that_do_not_end_are_given_up() {
    let spaces = &[b' '; 4096];
    for head in [
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
        "HTTP/1.1 500 No\r\n\r\n",
    ] {
        let mut client = client(endless(head, spaces));
        let error = client.search("AS64500", None).unwrap_err();
        assert!(matches!(error, ClientError::Long { bytes: 1_048_576 }), "{error}");
    }
    // A head, and an event, that do not end.
    let head = "HTTP/1.1 200 OK\r\nx: ";
    assert!(client(endless(head, b"aaaaaaaaaaaaaaaa")).get("/", &[]).is_err());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ";
    let error = client(endless(head, b"aaaaaaaaaaaaaaaa")).watch("", None, |_| true).unwrap_err();
    assert!(matches!(error, ClientError::Long { .. }), "{error}");
}
