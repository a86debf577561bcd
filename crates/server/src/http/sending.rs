//! The memory of answers that clients have not taken yet, for each connection and for all, and the time since a client
//! last took something.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::{Response, StatusCode, header};

use super::answer::Refusal;
use super::body::Payload;

/// The memory of an answer that is made in parts: of the part that waits in the server, and of those that the HTTP
/// library holds.
pub(crate) const PARTS: usize = 128 << 10;
/// Memory that a connection may always have, so that others cannot take everything.
const SHARE: usize = PARTS;
/// Maximum number of bytes that are handed to the HTTP library at once. A client that takes fewer in the time allowed
/// counts as one that takes nothing.
const FRAME: usize = 32 << 10;
/// Number of answers of a connection after which the list is cleared of those that are over.
const LISTED: usize = 256;

/// The memory of all connections' answers.
pub(crate) struct AnswerMemory {
    held: AtomicUsize,
    /// Maximum for all connections, apart from what each may always have.
    all: usize,
    /// Maximum for one connection.
    connection: usize,
}

impl AnswerMemory {
    pub(crate) fn new(all: usize, connection: usize) -> Self {
        Self { held: AtomicUsize::new(0), all, connection }
    }

    /// Number of bytes that are held now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// The answers of one connection.
pub(crate) struct ConnectionAnswers {
    memory: Arc<AnswerMemory>,
    held: AtomicUsize,
    begin: Instant,
    sending: Mutex<Vec<Weak<Sending>>>,
}

impl ConnectionAnswers {
    pub(crate) fn new(memory: Arc<AnswerMemory>) -> Arc<Self> {
        let (held, sending) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Self { memory, held, begin: Instant::now(), sending })
    }

    /// Counts an answer. One without room is replaced by a refusal, whose few bytes always have room.
    pub(crate) fn send(self: &Arc<Self>, response: Response<Payload>) -> Response<SentBody> {
        let bytes = response.body().memory();
        let (response, bytes) = match self.check(bytes) {
            Ok(()) => (response, bytes),
            Err(refusal) => {
                let response = refusal.into_response();
                let bytes = response.body().memory();
                (response, bytes)
            }
        };
        let sending = self.count(bytes);
        response.map(|payload| SentBody { payload, rest: Bytes::new(), sending })
    }

    fn check(&self, bytes: usize) -> Result<(), Refusal> {
        let AnswerMemory { all, connection, .. } = *self.memory;
        if bytes > connection {
            return Err(Refusal::bad(format_args!(
                "the answer has {bytes} bytes, more than {connection}; name one table, or set a lower limit"
            )));
        }
        let held = self.held.load(Ordering::Relaxed);
        if held + bytes > connection {
            let sentence =
                "this connection has too many answers that it did not take; take them first";
            return Err(Refusal::busy(sentence, 1));
        }
        if held + bytes > SHARE && self.memory.held() + bytes > all {
            let sentence =
                "the server holds too many answers that clients do not take; try again later";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
                .with(header::RETRY_AFTER, "1"));
        }
        Ok(())
    }

    fn count(self: &Arc<Self>, bytes: usize) -> Arc<Sending> {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.memory.held.fetch_add(bytes, Ordering::Relaxed);
        let (waiting, since) = (AtomicUsize::new(0), AtomicU64::new(0));
        let sending = Arc::new(Sending { answers: Arc::clone(self), bytes, waiting, since });
        let mut all = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= LISTED {
            all.retain(|one| one.strong_count() > 0);
        }
        all.push(Arc::downgrade(&sending));
        sending
    }

    /// Whether an answer is not sent yet.
    pub(crate) fn is_sending(&self) -> bool {
        let all = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|one| one.strong_count() > 0)
    }

    /// Whether the client has taken nothing of one of its answers for this time.
    pub(crate) fn is_stalled(&self, time: Duration) -> bool {
        let mut all = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        let now = self.now();
        all.iter().filter_map(Weak::upgrade).any(|one| {
            let since = Duration::from_millis(one.since.load(Ordering::Relaxed));
            one.waiting.load(Ordering::Relaxed) > 0
                && Duration::from_millis(now).saturating_sub(since) > time
        })
    }

    /// Milliseconds since the connection began.
    fn now(&self) -> u64 {
        self.begin.elapsed().as_millis() as u64
    }
}

/// An answer of which something is not sent yet. Its body and the pieces on their way share it.
struct Sending {
    answers: Arc<ConnectionAnswers>,
    bytes: usize,
    /// Number of pieces that the HTTP library has, and the client has not taken.
    waiting: AtomicUsize,
    /// When the client last took a piece, or the first one began to wait.
    since: AtomicU64,
}

impl Sending {
    /// A piece for the HTTP library, which counts until it is sent.
    fn piece(self: &Arc<Self>, data: Bytes) -> Bytes {
        if self.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            self.since.store(self.answers.now(), Ordering::Relaxed);
        }
        Bytes::from_owner(Piece { data, sending: Arc::clone(self) })
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.answers.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.answers.memory.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

struct Piece {
    data: Bytes,
    sending: Arc<Sending>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.sending.waiting.fetch_sub(1, Ordering::Relaxed);
        self.sending.since.store(self.sending.answers.now(), Ordering::Relaxed);
    }
}

/// The body of an answer whose memory is counted.
pub(crate) struct SentBody {
    payload: Payload,
    /// Bytes of the payload that are not handed on yet.
    rest: Bytes,
    sending: Arc<Sending>,
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Self { payload, rest, sending } = &mut *self;
        while rest.is_empty() {
            match std::task::ready!(payload.poll_data(cx)) {
                Some(Ok(data)) => *rest = data,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let piece = rest.split_to(rest.len().min(FRAME));
        Poll::Ready(Some(Ok(Frame::data(sending.piece(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.payload.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.payload.size_hint().exact() {
            Some(bytes) => SizeHint::with_exact(bytes + self.rest.len() as u64),
            None => SizeHint::default(),
        }
    }
}
