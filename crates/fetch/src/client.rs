//! Requests, each on a thread: the caller waits for the next part no longer than it wants to.

use std::io::Read;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ureq::http::{HeaderMap, Response, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::url::Url;
use crate::{FetchError, FetchOptions};

/// Maximum number of redirects.
const REDIRECTS: u32 = 5;

/// Bytes of a part, and parts that wait for the caller.
const PART: usize = 64 << 10;
const WAITING: usize = 4;

/// Sends requests. Connections are made when the first one is sent.
pub(crate) struct Client {
    silence: Duration,
    total: Duration,
    proxies: bool,
    /// For `http` and `https`: from `https`, nothing leads back to `http`.
    agents: [OnceLock<Agent>; 2],
}

/// The head of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub status: u16,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// `Content-Length`.
    pub length: Option<u64>,
    /// `Content-Range`: the first byte, and the length of the whole file.
    pub range: Option<(u64, u64)>,
    /// The type is a page of HTML.
    pub is_page: bool,
}

/// What the thread of a request reports.
enum Event {
    Head(Box<Head>),
    Part(Vec<u8>),
    End,
    Failed(ureq::Error),
}

/// A request that was sent. Dropping it ends its thread with the next part, or when the request's time is up.
pub(crate) struct Transfer {
    events: Receiver<Event>,
    /// The URL, without secrets.
    url: String,
    silence: Duration,
    total: Duration,
    deadline: Instant,
}

impl Client {
    pub fn new(options: &FetchOptions) -> Self {
        Self {
            silence: options.silence,
            total: options.total,
            proxies: options.proxies,
            agents: Default::default(),
        }
    }

    /// Sends a GET request with these headers, besides the usual ones.
    pub fn get(
        &self,
        url: &Url,
        headers: &[(&'static str, String)],
    ) -> Result<Transfer, FetchError> {
        let agent = self.agents[usize::from(url.is_secure())]
            .get_or_init(|| agent(self.total, url.is_secure(), self.proxies))
            .clone();
        let (sender, events) = sync_channel(WAITING);
        let (whole, headers) = (url.whole().to_owned(), headers.to_vec());
        let spawned = thread::Builder::new()
            .name("fetch".to_owned())
            .spawn(move || request(&agent, &whole, &headers, &sender));
        spawned
            .map_err(|error| FetchError::Network { url: url.shown(), what: error.to_string() })?;
        let deadline = Instant::now() + self.total;
        Ok(Transfer {
            events,
            url: url.shown(),
            silence: self.silence,
            total: self.total,
            deadline,
        })
    }
}

impl Transfer {
    /// The head of the answer, after redirects.
    pub fn head(&mut self) -> Result<Head, FetchError> {
        match self.next()? {
            Event::Head(head) => Ok(*head),
            _ => Err(self.network("the answer has no head")),
        }
    }

    /// The next bytes of the body; `None` at its end.
    pub fn part(&mut self) -> Result<Option<Vec<u8>>, FetchError> {
        match self.next()? {
            Event::Part(bytes) => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }

    fn next(&mut self) -> Result<Event, FetchError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.events.recv_timeout(self.silence.min(left)) {
            Ok(Event::Failed(error)) => Err(self.failed(&error)),
            Ok(event) => Ok(event),
            Err(RecvTimeoutError::Timeout) if left <= self.silence => Err(self.late()),
            Err(RecvTimeoutError::Timeout) => {
                Err(FetchError::Silent { url: self.url.clone(), time: self.silence })
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.network("the connection ended")),
        }
    }

    fn late(&self) -> FetchError {
        FetchError::Late { url: self.url.clone(), time: self.total }
    }

    fn network(&self, what: impl Into<String>) -> FetchError {
        FetchError::Network { url: self.url.clone(), what: what.into() }
    }

    /// The error in our words. Some texts of the library contain whole URLs, which may have secrets.
    fn failed(&self, error: &ureq::Error) -> FetchError {
        match error {
            ureq::Error::Timeout(_) => self.late(),
            ureq::Error::HostNotFound => FetchError::Host { url: self.url.clone() },
            ureq::Error::TooManyRedirects => FetchError::Redirect {
                url: self.url.clone(),
                what: "there are more than 5 redirects",
            },
            ureq::Error::RequireHttpsOnly(_) => FetchError::Redirect {
                url: self.url.clone(),
                what: "a redirect leads from https:// to an address without protection",
            },
            ureq::Error::BadUri(_) | ureq::Error::RedirectFailed | ureq::Error::Http(_) => {
                FetchError::Redirect {
                    url: self.url.clone(),
                    what: "a redirect leads to an address that is not fetched",
                }
            }
            ureq::Error::InvalidProxyUrl | ureq::Error::ConnectProxyFailed(_) => {
                self.network("the proxy that the environment names cannot be used")
            }
            ureq::Error::Io(error) => self.network(error.to_string()),
            error => self.network(error.to_string()),
        }
    }
}

fn agent(total: Duration, is_secure: bool, proxies: bool) -> Agent {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .https_only(is_secure)
        .max_redirects(REDIRECTS)
        // Bytes behind the announced end of an answer must not become the next one.
        .max_idle_connections(0)
        .user_agent(concat!("fibula/", env!("CARGO_PKG_VERSION")))
        .timeout_global(Some(total));
    if !proxies {
        config = config.proxy(None);
    }
    if is_secure {
        config = config.tls_config(TlsConfig::builder().root_certs(roots()).build());
    }
    config.build().into()
}

/// The system's certificates, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`. A system without any, such as a small
/// container, gets Mozilla's list.
fn roots() -> RootCerts {
    let found = rustls_native_certs::load_native_certs().certs;
    match found.is_empty() {
        true => RootCerts::WebPki,
        false => found.iter().map(|der| Certificate::from_der(der).to_owned()).into(),
    }
}

/// Sends a request and reports its answer, until nobody listens.
fn request(
    agent: &Agent,
    url: &str,
    headers: &[(&'static str, String)],
    events: &SyncSender<Event>,
) {
    let mut request = agent.get(url).header("accept-encoding", "identity");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let response = match request.call() {
        Ok(response) => response,
        Err(error) => return drop(events.send(Event::Failed(error))),
    };
    if events.send(Event::Head(Box::new(head(&response)))).is_err() {
        return;
    }
    let mut body = response.into_body().into_reader();
    loop {
        let mut part = vec![0; PART];
        let event = match body.read(&mut part) {
            Ok(0) => Event::End,
            Ok(count) => {
                part.truncate(count);
                Event::Part(part)
            }
            Err(error) => Event::Failed(error.into()),
        };
        let is_last = !matches!(event, Event::Part(_));
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

fn head(response: &Response<Body>) -> Head {
    let headers = response.headers();
    let kind = text(headers, header::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    Head {
        status: response.status().as_u16(),
        etag: text(headers, header::ETAG),
        last_modified: text(headers, header::LAST_MODIFIED),
        length: text(headers, header::CONTENT_LENGTH).and_then(|text| text.trim().parse().ok()),
        range: text(headers, header::CONTENT_RANGE).as_deref().and_then(range),
        is_page: kind.starts_with("text/html") || kind.starts_with("application/xhtml"),
    }
}

/// A header of a length that a record takes.
fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (value.len() <= 512).then(|| value.to_owned())
}

/// `bytes 100-199/200`: the first byte, and the length of the whole.
fn range(value: &str) -> Option<(u64, u64)> {
    let (bytes, total) = value.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = bytes.split_once('-')?;
    let (first, last, total) =
        (first.parse().ok()?, last.parse::<u64>().ok()?, total.parse().ok()?);
    (last.checked_add(1) == Some(total)).then_some((first, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_reach_to_the_end() {
        assert_eq!(range("bytes 100-199/200"), Some((100, 200)));
        for other in [
            "bytes 100-150/200",
            "bytes */200",
            "bytes 100-199/*",
            "100-199/200",
            "bytes -/1",
            "bytes 0-18446744073709551615/0",
        ] {
            assert_eq!(range(other), None, "{other}");
        }
    }
}
