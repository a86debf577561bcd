//! One connection: its protocol and its timeouts.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::dispatch::answer;
use crate::http::patient::Patient;
use crate::http::sending::ConnectionAnswers;
use crate::site::Site;

/// The first bytes of clear-text HTTP/2. No method of HTTP/1.1 begins with them.
const HTTP2: [u8; 16] = *b"PRI * HTTP/2.0\r\n";
/// Maximum number of simultaneous streams of a connection.
const STREAMS: u32 = 128;
/// Maximum number of bytes of a stream that wait in the HTTP/2 library.
const SEND_BUFFER: usize = 64 << 10;

/// Serves a connection to its end.
pub(crate) async fn serve(site: Arc<Site>, mut stream: TcpStream, tls: Option<TlsAcceptor>) {
    let is_loopback = stream.local_addr().is_ok_and(|address| address.ip().is_loopback());
    // Answers are written whole; waiting for more bytes would only delay them.
    let _ = stream.set_nodelay(true);
    let (idle, stall) = (site.options.limits.idle_time, site.options.limits.stall_time);
    let connection = Conversation { site, is_loopback };
    match tls {
        None => {
            let begin = timeout(idle, read_begin(&mut stream)).await;
            let Ok(Ok((begin, is_http2))) = begin else { return };
            connection.run(Patient::new(stream, stall).after(begin), is_http2).await;
        }
        Some(tls) => match timeout(idle, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                connection.run(Patient::new(stream, stall), is_http2).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake with a client failed"),
            Err(_) => tracing::debug!("TLS handshake with a client timed out"),
        },
    }
}

/// Reads as much as shows whether the client begins with HTTP/2 without negotiation. The bytes are taken from the
/// socket, so that the next read waits for more, or finds that the client has left.
async fn read_begin(stream: &mut TcpStream) -> io::Result<(Bytes, bool)> {
    let (mut begin, mut count) = ([0; HTTP2.len()], 0);
    while count < begin.len() && HTTP2.starts_with(&begin[..count]) {
        match stream.read(&mut begin[count..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => count += more,
        }
    }
    Ok((Bytes::copy_from_slice(&begin[..count]), begin == HTTP2))
}

struct Conversation {
    site: Arc<Site>,
    is_loopback: bool,
}

impl Conversation {
    async fn run<S>(self, stream: Patient<S>, is_http2: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match is_http2 {
            true => self.http2(stream).await,
            false => self.http1(stream).await,
        }
    }

    /// Completes when the server is stopping.
    fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let mut stop = self.site.stop.subscribe();
        async move {
            let _ = stop.wait_for(|stop| *stop).await;
        }
    }

    async fn http1<S>(self, stream: Patient<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let limits = &self.site.options.limits;
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            // The time counts from the end of the previous answer.
            .header_read_timeout(limits.idle_time)
            // The minimum of the library.
            .max_buf_size(limits.head_bytes.max(8 << 10))
            .max_header_size(limits.head_bytes);
        let stopped = self.stopped();
        let Self { site, is_loopback } = self;
        let answers = ConnectionAnswers::new(Arc::clone(&site.answers));
        let service = service_fn(move |request: Request<Incoming>| {
            let (site, answers) = (Arc::clone(&site), Arc::clone(&answers));
            async move { Ok::<_, Infallible>(answer(site, is_loopback, answers, request).await) }
        });
        let mut connection = builder.serve_connection(TokioIo::new(stream), service);
        let done = tokio::select! {
            done = &mut connection => done,
            () = stopped => {
                std::pin::Pin::new(&mut connection).graceful_shutdown();
                (&mut connection).await
            }
        };
        let is_late = done.as_ref().is_err_and(hyper::Error::is_timeout);
        log_end(done);
        let parts = connection.into_parts();
        if is_late && !parts.read_buf.is_empty() {
            late(parts.io.into_inner()).await;
        }
    }

    async fn http2<S>(self, stream: Patient<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let limits = &self.site.options.limits;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
            .keep_alive_interval(limits.idle_time)
            .keep_alive_timeout(limits.stall_time);
        let activity = Arc::new(Activity::default());
        let answers = ConnectionAnswers::new(Arc::clone(&self.site.answers));
        let idle = idle(Arc::clone(&activity), Arc::clone(&answers), limits.idle_time);
        let stalled = stalled(Arc::clone(&answers), limits.stall_time);
        let stopped = self.stopped();
        let Self { site, is_loopback } = self;
        let service = service_fn(move |request: Request<Incoming>| {
            let (site, answers) = (Arc::clone(&site), Arc::clone(&answers));
            let open = Open::new(&activity);
            async move {
                let response = answer(site, is_loopback, answers, request).await;
                drop(open);
                Ok::<_, Infallible>(response)
            }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let served = async move {
            tokio::pin!(connection);
            tokio::select! {
                done = &mut connection => return done,
                () = stopped => {}
                () = idle => {}
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        };
        tokio::select! {
            done = served => log_end(done),
            () = stalled => tracing::debug!("a client took nothing of an answer for too long"),
        }
    }
}

/// Logs the end of a connection. A client that disconnects, or sends no HTTP, is not an error of the server.
fn log_end(done: hyper::Result<()>) {
    if let Err(error) = done {
        tracing::debug!(error = &error as &dyn std::error::Error, "a connection ended early");
    }
}

/// Answers a client that sent an incomplete header: the request took too long.
async fn late<S: AsyncWrite + Unpin>(mut stream: S) {
    let sentence = "the head of the request took too long";
    let text = raw(StatusCode::REQUEST_TIMEOUT, sentence);
    let _ = timeout(Duration::from_secs(1), async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

/// An HTTP/1.1 answer as text, written without the HTTP library.
pub(crate) fn raw(status: StatusCode, sentence: &str) -> String {
    let body = format!("{{\"error\":\"{sentence}\"}}");
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )
}

/// The state of an HTTP/2 connection.
#[derive(Default)]
struct Activity {
    /// Requests that are being answered.
    open: AtomicUsize,
    /// Requests so far.
    all: AtomicUsize,
}

/// A request that is being answered.
struct Open(Arc<Activity>);

impl Open {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.open.fetch_add(1, Ordering::Relaxed);
        activity.all.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Completes after this time without a request, or up to twice this time.
async fn idle(activity: Arc<Activity>, answers: Arc<ConnectionAnswers>, time: Duration) {
    let mut seen = usize::MAX;
    loop {
        let all = activity.all.load(Ordering::Relaxed);
        let is_open = activity.open.load(Ordering::Relaxed) > 0 || answers.is_sending();
        if seen == all && !is_open {
            return;
        }
        seen = all;
        sleep(time).await;
    }
}

/// Completes when the client has taken nothing of an answer for this time, or up to a quarter longer.
async fn stalled(answers: Arc<ConnectionAnswers>, time: Duration) {
    while !answers.is_stalled(time) {
        sleep((time / 4).max(Duration::from_millis(1))).await;
    }
}
