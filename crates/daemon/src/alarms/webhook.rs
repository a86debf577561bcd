//! Sends alarms to an address of HTTP: one request for each begin and each end, in order.
//!
//! A thread sends them from a bounded queue. A request has a timeout, and is repeated after pauses that double, up to a
//! number of attempts. What does not fit into the queue is dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fibula_alarms::Alarm;
use fibula_feeds::LogLimit;
use fibula_server::api;
use ring::hmac;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::config::WebhookConfig;
use crate::{DaemonError, config::ConfigError, secret::first_line};

/// The pause after the first attempt, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long the end of the server waits for a request that is being sent.
const FAREWELL: Duration = Duration::from_millis(300);

/// The header with the signature, and the one with the time that is signed.
const SIGNATURE: &str = "fibula-signature";
const TIME: &str = "fibula-time";

/// Where alarms are sent, with its secret read.
pub(crate) struct Webhook {
    config: WebhookConfig,
    key: Option<hmac::Key>,
}

/// What was sent.
#[derive(Default)]
pub(crate) struct WebhookCounts {
    /// Accepted requests, those that failed for good, and those that did not fit into the queue.
    pub(crate) sent: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) dropped: AtomicU64,
    /// Attempts that were repeated.
    pub(crate) repeated: AtomicU64,
    /// What waits in the queue or is being sent.
    pub(crate) waiting: AtomicU64,
}

/// The queue of the thread that sends. Dropping it ends the thread; what waits then is not sent.
pub(crate) struct WebhookQueue {
    sender: Option<SyncSender<Arc<Alarm>>>,
    counts: Arc<WebhookCounts>,
    stop: Arc<AtomicBool>,
    done: Receiver<()>,
    lines: LogLimit,
    begin: Instant,
}

impl Webhook {
    /// Reads the secret.
    pub(crate) fn new(config: &WebhookConfig) -> Result<Self, ConfigError> {
        let secret = config.secret_file.as_deref();
        let secret = secret.map(|file| first_line("webhook.secret-file", file)).transpose()?;
        let key = secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
        Ok(Self { config: config.clone(), key })
    }

    /// Starts the thread.
    pub(crate) fn start(self, counts: Arc<WebhookCounts>) -> Result<WebhookQueue, DaemonError> {
        let (sender, waiting) = sync_channel(self.config.queue);
        let (ends, done) = sync_channel(1);
        let stop = Arc::<AtomicBool>::default();
        let sending = Sending {
            agent: agent(&self.config),
            url: self.config.url.into_inner(),
            attempts: self.config.attempts,
            key: self.key,
            stop: Arc::clone(&stop),
            counts: Arc::clone(&counts),
            lines: LogLimit::new(5),
            begin: Instant::now(),
        };
        let run = move || {
            sending.run(&waiting);
            // Nobody waits if the server was dropped.
            let _ = ends.send(());
        };
        let thread = thread::Builder::new().name("fibula-webhook".to_owned()).spawn(run);
        thread.map_err(|error| DaemonError::System { what: "no thread for the webhook", error })?;
        let (lines, begin) = (LogLimit::new(1), Instant::now());
        Ok(WebhookQueue { sender: Some(sender), counts, stop, done, lines, begin })
    }
}

impl WebhookQueue {
    /// Has an alarm sent. It never waits.
    pub(crate) fn send(&self, alarm: &Arc<Alarm>) {
        let Some(sender) = &self.sender else { return };
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            sender.try_send(Arc::clone(alarm))
        else {
            return;
        };
        self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        if let Some(more) = self.lines.admit(self.begin.elapsed()) {
            tracing::warn!(more, "webhook: the queue is full; alarms are dropped");
        }
    }
}

impl Drop for WebhookQueue {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.sender = None;
        // A request that takes longer ends by itself, and with it the thread.
        let _: Result<(), RecvTimeoutError> = self.done.recv_timeout(FAREWELL);
    }
}

/// The thread that sends.
struct Sending {
    agent: Agent,
    url: String,
    attempts: u32,
    key: Option<hmac::Key>,
    stop: Arc<AtomicBool>,
    counts: Arc<WebhookCounts>,
    lines: LogLimit,
    begin: Instant,
}

/// Why an attempt failed.
struct Refused {
    why: String,
    /// Whether a later attempt may succeed.
    may_repeat: bool,
}

impl Sending {
    fn run(self, waiting: &Receiver<Arc<Alarm>>) {
        while let Ok(alarm) = waiting.recv() {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            match self.deliver(&alarm) {
                Ok(()) => self.counts.sent.fetch_add(1, Ordering::Relaxed),
                Err(why) => {
                    if let Some(more) = self.lines.admit(self.begin.elapsed()) {
                        tracing::warn!(more, id = alarm.id, "webhook: not delivered: {why}");
                    }
                    self.counts.failed.fetch_add(1, Ordering::Relaxed)
                }
            };
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Sends it until it is accepted, refused for good, or was tried often enough.
    fn deliver(&self, alarm: &Alarm) -> Result<(), String> {
        let body = serde_json::to_vec(&api::Alarm::from(alarm)).map_err(|e| e.to_string())?;
        let mut pause = FIRST_PAUSE;
        for left in (0..self.attempts).rev() {
            let Err(Refused { why, may_repeat }) = self.attempt(&body) else { return Ok(()) };
            if left == 0 || !may_repeat || !self.rest(pause) {
                return Err(why);
            }
            self.counts.repeated.fetch_add(1, Ordering::Relaxed);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    /// Waits; false if the server ends meanwhile.
    fn rest(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while !self.stop.load(Ordering::Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(Duration::from_millis(50)));
        }
        false
    }

    fn attempt(&self, body: &[u8]) -> Result<(), Refused> {
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        if let Some(key) = &self.key {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let time = since.as_secs().to_string();
            request = request.header(SIGNATURE, signature(key, &time, body)).header(TIME, time);
        }
        let status = match request.send(body) {
            // The answer's body is not read.
            Ok(answer) => answer.status().as_u16(),
            Err(error) => return Err(Refused { why: what(&error), may_repeat: true }),
        };
        match status {
            200..=299 => Ok(()),
            _ => Err(Refused {
                why: format!("status {status}"),
                may_repeat: matches!(status, 408 | 429 | 500..=599),
            }),
        }
    }
}

/// `sha256=` and the HMAC of the time in seconds, a dot and the body, in hexadecimal digits.
fn signature(key: &hmac::Key, time: &str, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(time.as_bytes());
    context.update(b".");
    context.update(body);
    let digits =
        context.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256={digits}")
}

/// The error without the address, which may have secrets in it.
fn what(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        ureq::Error::HostNotFound => "the host is not found".to_owned(),
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => "the address cannot be used".to_owned(),
        error => error.to_string(),
    }
}

fn agent(config: &WebhookConfig) -> Agent {
    let mut builder = Agent::config_builder()
        .http_status_as_error(false)
        // A signed request goes where it was addressed, and nowhere else.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .user_agent(concat!("fibula/", env!("CARGO_PKG_VERSION")))
        .timeout_global(Some(config.timeout.0));
    if config.url.get_ref().starts_with("https:") {
        builder = builder.tls_config(TlsConfig::builder().root_certs(roots()).build());
    }
    builder.build().into()
}

/// The system's certificates, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`; Mozilla's if there are none.
fn roots() -> RootCerts {
    let found = rustls_native_certs::load_native_certs().certs;
    match found.is_empty() {
        true => RootCerts::WebPki,
        false => found.iter().map(|der| Certificate::from_der(der).to_owned()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by `openssl dgst -sha256 -hmac`.
    #[test]
    fn a_signature_is_the_one_that_openssl_computes() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        assert_eq!(
            signature(&key, "1700000000", b"{}"),
            "sha256=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163"
        );
    }
}
