//! The compiled programs: which maps they name, and their instructions once these are made.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{OwnedFd, RawFd};

use aya_obj::Object;
use aya_obj::generated::bpf_insn;

use super::map::Spec;
use crate::port::bpf;

/// The file that the build script makes, aligned for its reader; empty if there was no clang.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/forward.o")));

/// Whether this program was built with the fast path.
pub(super) fn is_built() -> bool {
    !OBJECT.0.is_empty()
}

/// The programs, before they are loaded.
pub(super) struct Programs(Object);

fn damaged(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("the compiled programs cannot be used: {error}"))
}

impl Programs {
    pub fn read() -> io::Result<Self> {
        Object::parse(&OBJECT.0).map(Self).map_err(damaged)
    }

    /// The definition of a map, with so many entries if the programs leave that open.
    pub fn spec(&self, map: &str, entries: u32) -> io::Result<Spec> {
        let found = self.0.maps.get(map).ok_or_else(|| damaged(format_args!("no map {map}")))?;
        let entries = if found.max_entries() == 0 { entries } else { found.max_entries() };
        Ok(Spec {
            kind: found.map_type(),
            key: found.key_size(),
            value: found.value_size(),
            entries,
            flags: found.map_flags(),
        })
    }

    /// Loads a program that uses these maps.
    pub fn load(mut self, program: &str, maps: &[(&str, RawFd)]) -> io::Result<OwnedFd> {
        let all = std::mem::take(&mut self.0.maps);
        let fds: HashMap<&str, RawFd> = maps.iter().copied().collect();
        let mut named = Vec::new();
        for (name, map) in &all {
            let fd = fds.get(&**name).ok_or_else(|| damaged(format_args!("nobody made {name}")))?;
            named.push((&**name, *fd, map));
        }
        let text = HashSet::new();
        self.0.relocate_maps(named.into_iter(), &text).map_err(damaged)?;
        let key = self.0.programs.get(program).map(|program| program.function_key());
        let function = key.and_then(|key| self.0.functions.get(&key));
        let function = function.ok_or_else(|| damaged(format_args!("no program {program}")))?;
        let instructions: Vec<u64> = function.instructions.iter().map(word).collect();
        bpf::load(&format!("fibula_{program}"), &instructions)
    }
}

/// An instruction as the kernel takes it.
fn word(instruction: &bpf_insn) -> u64 {
    let [a, b] = instruction.off.to_ne_bytes();
    let [c, d, e, f] = instruction.imm.to_ne_bytes();
    let registers = instruction.src_reg() << 4 | instruction.dst_reg();
    u64::from_ne_bytes([instruction.code, registers, a, b, c, d, e, f])
}
