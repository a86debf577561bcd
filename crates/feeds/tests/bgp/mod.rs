//! BGP sessions against a speaker whose bytes are written down by hand, by RFC 4271 and those beside it.

mod errors;
mod handshake;
mod random;
mod refresh;
mod restart;
pub mod speaker;
mod timers;
mod updates;
