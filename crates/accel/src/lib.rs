//! Longest-prefix match on an accelerator: the engines' tables in the memory of a GPU, and the CPU beside it.
//!
//! - An [`Image`] is the tables of an engine in one piece of memory. Its walk ([`Walked`]) is the readable statement of
//!   what the kernels compute.
//! - A [`Device`] holds images and looks batches up in [`Slot`]s, whose copies and kernels overlap. [`open`] finds one
//!   by name: `opencl:0`, `cuda:0`, or `cpu` for tests ([`CpuDevice`], with injected delays and failures).
//! - A [`Pipeline`] divides a batch over several slots, alone or together with threads of the CPU
//!   ([`Pipeline::look_up_together`]). What the device fails to look up goes to the engine.
//! - Addresses that lie on the device already are looked up there without a copy: in the caller's memory and stream
//!   ([`ResidentBatch`]), or in memory of the device's own ([`ResidentKeys`]).
//!
//! Nothing of a driver is needed to compile the crate or to start a program: its library is loaded when a device is
//! opened, and an absent one is an error that says what to install.
//!
//! ```
//! use fibula_accel::{Image, open};
//! use fibula_core::{Family, Hop, Routes};
//! use fibula_engines::{Isa, Registry};
//!
//! let routes: Routes<u32> = [("10.0.0.0/8".parse()?, Hop::new(1))].into_iter().collect();
//! let entry = Registry::product().find::<u32>("runmap").unwrap().clone();
//! let engine = entry.build(&routes, Isa::best()).unwrap();
//!
//! let device = open("cpu")?;
//! let table = device.upload(Image::of(&*engine)?.into())?;
//! let mut slot = device.slot(Family::V4, 1024)?;
//! slot.keys_mut()[..4].copy_from_slice(&0x0a00_0001u32.to_ne_bytes());
//! slot.submit(&table, 1)?;
//! slot.wait()?;
//! assert_eq!(slot.hops(), [1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Schemes
//!
//! | engine | family | what a lookup reads |
//! |---|---|---|
//! | `runmap` | IPv4 | a word of 1 MiB, then a record, most often in one line |
//! | `dir24-8` | IPv4 | an entry of 32 MB, for routes longer than /24 one more |
//! | `sail-l` | IPv4 | an entry of 128 KB, then at most two more |
//! | `planb` | IPv6 | a node of 64 bytes a level, by one thread or by eight ([`Image::by_lanes`]), then a code |
//! | `wideleaf` | IPv6 | a word, at most three more, then a record |
//! | `bloomfwd` | both | a word of a filter for each length, and lines of keys |
//!
//! # Invariants
//!
//! - A kernel, the walk of its image and the engine give the same answers.
//! - A table on a device never changes: a batch sees one generation. It is freed after its last use.
//! - The crate's unsafe code is in one folder for each driver and in one file for the caller's memory; an image is only
//!   made of an engine's tables, which were built or checked, so a kernel reads nothing outside of it.
#![deny(unsafe_code)]

mod cpu;
mod cuda;
mod device;
mod error;
mod image;
mod launch;
mod opencl;
mod pipeline;
mod resident;
mod schemes;
mod together;

pub use cpu::{CpuDevice, Faults};
pub use device::{Device, DeviceKey, DeviceTable, Listing, Slot, list, open};
pub use error::DeviceError;
pub use image::{Image, Walked};
pub use pipeline::{BatchSummary, Offloaded, Pipeline};
pub use resident::{DeviceBuffer, InFlight, KeyOrder, ResidentBatch, ResidentKeys};
pub use together::Division;

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
