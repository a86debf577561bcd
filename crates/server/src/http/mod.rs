//! HTTP, without knowledge of routing tables: checks of requests by the endpoints' descriptions, answers, and bodies.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod endpoint;
pub(crate) mod params;
pub(crate) mod parts;
pub(crate) mod patient;
pub(crate) mod sending;
pub(crate) mod time;
