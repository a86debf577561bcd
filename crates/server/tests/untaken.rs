//! Clients of HTTP/2 that request much and take little of the answers.

use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fibula_rib::Peer;
use h2::client::{Builder, ResponseFuture, SendRequest};
use hyper::Request;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::common::{Lab, MS, get};

const LONG: Duration = Duration::from_secs(20);

/// A client with this window for each of its streams.
struct Hostile {
    sender: SendRequest<Bytes>,
    /// Ends when the server ends the connection.
    ended: JoinHandle<()>,
}

impl Hostile {
    async fn connect(lab: &Lab, window: u32) -> Self {
        let stream = TcpStream::connect(lab.address()).await.unwrap();
        let (sender, mut connection) =
            Builder::new().initial_window_size(window).handshake(stream).await.unwrap();
        let mut pings = connection.ping_pong().unwrap();
        // PINGs show that the client is there; they do not show that it takes anything.
        tokio::spawn(async move {
            while pings.ping(h2::Ping::opaque()).await.is_ok() {
                sleep(20 * MS).await;
            }
        });
        let ended = tokio::spawn(async move { drop(connection.await) });
        Self { sender, ended }
    }

    async fn request(&mut self, path: &str) -> ResponseFuture {
        self.sender = self.sender.clone().ready().await.unwrap();
        let request = Request::get(format!("http://localhost{path}")).body(()).unwrap();
        self.sender.send_request(request, true).unwrap().0
    }

    /// The status, and the body, of which nothing is taken.
    async fn get(&mut self, path: &str) -> (u16, h2::RecvStream) {
        let response = timeout(LONG, self.request(path).await).await.unwrap().unwrap();
        (response.status().as_u16(), response.into_body())
    }
}

/// Calls what waits for a runtime of its own on a thread of its own.
fn apart<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(call).join().unwrap())
}

/// The bytes of answers that the server holds.
fn held(lab: &Lab) -> usize {
    let metrics = apart(|| lab.client().get("/metrics", &[]).unwrap());
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    let line = text.lines().find(|line| line.starts_with("fibula_http_answer_bytes")).unwrap();
    line.split_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn untaken_answers_are_bounded_for_a_connection_and_in_all() {
    let mut lab = Lab::new(|options| {
        options.limits.connection_answer_bytes = 1 << 20;
        options.limits.answer_bytes = 3 << 19;
    });
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 1));
    Runtime::new().unwrap().block_on(async {
        let (mut bodies, mut statuses) = (Vec::new(), Vec::new());
        let mut one = Hostile::connect(&lab, 0).await;
        let mut other = Hostile::connect(&lab, 0).await;
        for client in [&mut one, &mut other] {
            for _ in 0..20 {
                let (status, body) = client.get("/v1/hilbert").await;
                statuses.push(status);
                bodies.push(body);
            }
        }
        let count = |statuses: &[u16], status| statuses.iter().filter(|s| **s == status).count();
        // An answer has 64 KiB.
        let (first, second) = statuses.split_at(20);
        assert_eq!((count(first, 200), count(first, 429)), (16, 4), "{statuses:?}");
        assert_eq!(count(second, 200) + count(second, 503), 20, "{statuses:?}");
        assert!((6..=9).contains(&count(second, 200)), "{statuses:?}");
        let metrics = apart(|| lab.client().get("/metrics", &[]).unwrap().body);
        let refused = format!(
            "fibula_http_requests_total{{method=\"GET\",endpoint=\"/v1/hilbert\",status=\"4xx\"}} {}\n",
            count(&statuses, 429)
        );
        assert!(String::from_utf8_lossy(&metrics).contains(&refused), "{refused}");
        let bytes = held(&lab);
        assert!((1 << 20..(3 << 19) + (256 << 10)).contains(&bytes), "{bytes}");
        // Others are served.
        apart(|| assert_eq!(get(&mut lab.client(), "/healthz")["status"], "ok"));
        drop((one, other, bodies));
        let begin = Instant::now();
        while held(&lab) > 64 << 10 {
            assert!(begin.elapsed() < LONG, "{} bytes are held for nobody", held(&lab));
            sleep(5 * MS).await;
        }
    });
}

#[test]
fn a_client_that_takes_nothing_is_ended_although_it_sends_pings() {
    let mut lab = Lab::new(|options| options.limits.stall_time = 300 * MS);
    lab.fill(1, 2000);
    Runtime::new().unwrap().block_on(async {
        for window in [0, 100] {
            let mut client = Hostile::connect(&lab, window).await;
            let begin = Instant::now();
            let (status, _body) = client.get("/v1/routes/0.0.0.0/0?view=covered&limit=1000").await;
            assert_eq!(status, 200);
            timeout(LONG, &mut client.ended).await.expect("it is never ended").unwrap();
            assert!(begin.elapsed() >= 300 * MS);
        }
        // A stop does not wait for such a client, either.
        let mut client = Hostile::connect(&lab, 0).await;
        let (status, _body) = client.get("/v1/table").await;
        assert_eq!(status, 200);
        let begin = Instant::now();
        apart(|| lab.server.stop());
        assert!(begin.elapsed() < Duration::from_secs(10));
    });
}

#[test]
fn a_client_that_takes_its_answer_slowly_gets_all_of_it() {
    let mut lab = Lab::new(|options| options.limits.stall_time = 400 * MS);
    lab.fill(1, 3000);
    let path = "/v1/routes/0.0.0.0/0?view=covered&limit=1000";
    let expected = lab.client().get(path, &[]).unwrap().body;
    assert!(expected.len() > 200_000, "{}", expected.len());
    Runtime::new().unwrap().block_on(async {
        let mut client = Hostile::connect(&lab, 40_000).await;
        let (_, mut body) = client.get(path).await;
        let (mut taken, begin) = (Vec::new(), Instant::now());
        while let Some(part) = timeout(LONG, body.data()).await.unwrap() {
            let part = part.expect("it is ended while it takes something");
            body.flow_control().release_capacity(part.len()).unwrap();
            taken.extend_from_slice(&part);
            sleep(20 * MS).await;
        }
        assert!(begin.elapsed() > 400 * MS, "too fast to test anything: {:?}", begin.elapsed());
        assert!(taken == expected);
    });
}

/// Lists are made while they are taken: the memory is that of a part.
#[test]
fn long_lists_are_made_as_they_are_taken() {
    let lab = Lab::new(|options| options.limits.connection_answer_bytes = 1 << 20);
    for number in 0..20_000_u32 {
        let address = std::net::Ipv4Addr::from(0x0b00_0000 + number).into();
        lab.live.peer(Peer::new(Some(address), number + 1));
    }
    let answer = lab.client().get("/v1/peers", &[]).unwrap();
    assert!(answer.body.len() > 2 << 20, "{}", answer.body.len());
    let peers: fibula_server::api::Peers = serde_json::from_slice(&answer.body).unwrap();
    assert!(peers.peers.iter().enumerate().all(|(at, status)| status.peer.id == at as u32));
    assert_eq!(peers.peers.len(), 20_003);
    Runtime::new().unwrap().block_on(async {
        let mut client = Hostile::connect(&lab, 0).await;
        let (status, _body) = client.get("/v1/peers").await;
        assert_eq!(status, 200);
        let bytes = held(&lab);
        assert!(bytes < 256 << 10, "{bytes}");
    });
}
