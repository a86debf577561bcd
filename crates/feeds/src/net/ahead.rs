//! Data read from a connection before they could be processed.

use std::collections::VecDeque;
use std::io::{self, Read};

use super::stream::{Got, Stream, is_interrupted, is_pause};

/// Bytes of a connection that wait here for their turn, so that the daemon at the other end does not wait.
///
/// A daemon that has to wait queues what it has to say, and some do that badly: FRR resets an FPM connection that takes
/// nothing for 15 seconds, and its BMP spends a minute of processor time on a queue that has once grown (it doubles and
/// halves a hash table for every route). The system's buffer holds about a tenth of a second of what they can say.
#[derive(Default)]
pub(super) struct Ahead {
    bytes: VecDeque<u8>,
    /// What reading gave behind these bytes: the end, or an error.
    then: Option<io::Result<Got>>,
}

/// Bytes that may wait, of one connection: some 200,000 routes. Beyond that the other end waits.
const MOST: usize = 64 << 20;

impl Ahead {
    /// Reads what waits, and from the connection if nothing does.
    pub(super) fn read(&mut self, stream: &mut Stream, into: &mut [u8]) -> io::Result<Got> {
        if !self.bytes.is_empty() {
            return self.bytes.read(into).map(Got::Bytes);
        }
        if self.bytes.capacity() > 0 {
            self.bytes = VecDeque::new();
        }
        self.then.take().unwrap_or_else(|| stream.read(into))
    }

    /// Takes what has come meanwhile. Files do not wait for anybody, and what the kernel says is read in whole records.
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

    /// The connection is no more, nor is what came of it.
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

    /// Nobody takes anything in, and the other end has said all that fits without waiting; then it comes in order, with
    /// the end behind it.
    #[test]
    fn the_other_end_does_not_wait() {
        const LEN: usize = 24 << 20;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let mut stream = Stream::tcp(mio::net::TcpStream::from_std(accepted));
        let said: Vec<u8> = (0..LEN as u32 / 4).flat_map(u32::to_le_bytes).collect();
        let (mut ahead, mut buffer) = (Ahead::default(), vec![0; 1 << 16]);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                writer.write_all(&said).unwrap();
                drop(writer);
            });
            let begin = Instant::now();
            while ahead.then.is_none() {
                assert!(begin.elapsed() < Duration::from_secs(60), "the writer waits");
                ahead.fill(&mut stream, &mut buffer);
            }
            writing.join().unwrap();
        });
        let mut heard = Vec::new();
        while let Got::Bytes(bytes) = ahead.read(&mut stream, &mut buffer).unwrap() {
            heard.extend_from_slice(&buffer[..bytes]);
        }
        assert!(heard == said, "{} bytes of {LEN}", heard.len());
    }
}
