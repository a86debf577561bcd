//! The server: its sockets, its runtime, and how it stops.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use fibula_feeds::Board;
use fibula_rib::Live;
use hyper::StatusCode;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use crate::connection::{raw, serve};
use crate::endpoints::ENDPOINTS;
use crate::handlers::changes::follow;
use crate::site::Site;
use crate::{ServerOptions, TableCopies, TlsFiles};

/// Maximum time for open answers when the server stops.
const GRACE: Duration = Duration::from_millis(700);
/// Copies of tables that no request used in this time are dropped.
const UNUSED: Duration = Duration::from_secs(60);

/// Answers over HTTP about a live table, until it is stopped or dropped.
pub struct Server {
    addresses: Vec<SocketAddr>,
    site: Arc<Site>,
    runtime: Option<Runtime>,
}

impl Server {
    /// Starts to answer. The caller feeds the table and updates the status of its sources.
    ///
    /// # Errors
    /// If an address cannot be listened on, the certificate or key cannot be used, or the system has no threads.
    pub fn start(
        live: Arc<Live>,
        board: Arc<Board>,
        options: ServerOptions,
    ) -> Result<Self, ServerError> {
        let tls = options.tls.as_ref().map(acceptor).transpose()?;
        let bind = |&address: &SocketAddr| {
            let listener = TcpListener::bind(address)
                .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
            listener.map_err(|error| ServerError::Listen { address, error })
        };
        let listeners = options.listen.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .max_blocking_threads(options.limits.bulk + options.limits.slow + 2)
            .thread_name("fibula-http")
            .enable_all()
            .build()
            .map_err(ServerError::Threads)?;
        let endpoints = ENDPOINTS.iter().map(|one| (one.method.name(), one.path));
        let site = Arc::new(Site::new(live, board, options, endpoints));
        let mut addresses = Vec::new();
        let _context = runtime.enter();
        for listener in listeners {
            let address = listener.local_addr().map_err(ServerError::Threads)?;
            let listener =
                tokio::net::TcpListener::from_std(listener).map_err(ServerError::Threads)?;
            let scheme = if tls.is_some() { "https" } else { "http" };
            tracing::info!("answering on {scheme}://{address}");
            warn_of_openness(&site.options, address, tls.is_some());
            runtime.spawn(accept(Arc::clone(&site), listener, tls.clone()));
            addresses.push(address);
        }
        runtime.spawn(follow_changes(Arc::clone(&site)));
        runtime.spawn(forget_tables(Arc::clone(&site)));
        drop(_context);
        Ok(Self { addresses, site, runtime: Some(runtime) })
    }

    /// The addresses that it listens on, with the ports that the system chose for port 0.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Copies of its tables, for as long as they are wanted.
    pub fn copies(&self) -> TableCopies {
        TableCopies(Arc::clone(&self.site))
    }

    /// The OpenAPI document.
    pub fn openapi() -> serde_json::Value {
        crate::openapi::document(&ENDPOINTS)
    }

    /// Stops: accepts no more connections, and waits less than a second for running answers.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        self.site.stop.send_replace(true);
        let until = Instant::now() + GRACE;
        while self.site.counts.connections.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        runtime.shutdown_timeout(Duration::from_millis(100));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn warn_of_openness(options: &ServerOptions, address: SocketAddr, has_tls: bool) {
    if address.ip().is_loopback() {
        return;
    }
    if options.token.is_none() {
        tracing::warn!("{address} answers every client that can reach it: no token is set");
    } else if !has_tls {
        tracing::warn!("{address}: no TLS, so the token is sent unencrypted");
    }
}

/// Accepts connections until the server stops.
async fn accept(site: Arc<Site>, listener: tokio::net::TcpListener, tls: Option<TlsAcceptor>) {
    let mut stop = site.stop.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Usually the process has no free descriptors; existing connections will close and free some.
                let line = || tracing::warn!(%error, "cannot accept a connection");
                site.logs.failed_accept.line(line);
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let place = ConnectionSlot::take(&site);
        let tls = tls.clone();
        tokio::spawn(async move {
            match place {
                Some(place) => serve(Arc::clone(&place.0), stream, tls).await,
                None if tls.is_none() => refuse(stream).await,
                None => {}
            }
        });
    }
}

/// A connection that counts towards the limit.
struct ConnectionSlot(Arc<Site>);

impl ConnectionSlot {
    fn take(site: &Arc<Site>) -> Option<Self> {
        let counts = &site.counts;
        counts.accepted.fetch_add(1, Ordering::Relaxed);
        let before = counts.connections.fetch_add(1, Ordering::Relaxed);
        let place = Self(Arc::clone(site));
        if before < site.options.limits.connections {
            return Some(place);
        }
        counts.refused.fetch_add(1, Ordering::Relaxed);
        let line =
            || tracing::warn!(connections = before, "refusing a connection: the limit is reached");
        site.logs.refused_connection.line(line);
        None
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.counts.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn refuse(mut stream: TcpStream) {
    let sentence = "there are too many connections; try again later";
    let text = raw(StatusCode::SERVICE_UNAVAILABLE, sentence);
    let _ = timeout(Duration::from_secs(1), async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

/// Runs the thread that follows changes while they have readers.
async fn follow_changes(site: Arc<Site>) {
    let mut stop = site.stop.subscribe();
    loop {
        tokio::select! {
            () = site.watched.notified() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let site = Arc::clone(&site);
        if tokio::task::spawn_blocking(move || follow(&site)).await.is_err() {
            tracing::error!("the thread that follows changes panicked");
        }
    }
}

async fn forget_tables(site: Arc<Site>) {
    loop {
        sleep(UNUSED).await;
        site.forget_frozen(UNUSED);
        site.logs.report();
    }
}

impl TlsFiles {
    /// Reads both files, as the server does at its start.
    ///
    /// # Errors
    /// If a file cannot be read, or certificate and key do not match.
    pub fn check(&self) -> Result<(), ServerError> {
        acceptor(self).map(drop)
    }
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServerError> {
    let of_file = |path: &Path, what: &dyn fmt::Display| ServerError::Tls {
        path: path.to_owned(),
        what: what.to_string(),
    };
    let chain = CertificateDer::pem_file_iter(&files.certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| of_file(&files.certificates, &error))?;
    if chain.is_empty() {
        return Err(of_file(&files.certificates, &"there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|e| of_file(&files.key, &e))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| of_file(&files.certificates, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| of_file(&files.key, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The reason why a server did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerError {
    /// An address cannot be listened on.
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// Certificate or key cannot be used.
    Tls {
        /// The file.
        path: PathBuf,
        /// The error.
        what: String,
    },
    /// The system has no threads or no sockets.
    Threads(io::Error),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { address, error } => write!(f, "cannot listen on {address}: {error}"),
            Self::Tls { path, what } => write!(f, "{}: {what}", path.display()),
            Self::Threads(error) => write!(f, "the server cannot run: {error}"),
        }
    }
}

impl std::error::Error for ServerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { error, .. } | Self::Threads(error) => Some(error),
            Self::Tls { .. } => None,
        }
    }
}
