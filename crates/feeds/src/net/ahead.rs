//! Data read from a connection before they could be processed.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::stream::{Got, Stream, is_interrupted, is_pause};

/// Bytes that were read from a connection before its turn, so that the daemon at the other end does not block.
///
/// A blocked daemon queues its messages, and some daemons do that badly: FRR resets an FPM connection that takes
/// nothing for 15 seconds, and its BMP spends a minute of processor time on a queue that has once grown (it doubles and
/// halves a hash table for every route). The system's buffer holds about a tenth of a second of their output.
pub(super) struct Ahead {
    blocks: VecDeque<Vec<u8>>,
    /// The bytes of the first block that were read.
    at: usize,
    /// The memory of the blocks, and that of all connections.
    bytes: usize,
    all: Arc<AheadTotal>,
    /// The result of the read after these bytes: the end, or an error.
    then: Option<io::Result<Got>>,
}

/// Maximum number of bytes read ahead for one connection: some 200,000 routes. Beyond that the other end blocks.
const MOST: usize = 64 << 20;
/// Maximum number of bytes read ahead for all connections of a hub: at least four of them do not block.
const MOST_OF_ALL: usize = 256 << 20;
/// Bytes of a block, unless more came at once.
const BLOCK: usize = 128 << 10;

/// The memory of all that was read ahead.
pub(super) struct AheadTotal {
    bytes: AtomicUsize,
    most: usize,
}

impl Default for AheadTotal {
    fn default() -> Self {
        Self { bytes: AtomicUsize::new(0), most: MOST_OF_ALL }
    }
}

impl Ahead {
    pub(super) fn new(all: Arc<AheadTotal>) -> Self {
        Self { blocks: VecDeque::new(), at: 0, bytes: 0, all, then: None }
    }

    /// Reads the waiting bytes, or from the connection if there are none.
    pub(super) fn read(&mut self, stream: &mut Stream, into: &mut [u8]) -> io::Result<Got> {
        let Some(block) = self.blocks.front() else {
            return self.then.take().unwrap_or_else(|| stream.read(into));
        };
        let bytes = &block[self.at..];
        let len = bytes.len().min(into.len());
        into[..len].copy_from_slice(&bytes[..len]);
        self.at += len;
        if self.at == block.len() {
            let memory = block.capacity();
            self.blocks.pop_front();
            self.at = 0;
            self.release(memory);
        }
        Ok(Got::Bytes(len))
    }

    /// Reads ahead the bytes that have arrived. Files need no reading ahead, and the kernel's socket is read in whole
    /// records.
    pub(super) fn fill(&mut self, stream: &mut Stream, buffer: &mut [u8]) {
        if !matches!(stream, Stream::Tcp(_)) {
            return;
        }
        let has_room = |ahead: &Self| {
            ahead.bytes < MOST && ahead.all.bytes.load(Ordering::Relaxed) < ahead.all.most
        };
        while self.then.is_none() && has_room(self) {
            match stream.read(buffer) {
                Ok(Got::Bytes(bytes)) => self.push(&buffer[..bytes]),
                Err(error) if is_pause(&error) => return,
                Err(error) if is_interrupted(&error) => {}
                end => self.then = Some(end),
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        match self.blocks.back_mut() {
            Some(last) if last.capacity() - last.len() >= bytes.len() => last.extend(bytes),
            _ => {
                let mut block = Vec::with_capacity(bytes.len().max(BLOCK));
                block.extend(bytes);
                self.bytes += block.capacity();
                self.all.bytes.fetch_add(block.capacity(), Ordering::Relaxed);
                self.blocks.push_back(block);
            }
        }
    }

    fn release(&mut self, memory: usize) {
        self.bytes -= memory;
        self.all.bytes.fetch_sub(memory, Ordering::Relaxed);
    }

    /// The connection ended: drops the bytes that were read ahead.
    pub(super) fn clear(&mut self) {
        self.release(self.bytes);
        self.blocks = VecDeque::new();
        (self.at, self.then) = (0, None);
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.release(self.bytes);
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
        let (mut ahead, mut buffer) = (Ahead::new(Arc::default()), vec![0; 1 << 16]);
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

    /// All connections together have a bound: further ones wait, and lose nothing.
    #[test]
    fn all_connections_have_a_bound() {
        const SENT: usize = 1 << 20;
        let all = Arc::new(AheadTotal { bytes: AtomicUsize::new(0), most: SENT / 2 });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut connections: Vec<_> = (0..3u8)
            .map(|value| {
                let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let (accepted, _) = listener.accept().unwrap();
                accepted.set_nonblocking(true).unwrap();
                let stream = Stream::tcp(mio::net::TcpStream::from_std(accepted));
                let writing = std::thread::spawn(move || writer.write_all(&[value; SENT]).unwrap());
                (stream, Ahead::new(Arc::clone(&all)), writing)
            })
            .collect();
        let begin = Instant::now();
        while all.bytes.load(Ordering::Relaxed) < all.most {
            assert!(begin.elapsed() < Duration::from_secs(60), "nothing came");
            connections.iter_mut().for_each(|(stream, ahead, _)| ahead.fill(stream, &mut buffer));
        }
        for _ in 0..10 {
            connections.iter_mut().for_each(|(stream, ahead, _)| ahead.fill(stream, &mut buffer));
            assert!(all.bytes.load(Ordering::Relaxed) <= all.most + BLOCK);
        }
        for (value, (mut stream, mut ahead, writing)) in (0..).zip(connections) {
            let mut left = SENT;
            while left > 0 {
                match ahead.read(&mut stream, &mut buffer) {
                    Ok(Got::Bytes(bytes)) => {
                        assert!(buffer[..bytes].iter().all(|&byte| byte == value));
                        left -= bytes;
                    }
                    Err(error) => assert!(is_pause(&error), "{error}"),
                    other => panic!("{other:?}, {left} bytes are missing"),
                }
            }
            writing.join().unwrap();
        }
        assert_eq!(all.bytes.load(Ordering::Relaxed), 0);
    }
}
