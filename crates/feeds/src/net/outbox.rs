//! Data that remain to be sent.

use std::io;

use super::stream::{Stream, is_interrupted, is_pause};

/// Bytes that the other end has not accepted yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
}

/// Maximum number of waiting bytes. A collector's messages are short, so a receiver with this much unread data is
/// stuck.
const MOST: usize = 1 << 20;

impl From<Vec<u8>> for Outbox {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, sent: 0 }
    }
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }

    /// The buffer, to which more is appended.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Sends as much as the stream accepts now.
    ///
    /// # Errors
    /// If the stream fails, or too much is left.
    pub(super) fn send(&mut self, stream: &mut Stream) -> io::Result<()> {
        while !self.is_empty() {
            match stream.write(&self.bytes[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => self.sent += sent,
                Err(error) if is_pause(&error) => break,
                Err(error) if is_interrupted(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.drain(..self.sent);
        self.sent = 0;
        match self.bytes.len() {
            waiting if waiting > MOST => Err(io::Error::other(format!(
                "the other end does not read: {waiting} bytes wait for it"
            ))),
            _ => Ok(()),
        }
    }
}
