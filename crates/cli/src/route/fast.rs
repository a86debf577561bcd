//! The fast path of xdp ports: what their programs have in common, and who keeps it up to date.

use std::io::ErrorKind;
use std::sync::Arc;

use fibula_router::control::Control;
use fibula_router::port::xdp::{FastCounts, FastPath, Publisher};
use tracing::warn;

use super::config::Config;
use super::kind::Kind;
use super::tables::Tables;
use crate::failure::Failure;

/// What the programs of xdp ports have in common, if there are any.
pub(super) fn open(config: &Config) -> Result<Option<Arc<FastPath>>, Failure> {
    let Some(first) = config.ports.iter().find(|port| matches!(port.port, Kind::Xdp(_))) else {
        return Ok(None);
    };
    match FastPath::new(config.ports.len(), hash_seed()) {
        Ok(fast) => Ok(Some(Arc::new(fast))),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let hint = "run it as root, or give the program CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_IPC_LOCK";
            Err(Failure::new(format_args!("--port {}: {error}", first.port)).hint(hint))
        }
        Err(error) => Err(Failure::new(format_args!("--port {}: {error}", first.port))),
    }
}

/// Flows are hashed with it. Routers behind each other should have different ones.
pub(super) fn hash_seed() -> u64 {
    u64::from(std::process::id())
}

/// What the programs counted.
pub(super) fn counts(fast: Option<&Arc<FastPath>>) -> Option<FastCounts> {
    // The system has no reason to refuse.
    fast?.counts().ok()
}

/// Starts to keep the tables in the kernel up to date: the router's table, since xdp ports have no VRF of their own.
pub(super) fn publish(
    config: &Config,
    control: &Control,
    tables: &Tables,
    fast: &Arc<FastPath>,
) -> Result<Publisher, Failure> {
    let (fast, events) = (Arc::clone(fast), |what: String| warn!("fast path: {what}"));
    let started = match tables {
        Tables::Live(live, _) => {
            let vrf = config.router.vrf.as_deref().map_or(0, |name| live.vrf(name));
            let views = control.views(live, vrf).map_err(Failure::new)?;
            Publisher::start(fast, views, events)
        }
        Tables::Static(fib, next_hops) => {
            let views =
                control.static_views(fib, next_hops.iter().cloned()).map_err(Failure::new)?;
            Publisher::start(fast, views, events)
        }
    };
    started.map_err(|error| Failure::io("the fast path cannot be filled", &error))
}
