//! The handlers of requests, one file for each kind.

pub(crate) mod alarms;
pub(crate) mod bulk;
pub(crate) mod changes;
pub(crate) mod filter;
pub(crate) mod flows;
pub(crate) mod health;
pub(crate) mod lookup;
pub(crate) mod metrics;
pub(crate) mod names;
pub(crate) mod page;
pub(crate) mod past;
pub(crate) mod peers;
pub(crate) mod routes;
pub(crate) mod rpki;
pub(crate) mod search;
pub(crate) mod tables;
