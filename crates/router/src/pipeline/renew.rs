//! Replaces the queues of a port while the pipeline runs: its interface was removed and is there again, or its MAC
//! address or number of queues has changed.
//!
//! Each thread has an inbox. A letter removes the thread's halves of a port, and may bring others. The thread reads its
//! inbox at the beginning of a round, which costs a load if it is empty.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::build::{owner, those};
use super::{Attached, Shared};
use crate::port::{Queue, Receive, Transmit};
use crate::{Packet, Pool};

/// Halves of a port's queues, by the number of the queue.
type Halves<T> = Vec<(usize, Box<T>)>;

/// New halves for a thread, in place of those that it has of the port.
pub(super) struct Letter<'p> {
    pub(super) port: usize,
    pub(super) receive: Halves<dyn Receive<'p> + 'p>,
    pub(super) transmit: Halves<dyn Transmit<'p> + 'p>,
    /// Dropped when the letter was read and the previous halves are closed.
    _read: Option<Sender<()>>,
}

/// The letters of a thread.
pub(super) struct Inbox<'p> {
    has_mail: AtomicBool,
    /// `None` once the thread has ended.
    letters: Mutex<Option<Vec<Letter<'p>>>>,
}

impl<'p> Inbox<'p> {
    fn new() -> Self {
        Self { has_mail: AtomicBool::new(false), letters: Mutex::new(Some(Vec::new())) }
    }

    fn letters(&self) -> MutexGuard<'_, Option<Vec<Letter<'p>>>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, letter: Letter<'p>) {
        if let Some(letters) = &mut *self.letters() {
            letters.push(letter);
            self.has_mail.store(true, Ordering::SeqCst);
        }
    }

    #[inline]
    pub(super) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Relaxed)
    }

    pub(super) fn take(&self) -> Vec<Letter<'p>> {
        self.has_mail.store(false, Ordering::SeqCst);
        self.letters().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Nobody reads letters any more.
    pub(super) fn close(&self) {
        *self.letters() = None;
    }
}

/// The threads that have halves of a port.
struct Owners {
    /// By the number of the queue, when the pipeline was made.
    receive: Vec<usize>,
    transmit: Vec<usize>,
}

/// Takes the queues of a port away from a running pipeline, and gives it others. Clones are for the same pipeline.
#[derive(Clone)]
pub struct Renewer<'p> {
    shared: Arc<Shared>,
    pub(super) inboxes: Arc<[Inbox<'p>]>,
    owners: Arc<[Owners]>,
}

impl<'p> Renewer<'p> {
    pub(super) fn new(shared: &Arc<Shared>, ports: &[Attached<'p>]) -> Self {
        let receivers = those(shared, |role| role.receives);
        let senders = those(shared, |role| role.transmits);
        let owners = ports.iter().enumerate().map(|(port, attached)| {
            let queues = 0..attached.port.queues.len();
            Owners {
                receive: queues.clone().map(|queue| owner(&receivers, port, queue)).collect(),
                transmit: queues.map(|queue| owner(&senders, port, queue)).collect(),
            }
        });
        Self {
            shared: Arc::clone(shared),
            inboxes: shared.workers.iter().map(|_| Inbox::new()).collect(),
            owners: owners.collect(),
        }
    }

    /// Drops the queues of the port, which closes its sockets. Packets for it are dropped and counted
    /// ([`Loss::PortFailed`](super::Loss)) until it gets others. Returns whether all threads have done so within this
    /// time.
    pub fn close(&self, port: usize, longest: Duration) -> bool {
        let (read, all_read) = mpsc::channel::<()>();
        self.send(port, Vec::new(), Some(read));
        // Nothing is sent: the channel closes when the last letter was read.
        all_read.recv_timeout(longest) == Err(mpsc::RecvTimeoutError::Disconnected)
    }

    /// Gives the port these queues. There may be more or fewer than at first: they are shared out among the threads
    /// that had its first ones.
    pub fn open(&self, port: usize, queues: Vec<Queue<'p>>) {
        self.send(port, queues, None);
    }

    fn send(&self, port: usize, queues: Vec<Queue<'p>>, read: Option<Sender<()>>) {
        let Some(owners) = self.owners.get(port) else { return };
        let mut letters: Vec<Letter<'p>> = self
            .inboxes
            .iter()
            .map(|_| Letter { port, receive: vec![], transmit: vec![], _read: read.clone() })
            .collect();
        drop(read);
        let (first, count) = (owners.transmit.len(), queues.len());
        let mut shared = Vec::new();
        for (number, Queue { receive, transmit }) in queues.into_iter().enumerate() {
            letters[owners.receive[number % owners.receive.len()]].receive.push((number, receive));
            if count >= first {
                // Queues beyond the first ones only receive.
                if number < first {
                    letters[owners.transmit[number]].transmit.push((number, transmit));
                }
            } else {
                shared.push(Arc::new(Mutex::new(transmit)));
            }
        }
        if !shared.is_empty() {
            for (number, &worker) in owners.transmit.iter().enumerate() {
                let half = Arc::clone(&shared[number % count]);
                let half = SharedHalf { half, counts: number < count };
                letters[worker].transmit.push((number, Box::new(half)));
            }
        }
        for ((inbox, letter), worker) in self.inboxes.iter().zip(letters).zip(&self.shared.workers)
        {
            inbox.put(letter);
            worker.bell.ring();
        }
    }
}

/// In place of a half that was taken away.
pub(super) struct Closed;

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the port is closed at the moment")
}

impl<'p> Receive<'p> for Closed {
    fn receive(&mut self, _: &'p Pool, _: &mut Vec<Packet<'p>>, _: usize) -> io::Result<usize> {
        Err(closed())
    }

    fn wait(&mut self, _: Duration) -> io::Result<()> {
        Err(closed())
    }
}

impl<'p> Transmit<'p> for Closed {
    fn transmit(&mut self, _: &'p Pool, _: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        Err(closed())
    }

    fn flush(&mut self, _: &'p Pool) -> io::Result<()> {
        Err(closed())
    }
}

/// A half of several threads, for a port that has fewer queues than it had at first.
struct SharedHalf<'p> {
    half: Arc<Mutex<Box<dyn Transmit<'p> + 'p>>>,
    /// Whether it reports the lost packets, which one of them does.
    counts: bool,
}

impl<'p> SharedHalf<'p> {
    fn half(&self) -> MutexGuard<'_, Box<dyn Transmit<'p> + 'p>> {
        self.half.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'p> Transmit<'p> for SharedHalf<'p> {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        self.half().transmit(pool, burst)
    }

    fn flush(&mut self, pool: &'p Pool) -> io::Result<()> {
        self.half().flush(pool)
    }

    fn close(&mut self, pool: &'p Pool) -> io::Result<()> {
        self.half().close(pool)
    }

    fn lost(&self) -> u64 {
        if self.counts { self.half().lost() } else { 0 }
    }
}
