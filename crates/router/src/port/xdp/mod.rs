//! The fast path of an AF_XDP port: programs in the kernel that look packets up in the router's own tables, rewrite
//! them and redirect them to the egress interface. Packets that are not ordinary are passed on to the XDP socket, or to
//! the kernel.
//!
//! ```text
//!   interface ──► program ──► plain? ──► group of the destination ──► way out ──► interface of another port
//!                    │ no                      ▲                         ▲
//!                    │                  arenas of a family        arena of ways out    ◄── FastPath::publish
//!                    └──► XDP socket (`afxdp`), kernel
//! ```
//!
//! The programs are C (`bpf/`), compiled by clang when the router is built. The tables are those of the engines, byte
//! by byte, in arrays of the kernel (arenas), followed by the groups of the hops. There are two arenas for each family
//! and two for egress paths. One is current, the other is written; then one word is changed to make it current. A
//! packet reads that word once, and the arenas that it names are not written again before no program uses them. So a
//! packet is forwarded by one state of the router, even if the state changes meanwhile.
//!
//! The kernel has programs for two engines: `runmap` and `wideleaf`, the defaults of `auto`. Packets
//! of a family with another engine are passed on.

mod arena;
mod counts;
mod exits;
mod features;
mod map;
mod object;
mod publisher;
mod tables;
mod trial;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::arena::{Arena, Layout, Parts};
use self::features::Features;
use self::map::{MMAPABLE, Map, Mapped, RDONLY_PROG, Spec};
use self::object::Programs;
use crate::View;

pub use self::counts::{FastCounts, Sent, Why};
pub use self::publisher::{Publisher, Stamped};
pub use self::trial::{Trial, Tried};

/// Offsets in `struct shared` of `bpf/tables.h`.
const STATE: usize = 0;
const OWN: usize = 8;
const LAYOUTS: usize = OWN + 64 * 8;

/// The tables, by the number of their pair of arenas.
const V4: usize = 0;
const V6: usize = 1;
const EGRESS: usize = 2;

/// Numbers that show whether a [`View`] has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Of the IPv4 table with its groups.
    pub v4: u64,
    /// Of the IPv6 table with its groups.
    pub v6: u64,
    /// Of the ways out.
    pub egress: u64,
}

/// The state that the programs of all ports share.
pub struct FastPath {
    maps: Vec<(&'static str, Map)>,
    ports: usize,
    seed: u64,
    processors: usize,
    features: Option<Features>,
    /// Of `struct shared`, as far as single words change.
    shared: Mutex<Mapped>,
    tables: Mutex<Tables>,
}

/// The contents of the arenas.
#[derive(Default)]
struct Tables {
    arenas: [Option<Arena>; 6],
    state: u64,
    stamp: Option<Stamp>,
    /// Ports that were set, and their interfaces.
    interfaces: Vec<(u16, u32)>,
    /// Ports that programs send to, by number; and those that the ways out were written for.
    is_fast: Vec<bool>,
    is_written: Vec<bool>,
    written: [u64; 3],
}

/// The constants of a port's program.
pub(super) struct PortProgram {
    pub port: u16,
    pub mac: [u8; 6],
    /// Whether senders leave checksums to the device.
    pub is_partial: bool,
}

/// Whether the fast path was built, which takes clang.
///
/// # Errors
/// The advice if it was not.
pub fn check_built() -> io::Result<()> {
    if object::is_built() {
        return Ok(());
    }
    let what = "this program was built without the fast path: install clang and build it again, or use afxdp ports";
    Err(io::Error::new(io::ErrorKind::Unsupported, what))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FastPath {
    /// One for a router with so many ports, whose flows are hashed with this seed
    /// ([`ForwardOptions::hash_seed`](crate::ForwardOptions::hash_seed)).
    ///
    /// # Errors
    /// If it was not built, or the system refuses (CAP_BPF).
    pub fn new(ports: usize, seed: u64) -> io::Result<Self> {
        check_built()?;
        let programs = Programs::read()?;
        let ports = ports.max(1);
        let count =
            |entries: usize| u32::try_from(entries).map_err(|_| io::Error::other("too many ports"));
        let example = Arena::new(1)?;
        let mut maps = Vec::new();
        let mut make = |name, entries: usize, flags, inner| {
            let mut spec = programs.spec(name, count(entries)?)?;
            spec.flags |= flags;
            maps.push((name, Map::new(spec, inner)?));
            io::Result::Ok(())
        };
        make(".bss", 1, MMAPABLE, None)?;
        make("arenas", 6, 0, Some(&example.map))?;
        make("sent", ports * ports, 0, None)?;
        make("passed", ports * Why::ALL.len(), 0, None)?;
        make("ports", ports, 0, None)?;
        let shared = maps[0].1.mapped()?;
        let is_fast = vec![false; ports];
        Ok(Self {
            maps,
            ports,
            seed,
            processors: counts::processors()?,
            features: Features::open(),
            shared: Mutex::new(shared),
            tables: Mutex::new(Tables { is_fast, ..Tables::default() }),
        })
    }

    fn map(&self, wanted: &str) -> io::Result<&Map> {
        let found = self.maps.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, map)| map).ok_or_else(|| io::Error::other(format!("no map {wanted}")))
    }

    /// Loads the program of a port, with the sockets and local addresses of that port.
    pub(super) fn load(
        &self,
        program: &str,
        config: &PortProgram,
        own: &[(&'static str, &OwnedFd)],
    ) -> io::Result<OwnedFd> {
        let programs = Programs::read()?;
        let mut spec = programs.spec(".rodata", 1)?;
        spec.flags |= RDONLY_PROG;
        let constants = Map::new(spec, None)?;
        constants.set(0, &self.constants(config, spec))?;
        constants.freeze()?;
        let mut maps: Vec<_> =
            self.maps.iter().map(|(name, map)| (*name, map.fd.as_raw_fd())).collect();
        maps.push((".rodata", constants.fd.as_raw_fd()));
        maps.extend(own.iter().map(|(name, fd)| (*name, fd.as_raw_fd())));
        programs.load(program, &maps)
    }

    /// `struct config` of `bpf/forward.c`.
    fn constants(&self, config: &PortProgram, spec: Spec) -> Vec<u8> {
        let [a, b, c, d, e, f] = config.mac;
        let words = [
            u32::from_ne_bytes([a, b, c, d]),
            u16::from_ne_bytes([e, f]).into(),
            config.port.into(),
            self.ports as u32,
            config.is_partial.into(),
        ];
        let mut bytes = self.seed.to_ne_bytes().to_vec();
        bytes.extend(words.into_iter().flat_map(u32::to_ne_bytes));
        bytes.resize(spec.value as usize, 0);
        bytes
    }

    /// Packets may leave by this interface, which is the port of that number. Takes effect with the next
    /// [`FastPath::publish`].
    ///
    /// # Errors
    /// If there is no such port, or the system refuses.
    pub fn set_port(&self, port: u16, interface: u32) -> io::Result<()> {
        self.map("ports")?.set(port.into(), &interface.to_ne_bytes())?;
        let mut tables = lock(&self.tables);
        let known = tables.interfaces.len();
        tables.interfaces.retain(|(known, _)| *known != port);
        let is_new = tables.interfaces.len() == known;
        tables.interfaces.push((port, interface));
        drop(tables);
        if is_new {
            self.set_fast(port, true);
        }
        Ok(())
    }

    /// Queries the kernel for the ports whose interfaces take packets of programs. Returns the changes: the port's
    /// number, and whether it takes them now.
    pub fn ask_ports(&self) -> Vec<(u16, bool)> {
        let Some(features) = &self.features else { return Vec::new() };
        let mut tables = lock(&self.tables);
        let mut changed = Vec::new();
        for (port, interface) in tables.interfaces.clone() {
            // An interface that is gone changes nothing.
            let Some(is_fast) = features.sends(interface) else { continue };
            if let Some(place) = tables.is_fast.get_mut(usize::from(port))
                && std::mem::replace(place, is_fast) != is_fast
            {
                changed.push((port, is_fast));
            }
        }
        changed
    }

    /// Whether programs send by a port that was set, or leave its packets to the router.
    pub fn set_fast(&self, port: u16, is_fast: bool) {
        if let Some(place) = lock(&self.tables).is_fast.get_mut(usize::from(port)) {
            *place = is_fast;
        }
    }

    /// Packets to these addresses, all that the machine has, are passed on; replaces the addresses set before.
    pub fn set_own(&self, addresses: &[IpAddr]) {
        let mut words = [0_u64; 64];
        for address in addresses {
            let folded = match address {
                IpAddr::V4(v4) => v4.to_bits().into(),
                IpAddr::V6(v6) => {
                    let bits = v6.to_bits();
                    ((bits >> 64) as u64).rotate_left(29) ^ bits as u64
                }
            };
            // `may_be_own` of `bpf/forward.c`.
            let hash = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            words[(hash >> 58) as usize] |= 1 << (hash >> 52 & 63);
        }
        let shared = lock(&self.shared);
        for (at, word) in words.into_iter().enumerate() {
            shared.store(OWN + at * 8, word);
        }
    }

    /// Writes the changed tables of a view into the kernel, then switches to them at once. Returns whether there were
    /// any, once the previous tables are no longer used.
    ///
    /// # Errors
    /// If the system refuses. The previous tables then stay in use.
    pub fn publish(&self, stamp: Stamp, view: &View<'_>) -> io::Result<bool> {
        let mut tables = lock(&self.tables);
        let before = tables.stamp;
        let is_new = |of: fn(&Stamp) -> u64| before.as_ref().map(of) != Some(of(&stamp));
        let mut state = tables.state;
        if is_new(|stamp| stamp.v4) {
            self.write(&mut tables, &mut state, V4, tables::parts(&view.v4))?;
        }
        if is_new(|stamp| stamp.v6) {
            self.write(&mut tables, &mut state, V6, tables::parts(&view.v6))?;
        }
        if is_new(|stamp| stamp.egress) || tables.is_fast != tables.is_written {
            let parts = exits::parts(view.egress.description(), &tables.is_fast, self.seed);
            self.write(&mut tables, &mut state, EGRESS, Some(parts))?;
            tables.is_written = tables.is_fast.clone();
        }
        tables.stamp = Some(stamp);
        if state == tables.state {
            return Ok(false);
        }
        lock(&self.shared).store(STATE, state);
        let changed = tables.state ^ state;
        tables.state = state;
        self.wait(&tables, changed)?;
        Ok(true)
    }

    /// Writes a table into the unused arena of its pair, and marks it as the current one in `state`.
    fn write(
        &self,
        tables: &mut Tables,
        state: &mut u64,
        pair: usize,
        parts: Option<Parts<'_>>,
    ) -> io::Result<()> {
        let shift = 8 * pair;
        let current = (*state >> shift & 15) as usize;
        *state &= !(15 << shift);
        let Some(parts) = parts else { return Ok(()) };
        let idle = if current == 2 * pair + 1 { 2 * pair + 1 } else { 2 * pair };
        let arena = &mut tables.arenas[idle];
        if arena.as_ref().is_none_or(|arena| arena.lines() < parts.lines()) {
            // Room for a table that grows.
            let new = Arena::new(parts.lines() + parts.lines() / 4)?;
            self.map("arenas")?.set(idle as u32, &new.map.fd.as_raw_fd().to_ne_bytes())?;
            *arena = Some(new);
        }
        if let Some(arena) = arena {
            arena.write(&parts);
        }
        let shared = lock(&self.shared);
        for (at, words) in parts.layout.chunks_exact(2).enumerate() {
            let word = u64::from(words[0]) | u64::from(words[1]) << 32;
            shared.store(LAYOUTS + idle * size_of::<Layout>() + at * 8, word);
        }
        *state |= (idle as u64 + 1) << shift;
        tables.written[pair] += 1;
        Ok(())
    }

    /// Waits until no program uses the previous arenas of these pairs. The kernel waits for this when an entry of a map
    /// of maps is written, even with the same value.
    fn wait(&self, tables: &Tables, changed: u64) -> io::Result<()> {
        let changed = (0..3).find(|pair| changed >> (8 * pair) & 15 != 0);
        let arena = changed.and_then(|pair| {
            let number = 2 * pair..2 * pair + 2;
            number.into_iter().find_map(|number| Some((number, tables.arenas[number].as_ref()?)))
        });
        match arena {
            Some((number, arena)) => {
                let fd = arena.map.fd.as_raw_fd().to_ne_bytes();
                self.map("arenas")?.set(number as u32, &fd)
            }
            None => Ok(()),
        }
    }

    /// Which families are looked up in the kernel: not those whose engine has no program there, nor any before the
    /// first [`FastPath::publish`].
    pub fn families(&self) -> (bool, bool) {
        let state = lock(&self.tables).state;
        (state & 15 != 0, state >> 8 & 15 != 0)
    }

    /// The counts of the programs so far.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn counts(&self) -> io::Result<FastCounts> {
        let (sent, passed) = (self.map("sent")?, self.map("passed")?);
        let mut counts = FastCounts { ports: self.ports, ..FastCounts::default() };
        for pair in 0..self.ports * self.ports {
            let [a, b, c, d] = sent.sums(pair as u32, self.processors)?;
            counts.sent.push(Sent { v4: (a, b), v6: (c, d) });
        }
        for at in 0..self.ports * Why::ALL.len() {
            let [count] = passed.sums(at as u32, self.processors)?;
            counts.passed.push(count);
        }
        counts.written = lock(&self.tables).written;
        Ok(counts)
    }
}
