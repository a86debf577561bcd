//! HTTP without routing tables: requests checked against what an endpoint documents, answers, bodies.

pub(crate) mod answer;
pub(crate) mod asked;
pub(crate) mod body;
pub(crate) mod endpoint;
pub(crate) mod patient;
pub(crate) mod time;
