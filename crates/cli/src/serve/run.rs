//! Starts everything, waits for signals, stops everything.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fibula_feeds::net::{Hub, Report};
use fibula_feeds::{Board, Checkpoints, LiveFeed, SystemClock};
use fibula_fib::FibOptions;
use fibula_rib::{Event, Limits, Live, LiveOptions, Pacing, Preference, Rib};
use fibula_server::{Server, ServerOptions, TlsFiles};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{error, info, warn};

use super::config::Config;
use super::{Args, sources};
use crate::failure::{Failure, Outcome};
