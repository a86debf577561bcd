//! Bindings to the part of DPDK that the router uses, made from `shim/shim.h` when feature `dpdk` is on.
//!
//! Most of DPDK's data path consists of inline functions of C, and its headers need the C compiler's own vector
//! headers. Therefore C code (`shim/shim.c`) does all work for each packet, and only its header, which includes none of
//! DPDK's, is bound. `fibula-router` has the safe code over it (`port::dpdk`). Without the feature the crate is empty
//! and needs nothing.

#[cfg(feature = "dpdk")]
#[allow(missing_docs, non_camel_case_types, unused_qualifications)]
mod bound {
    include!(concat!(env!("OUT_DIR"), "/shim.rs"));
}

#[cfg(feature = "dpdk")]
pub use bound::*;
