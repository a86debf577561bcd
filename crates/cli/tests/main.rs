//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

mod aspa;
mod bad_input;
mod checks;
mod classify;
mod classify_columns;
mod classify_inputs;
mod columnar_tables;
mod columns;
mod common;
#[cfg(unix)]
mod crash;
mod data;
mod dated;
mod device;
mod diff;
#[cfg(target_os = "linux")]
mod exporters;
#[cfg(unix)]
mod fetch;
#[cfg(target_os = "linux")]
mod flow;
#[cfg(target_os = "linux")]
mod flow_vrfs;
#[cfg(target_os = "linux")]
mod goflow2;
mod lookup;
mod memory;
mod merged;
mod misread;
#[cfg(target_os = "linux")]
mod nfcapd;
mod page_options;
#[cfg(unix)]
mod pages;
mod paths;
mod plot;
mod query;
mod real_data;
#[cfg(unix)]
mod renamed;
mod replay;
#[cfg(target_os = "linux")]
mod route;
mod rpki;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod stream;
mod tables;
