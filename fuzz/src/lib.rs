//! What the fuzz targets share.
//!
//! `cargo +nightly fuzz run TARGET` fuzzes one of them; `cargo +nightly fuzz list` names them. The seeds
//! are `corpus/TARGET/seed-*`.

pub mod forge;
mod witness;

pub use witness::{Pieces, Witness, decode};
