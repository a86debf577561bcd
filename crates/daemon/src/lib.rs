//! Services that run until they are stopped: a server that follows routing daemons ([`Serve`]) and a router
//! ([`Route`]), as values that a program starts, notifies, waits for and stops.
//!
//! ```text
//!   configuration (TOML) ─► sources ─► feeds' thread ─► live table ─┬─► server: answers over HTTP
//!                                          │   ▲                    └─► router: packets
//!                                          ▼   │ after a restart
//!                                       checkpoint
//! ```
//!
//! The commands `fibula serve` and `fibula route` are arguments and printing around these values. Events go to
//! [`tracing`], one line each. The crate handles no signals: a program maps them to [`Notice`]s.
//!
//! ```
//! use fibula_daemon::config::ServeConfig;
//! use fibula_daemon::{Notice, Serve, ServeOptions};
//!
//! let text = "http = { listen = '127.0.0.1:0' }\n[[fpm]]\nlisten = '127.0.0.1:0'";
//! let serve = Serve::start(ServeOptions::new(ServeConfig::parse(text, "here")?))?;
//! println!("http://{}/", serve.addresses()[0]);
//! let handle = serve.handle(); // for another thread, such as one that waits for signals
//! handle.notify(Notice::Stop);
//! serve.wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(unix)]
mod alarms;
pub mod config;
mod error;
#[cfg(unix)]
mod feeds;
#[cfg(target_os = "linux")]
mod flows;
#[cfg(unix)]
mod history;
#[cfg(unix)]
mod live;
#[cfg(target_os = "linux")]
mod named_table;
#[cfg(unix)]
mod notice;
#[cfg(target_os = "linux")]
pub mod route;
pub mod secret;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod sources;
pub mod systemd;
#[cfg(unix)]
mod validator;

pub use error::DaemonError;
#[cfg(target_os = "linux")]
pub use flows::flow_metrics;
#[cfg(unix)]
pub use notice::{DaemonHandle, Notice};
#[cfg(target_os = "linux")]
pub use route::{Route, RouteOptions};
#[cfg(unix)]
pub use serve::{Reloaded, Serve, ServeEnd, ServeOptions};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
