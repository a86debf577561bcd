//! The forwarder against a plain model of a router, packet for packet.

mod captures;
pub mod frames;
mod generated;
pub mod model;
mod policy;
mod rules;
pub mod world;
