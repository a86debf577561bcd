//! A server on this machine that answers by a script.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A step of an answer. The connection is closed after the last one.
pub enum Step {
    Send(Vec<u8>),
    Wait(Duration),
}

/// A request: its first line, and its headers in lower case.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    headers: Vec<(String, String)>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A server. Its threads end with the test's process.
pub struct Server {
    pub address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each request by its number, from 0, and its content.
    pub fn start(answer: impl Fn(usize, &Request) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || {
                    let Ok(mut stream) = stream else { return };
                    let Some(request) = read(&mut stream) else { return };
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request.clone());
                        seen.len() - 1
                    };
                    for step in answer(number, &request) {
                        match step {
                            Step::Wait(time) => thread::sleep(time),
                            Step::Send(bytes) => {
                                if stream.write_all(&bytes).is_err() {
                                    return;
                                }
                            }
                        }
                    }
                });
            }
        });
        Self { address, requests }
    }

    /// Serves a text with an ETag at every path.
    pub fn of(text: &'static str) -> Self {
        Self::start(move |_, request| match request.header("if-none-match") {
            Some("\"1\"") => whole(304, &[("ETag", "\"1\"")], ""),
            _ => whole(200, &[("ETag", "\"1\"")], text),
        })
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
}

/// The head of an answer.
pub fn head(status: u16, headers: &[(&str, &str)]) -> Step {
    let mut text = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    Step::Send((text + "\r\n").into_bytes())
}

/// An answer that is what it says.
pub fn whole(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<Step> {
    let length = body.len().to_string();
    let mut headers = headers.to_vec();
    headers.push(("Content-Length", &length));
    vec![head(status, &headers), Step::Send(body.as_bytes().to_vec())]
}

fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        bytes.push(byte[0]);
    }
    let text = String::from_utf8(bytes).ok()?;
    let mut lines = text.split("\r\n");
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    Some(Request { path, headers })
}
