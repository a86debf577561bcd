//! What the fuzz targets share.
//!
//! `cargo +nightly fuzz run TARGET` fuzzes one of them; `cargo +nightly fuzz list` names them. The seeds
//! are `corpus/TARGET/seed-*`.

pub mod forge;
mod grow;
mod witness;
mod world;

pub use grow::{Grown, grow};
pub use witness::{Pieces, Witness, decode};
pub use world::{WORLD, World};

/// Panics that become errors are no finds; libFuzzer takes all others for one.
pub fn leave_out_caught_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !fibula_annotate::panic_is_caught() {
            default(panic);
        }
    }));
}
