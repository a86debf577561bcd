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

/// Reads a columnar input as a table, and all cells of it.
pub fn visit_table(input: fibula_annotate::ColumnInput<'_>) {
    let _ = fibula_annotate::read_table(input, &mut |batch| {
        for row in 0..batch.rows() {
            for column in 0..batch.columns().len() {
                std::hint::black_box(batch.value(column, row));
            }
        }
        true
    });
}
