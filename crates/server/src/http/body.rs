//! The bodies of answers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

/// Server-sent events, as they happen.
pub(crate) trait Events: Send {
    /// The bytes of the next events; `None` at the end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

/// The body of an answer.
pub(crate) enum Payload {
    /// Complete bytes.
    Whole(Bytes),
    /// Pieces that another thread makes. An error ends the connection, so that a reader knows that the
    /// answer is not complete.
    Pieces(Receiver<io::Result<Bytes>>),
    /// Server-sent events.
    Events(Box<dyn Events>),
}

impl Body for Payload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Pieces(pieces) => pieces.poll_recv(cx).map(|piece| Some(piece?.map(Frame::data))),
            Self::Events(events) => events.poll(cx).map(|piece| Some(Ok(Frame::data(piece?)))),
        }
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
