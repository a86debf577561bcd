//! The thread that decodes datagrams, looks their flows up and writes them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fibula_flows::{ExportFault, FlowDecoder};

use crate::columns::FlowColumns;
use crate::files::{FlowFiles, until};
use crate::forward::Forwarder;
use crate::queue::{Burst, Queue, Taken};
use crate::receive::now;
use crate::sync::{Mutex, lock};
use crate::{CollectError, FlowTable, Talkers};

/// The table that is used from the next batch on.
pub(crate) type CurrentTable = Mutex<Option<Arc<FlowTable>>>;

/// What a worker counts.
#[derive(Debug, Default)]
pub(crate) struct Worked {
    pub(crate) addresses: AtomicU64,
    pub(crate) matched: AtomicU64,
    /// The last fault of a datagram, with its sender.
    pub(crate) fault: Mutex<Option<(SocketAddr, ExportFault)>>,
}

/// What a worker works with.
pub(crate) struct Worker {
    pub(crate) queue: Arc<Queue>,
    pub(crate) decoder: Arc<Mutex<FlowDecoder>>,
    pub(crate) table: Arc<CurrentTable>,
    pub(crate) counts: Arc<Worked>,
    pub(crate) files: FlowFiles,
    pub(crate) talkers: Option<Arc<Talkers>>,
    pub(crate) forward: Option<Forwarder>,
    pub(crate) batch_rows: usize,
    pub(crate) delay: Duration,
    /// The length of the time of a file, in microseconds.
    pub(crate) rotate: u64,
    pub(crate) columns: FlowColumns,
    pub(crate) begun: Option<Begun>,
}

/// When the batch began that is not written yet.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    at: Instant,
    /// When its first datagram was received, in microseconds since 1970.
    time: u64,
}

impl Worker {
    /// Works until the queue is closed, and completes the last file.
    pub(crate) fn run(mut self) -> Result<(), CollectError> {
        loop {
            match self.queue.take(self.wait()) {
                Taken::Burst(burst) => {
                    self.decode(&burst)?;
                    self.queue.recycle(burst);
                }
                Taken::Nothing => {}
                Taken::Closed => {
                    self.flush()?;
                    return self.files.finish();
                }
            }
            if self.begun.is_some_and(|begun| begun.at.elapsed() >= self.delay) {
                self.flush()?;
            }
            if self.files.until().is_some_and(|until| until <= now()) {
                self.flush()?;
                self.files.finish()?;
            }
        }
    }

    /// How long nothing needs to be done if nothing comes.
    fn wait(&self) -> Duration {
        let flush = self.begun.map(|begun| self.delay.saturating_sub(begun.at.elapsed()));
        let file = self.files.until().map(|moment| until(moment, now()));
        flush.into_iter().chain(file).min().unwrap_or(Duration::from_secs(1))
    }

    fn decode(&mut self, burst: &Burst) -> Result<(), CollectError> {
        let decoder = Arc::clone(&self.decoder);
        for (head, datagram) in burst.datagrams() {
            // All rows of a batch belong into the same file.
            let slot = |time: u64| time / self.rotate;
            if self.begun.is_some_and(|begun| slot(begun.time) != slot(head.time)) {
                self.flush()?;
            }
            self.columns.time = head.time;
            lock(&decoder).decode(head.sender, datagram, &mut self.columns);
            if let Some(fault) = self.columns.take_fault() {
                *lock(&self.counts.fault) = Some((head.sender, fault));
            }
            if self.begun.is_none() && self.columns.rows() > 0 {
                self.begun = Some(Begun { at: Instant::now(), time: head.time });
            }
            if self.columns.rows() >= self.batch_rows {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Looks up what was decoded, in one table, and gives it to the output.
    fn flush(&mut self) -> Result<(), CollectError> {
        let Some(begun) = self.begun.take() else { return Ok(()) };
        let batch = self.columns.take().map_err(fibula_annotate::AnnotateError::from)?;
        let table = lock(&self.table).clone();
        let batch = match table {
            None => batch,
            Some(table) => {
                let (batch, looked) = table.add(&batch)?;
                self.counts.addresses.fetch_add(looked.addresses, Ordering::Relaxed);
                self.counts.matched.fetch_add(looked.matched, Ordering::Relaxed);
                batch
            }
        };
        if let Some(talkers) = &self.talkers {
            talkers.add(&batch, begun.time).map_err(fibula_annotate::AnnotateError::from)?;
        }
        if let Some(forward) = &mut self.forward {
            forward.send(&batch, begun.time).map_err(fibula_annotate::AnnotateError::from)?;
        }
        self.files.write(&batch, begun.time)
    }
}
