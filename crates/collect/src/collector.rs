//! A collector that runs.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use fibula_flows::FlowDecoder;

use crate::columns::FlowColumns;
use crate::files::{FlowFiles, Stream, Written};
use crate::forward::{Forwarded, Forwarder};
use crate::queue::Queue;
use crate::receive::{self, Received, Receiver};
use crate::sync::{Mutex, lock};
use crate::work::{CurrentTable, Worked, Worker};
use crate::{
    CollectCounts, CollectError, CollectOptions, FlowForward, FlowPlace, FlowTable, templates,
};

/// Receives exports of flows, looks up their addresses and writes them, on threads of its own. Dropping it stops it,
/// too, without saving templates and without an answer.
///
/// ```
/// use fibula_collect::{CollectOptions, Collector, FlowFormat, FlowOutput, FlowPlace};
/// use std::net::UdpSocket;
///
/// let folder = tempfile::tempdir()?;
/// let output = FlowOutput::new(FlowPlace::Folder(folder.path().to_owned()), FlowFormat::JsonLines);
/// let options = CollectOptions::new(vec!["127.0.0.1:0".parse()?], output);
/// let collector = Collector::start(options, None)?;
///
/// // NetFlow v5: a header for one flow, and the flow, from 192.0.2.1 to 198.51.100.7.
/// let mut datagram = vec![0; 72];
/// datagram[..4].copy_from_slice(&[0, 5, 0, 1]);
/// datagram[24..32].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 7]);
/// let exporter = UdpSocket::bind("127.0.0.1:0")?;
/// exporter.send_to(&datagram, collector.addresses()[0])?;
///
/// let counts = collector.stop()?;
/// assert_eq!((counts.exports.flows, counts.rows, counts.files), (1, 1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Collector {
    options: CollectOptions,
    addresses: Vec<SocketAddr>,
    lanes: Vec<Lane>,
    table: Arc<CurrentTable>,
    written: Arc<Written>,
    forwarded: Arc<Forwarded>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// A socket with its two threads.
struct Lane {
    socket: Arc<UdpSocket>,
    received: Arc<Received>,
    decoder: Arc<Mutex<FlowDecoder>>,
    worked: Arc<Worked>,
}

/// What threads tell the collector.
#[derive(Default)]
struct Shared {
    stopped: Arc<AtomicBool>,
    failed: Mutex<Option<CollectError>>,
}

impl Shared {
    /// Keeps the first error, and stops all threads.
    fn end(&self, done: Result<(), CollectError>) {
        if let Err(error) = done {
            lock(&self.failed).get_or_insert(error);
            self.stopped.store(true, Ordering::Release);
        }
    }
}

impl Collector {
    /// Opens the sockets and starts to receive. Without a table, flows are written as they are.
    ///
    /// # Errors
    /// If the folder cannot be made, an address cannot be listened at, the file of templates is damaged, or the system
    /// has no threads.
    pub fn start(
        options: CollectOptions,
        table: Option<Arc<FlowTable>>,
    ) -> Result<Self, CollectError> {
        if let FlowPlace::Folder(folder) = &options.output.place {
            // Now, rather than with the first flow.
            fs::create_dir_all(folder).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => {
                    CollectError::write(folder, ErrorKind::NotADirectory.into())
                }
                _ => CollectError::write(folder, error),
            })?;
        }
        let (sockets, addresses) = open(&options)?;
        let mut decoders: Vec<_> =
            sockets.iter().map(|_| FlowDecoder::new(options.limits)).collect();
        if let Some(path) = &options.templates {
            templates::load(path, &mut decoders)?;
        }
        let lanes = sockets.into_iter().zip(decoders).map(|(socket, decoder)| Lane {
            socket: Arc::new(socket),
            received: Arc::default(),
            decoder: Arc::new(Mutex::new(decoder)),
            worked: Arc::default(),
        });
        let mut collector = Self {
            lanes: lanes.collect(),
            addresses,
            table: Arc::new(Mutex::new(table)),
            written: Arc::default(),
            forwarded: Arc::default(),
            shared: Arc::default(),
            threads: Vec::new(),
            options,
        };
        collector.spawn()?;
        Ok(collector)
    }

    fn spawn(&mut self) -> Result<(), CollectError> {
        let options = &self.options;
        let stream = Arc::new(Stream::default());
        let allowed: Arc<[_]> = options.allowed.clone().into();
        let rotate = u64::try_from(options.output.rotate.as_micros()).unwrap_or(u64::MAX).max(1);
        for (number, lane) in self.lanes.iter().enumerate() {
            let queue = Arc::new(Queue::new(options.queue_bytes));
            let (output, written) = (options.output.clone(), Arc::clone(&self.written));
            let forwarder = |forward: &FlowForward| {
                Forwarder::new(forward, number, Arc::clone(&self.forwarded))
                    .map_err(|error| CollectError::Forward { to: forward.to, error })
            };
            let worker = Worker {
                talkers: options.talkers.clone(),
                forward: options.forward.as_ref().map(forwarder).transpose()?,
                queue: Arc::clone(&queue),
                decoder: Arc::clone(&lane.decoder),
                table: Arc::clone(&self.table),
                counts: Arc::clone(&lane.worked),
                files: FlowFiles::new(output, Arc::clone(&stream), written, number),
                batch_rows: options.batch_rows.max(1),
                delay: options.delay,
                rotate,
                columns: FlowColumns::new(),
                begun: None,
            };
            let receiver = Receiver {
                socket: Arc::clone(&lane.socket),
                queue: Arc::clone(&queue),
                counts: Arc::clone(&lane.received),
                allowed: Arc::clone(&allowed),
                stopped: Arc::clone(&self.shared.stopped),
            };
            let shared = Arc::clone(&self.shared);
            let work = move || {
                shared.end(worker.run());
                // After an error, nothing more is taken from it.
                queue.close();
            };
            let (shared, address) = (Arc::clone(&self.shared), self.addresses.get(number).copied());
            let receive = move || {
                let failed = |error| CollectError::Listen {
                    address: address.unwrap_or_else(|| ([0; 4], 0).into()),
                    error,
                };
                shared.end(receiver.run().map_err(failed));
            };
            let start = |name: &str, run: Box<dyn FnOnce() + Send>| {
                let thread = Builder::new().name(format!("{name}-{number}")).spawn(run);
                thread.map_err(CollectError::Thread)
            };
            self.threads.push(start("flows", Box::new(work))?);
            self.threads.push(start("receive", Box::new(receive))?);
        }
        Ok(())
    }

    /// The addresses where it receives, with the ports that the system chose for port 0.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The smallest of the sockets' buffers, in bytes of datagrams with their overhead.
    #[must_use]
    pub fn receive_buffer(&self) -> usize {
        let buffers = self.lanes.iter().map(|lane| receive::buffer(&lane.socket));
        buffers.min().unwrap_or_default()
    }

    /// Takes another table from the next batch on. All flows of a batch are looked up in one table.
    pub fn replace(&self, table: Option<Arc<FlowTable>>) {
        *lock(&self.table) = table;
    }

    /// Whether it still runs. It ends itself if its output fails; [`Collector::stop`] then returns the error.
    #[must_use]
    pub fn is_running(&self) -> bool {
        !self.shared.stopped.load(Ordering::Acquire)
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> CollectCounts {
        let mut counts = CollectCounts::default();
        for lane in &self.lanes {
            counts.datagrams += lane.received.datagrams.load(Ordering::Relaxed);
            counts.refused += lane.received.refused.load(Ordering::Relaxed);
            counts.dropped_by_system += receive::dropped_by_system(&lane.socket);
            lane.received.each_dropped(|sender, dropped| {
                counts.dropped += dropped;
                if let Some(sender) = sender {
                    counts.exporters.entry(sender).or_default().dropped += dropped;
                }
            });
            counts.addresses += lane.worked.addresses.load(Ordering::Relaxed);
            counts.matched += lane.worked.matched.load(Ordering::Relaxed);
            counts.last_fault = lock(&lane.worked.fault).or(counts.last_fault);
            let decoder = lock(&lane.decoder);
            counts.exports.add(decoder.totals());
            counts.memory += decoder.memory();
            for source in decoder.sources().filter(|source| source.counts().datagrams > 0) {
                let exporter = counts.exporters.entry(source.exporter()).or_default();
                exporter.exports.add(source.counts());
            }
        }
        counts.forwarded = self.forwarded.flows.load(Ordering::Relaxed);
        counts.unsent = self.forwarded.unsent.load(Ordering::Relaxed);
        counts.rows = self.written.rows.load(Ordering::Relaxed);
        counts.files = self.written.files.load(Ordering::Relaxed);
        counts.bytes = self.written.bytes.load(Ordering::Relaxed);
        counts
    }

    /// Writes the file of templates, if one is configured.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save_templates(&self) -> Result<(), CollectError> {
        match &self.options.templates {
            Some(path) => templates::save(path, self.lanes.iter().map(|lane| &*lane.decoder)),
            None => Ok(()),
        }
    }

    /// Stops: decodes and writes what has been received, completes the files, and saves the templates.
    ///
    /// # Errors
    /// If a file cannot be written, now or before. Files before it are complete.
    pub fn stop(mut self) -> Result<CollectCounts, CollectError> {
        self.join();
        let saved = self.save_templates();
        match lock(&self.shared.failed).take() {
            Some(error) => Err(error),
            None => saved.map(|()| self.counts()),
        }
    }

    fn join(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed its message.
            let _ = thread.join();
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.join();
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// The sockets, and the address of each.
fn open(options: &CollectOptions) -> Result<(Vec<UdpSocket>, Vec<SocketAddr>), CollectError> {
    let (mut sockets, mut addresses) = (Vec::new(), Vec::new());
    for &requested in &options.listen {
        let mut address = requested;
        for _ in 0..options.sockets.max(1) {
            let failed = |error| CollectError::Listen { address, error };
            let socket = receive::open(address, options.receive_buffer).map_err(failed)?;
            // The others join the one whose port the system chose.
            address = socket.local_addr().map_err(failed)?;
            sockets.push(socket);
            addresses.push(address);
        }
    }
    Ok((sockets, addresses))
}
