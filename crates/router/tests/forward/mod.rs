//! The forwarder against a plain model of a router, packet for packet.

mod captures;
mod frames;
mod generated;
mod model;
mod policy;
mod rules;
mod world;
