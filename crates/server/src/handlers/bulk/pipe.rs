//! Connects a client, whose bytes arrive and leave asynchronously, with a thread that reads and writes.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::Head;
use crate::http::answer::Refusal;
use crate::site::Site;

/// Size of a piece of an answer in bytes.
const PIECE: usize = 64 << 10;
/// How long to wait for more of the body before the received part is answered.
const GATHER: Duration = Duration::from_millis(20);

pub(super) fn too_long(bytes: u64) -> Refusal {
    let sentence = format!("the body has more than {bytes} bytes; send it in parts");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, sentence)
}

pub(super) fn too_slow(what: &str) -> Refusal {
    let sentence =
        format!("{what} took too long; send smaller requests, and read the answer while you send");
    Refusal::new(StatusCode::REQUEST_TIMEOUT, sentence)
}

fn ending() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping; try again")
}

/// Passes on a body. When the thread takes no more of it, the rest is still read for a while: many clients read an
/// answer only after they have sent everything.
pub(super) async fn pump(
    mut body: Incoming,
    to: mpsc::Sender<Result<Bytes, Refusal>>,
    most: u64,
    stall: Duration,
) {
    /// Maximum number of bytes that are read and discarded.
    const DRAINED: u64 = 16 << 20;
    let (mut bytes, mut drained) = (0, 0);
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        let data = match timeout(stall, frame).await {
            Ok(None) => return,
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(error))) => {
                let sentence = format!("the body ended early: {error}");
                let _ = to.send(Err(Refusal::bad(sentence))).await;
                return;
            }
            Err(_) => {
                let _ = to.send(Err(too_slow("the next part of the body"))).await;
                return;
            }
        };
        if data.is_empty() {
            continue;
        }
        bytes += data.len() as u64;
        if to.is_closed() {
            drained += data.len() as u64;
        } else if bytes > most {
            let _ = to.send(Err(too_long(most))).await;
        } else {
            let _ = to.send(Ok(data)).await;
        }
        if drained > DRAINED {
            return;
        }
    }
}

/// The thread's side of a client. Its two ends share it: before the thread waits for more input, it sends the
/// pending output.
pub(super) struct Pipe {
    pub(super) site: Arc<Site>,
    pub(super) from_client: mpsc::Receiver<Result<Bytes, Refusal>>,
    pub(super) to_client: mpsc::Sender<io::Result<Bytes>>,
    /// The receiver of the status and headers, until they are sent.
    pub(super) say_head: Option<oneshot::Sender<Result<Head, Refusal>>>,
    pub(super) head: Option<Head>,
    /// The time when the lookup must be finished.
    pub(super) until: Instant,
    /// Maximum time in which the client accepts no byte.
    pub(super) stall: Duration,
    /// Number of rows so far, and its maximum.
    pub(super) rows: (u64, u64),
    /// Whether rows are lines.
    pub(super) is_text: bool,
    pub(super) runtime: Handle,
    /// True once the server is stopping.
    pub(super) stop: watch::Receiver<bool>,
    /// Input that was received and not processed yet, and output that was written and not sent yet.
    pub(super) input: Bytes,
    pub(super) output: Vec<u8>,
    /// The reason why the lookup cannot continue.
    pub(super) refused: Option<Refusal>,
}

pub(super) type Shared = Rc<RefCell<Pipe>>;

impl Pipe {
    /// An error that ends the lookup; its text is kept here.
    fn refuse(&mut self, refusal: Refusal) -> io::Error {
        let error = io::Error::other(refusal.sentence.clone());
        self.refused = Some(refusal);
        error
    }

    /// The next part of the body; `None` at its end.
    fn receive(&mut self) -> io::Result<Option<Bytes>> {
        let part = match self.from_client.try_recv() {
            Ok(part) => Some(part),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                let runtime = self.runtime.clone();
                let more = runtime.block_on(timeout(GATHER, self.from_client.recv()));
                match more {
                    Ok(part) => part,
                    Err(_) => self.wait_for_more()?,
                }
            }
        };
        part.transpose().map_err(|refusal| self.refuse(refusal))
    }

    /// Waits for the next part of the body, after sending the pending output.
    fn wait_for_more(&mut self) -> io::Result<Option<Result<Bytes, Refusal>>> {
        self.send()?;
        let Self { runtime, from_client, stop, .. } = self;
        let more = runtime.block_on(async {
            tokio::select! {
                more = from_client.recv() => Ok(more),
                _ = stop.wait_for(|stop| *stop) => Err(ending()),
                () = sleep_until(self.until) => Err(too_slow("the lookup")),
            }
        });
        more.map_err(|refusal| self.refuse(refusal))
    }

    /// Sends the pending output.
    fn send(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.output, Vec::with_capacity(PIECE + PIECE / 4));
        self.begin();
        let until = self.until.min(Instant::now() + self.stall);
        let Self { runtime, to_client, stop, .. } = self;
        let sent = runtime.block_on(async {
            tokio::select! {
                sent = to_client.send(Ok(piece.into())) => Ok(sent),
                _ = stop.wait_for(|stop| *stop) => Err(ending()),
                () = sleep_until(until) => Err(too_slow("to take the answer")),
            }
        });
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(ErrorKind::BrokenPipe.into()),
            Err(refusal) => Err(self.refuse(refusal)),
        }
    }

    fn begin(&mut self) {
        if let (Some(say_head), Some(head)) = (self.say_head.take(), self.head.take()) {
            // Fails if the client has closed the connection.
            let _ = say_head.send(Ok(head));
        }
    }

    fn check_rows(&mut self) -> io::Result<()> {
        let (rows, most) = self.rows;
        if rows <= most {
            return Ok(());
        }
        let sentence = format!("the body has more than {most} rows; send it in parts");
        Err(self.refuse(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, sentence)))
    }

    /// Ends the answer. Rows of columnar formats are counted after their batch, so they are checked here again for the
    /// last batch.
    pub(super) fn finish(&mut self) {
        match self.check_rows().and_then(|()| self.send()) {
            Ok(()) => self.begin(),
            Err(_) => self.fail(None),
        }
    }

    /// Ends the lookup with an error: a refusal if nothing was sent, else a truncated answer.
    pub(super) fn fail(&mut self, error: Option<Refusal>) {
        let Some(refusal) = self.refused.take().or(error) else { return };
        match self.say_head.take() {
            Some(say_head) => {
                let _ = say_head.send(Err(refusal));
            }
            None => {
                let line =
                    || tracing::warn!(reason = refusal.sentence, "a bulk answer was cut off");
                self.site.logs.cut_answer.line(line);
                let _ = self.to_client.try_send(Err(io::Error::other(refusal.sentence)));
            }
        }
    }
}

/// The body, as the thread reads it.
pub(super) struct Input(pub(super) Shared);

impl Read for Input {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let pipe = &mut *self.0.borrow_mut();
        if pipe.input.is_empty() {
            pipe.input = pipe.receive()?.unwrap_or_default();
            if pipe.is_text {
                pipe.rows.0 += pipe.input.iter().filter(|byte| **byte == b'\n').count() as u64;
            }
        }
        pipe.check_rows()?;
        let count = buf.len().min(pipe.input.len());
        pipe.input.copy_to_slice(&mut buf[..count]);
        Ok(count)
    }
}

/// The answer, as the thread writes it.
pub(super) struct Output(pub(super) Shared);

impl Write for Output {
    /// Takes at most a piece, however long a row is: pieces wait in the channel.
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let pipe = &mut *self.0.borrow_mut();
        let count = buf.len().min(PIECE);
        pipe.output.extend_from_slice(&buf[..count]);
        if pipe.output.len() >= PIECE {
            pipe.send()?;
        }
        Ok(count)
    }

    /// Does nothing: pieces are sent when they are large, or when no more input arrives for a while.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
