//! What the router is measured beside: forwarding loops in C over DPDK's own tables (`rte_lpm`, `rte_fib`) and a
//! mempool of DPDK's own: the shortest one, and one that does all that DPDK's example l3fwd does. And the packets of
//! both: net_null devices give empty ones, into which flows are written as they are received.

use std::ffi::{CString, c_void};
use std::io;
use std::net::IpAddr;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use core_affinity::CoreId;
use fibula_core::{Addr, Routes};
use fibula_router::port::dpdk::{explain, started};

use bound::{fib_flow, fib_kind, fib_run, fib_table, fib_traffic};

#[allow(missing_docs, non_camel_case_types, unused_qualifications, dead_code)]
mod bound {
    include!(concat!(env!("OUT_DIR"), "/rival.rs"));
}

/// Bytes of a frame.
pub const FRAME: usize = bound::FIB_FRAME as usize;
/// Next hops: hop `h` leads to neighbour `h`, who is on the link of device `h % 2`.
pub const NEIGHBOURS: usize = bound::FIB_NEIGHBOURS as usize;

/// The number of an open device.
fn number(device: &str) -> io::Result<u16> {
    let name = CString::new(device)?;
    // SAFETY: the environment is started by whoever opened a device; else there is none of that name.
    let number = unsafe { bound::fib_port_by_name(name.as_ptr()) };
    u16::try_from(number).map_err(|_| explain(&format!("dpdk:{device}"), number))
}

/// Frames of one family that differ in destination, port and checksum.
pub struct Flows {
    frame: [u8; FRAME],
    is_v6: bool,
    count: u32,
    /// What differs: 8 bytes a frame (IPv4), or a `fib_flow`. It lives as long as the process, as devices may.
    each: *const c_void,
}

impl Flows {
    /// Of each frame 8 (IPv4) or 20 bytes are kept for as long as the process runs.
    ///
    /// # Errors
    /// If there is no frame, or one is not of [`FRAME`] bytes.
    pub fn new(frames: impl IntoIterator<Item = Vec<u8>>) -> io::Result<Self> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        let (mut first, mut v4, mut v6) = (None, Vec::<[u8; 8]>::new(), Vec::new());
        for frame in frames {
            let frame: [u8; FRAME] =
                frame.try_into().map_err(|_| bad("a frame that does not have 64 bytes"))?;
            let two = |at: usize| u16::from_ne_bytes([frame[at], frame[at + 1]]);
            if first.get_or_insert(frame)[12..14] == [0x86, 0xdd] {
                let mut to = [0; 16];
                to.copy_from_slice(&frame[38..54]);
                v6.push(fib_flow { to, port: two(54), checksum: two(60) });
            } else {
                let mut flow = [0; 8];
                flow[..4].copy_from_slice(&frame[30..34]);
                flow[4..6].copy_from_slice(&frame[34..36]);
                flow[6..].copy_from_slice(&frame[24..26]);
                v4.push(flow);
            }
        }
        let frame = first.ok_or_else(|| bad("there are no frames"))?;
        let is_v6 = !v6.is_empty();
        let count = u32::try_from(v4.len().max(v6.len())).map_err(|_| bad("too many frames"))?;
        let each = match is_v6 {
            true => v6.leak().as_ptr().cast(),
            false => v4.leak().as_ptr().cast(),
        };
        Ok(Self { frame, is_v6, count, each })
    }

    /// Has the first `queues` queues of an open device receive them, in a circle and for ever, until it is closed. Each
    /// queue begins with another flow.
    ///
    /// # Errors
    /// If there is no such device, or it has fewer queues.
    pub fn come_in_by(&self, device: &str, queues: u16) -> io::Result<()> {
        let Self { frame, is_v6, count: flows, each } = *self;
        let number = number(device)?;
        for queue in 0..queues {
            let next = (u64::from(flows) * u64::from(queue) / u64::from(queues)) as u32;
            let traffic = Box::new(fib_traffic { frame, is_v6: is_v6.into(), flows, each, next });
            // SAFETY: the traffic and its flows live as long as the process; one thread receives by a queue.
            let done = unsafe { bound::fib_traffic_attach(number, queue, Box::leak(traffic)) };
            if done != 0 {
                return Err(explain(&format!("dpdk:{device}: writing packets"), done));
            }
        }
        Ok(())
    }
}

/// Packets that an open device has sent.
///
/// # Errors
/// If there is no such device.
pub fn sent(device: &str) -> io::Result<u64> {
    let number = number(device)?;
    // SAFETY: the device is open.
    Ok(unsafe { bound::fib_sent(number) })
}

/// DPDK's schemes of lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `rte_lpm`, `rte_lpm6`.
    Lpm,
    /// `rte_fib` (DIR-24-8, 4-byte next hops) and `rte_fib6` (trie, 4-byte next hops), as l3fwd configures them.
    Fib,
}

/// A table of DPDK's.
pub struct Table(NonNull<fib_table>);

// SAFETY: tables are only read once they are made.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// Compiles routes; hop `h` becomes `h % NEIGHBOURS`. The entries of `rte_lpm` are written as `rte_lpm_add`
    /// writes them: it looks through all rules of a length for each route, which takes too long.
    ///
    /// # Errors
    /// If DPDK has no memory for it, or refuses a route.
    pub fn new<A: Addr>(scheme: Scheme, routes: &Routes<A>) -> io::Result<Self> {
        started()?;
        let kind = match (scheme, A::BITS) {
            (Scheme::Lpm, 32) => fib_kind::FIB_KIND_LPM,
            (Scheme::Fib, 32) => fib_kind::FIB_KIND_FIB,
            (Scheme::Lpm, _) => fib_kind::FIB_KIND_LPM6,
            (Scheme::Fib, _) => fib_kind::FIB_KIND_FIB6,
        };
        let groups = match kind {
            fib_kind::FIB_KIND_FIB6 => steps(routes),
            _ => groups(routes),
        };
        let (count, groups) = (routes.len() as u32 + 16, groups + 256);
        // SAFETY: the environment is started.
        let made = unsafe { bound::fib_table_new(kind, count, groups, 4) };
        let what = || format!("DPDK's {scheme:?} for {count} routes and {groups} groups of 256");
        let table = Self(NonNull::new(made).ok_or_else(|| explain(&what(), -12))?);
        let mut routes: Vec<_> = routes.iter().collect();
        routes.sort_by_key(|route| route.prefix.len());
        for route in routes {
            let Some(hop) = route.hop.index() else { continue };
            let address = octets(route.prefix.addr().to_ip());
            // SAFETY: 16 bytes, of which those of the family are read.
            let done = unsafe {
                let hop = hop % NEIGHBOURS as u32;
                bound::fib_table_add(made, address.as_ptr(), route.prefix.len(), hop)
            };
            if done != 0 {
                return Err(explain(&format!("{}: adding {}", what(), route.prefix), done));
            }
        }
        Ok(table)
    }

    /// The neighbour that packets to an address go to.
    pub fn lookup(&self, address: IpAddr) -> Option<u32> {
        let address = octets(address);
        // SAFETY: 16 bytes, of which those of the table's family are read.
        let hop = unsafe { bound::fib_table_lookup(self.0.as_ptr(), address.as_ptr()) };
        (hop != u32::MAX).then_some(hop)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: made by `fib_table_new`, and nobody has it any more.
        unsafe { bound::fib_table_free(self.0.as_ptr()) }
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match address {
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes = address.octets(),
    }
    bytes
}

/// Groups of 256 that tables of 24 bits and then 8 at a time need: one for each value of the bits up to a step that a
/// longer route has.
fn groups<A: Addr>(routes: &Routes<A>) -> u32 {
    let mut count = 0;
    for step in (24..A::BITS).step_by(8) {
        let mut last = None;
        for route in routes.iter().filter(|route| route.prefix.len() > step) {
            let bits = octets(route.prefix.addr().to_ip());
            let bits = bits[..usize::from(step / 8)].to_vec();
            count += u32::from(last.as_ref() != Some(&bits));
            last = Some(bits);
        }
    }
    count
}

/// Groups that `rte_fib6` sets aside: for each route by itself, one for each step to its length.
fn steps<A: Addr>(routes: &Routes<A>) -> u32 {
    routes.iter().map(|route| u32::from(route.prefix.len().saturating_sub(24).div_ceil(8))).sum()
}

/// A device with a mempool of DPDK's own.
pub struct Device {
    number: u16,
    name: String,
}

impl Device {
    /// Opens the device of these arguments.
    ///
    /// # Errors
    /// As [`fibula_router::port::dpdk::open`].
    pub fn open(devargs: &str) -> io::Result<Self> {
        started()?;
        let text = CString::new(devargs)?;
        // SAFETY: the environment is started, and the text ends with a zero.
        let number = unsafe { bound::fib_rival_open(text.as_ptr()) };
        let number = u16::try_from(number).map_err(|_| explain(devargs, number))?;
        let name = devargs.split(',').next().unwrap_or_default().to_owned();
        Ok(Self { number, name })
    }

    /// Its name, for [`Flows::come_in_by`] and [`sent`].
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// How the loop runs.
pub struct Run<'a> {
    /// The table; without one packets leave by the other device, with new MAC addresses.
    pub table: Option<&'a Table>,
    /// Whether the loop does all that DPDK's example l3fwd does, in its bursts of 32. Otherwise it is the shortest one.
    pub as_example: bool,
    /// The neighbours' MAC addresses, and the router's.
    pub neighbours: [[u8; 6]; NEIGHBOURS],
    /// The router's.
    pub router: [u8; 6],
    /// Packets in a burst.
    pub burst: u16,
    /// Where it runs.
    pub core: Option<usize>,
}

/// Forwards between two devices on a thread of its own until `meanwhile` is done, and says how many packets were
/// dropped.
///
/// # Errors
/// If there is no thread for it.
pub fn forward(
    devices: &mut [Device; 2],
    run: &Run<'_>,
    meanwhile: impl FnOnce(),
) -> io::Result<u64> {
    let stop = AtomicU8::new(0);
    let ports = [devices[0].number, devices[1].number];
    let work = || {
        if let Some(id) = run.core {
            core_affinity::set_for_current(CoreId { id });
        }
        let mut job = fib_run {
            ports,
            burst: run.burst,
            table: run.table.map_or(ptr::null_mut(), |table| table.0.as_ptr()),
            as_example: run.as_example.into(),
            neighbours: run.neighbours,
            router: run.router,
            stop: stop.as_ptr(),
            dropped: 0,
        };
        // SAFETY: the devices are open, and nobody else has them meanwhile; the table and the flag outlive the call.
        let done = unsafe { bound::fib_forward(&mut job) };
        (done, job.dropped)
    };
    thread::scope(|scope| {
        let running = scope.spawn(work);
        meanwhile();
        stop.store(1, Ordering::Relaxed);
        match running.join() {
            Ok((0, dropped)) => Ok(dropped),
            Ok((error, _)) => Err(explain("DPDK has no place for the loop's thread", error)),
            Err(_) => Err(io::Error::other("the loop panicked")),
        }
    })
}
