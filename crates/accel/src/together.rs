use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use fibula_core::Hop;

use crate::device::DeviceKey;
use crate::pipeline::{BatchSummary, Feeder, Offloaded, Pipeline};

/// Addresses that a thread of the CPU takes at a time: enough that taking them costs nothing, and few enough that all
/// threads end at about the same time.
const CPU_PART: usize = 1 << 16;

/// How a batch is divided between a device and the CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Division {
    /// The device takes parts from the front and the CPU from the back, until they meet. The device takes no part that
    /// would come back after the CPU alone would be done with what is left.
    Meeting,
    /// The device gets this share of the batch, from 0 to 1, which was profiled before, and the CPU the others, as in
    /// Bloomfwd's paper. Either waits for the other.
    Share(f64),
}

/// What is left of a batch, between the parts that the device took and those that the CPU took.
struct Left<'b, A> {
    addrs: &'b [A],
    hops: &'b mut [Hop],
    /// How many of them, at the front, are for the device.
    for_device: usize,
    /// How many of them, at the back, are for the CPU.
    for_cpu: usize,
}

impl<'b, A> Left<'b, A> {
    /// The next part for the device: up to `most` addresses from the front.
    fn front(&mut self, most: usize) -> Option<(&'b [A], &'b mut [Hop])> {
        let len = most.min(self.for_device).min(self.addrs.len());
        let (addrs, left) = self.addrs.split_at(len);
        let (hops, hops_left) = mem::take(&mut self.hops).split_at_mut(len);
        (self.addrs, self.hops) = (left, hops_left);
        self.for_device -= len;
        (len > 0).then_some((addrs, hops))
    }

    /// The next part for a thread of the CPU, from the back.
    fn back(&mut self) -> Option<(&'b [A], &'b mut [Hop])> {
        let len = CPU_PART.min(self.for_cpu).min(self.addrs.len());
        let at = self.addrs.len() - len;
        let (left, addrs) = self.addrs.split_at(at);
        let (hops_left, hops) = mem::take(&mut self.hops).split_at_mut(at);
        (self.addrs, self.hops) = (left, hops_left);
        self.for_cpu -= len;
        (len > 0).then_some((addrs, hops))
    }
}

impl<A: DeviceKey> Pipeline<A> {
    /// Looks up `addrs[i]` into `hops[i]`, with the device and `threads` threads of the CPU. The calling thread serves
    /// the device.
    ///
    /// ```
    /// use fibula_accel::{Division, Image, Offloaded, Pipeline, open};
    /// use fibula_core::{Hop, Routes};
    /// use fibula_engines::{Isa, Registry};
    ///
    /// let routes: Routes<u32> = [("128.0.0.0/1".parse()?, Hop::new(1))].into_iter().collect();
    /// let entry = Registry::product().find::<u32>("runmap").unwrap().clone();
    /// let engine = entry.build(&routes, Isa::best()).unwrap();
    /// let device = open("cpu")?;
    /// let table = device.upload(Image::of(&*engine)?.into())?;
    /// let mut pipeline = Pipeline::<u32>::new(device, 2, 1 << 16)?;
    /// let addrs: Vec<u32> = (0..1 << 20).map(|i| i << 12).collect();
    /// let mut hops = vec![Hop::NONE; addrs.len()];
    /// let offloaded = Offloaded { engine: &*engine, table };
    /// let summary = pipeline.look_up_together(&offloaded, 2, Division::Meeting, &addrs, &mut hops);
    /// assert_eq!(summary.on_device + summary.on_cpu, addrs.len());
    /// assert_eq!((hops[0], hops[addrs.len() - 1]), (Hop::NONE, Hop::new(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn look_up_together(
        &mut self,
        table: &Offloaded<'_, A>,
        threads: usize,
        division: Division,
        addrs: &[A],
        hops: &mut [Hop],
    ) -> BatchSummary {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        let all = addrs.len();
        let (for_device, for_cpu) = match division {
            _ if threads == 0 => (all, 0),
            Division::Meeting => (all, all),
            Division::Share(share) => {
                let device = (all as f64 * share.clamp(0.0, 1.0)) as usize;
                (device, all - device)
            }
        };
        let left = Mutex::new(Left { addrs, hops, for_device, for_cpu });
        let start = Instant::now();
        // Addresses that the CPU's threads have looked up.
        let by_cpu = AtomicU64::new(0);
        let mut summary = thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((addrs, hops)) = take(&left, Left::back) {
                        table.engine.lookup_batch(addrs, hops);
                        by_cpu.fetch_add(addrs.len() as u64, Ordering::Relaxed);
                    }
                });
            }
            let is_meeting = division == Division::Meeting && threads > 0;
            self.feed(table, &left, &by_cpu, start, is_meeting)
        });
        summary.on_cpu += by_cpu.into_inner() as usize;
        summary
    }

    /// Gives parts from the front to the device.
    fn feed<'b>(
        &mut self,
        table: &Offloaded<'_, A>,
        left: &Mutex<Left<'b, A>>,
        by_cpu: &AtomicU64,
        start: Instant,
        is_meeting: bool,
    ) -> BatchSummary {
        let capacity = self.capacity();
        let mut rates = Rates::default();
        let mut feeder = Feeder::new(self, table);
        let mut submitted = std::collections::VecDeque::new();
        loop {
            if feeder.in_flight() > 0 && (!feeder.has_room() || feeder.is_first_done()) {
                feeder.finish_first();
                if let Some(since) = submitted.pop_front() {
                    rates.round_trip(Instant::elapsed(&since).as_secs_f64());
                }
                continue;
            }
            // Without a device the CPU's threads do the work; without threads this one does.
            if is_meeting && !feeder.is_alive() {
                break;
            }
            let cpu = by_cpu.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
            let part = take(left, |left| {
                let cpu_needs = left.addrs.len() as f64 / cpu;
                if is_meeting && rates.round_trip > cpu_needs { None } else { left.front(capacity) }
            });
            let Some((addrs, hops)) = part else { break };
            submitted.push_back(Instant::now());
            let before = feeder.in_flight();
            feeder.submit(addrs, hops);
            if feeder.in_flight() == before {
                // It failed at once, and the CPU did it.
                submitted.pop_back();
            }
        }
        feeder.finish()
    }
}

fn take<'b, A, T>(left: &Mutex<Left<'b, A>>, take: impl FnOnce(&mut Left<'b, A>) -> T) -> T {
    take(&mut left.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What was measured so far.
#[derive(Default)]
struct Rates {
    /// Seconds from submitting a part to its hops, as a running average; 0 before the first.
    round_trip: f64,
}

impl Rates {
    fn round_trip(&mut self, seconds: f64) {
        let weight = if self.round_trip == 0.0 { 1.0 } else { 0.25 };
        self.round_trip += weight * (seconds - self.round_trip);
    }
}
