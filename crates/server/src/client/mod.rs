//! A client for the server's API, without threads of its own, for commands and tests.

mod error;
mod search;

use std::fmt;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::api;
use crate::http::body::Payload;
pub use error::ClientError;
use error::of_tls;
pub use search::RouteQuery;

/// The server, and the options for requests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// The server: `http://127.0.0.1:8080`, or with `https`.
    pub url: String,
    /// The token, if the server needs one.
    pub token: Option<String>,
    /// Root certificates (PEM) for the server's certificate, instead of the system's.
    pub certificates: Option<PathBuf>,
    /// Maximum time until an answer begins, and for each part of it.
    pub patience: Duration,
    /// Maximum number of bytes of an answer, or of an event of a stream.
    pub answer_bytes: usize,
}

impl ClientOptions {
    /// Options for this server, without a token, with the system's certificates, a timeout of half a minute and answers
    /// of 64 MiB.
    pub fn new(url: impl Into<String>) -> Self {
        let patience = Duration::from_secs(30);
        Self { url: url.into(), token: None, certificates: None, patience, answer_bytes: 64 << 20 }
    }
}

/// A client for one server.
pub struct Client {
    runtime: Runtime,
    peer: Peer,
}

/// The server, and the connection to it while it is open.
struct Peer {
    options: ClientOptions,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
    sender: Option<SendRequest<Payload>>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// An event of a stream of changes.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeEvent {
    /// A best route changed.
    Change(Box<api::Change>),
    /// Changes were lost, because the reader was too slow or the server was restarted.
    Lost(api::Lost),
}

impl Client {
    /// Prepares requests to a server. Nothing is sent yet.
    ///
    /// # Errors
    /// If the address or the token is invalid, or there are no certificates.
    pub fn new(options: ClientOptions) -> Result<Self, ClientError> {
        let no_url = || ClientError::Url { url: options.url.clone() };
        let uri: Uri = options.url.parse().map_err(|_| no_url())?;
        let (host, is_https) = match (uri.host(), uri.scheme_str()) {
            (Some(host), Some("http")) => (host.to_owned(), false),
            (Some(host), Some("https")) => (host.to_owned(), true),
            _ => return Err(no_url()),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(no_url());
        }
        if options.token.as_deref().is_some_and(|token| HeaderValue::from_str(token).is_err()) {
            return Err(ClientError::Token);
        }
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let tls = if is_https { Some(connector(&options)?) } else { None };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| ClientError::Io { what: "starting".to_owned(), error })?;
        Ok(Self { runtime, peer: Peer { options, host, port, tls, sender: None } })
    }

    /// Looks up an address in one table, or in all.
    ///
    /// # Errors
    /// If the server cannot be reached, or refuses the request.
    pub fn lookup(
        &mut self,
        address: IpAddr,
        table: Option<&str>,
    ) -> Result<api::Lookup, ClientError> {
        self.json(&format!("/v1/lookup/{address}{}", query(&[("table", table)])))
    }

    /// The routes of a prefix, in a view: `exact`, `covering` or `covered`.
    ///
    /// # Errors
    /// The errors of [`Client::lookup`].
    pub fn routes(
        &mut self,
        prefix: &str,
        view: &str,
        table: Option<&str>,
    ) -> Result<api::Routes, ClientError> {
        let query = query(&[("view", Some(view)), ("table", table)]);
        self.json(&format!("/v1/routes/{}{query}", escape(prefix)))
    }

    /// The route of a prefix, or the routes that covered an address, at a time (RFC 3339 in UTC), in one table or in
    /// all.
    ///
    /// # Errors
    /// The errors of [`Client::lookup`]. A time that is not in the server's history is refused.
    pub fn history(
        &mut self,
        question: &str,
        at: &str,
        table: Option<&str>,
    ) -> Result<api::RouteHistory, ClientError> {
        let query = query(&[("at", Some(at)), ("table", table)]);
        self.json(&format!("/v1/history/{}{query}", escape(question)))
    }

    /// The JSON document at a path, which may have a query.
    ///
    /// # Errors
    /// The errors of [`Client::lookup`]; also if the answer is another document.
    pub fn json<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, ClientError> {
        let answer = self.get(path, &[])?;
        if answer.status != 200 {
            return Err(refused(&answer));
        }
        serde_json::from_slice(&answer.body)
            .map_err(|error| ClientError::Answer { what: error.to_string() })
    }

    /// The document at a path, requested with additional headers.
    ///
    /// # Errors
    /// If the server cannot be reached. A refusal is an answer.
    pub fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> Result<Answer, ClientError> {
        self.ask(Method::GET, path, headers, Bytes::new())
    }

    /// Sends a body.
    ///
    /// # Errors
    /// The errors of [`Client::get`].
    pub fn post(
        &mut self,
        path: &str,
        kind: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer, ClientError> {
        self.ask(Method::POST, path, &[(header::CONTENT_TYPE.as_str(), kind)], body.into())
    }

    /// Sends a request of any method.
    ///
    /// # Errors
    /// The errors of [`Client::get`].
    pub fn ask(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Answer, ClientError> {
        let Self { runtime, peer } = self;
        let request = peer.request(method, path, headers, body)?;
        runtime.block_on(async {
            let response = peer.send(request).await?;
            peer.whole(response).await
        })
    }

    /// Reads changes until `take` returns false or the server ends. `query` is the query of `/v1/changes`, and `last`
    /// the id of the last change that was read.
    ///
    /// # Errors
    /// The errors of [`Client::lookup`]; also if the connection breaks.
    pub fn watch(
        &mut self,
        query: &str,
        last: Option<u64>,
        mut take: impl FnMut(ChangeEvent) -> bool,
    ) -> Result<(), ClientError> {
        let last = last.map(|id| id.to_string());
        let headers: Vec<_> = last.iter().map(|id| ("last-event-id", &**id)).collect();
        let path = format!("/v1/changes{query}");
        let Self { runtime, peer } = self;
        let request = peer.request(Method::GET, &path, &headers, Bytes::new())?;
        runtime.block_on(async {
            let mut response = peer.send(request).await?;
            // The answer on this connection does not end, so the connection cannot be reused.
            let connection = peer.sender.take();
            if response.status() != StatusCode::OK {
                return Err(refused(&peer.whole(response).await?));
            }
            let (mut text, mut searched) = (Vec::new(), 0);
            while let Some(part) = peer.part(&mut response).await? {
                peer.add(&part, &mut text)?;
                while let Some(end) = text[searched..].windows(2).position(|two| two == b"\n\n") {
                    let block: Vec<u8> = text.drain(..searched + end + 2).collect();
                    searched = 0;
                    if let Some(event) = event(&String::from_utf8_lossy(&block))?
                        && !take(event)
                    {
                        return Ok(());
                    }
                }
                // The end of an event may come in two parts.
                searched = text.len().saturating_sub(1);
            }
            drop(connection);
            Ok(())
        })
    }
}

impl Peer {
    fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Request<Payload>, ClientError> {
        let host = format!("{}:{}", self.host, self.port);
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, host);
        if let Some(token) = &self.options.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Payload::Whole(body));
        request.map_err(|error| ClientError::Answer { what: error.to_string() })
    }

    /// Sends a request over the existing connection or a new one.
    async fn send(&mut self, request: Request<Payload>) -> Result<Response<Incoming>, ClientError> {
        let patience = self.options.patience;
        let mut known = self.sender.take();
        if let Some(sender) = &mut known
            && sender.ready().await.is_err()
        {
            known = None; // the server closed it
        }
        let mut sender = match known {
            Some(sender) => sender,
            None => within(patience, self.connect()).await?,
        };
        let sent = async { sender.send_request(request).await.map_err(ClientError::Http) };
        let response = within(patience, sent).await?;
        self.sender = Some(sender);
        Ok(response)
    }

    async fn connect(&self) -> Result<SendRequest<Payload>, ClientError> {
        let server = format!("{}:{}", self.host, self.port);
        let host = self.host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, self.port)).await;
        let stream = stream
            .map_err(|error| ClientError::Io { what: format!("connecting to {server}"), error })?;
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return shake_hands(stream).await };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| ClientError::Url { url: self.options.url.clone() })?;
        let connected = tls.connect(name, stream).await;
        shake_hands(connected.map_err(|error| of_tls(server, error))?).await
    }

    /// Reads a complete answer. If it breaks off, the connection is dropped.
    async fn whole(&mut self, mut response: Response<Incoming>) -> Result<Answer, ClientError> {
        let mut body = Vec::new();
        loop {
            let part = self.part(&mut response).await;
            match part.and_then(|part| part.map(|part| self.add(&part, &mut body)).transpose()) {
                Ok(Some(())) => {}
                Ok(None) => break,
                Err(error) => {
                    self.sender = None;
                    return Err(error);
                }
            }
        }
        let (parts, _) = response.into_parts();
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body: body.into() })
    }

    /// Adds a part to what is read whole, which has a maximum length.
    fn add(&self, part: &[u8], whole: &mut Vec<u8>) -> Result<(), ClientError> {
        let most = self.options.answer_bytes;
        if whole.len().saturating_add(part.len()) > most {
            return Err(ClientError::Long { bytes: most });
        }
        whole.extend_from_slice(part);
        Ok(())
    }

    /// The next part of an answer.
    async fn part(&self, response: &mut Response<Incoming>) -> Result<Option<Bytes>, ClientError> {
        let body = response.body_mut();
        within(self.options.patience, async {
            loop {
                let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
                match frame.transpose().map_err(ClientError::Http)? {
                    None => return Ok(None),
                    Some(frame) => {
                        if let Ok(data) = frame.into_data() {
                            return Ok(Some(data));
                        }
                    }
                }
            }
        })
        .await
    }
}

async fn within<T>(
    patience: Duration,
    step: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    timeout(patience, step).await.unwrap_or(Err(ClientError::Late { patience }))
}

async fn shake_hands<S>(stream: S) -> Result<SendRequest<Payload>, ClientError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(ClientError::Http)?;
    // Its errors are returned to the request that waits for an answer.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn connector(options: &ClientOptions) -> Result<TlsConnector, ClientError> {
    let wrong = |what: String| ClientError::Certificates { what };
    let mut roots = RootCertStore::empty();
    match &options.certificates {
        Some(path) => {
            let named = |error: &dyn fmt::Display| wrong(format!("{}: {error}", path.display()));
            for certificate in CertificateDer::pem_file_iter(path).map_err(|e| named(&e))? {
                let certificate = certificate.map_err(|error| named(&error))?;
                roots.add(certificate).map_err(|error| named(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(wrong("there are none to check the server's with".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Encodes a text as a part of a URL.
pub fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The query with the given parameters, including its question mark.
pub fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    let pairs: Vec<_> = given.map(|(name, value)| format!("{name}={}", escape(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

fn refused(answer: &Answer) -> ClientError {
    let sentence = match serde_json::from_slice::<api::Problem>(&answer.body) {
        Ok(problem) => problem.error,
        Err(_) => "the server gives no reason".to_owned(),
    };
    ClientError::Refused { status: answer.status, sentence }
}

/// The event of a block of lines; `None` for a keep-alive comment.
fn event(block: &str) -> Result<Option<ChangeEvent>, ClientError> {
    let field = |name: &str| {
        let value = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(value.strip_prefix(' ').unwrap_or(value))
    };
    let bad = |error: serde_json::Error| ClientError::Answer { what: error.to_string() };
    let Some(data) = field("data") else { return Ok(None) };
    match field("event") {
        Some("change") => {
            serde_json::from_str(data).map(|c| Some(ChangeEvent::Change(c))).map_err(bad)
        }
        Some("lost") => serde_json::from_str(data).map(|l| Some(ChangeEvent::Lost(l))).map_err(bad),
        _ => Ok(None),
    }
}
