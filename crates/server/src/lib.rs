//! HTTP answers about a live table: single and bulk lookups, routes with the reasons of their choice, a stream of
//! changes, metrics, and a looking glass.
//! People and programs query it over the network for the routes of a live table, the peers that announced them, and
//! changes.
//!
//! ```text
//!   socket ─► connection ─► dispatch ─► endpoint of the list ─► handler ─► answer
//!             HTTP/1.1, 2   token       parameters checked      │
//!             TLS, limits   host                                ├─ one prefix: the RIB, locked for it
//!                                                               ├─ a whole table: a copy, made on request
//!                                                               └─ changes: the history, by each reader's place
//! ```
//!
//! It owns no feeds: its caller passes a [`Live`](fibula_rib::Live) table and the [`Board`](fibula_feeds::Board)
//! of its sources. [`api`] has the types of all answers; [`Server::openapi`] describes them.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::sync::Arc;
//!
//! use fibula_feeds::Board;
//! use fibula_fib::FibOptions;
//! use fibula_rib::{Live, LiveOptions, Rib};
//! use fibula_server::{Server, ServerOptions};
//!
//! let live = Live::start(Rib::default(), &[0], FibOptions::default(), LiveOptions::default(), |_| {})?;
//! let mut options = ServerOptions::default();
//! options.listen = vec!["127.0.0.1:0".parse()?];
//! let server = Server::start(Arc::new(live), Arc::new(Board::default()), options)?;
//!
//! let mut stream = std::net::TcpStream::connect(server.addresses()[0])?;
//! stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.0 200 OK") && answer.ends_with(r#"{"status":"ok"}"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod access;
pub mod api;
mod as_names;
pub mod client;
mod connection;
mod convert;
mod copies;
mod counts;
mod dispatch;
mod endpoints;
mod filter;
mod frozen;
mod handlers;
mod http;
mod logs;
mod metrics_text;
mod openapi;
mod options;
mod server;
mod site;
mod table;

pub use as_names::{AsNames, BadAsNames};
pub use convert::peer_name;
pub use copies::{TableCopies, TableCopy};
pub use filter::{CommunityPattern, PathFilter, PathPattern};
pub use http::time::rfc3339;
pub use metrics_text::{MetricsText, MoreMetrics};
pub use options::{
    ActiveAlarms, FlowTops, HistoryOnDisk, Limits, Obstacle, ServerOptions, TlsFiles,
};
pub use server::{Server, ServerError};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
