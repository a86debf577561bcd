//! The fast path of XDP ports: the answers of the programs in the kernel, and their output frames.

mod frames;
mod generations;
mod lookup;
mod publisher;

use std::io;

use fibula_core::{Addr, Routes};

use fibula_router::port::xdp::{FastPath, Stamp, check_built};
use fibula_simd::Isa;

/// A fast path for so many ports, if this machine and this user can have one.
fn fast_path(ports: usize, seed: u64) -> Option<FastPath> {
    let made = check_built().and_then(|()| FastPath::new(ports, seed));
    match made {
        Ok(fast) => Some(fast),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            println!("SKIPPED: this user may not load programs into the kernel");
            None
        }
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The engine that has a program in the kernel.
fn engine<A: Addr>(routes: &Routes<A>) -> fibula_engines::BoxedEngine<A> {
    let name = if A::BITS == 32 { "runmap" } else { "wideleaf" };
    fibula_engines::Registry::product()
        .find::<A>(name)
        .unwrap()
        .build(routes, Isa::detect())
        .unwrap()
}

/// A stamp that differs in all its numbers from those with other numbers.
fn stamp(number: u64) -> Stamp {
    Stamp { v4: number, v6: number, egress: number }
}
