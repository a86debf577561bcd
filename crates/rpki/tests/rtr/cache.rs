//! A cache that does what a test tells it to, byte by byte.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fibula_core::AnyPrefix;
use fibula_rpki::Vrp;

/// The header of a PDU of version 1, with what follows it.
pub(crate) fn pdu(kind: u8, session: u16, body: &[u8]) -> Vec<u8> {
    of_version(1, kind, session, body)
}

fn of_version(version: u8, kind: u8, session: u16, body: &[u8]) -> Vec<u8> {
    let mut pdu = vec![version, kind];
    pdu.extend(session.to_be_bytes());
    pdu.extend((8 + body.len() as u32).to_be_bytes());
    pdu.extend(body);
    pdu
}

pub(crate) fn response(session: u16) -> Vec<u8> {
    pdu(3, session, &[])
}

pub(crate) fn reset() -> Vec<u8> {
    pdu(8, 0, &[])
}

pub(crate) fn notify(session: u16, serial: u32) -> Vec<u8> {
    pdu(0, session, &serial.to_be_bytes())
}

/// The end of an answer: the client asks again after an hour, or when it is notified.
pub(crate) fn end(session: u16, serial: u32) -> Vec<u8> {
    let words = [serial, 3600, 600, 7200];
    pdu(7, session, &words.map(u32::to_be_bytes).concat())
}

/// A VRP that is announced or withdrawn.
pub(crate) fn origin(vrp: Vrp, is_announced: bool) -> Vec<u8> {
    let (kind, len, addr) = match vrp.prefix() {
        AnyPrefix::V4(prefix) => (4, prefix.len(), prefix.addr().to_be_bytes().to_vec()),
        AnyPrefix::V6(prefix) => (6, prefix.len(), prefix.addr().to_be_bytes().to_vec()),
    };
    let mut body = vec![u8::from(is_announced), len, vrp.max_len(), 0];
    body.extend(addr);
    body.extend(vrp.asn().to_be_bytes());
    pdu(kind, 0, &body)
}

/// An ASPA, of version 2 of the protocol: with providers it is announced.
pub(crate) fn aspa(customer: u32, providers: &[u32], is_announced: bool) -> Vec<u8> {
    let body: Vec<u8> =
        [customer].iter().chain(providers).flat_map(|asn| asn.to_be_bytes()).collect();
    of_version(2, 11, u16::from(is_announced) << 8, &body)
}

/// The same PDUs, which have no ASPAs among them, in version 2.
pub(crate) fn in_version_2(mut pdus: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while at < pdus.len() {
        pdus[at] = 2;
        let length: [u8; 4] = pdus[at + 4..at + 8].try_into().unwrap();
        at += u32::from_be_bytes(length) as usize;
    }
    pdus
}

/// A query of the client: `None` for the whole set, or the session and serial number of what it has.
pub(crate) type Query = Option<(u16, u32)>;

/// A connection of the client.
pub(crate) struct Connection(TcpStream);

impl Connection {
    /// Waits for a query.
    pub(crate) fn query(&mut self) -> Query {
        let mut head = [0; 8];
        self.0.read_exact(&mut head).expect("a query");
        let session = u16::from_be_bytes([head[2], head[3]]);
        match head[1] {
            2 => None,
            1 => {
                let mut serial = [0; 4];
                self.0.read_exact(&mut serial).unwrap();
                Some((session, u32::from_be_bytes(serial)))
            }
            other => panic!("a query, not the PDU {other}"),
        }
    }

    /// The client begins with version 2: tells it that this is version 1.
    pub(crate) fn first_query(&mut self) -> Query {
        let query = self.query();
        // Unsupported version: the PDU in question and a text follow, both empty.
        self.send(&pdu(10, 4, &[0; 8]));
        assert_eq!(self.query(), query, "the same query in another version");
        query
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // The client may have closed the connection already.
        let _ = self.0.write_all(bytes);
    }

    /// The code of the error that the client reports before it closes the connection.
    pub(crate) fn error(&mut self) -> Option<u16> {
        let mut all = Vec::new();
        let _ = self.0.read_to_end(&mut all);
        let code =
            |error: &[u8]| (error[1] == 10).then(|| u16::from_be_bytes([error[2], error[3]]));
        all.get(..8).and_then(code)
    }

    /// Waits until the client has closed the connection.
    pub(crate) fn wait(mut self) {
        let _ = self.0.read_to_end(&mut Vec::new());
    }
}

/// A cache that serves one connection after the other, with a function for each.
pub(crate) struct Cache {
    pub(crate) endpoint: String,
    thread: JoinHandle<()>,
}

type Script = Box<dyn FnOnce(Connection) + Send>;

impl Cache {
    pub(crate) fn new(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = listener.local_addr().unwrap().to_string();
        let thread = thread::spawn(move || {
            for script in scripts {
                let (socket, _) = listener.accept().unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                script(Connection(socket));
            }
        });
        Self { endpoint, thread }
    }

    /// Waits until all connections are served; what a script asserted is passed on.
    pub(crate) fn done(self) {
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}
