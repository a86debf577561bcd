//! The sockets, and the thread of each that does nothing but receive.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fibula_core::AnyPrefix;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, socket_with, sockopt};

use crate::queue::{Burst, Queue};
use crate::sync::{Mutex, lock};

/// How long a thread waits for datagrams before it looks whether it should end.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Exporters whose dropped datagrams are counted apart; those of further ones are counted together.
const COUNTED: usize = 4096;

/// Opens a socket for datagrams at this address, which it shares with others of this process.
pub(crate) fn open(address: SocketAddr, buffer: usize) -> io::Result<UdpSocket> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
    sockopt::set_socket_reuseport(&socket, true)?;
    if buffer > 0 && sockopt::set_socket_recv_buffer_size_force(&socket, buffer).is_err() {
        // Without the privilege, the system's maximum counts (net.core.rmem_max).
        sockopt::set_socket_recv_buffer_size(&socket, buffer)?;
    }
    bind(&socket, &address)?;
    Ok(socket.into())
}

/// The bytes that the system holds of datagrams that were not received yet, with their overhead.
pub(crate) fn buffer(socket: &UdpSocket) -> usize {
    // It reports twice what was set, the half of which is for its own structures.
    sockopt::socket_recv_buffer_size(socket).unwrap_or_default() / 2
}

/// The number of datagrams that the system dropped because the socket's buffer was full.
pub(crate) fn dropped_by_system(socket: &UdpSocket) -> u64 {
    let Ok(status) = rustix::fs::fstat(socket.as_fd()) else { return 0 };
    let inode = status.st_ino.to_string();
    ["/proc/self/net/udp", "/proc/self/net/udp6"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .find_map(|text| drops(&text, &inode))
        .unwrap_or_default()
}

/// The drops of the socket with this inode, in the text of the system's list of sockets.
fn drops(text: &str, inode: &str) -> Option<u64> {
    let of = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        (words.nth(9)? == inode).then_some(())?;
        words.next_back()?.parse().ok()
    };
    text.lines().find_map(of)
}

/// What a receiving thread counts.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// Datagrams, all of them.
    pub(crate) datagrams: AtomicU64,
    /// Datagrams of senders that are not allowed.
    pub(crate) refused: AtomicU64,
    /// Datagrams that were dropped because the queue was full, by sender; of further senders together.
    dropped: Mutex<(HashMap<IpAddr, u64>, u64)>,
}

impl Received {
    fn drop_all(&self, burst: &mut Burst) {
        let mut dropped = lock(&self.dropped);
        let (senders, others) = &mut *dropped;
        for (head, _) in burst.datagrams() {
            let sender = head.sender.ip().to_canonical();
            let has_room = senders.len() < COUNTED;
            match senders.get_mut(&sender) {
                Some(count) => *count += 1,
                None if has_room => drop(senders.insert(sender, 1)),
                None => *others += 1,
            }
        }
        drop(dropped);
        burst.clear();
    }

    /// Calls `each` with the number of dropped datagrams of each sender, and without one for further senders.
    pub(crate) fn each_dropped(&self, mut each: impl FnMut(Option<IpAddr>, u64)) {
        let dropped = lock(&self.dropped);
        dropped.0.iter().for_each(|(sender, count)| each(Some(*sender), *count));
        each(None, dropped.1);
    }
}

/// What a receiving thread works with.
pub(crate) struct Receiver {
    pub(crate) socket: Arc<UdpSocket>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) counts: Arc<Received>,
    pub(crate) allowed: Arc<[AnyPrefix]>,
    pub(crate) stopped: Arc<AtomicBool>,
}

/// Microseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl Receiver {
    /// Receives until it is stopped, and then what is there already.
    pub(crate) fn run(self) -> io::Result<()> {
        let done = self.receive();
        self.queue.close();
        done
    }

    fn receive(&self) -> io::Result<()> {
        let mut burst = Burst::default();
        let mut datagram = vec![0; 1 << 16];
        loop {
            let stopped = self.stopped.load(Ordering::Acquire);
            let is_empty = self.fill(&mut burst, &mut datagram)?;
            // What the queue has no room for waits in the burst until that is full.
            if !burst.is_empty() && !self.queue.put(&mut burst) && burst.is_full() {
                self.counts.drop_all(&mut burst);
            }
            if !is_empty {
                continue;
            }
            if stopped {
                self.put_last(burst);
                return Ok(());
            }
            let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut ready, Some(&WAIT)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Puts what is left into the queue, when there is room for it.
    fn put_last(&self, mut burst: Burst) {
        const PAUSE: Duration = Duration::from_millis(10);
        let mut pauses = 0..200;
        while !burst.is_empty() && !self.queue.put(&mut burst) {
            match pauses.next() {
                Some(_) => std::thread::sleep(PAUSE),
                None => return self.counts.drop_all(&mut burst),
            }
        }
    }

    /// Receives until the burst is full. Whether nothing more is there.
    fn fill(&self, burst: &mut Burst, datagram: &mut [u8]) -> io::Result<bool> {
        let time = now();
        let mut received = 0;
        let mut is_empty = false;
        while !burst.is_full() {
            let (len, sender) = match self.socket.recv_from(datagram) {
                Ok(got) => got,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    is_empty = true;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // An earlier datagram of this host could not be delivered; nothing is sent here.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            received += 1;
            if self.allows(sender.ip().to_canonical()) {
                burst.push(sender, time, &datagram[..len]);
            } else {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.counts.datagrams.fetch_add(received, Ordering::Relaxed);
        Ok(is_empty)
    }

    fn allows(&self, sender: IpAddr) -> bool {
        let sender = AnyPrefix::host(sender);
        self.allowed.is_empty() || self.allowed.iter().any(|prefix| prefix.covers(sender))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_a_socket() {
        let text = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
                     1053: 0100007F:0807 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4026 2 0000000000000000 17\n";
        assert_eq!((drops(text, "4026"), drops(text, "26")), (Some(17), None));
    }

    #[test]
    fn a_socket_is_found() {
        let socket = open("127.0.0.1:0".parse().unwrap(), 4096).unwrap();
        let to = socket.local_addr().unwrap();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            from.send_to(&[0; 1400], to).unwrap();
        }
        let mut received = 0;
        while socket.recv_from(&mut [0; 2000]).is_ok() {
            received += 1;
        }
        assert!(received < 100);
        assert_eq!(dropped_by_system(&socket), 100 - received);
    }
}
