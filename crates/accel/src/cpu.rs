use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fibula_core::Family;

use crate::device::sealed::Sealed;
use crate::device::{Device, DeviceKey, DeviceTable, Slot};
use crate::error::DeviceError;
use crate::image::{Image, Walk};
use crate::resident::{DeviceBuffer, InFlight, KeyOrder, ResidentBatch};

const NAME: &str = "cpu";

/// What goes wrong on a [`CpuDevice`], so that tests see what a program does then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Each batch takes longer by a random time below this.
    pub delay: Duration,
    /// Of so many batches, one at random fails, after its hops were overwritten; 0: none.
    pub one_in: u64,
    /// Whether every call fails from the first failed batch on, as those of a GPU do that has gone.
    pub for_good: bool,
    /// Determines the random choices.
    pub seed: u64,
}

/// A device of threads: each slot has one, which looks up by the walk of the image ([`Image`]). For tests, and to try a
/// program out where there is no device.
pub struct CpuDevice(Arc<Shared>);

struct Shared {
    faults: Faults,
    /// The state of the random numbers; its top bit is set once the device has gone.
    random: AtomicU64,
}

/// The device has gone.
const GONE: u64 = 1 << 63;

impl CpuDevice {
    /// A device with these faults.
    pub fn new(faults: Faults) -> Self {
        Self(Arc::new(Shared { faults, random: AtomicU64::new(faults.seed & !GONE) }))
    }
}

impl Shared {
    /// A random number below `below`, at least 1 (SplitMix64).
    fn random(&self, below: u64) -> u64 {
        let step =
            |state: u64| Some(state & GONE | state.wrapping_add(0x1e37_79b9_7f4a_7c15) & !GONE);
        let state = self.random.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        let mut x = state.unwrap_or_else(|state| state);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31) % below
    }

    fn check(&self, call: &'static str) -> Result<(), DeviceError> {
        match self.random.load(Ordering::Relaxed) & GONE {
            0 => Ok(()),
            _ => Err(failed(call)),
        }
    }

    fn run(&self, job: &mut Job) -> Result<(), DeviceError> {
        let start = Instant::now();
        let image = job.table.image();
        let hops = &mut job.hops[..job.count];
        walk(image, bytemuck::cast_slice(&job.keys), KeyOrder::Host, hops);
        job.time = start.elapsed();
        let Faults { delay, one_in, for_good, .. } = self.faults;
        if !delay.is_zero() {
            thread::sleep(Duration::from_nanos(self.random(delay.as_nanos() as u64)));
        }
        if one_in > 0 && self.random(one_in) == 0 {
            hops.fill(0xdead_beef);
            if for_good {
                self.random.fetch_or(GONE, Ordering::Relaxed);
            }
            return Err(failed("look up"));
        }
        Ok(())
    }
}

/// The hops of addresses by the walk of the image.
fn walk(image: &Image, keys: &[u8], order: KeyOrder, hops: &mut [u32]) {
    let is_network = order == KeyOrder::Network;
    match image.form().walk {
        Walk::V4(walk) => each(keys, hops, |key: u32| {
            walk(image, if is_network { u32::from_be(key) } else { key })
        }),
        Walk::V6(walk) => each(keys, hops, |key: u128| {
            walk(image, if is_network { u128::from_be(key) } else { key })
        }),
    }
}

fn each<A: DeviceKey>(keys: &[u8], hops: &mut [u32], code: impl Fn(A) -> u32) {
    for (hop, key) in hops.iter_mut().zip(keys.chunks_exact(size_of::<A>())) {
        *hop = code(bytemuck::pod_read_unaligned(key)).wrapping_sub(1);
    }
}

fn failed(call: &'static str) -> DeviceError {
    DeviceError::Failed { device: NAME.into(), call, reason: "an injected failure".into() }
}

impl Sealed for CpuDevice {}

impl Device for CpuDevice {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "threads of this program, one a slot"
    }

    fn upload(&self, image: Arc<Image>) -> Result<Arc<dyn DeviceTable>, DeviceError> {
        self.0.check("upload a table")?;
        Ok(Arc::new(CpuTable(image)))
    }

    fn upload_changes(
        &self,
        _: &Arc<dyn DeviceTable>,
        image: Arc<Image>,
        _: &[Range<usize>],
    ) -> Result<Arc<dyn DeviceTable>, DeviceError> {
        self.upload(image)
    }

    fn slot(&self, family: Family, capacity: usize) -> Result<Box<dyn Slot>, DeviceError> {
        self.0.check("make a slot")?;
        let (jobs, received): (Sender<Job>, Receiver<Job>) = channel();
        let (send_done, done) = channel();
        let shared = self.0.clone();
        let work = move || {
            for mut job in received {
                let result = shared.run(&mut job);
                if send_done.send((job, result)).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("fibula-accel-cpu".into()).spawn(work);
        let thread = thread.map_err(|error| DeviceError::Failed {
            device: NAME.into(),
            call: "start a thread",
            reason: error.to_string(),
        })?;
        let words = match family {
            Family::V4 => capacity.div_ceil(4),
            Family::V6 => capacity,
        };
        Ok(Box::new(CpuSlot {
            shared: self.0.clone(),
            family,
            capacity,
            buffers: Some((vec![0; words], vec![0; capacity])),
            count: 0,
            time: None,
            jobs: Some(jobs),
            done,
            finished: None,
            thread: Some(thread),
        }))
    }

    fn buffer(&self, bytes: usize) -> Result<Box<dyn DeviceBuffer>, DeviceError> {
        self.0.check("make a buffer")?;
        let lines = (0..bytes.div_ceil(16)).map(|_| Line::default()).collect();
        Ok(Box::new(CpuBuffer(lines)))
    }

    fn look_up_resident(
        &self,
        table: &Arc<dyn DeviceTable>,
        batch: &ResidentBatch,
    ) -> Result<Box<dyn InFlight>, DeviceError> {
        own(table, batch.family)?;
        self.0.check("look up")?;
        batch.check_places(NAME)?;
        let (keys, hops) = batch.in_the_program();
        walk(table.image(), keys, batch.order, hops);
        Ok(Box::new(AtOnce))
    }

    fn context(&self) -> Option<usize> {
        None
    }
}

/// Work that is done.
struct AtOnce;

impl InFlight for AtOnce {
    fn poll(&mut self) -> bool {
        true
    }

    fn wait(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// Words that may be written through their place, aligned as addresses of either family.
#[derive(Default)]
#[repr(align(16))]
struct Line([AtomicU32; 4]);

struct CpuBuffer(Box<[Line]>);

impl Sealed for CpuBuffer {}

impl DeviceBuffer for CpuBuffer {
    fn write(&mut self, bytes: &[u8]) -> Result<(), DeviceError> {
        assert!(bytes.len() <= size_of_val(&*self.0), "no more than there is room for");
        let words = self.0.iter_mut().flat_map(|line| &mut line.0).map(AtomicU32::get_mut);
        for (word, bytes) in words.zip(bytes.chunks(4)) {
            let mut whole = word.to_ne_bytes();
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u32::from_ne_bytes(whole);
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8]) -> Result<(), DeviceError> {
        assert!(bytes.len() <= size_of_val(&*self.0), "no more than there is");
        let words = self.0.iter().flat_map(|line| &line.0);
        for (word, bytes) in words.zip(bytes.chunks_mut(4)) {
            let whole = word.load(Ordering::Relaxed).to_ne_bytes();
            bytes.copy_from_slice(&whole[..bytes.len()]);
        }
        Ok(())
    }

    fn place(&self) -> usize {
        self.0.as_ptr().expose_provenance()
    }
}

struct CpuTable(Arc<Image>);

/// Refuses a table that is none of this device and family.
fn own(table: &Arc<dyn DeviceTable>, family: Family) -> Result<(), DeviceError> {
    let is_ours = (&**table as &dyn std::any::Any).is::<CpuTable>();
    match is_ours && table.image().family() == family {
        true => Ok(()),
        false => Err(DeviceError::OtherTable { device: NAME.into() }),
    }
}

impl DeviceTable for CpuTable {
    fn image(&self) -> &Arc<Image> {
        &self.0
    }
}

/// A batch, with the slot's buffers.
struct Job {
    table: Arc<dyn DeviceTable>,
    count: usize,
    /// Words of 128 bits, so that keys of both families are aligned.
    keys: Vec<u128>,
    hops: Vec<u32>,
    time: Duration,
}

type Done = (Job, Result<(), DeviceError>);

struct CpuSlot {
    shared: Arc<Shared>,
    family: Family,
    capacity: usize,
    /// Keys and hops; `None` while the thread has them.
    buffers: Option<(Vec<u128>, Vec<u32>)>,
    /// The addresses of the last batch.
    count: usize,
    time: Option<Duration>,
    /// `None` once the slot is dropped, which ends the thread.
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    /// A batch that `poll` has found done.
    finished: Option<Done>,
    thread: Option<JoinHandle<()>>,
}

impl Slot for CpuSlot {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn keys_mut(&mut self) -> &mut [u8] {
        let (keys, _) = self.buffers.as_mut().expect("the slot is not in flight");
        let bytes = self.capacity * if self.family == Family::V4 { 4 } else { 16 };
        &mut bytemuck::cast_slice_mut(keys)[..bytes]
    }

    fn submit(&mut self, table: &Arc<dyn DeviceTable>, count: usize) -> Result<(), DeviceError> {
        assert!(count <= self.capacity, "at most as many addresses as the slot has room for");
        assert!(self.buffers.is_some(), "the slot is not in flight");
        own(table, self.family)?;
        self.shared.check("submit a batch")?;
        let (keys, hops) = self.buffers.take().expect("checked above");
        let job = Job { table: table.clone(), count, keys, hops, time: Duration::ZERO };
        let jobs = self.jobs.as_ref().expect("there until the slot is dropped");
        jobs.send(job).expect("the thread works until the slot is dropped");
        Ok(())
    }

    fn poll(&mut self) -> bool {
        if self.buffers.is_none() && self.finished.is_none() {
            self.finished = match self.done.try_recv() {
                Ok(done) => Some(done),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => panic!("the walk panicked: a bug"),
            };
        }
        self.buffers.is_some() || self.finished.is_some()
    }

    fn wait(&mut self) -> Result<(), DeviceError> {
        if self.buffers.is_some() {
            return Ok(());
        }
        let done = self.finished.take().or_else(|| self.done.recv().ok());
        let (job, result) = done.expect("the walk does not panic");
        self.buffers = Some((job.keys, job.hops));
        (self.count, self.time) = (job.count, Some(job.time));
        result
    }

    fn hops(&self) -> &[u32] {
        let (_, hops) = self.buffers.as_ref().expect("the slot is not in flight");
        &hops[..self.count]
    }

    fn kernel_time(&self) -> Option<Duration> {
        self.time
    }
}

impl Drop for CpuSlot {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by the panic hook.
            let _ = thread.join();
        }
    }
}
