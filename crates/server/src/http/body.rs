//! The bodies of answers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

use super::sending::PARTS;

/// Maximum number of bytes that are gathered from the parts of an answer before they are sent.
const GATHERED: usize = 16 << 10;

/// Server-sent events, as they happen.
pub(crate) trait Events: Send {
    /// The bytes of the next events; `None` at the end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

/// The body of an answer.
pub(crate) enum Payload {
    /// Complete bytes.
    Whole(Bytes),
    /// Parts that are made when the client takes them, and the number of bytes that their maker holds. Making a part
    /// takes microseconds.
    Parts(Box<dyn Iterator<Item = Vec<u8>> + Send>, usize),
    /// Pieces that another thread makes. An error ends the connection, so that a reader knows that the
    /// answer is not complete.
    Pieces(Receiver<io::Result<Bytes>>),
    /// Server-sent events.
    Events(Box<dyn Events>),
}

impl Payload {
    /// The memory that the body holds until it is sent.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Parts(_, held) => PARTS + held,
            // The channel of a bulk lookup has four pieces, of at most 128 KiB each, and one is on its way.
            Self::Pieces(_) => 5 * PARTS,
            Self::Events(_) => PARTS,
        }
    }

    /// The next bytes.
    pub(crate) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            Self::Parts(parts, _) => {
                let mut gathered = Vec::new();
                while gathered.len() < GATHERED
                    && let Some(mut part) = parts.next()
                {
                    gathered.append(&mut part);
                }
                Poll::Ready((!gathered.is_empty()).then(|| Ok(gathered.into())))
            }
            Self::Pieces(pieces) => pieces.poll_recv(cx),
            Self::Events(events) => events.poll(cx).map(|piece| Some(Ok(piece?))),
        }
    }
}

/// As a client sends it.
impl Body for Payload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.poll_data(cx).map(|data| Some(data?.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}
