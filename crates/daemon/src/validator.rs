//! What follows a validator: its caches, and the routes whose validity changes with their VRPs.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use fibula_feeds::LogLimit;
use fibula_rib::Live;
use fibula_rpki::rtr::{RtrEvent, RtrFollower, RtrNotify, RtrOptions};
use fibula_rpki::{LiveVrps, Relations, Revalidator, RpkiError};
use tracing::{info, warn};

use crate::DaemonError;
use crate::config::{ConfigError, Problem, Rpki};

/// Lines about caches that are written in a minute.
const LINES: u32 = 20;

/// Dropping it ends what it follows.
pub(crate) struct Validator {
    _follower: RtrFollower,
    _revalidator: Revalidator,
}

impl Validator {
    pub(crate) fn start(
        rpki: &Rpki,
        vrps: &Arc<LiveVrps>,
        live: &Arc<Live>,
    ) -> Result<Self, DaemonError> {
        let mut options = RtrOptions::of(rpki.caches.get_ref().clone());
        options.longest = rpki.expire.map_or(options.longest, |expire| expire.0);
        options.notify = Some(RtrNotify(Arc::new(log())));
        let revalidator = Revalidator::start(Arc::clone(vrps), Arc::clone(live));
        let follower = RtrFollower::start(options, Arc::clone(vrps));
        let failed = |error| DaemonError::System { what: "no thread for the validator", error };
        Ok(Self {
            _follower: follower.map_err(failed)?,
            _revalidator: revalidator.map_err(failed)?,
        })
    }
}

/// One line an event.
fn log() -> impl Fn(&str, RtrEvent<'_>) + Send + Sync + 'static {
    let (lines, begin) = (LogLimit::new(LINES), Instant::now());
    move |cache, event| {
        let Some(more) = lines.admit(begin.elapsed()) else { return };
        if more > 0 {
            warn!("caches of the validator: and {more} more");
        }
        match event.is_trouble() {
            true => warn!("validator {cache}: {event}"),
            false => info!("validator {cache}: {event}"),
        }
    }
}

/// From whom routes are received.
pub(crate) fn relations(rpki: &Rpki) -> Result<Relations, ConfigError> {
    let Some(file) = &rpki.relations else { return Ok(Relations::all(rpki.received_from)) };
    Relations::read(file, rpki.received_from).map_err(|error| in_file(error, file))
}

fn in_file(error: RpkiError, file: &Path) -> ConfigError {
    let problem = match error {
        RpkiError::Io { error, .. } => Problem::Unreadable { setting: "relations", error },
        RpkiError::BadRelations { error, .. } => Problem::Relations(error),
        other => Problem::Syntax(other.to_string()),
    };
    ConfigError::from(problem).in_file(file)
}
