//! Where alarms are sent: receivers that work, that answer with errors, stall, refuse, and are not there.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use fibula_daemon::Serve;
use fibula_feeds::SourceState;
use fibula_server::api::Alarm;

use crate::alarms::{Source, metric, until_state};
use crate::until;

const RULE: &str = "
[[alarm]]
name = 'inside'
kind = 'more-specific'
prefixes = ['193.0.0.0/16']
[webhook]
";

/// A request that came.
pub(crate) struct Request {
    headers: Vec<String>,
    pub(crate) body: String,
}

impl Request {
    fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
            match line.trim_end() {
                "" => break,
                line => headers.push(line.to_owned()),
            }
        }
        let mut request = Self { headers, body: String::new() };
        let length: u64 = request.header("content-length")?.parse().ok()?;
        reader.take(length).read_to_string(&mut request.body).ok()?;
        Some(request)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.headers.iter().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(is, _)| is.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn alarm(&self) -> Alarm {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A receiver that gives each request one of the answers in turn, the last one for ever. An empty one is none: the
/// connection stays open.
pub(crate) fn receiver(
    answers: &'static [&'static str],
) -> (SocketAddr, Receiver<(Request, Instant)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, came) = channel();
    thread::spawn(move || answer_all(&listener, answers, &sender));
    (address, came)
}

fn answer_all(listener: &TcpListener, answers: &[&str], came: &Sender<(Request, Instant)>) {
    let mut open = Vec::new();
    for (at, stream) in listener.incoming().enumerate() {
        let mut stream = stream.unwrap();
        let Some(request) = Request::read(&stream) else { continue };
        if came.send((request, Instant::now())).is_err() {
            return;
        }
        match answers[at.min(answers.len() - 1)] {
            "" => open.push(stream),
            status => {
                let text = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nlocation: /\r\n\r\n");
                let _ = stream.write_all(text.as_bytes());
            }
        }
    }
}

/// A server whose source is up.
fn server(webhook: &str) -> (Serve, Source) {
    let mut source = Source::new();
    let serve = source.serve(&format!("{RULE}{webhook}"));
    source.accept();
    source.announce("8.0.0.0/8", "64500, 1");
    until_state(&serve, SourceState::Up);
    (serve, source)
}

fn next(came: &Receiver<(Request, Instant)>) -> (Request, Instant) {
    came.recv_timeout(Duration::from_secs(60)).unwrap()
}

#[test]
fn the_begin_and_the_end_are_sent_with_signatures() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "a secret\n").unwrap();
    let (address, came) = receiver(&["204 No Content"]);
    let secret_file = secret.display();
    let (serve, mut source) =
        server(&format!("url = 'http://{address}/hook?key=1'\nsecret-file = '{secret_file}'"));
    source.announce("193.0.6.0/24", "64500, 64666");
    let (begin, _) = next(&came);
    source.withdraw("193.0.6.0/24");
    let (end, _) = next(&came);
    assert_eq!(begin.headers[0], "POST /hook?key=1 HTTP/1.1");
    assert_eq!(begin.header("content-type"), Some("application/json"));
    let (first, last) = (begin.alarm(), end.alarm());
    assert_eq!((&*first.rule, &*first.prefix, first.end), ("inside", "193.0.6.0/24", None));
    assert_eq!((&*first.seen, &*first.as_path), ("/24, origin AS64666", "64500 64666"));
    assert_eq!((first.id, &first.begin), (last.id, &last.begin));
    assert!(last.end.is_some_and(|end| end >= last.begin));
    for request in [begin, end] {
        let time = request.header("fibula-time").unwrap();
        let signed = format!("{time}.{}", request.body);
        let Some(wanted) = openssl(&signed) else {
            println!("SKIPPED: openssl is not installed");
            break;
        };
        assert_eq!(request.header("fibula-signature"), Some(&*format!("sha256={wanted}")));
    }
    until("both", || (metric(&serve, "webhook_sent_total", None) == 2).then_some(()));
    assert_eq!(metric(&serve, "webhook_waiting", None), 0);
    serve.stop().unwrap();
}

/// The HMAC by another program.
fn openssl(text: &str) -> Option<String> {
    let mut command = Command::new("openssl");
    command.args(["dgst", "-sha256", "-hmac", "a secret"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    Some(out.trim().rsplit(' ').next().unwrap().to_owned())
}

/// Errors that may pass are tried again, later each time; others are not.
#[test]
fn errors_of_the_receiver_are_tried_again() {
    let answers = &["500 Oops", "503 Busy", "200 OK", "400 Bad", "302 Found", "429 Slow", "200 OK"];
    let (address, came) = receiver(answers);
    let (serve, mut source) = server(&format!("url = 'http://{address}/'\nattempts = 3"));
    source.announce("193.0.1.0/24", "64500, 1");
    let all: Vec<_> = (0..3).map(|_| next(&came)).collect();
    let bodies: Vec<&str> = all.iter().map(|(request, _)| &*request.body).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    let pauses = [all[1].1 - all[0].1, all[2].1 - all[1].1].map(|pause| pause.as_secs_f64());
    assert!(pauses[0] >= 0.5 && pauses[1] >= 1.0, "{pauses:?}");
    assert_eq!(all[0].0.header("fibula-signature"), None, "there is no secret");
    until("one", || (metric(&serve, "webhook_sent_total", None) == 1).then_some(()));
    // Refused: not repeated. A redirect is not followed.
    for (third, failed) in [(2, 1), (3, 2)] {
        source.announce(&format!("193.0.{third}.0/24"), "64500, 1");
        next(&came);
        until("failed", || (metric(&serve, "webhook_failed_total", None) == failed).then_some(()));
    }
    source.announce("193.0.4.0/24", "64500, 1");
    assert_eq!(next(&came).0.body, next(&came).0.body);
    until("two", || (metric(&serve, "webhook_sent_total", None) == 2).then_some(()));
    assert_eq!(metric(&serve, "webhook_repeated_total", None), 3);
    serve.stop().unwrap();
}

/// A receiver that answers nothing: the queue is bounded, the feed goes on, and the server ends at once.
#[test]
fn a_receiver_that_stalls_holds_nothing_up() {
    let (address, came) = receiver(&[""]);
    let (serve, mut source) =
        server(&format!("url = 'http://{address}/'\nqueue = 3\ntimeout = '20s'"));
    for third in 0..20 {
        source.announce(&format!("193.0.{third}.0/24"), "64500, 1");
    }
    next(&came);
    until("20 alarms", || {
        (metric(&serve, "alarms_raised_total", Some("inside")) == 20).then_some(())
    });
    // One is being sent; three wait. The thread may take the first one before or after others come.
    let dropped = metric(&serve, "webhook_dropped_total", None);
    assert!((16..=17).contains(&dropped), "{dropped}");
    assert_eq!(metric(&serve, "webhook_waiting", None), 20 - dropped);
    let begin = Instant::now();
    serve.stop().unwrap();
    let took = begin.elapsed().as_secs_f64();
    assert!(took < 5.0, "{took} s");
}

#[test]
fn a_request_has_a_timeout_and_a_number_of_attempts() {
    let (address, came) = receiver(&[""]);
    let (serve, mut source) =
        server(&format!("url = 'http://{address}/'\ntimeout = '300ms'\nattempts = 2"));
    source.announce("193.0.1.0/24", "64500, 1");
    let times = [next(&came).1, next(&came).1];
    assert!(times[1] - times[0] >= Duration::from_millis(800));
    until("given up", || (metric(&serve, "webhook_failed_total", None) == 1).then_some(()));
    serve.stop().unwrap();
}

#[test]
fn a_receiver_that_is_not_there_may_come() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (serve, mut source) = server(&format!("url = 'http://{address}/'"));
    source.announce("193.0.1.0/24", "64500, 1");
    until("an attempt", || (metric(&serve, "webhook_repeated_total", None) > 0).then_some(()));
    let listener = TcpListener::bind(address).unwrap();
    let (sender, came) = channel();
    thread::spawn(move || answer_all(&listener, &["200 OK"], &sender));
    assert_eq!(next(&came).0.alarm().prefix, "193.0.1.0/24");
    until("sent", || (metric(&serve, "webhook_sent_total", None) == 1).then_some(()));
    serve.stop().unwrap();
}

#[test]
fn a_secret_that_cannot_be_read_ends_the_start() {
    let text = format!(
        "[[fpm]]\nlisten = '127.0.0.1:0'\n{RULE}url = 'http://127.0.0.1/'\nsecret-file = '/no/such/file'"
    );
    let config = fibula_daemon::config::ServeConfig::parse(&text, "f.toml").unwrap();
    let error = Serve::check(&config).unwrap_err().to_string();
    assert!(error.starts_with("webhook.secret-file /no/such/file: "), "{error}");
}
