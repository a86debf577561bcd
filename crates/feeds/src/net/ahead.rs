//! Data read from a connection before they could be processed.

use std::collections::VecDeque;
use std::io::{self, Read};

use super::stream::{Got, Stream, is_interrupted, is_pause};

/// Bytes that were read from a connection before its turn, so that the daemon at the other end does not block.
///
/// A blocked daemon queues its messages, and some daemons do that badly: FRR resets an FPM connection that takes
/// nothing for 15 seconds, and its BMP spends a minute of processor time on a queue that has once grown (it doubles and
/// halves a hash table for every route). The system's buffer holds about a tenth of a second of their output.
#[derive(Default)]
pub(super) struct Ahead {
    bytes: VecDeque<u8>,
    /// The result of the read after these bytes: the end, or an error.
    then: Option<io::Result<Got>>,
}

/// Maximum number of bytes read ahead for one connection: some 200,000 routes. Beyond that the other end blocks.
const MOST: usize = 64 << 20;

impl Ahead {
    /// Reads the waiting bytes, or from the connection if there are none.
    pub(super) fn read(&mut self, stream: &mut Stream, into: &mut [u8]) -> io::Result<Got> {
        if !self.bytes.is_empty() {
            return self.bytes.read(into).map(Got::Bytes);
        }
        if self.bytes.capacity() > 0 {
            self.bytes = VecDeque::new();
        }
        self.then.take().unwrap_or_else(|| stream.read(into))
    }

    /// Reads ahead the bytes that have arrived. Files need no reading ahead, and the kernel's socket is read in whole
    /// records.
    pub(super) fn fill(&mut self, stream: &mut Stream, buffer: &mut [u8]) {
        if !matches!(stream, Stream::Tcp(_)) {
            return;
        }
        while self.then.is_none() && self.bytes.len() < MOST {
            match stream.read(buffer) {
                Ok(Got::Bytes(bytes)) => self.bytes.extend(&buffer[..bytes]),
                Err(error) if is_pause(&error) => return,
                Err(error) if is_interrupted(&error) => {}
                end => self.then = Some(end),
            }
        }
    }

    /// The connection ended: drops the bytes that were read ahead.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    /// While nothing is processed, the other end can send all bytes that fit without blocking; later they are read in
    /// order, followed by the end.
    #[test]
    fn the_other_end_does_not_wait() {
        const LEN: usize = 24 << 20;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let mut stream = Stream::tcp(mio::net::TcpStream::from_std(accepted));
        let sent: Vec<u8> = (0..LEN as u32 / 4).flat_map(u32::to_le_bytes).collect();
        let (mut ahead, mut buffer) = (Ahead::default(), vec![0; 1 << 16]);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                writer.write_all(&sent).unwrap();
                drop(writer);
            });
            let begin = Instant::now();
            while ahead.then.is_none() {
                assert!(begin.elapsed() < Duration::from_secs(60), "the writer waits");
                ahead.fill(&mut stream, &mut buffer);
            }
            writing.join().unwrap();
        });
        let mut received = Vec::new();
        while let Got::Bytes(bytes) = ahead.read(&mut stream, &mut buffer).unwrap() {
            received.extend_from_slice(&buffer[..bytes]);
        }
        assert!(received == sent, "{} bytes of {LEN}", received.len());
    }
}
