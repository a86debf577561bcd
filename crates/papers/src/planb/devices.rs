//! Devices of DPDK at both ends of the router, in place of memory.

use std::array;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fibula_core::Addr;
use fibula_papers::out::Failure;
use fibula_router::Pool;
use fibula_router::pipeline::Attached;
use fibula_router::port::dpdk::{self, DpdkOptions};
use peer_dpdk::{self as peer, FRAME, Flows};

use crate::WARM_UP;
use crate::router::{Bench, PORTS};

/// From slot to slot: an odd number of cache lines, as in a mempool of DPDK's own.
pub const STRIDE: u32 = 2048 + 3 * 64;
/// Packets of a device's capture. Each queue of net_pcap keeps all of them in slots of the pool.
const CAPTURE: usize = 1 << 14;

/// The packets that the devices receive.
pub enum Traffic {
    /// net_null: a callback writes each device's flows into its packets.
    Null([Flows; PORTS]),
    /// net_pcap, again and again; the files are removed in the end.
    Capture([PathBuf; PORTS]),
}

impl Traffic {
    /// All flows, written by a callback.
    pub fn null<A: Addr>(bench: &Bench<A>) -> Result<Self, Failure> {
        let flows = |port| Flows::new(bench.frames(port).map(|(frame, _)| frame));
        Ok(Self::Null([flows(0)?, flows(1)?]))
    }

    /// The first flows, in files whose names begin so.
    pub fn capture<A: Addr>(bench: &Bench<A>, path: &Path) -> Result<Self, Failure> {
        let paths = array::from_fn(|port| path.with_extension(format!("{port}.pcap")));
        for (port, path) in paths.iter().enumerate() {
            let mut file = BufWriter::new(File::create(path)?);
            // Microseconds, little-endian; at most 65,535 bytes of a frame; Ethernet.
            for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 0xffff, 1] {
                file.write_all(&word.to_le_bytes())?;
            }
            for (frame, _) in bench.frames(port).take(CAPTURE) {
                for word in [0, 0, frame.len() as u32, frame.len() as u32] {
                    file.write_all(&word.to_le_bytes())?;
                }
                file.write_all(&frame)?;
            }
            file.flush()?;
        }
        Ok(Self::Capture(paths))
    }

    /// How many of the flows there are.
    pub fn flows<A: Addr>(&self, bench: &Bench<A>) -> usize {
        match self {
            Self::Null(_) => bench.flows(),
            Self::Capture(_) => bench.flows().min(PORTS * CAPTURE),
        }
    }

    /// A pool for devices with so many queues.
    pub fn pool(&self, queues: usize) -> Pool {
        let kept = match self {
            Self::Null(_) => 0,
            Self::Capture(_) => PORTS * queues * CAPTURE,
        };
        Pool::with_front((8192 + kept) as u32, STRIDE, dpdk::FRONT)
    }

    /// Opens the device of a port; a pipeline closes it.
    pub fn open<'p>(
        &self,
        at: usize,
        pool: &'p Pool,
        queues: usize,
    ) -> Result<Attached<'p>, Failure> {
        let (name, queues) = (self.names()[at], queues as u16);
        let options = DpdkOptions { queues, ..DpdkOptions::default() };
        let port = match self {
            Self::Null(flows) => {
                let port = dpdk::open(&format!("{name},size={FRAME}"), pool, &options)?;
                flows[at].come_in_by(name, queues)?;
                port
            }
            Self::Capture(paths) => {
                let file = format!(",rx_pcap={}", paths[at].display()).repeat(queues.into());
                dpdk::open(&format!("{name}{file},infinite_rx=1"), pool, &options)?
            }
        };
        Ok(port.into())
    }

    /// Has the flows come in by other open devices with one queue each, too.
    pub fn come_in_by(&self, devices: &[String; PORTS]) -> Result<(), Failure> {
        if let Self::Null(flows) = self {
            for (flows, device) in flows.iter().zip(devices) {
                flows.come_in_by(device, 1)?;
            }
        }
        Ok(())
    }

    /// The names of the devices.
    pub fn names(&self) -> [&'static str; PORTS] {
        match self {
            Self::Null(_) => ["net_null_a", "net_null_b"],
            Self::Capture(_) => ["net_pcap_a", "net_pcap_b"],
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        if let Self::Capture(paths) = self {
            for path in paths {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// Million packets a second that leave two devices.
pub fn time(devices: [&str; PORTS], time: Duration) -> Result<f64, Failure> {
    let count =
        || -> Result<u64, Failure> { Ok(peer::sent(devices[0])? + peer::sent(devices[1])?) };
    thread::sleep(time.mul_f64(WARM_UP));
    let (before, started) = (count()?, Instant::now());
    thread::sleep(time);
    let (after, took) = (count()?, started.elapsed());
    Ok((after - before) as f64 / took.as_secs_f64() / 1e6)
}
