//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod captures;
mod common;
mod generated;
mod hostile;
mod limits;
mod nfcapd;
mod oracle;
mod sflow;
mod templates;
