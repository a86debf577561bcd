//! Reads of a connection, which end at a PDU that is longer than any may be: the client takes memory for the length
//! that a PDU states. They also end at an ASPA in the form that drafts before 8210bis-11 had, which the client would
//! read as another one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;

/// The longest PDU, in bytes.
const MOST: u32 = 65_535;
/// The bytes of a header: version, type, two of many meanings, and the length, header included.
const HEADER: usize = 8;

/// The type of ASPAs, and the length of one that is withdrawn. The old form has its flags behind the header, so that it
/// looks like a withdrawal with providers.
const ASPA: u8 = 11;
const WITHDRAWN: u32 = 12;
pub(super) const OLD_ASPAS: &str = "its ASPAs are in the form of an old draft (before draft-ietf-sidrops-8210bis-11): \
                                    version 1 of the protocol, without ASPAs, is tried";

/// A connection to a cache.
pub(super) struct Bounded {
    socket: BufReader<TcpStream>,
    header: [u8; HEADER],
    /// Bytes of the header that were read, and those that follow it and were not.
    read: usize,
    left: u32,
}

impl Bounded {
    pub(super) fn new(socket: TcpStream) -> Self {
        Self { socket: BufReader::new(socket), header: [0; HEADER], read: 0, left: 0 }
    }

    /// Takes note of bytes that the client reads.
    fn see(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let skipped = bytes.len().min(self.left as usize);
                self.left -= skipped as u32;
                bytes = &bytes[skipped..];
                continue;
            }
            let part = bytes.len().min(HEADER - self.read);
            self.header[self.read..self.read + part].copy_from_slice(&bytes[..part]);
            (self.read, bytes) = (self.read + part, &bytes[part..]);
            if self.read == HEADER {
                let [version, kind, flags, _, a, b, c, d] = self.header;
                let length = u32::from_be_bytes([a, b, c, d]);
                if !(HEADER as u32..=MOST).contains(&length) {
                    let text = format!("a PDU of {length} bytes, which has {HEADER} to {MOST}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
                if version == 2 && kind == ASPA && flags & 1 == 0 && length != WITHDRAWN {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, OLD_ASPAS));
                }
                (self.read, self.left) = (0, length - HEADER as u32);
            }
        }
        Ok(())
    }
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, into))?;
        Poll::Ready(self.see(&into.filled()[before..]))
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
