//! The fast path of xdp ports: the maps that their programs share, and the thread that updates them.

use std::sync::Arc;

use fibula_router::control::Control;
use fibula_router::port::xdp::{self, FastCounts, FastPath, Publisher};
use tracing::warn;

use super::tables::Tables;
use crate::DaemonError;
use crate::config::{RouteConfig, is_xdp};

/// The maps that the programs of xdp ports share, if there are any.
pub(super) fn open(config: &RouteConfig) -> Result<Option<Arc<FastPath>>, DaemonError> {
    let Some(first) = config.ports.iter().find(|port| is_xdp(port)) else { return Ok(None) };
    match FastPath::new(config.ports.len(), hash_seed()) {
        Ok(fast) => Ok(Some(Arc::new(fast))),
        Err(error) => Err(DaemonError::Port { port: first.port.to_string(), error }),
    }
}

/// Flows are hashed with it. Routers behind each other should have different ones.
pub(super) fn hash_seed() -> u64 {
    u64::from(std::process::id())
}

/// The programs' counters.
pub(super) fn counts(fast: Option<&Arc<FastPath>>) -> Option<FastCounts> {
    // The system has no reason to refuse.
    fast?.counts().ok()
}

/// Starts to keep the tables in the kernel up to date: the router's table, since xdp ports have no VRF of their own.
pub(super) fn publish(
    config: &RouteConfig,
    control: &Control,
    tables: &Tables,
    fast: &Arc<FastPath>,
) -> Result<Publisher, DaemonError> {
    let (fast, events) = (Arc::clone(fast), |what: String| warn!("fast path: {what}"));
    let started = match tables {
        Tables::Live(live, _) => {
            let vrf = config.main_table().map_or(0, |name| live.vrf(&name));
            let views = control.views(live, vrf)?;
            Publisher::start(fast, views, events)
        }
        Tables::Static(fib, next_hops) => {
            let views = control.static_views(fib, next_hops.iter().cloned())?;
            Publisher::start(fast, views, events)
        }
    };
    started.map_err(|error| DaemonError::System { what: "the fast path cannot be filled", error })
}

/// Checks that this program has the programs of xdp ports, if there are such ports.
pub(super) fn check(config: &RouteConfig) -> Result<(), DaemonError> {
    for port in config.ports.iter().filter(|port| is_xdp(port)) {
        xdp::check_built()
            .map_err(|error| DaemonError::Port { port: port.port.to_string(), error })?;
    }
    Ok(())
}
