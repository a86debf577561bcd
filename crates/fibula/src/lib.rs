//! Facade, see below.
#![forbid(unsafe_code)]
pub use fibula_core::*;
/// The engines.
pub use fibula_engines as engines;
/// Tables with attributes, and the snapshot file.
pub use fibula_rib as rib;
