//! The forwarder against a plain model of a router, packet for packet.

mod frames;
mod generated;
mod model;
mod world;
