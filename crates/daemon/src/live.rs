//! The live table of a configuration: from its checkpoint, or empty.

use std::path::{Path, PathBuf};
use std::time::Instant;

use fibula_feeds::{LogLimit, Positions};
use fibula_fib::FibOptions;
use fibula_rib::snapshot::SnapshotErrorKind;
use fibula_rib::{Event, Limits, Live, LiveOptions, Pacing, Preference, Rib};
use tracing::{debug, error, info, warn};

use crate::DaemonError;
use crate::config::{OnDamage, ServeConfig};

/// Starts the table of the checkpoint, or an empty one, and returns the positions of its folders.
pub fn start(config: &ServeConfig, fib: &FibOptions) -> Result<(Live, Positions), DaemonError> {
    let (rib, positions) = open(config)?;
    let options = LiveOptions {
        pacing: Pacing { bucket: config.tables.bucket.0, ..Pacing::default() },
        history: config.tables.history,
        tables: config.limits.tables,
        ..LiveOptions::default()
    };
    let engines = fib.clone().engines(config.tables.engine.iter().map(String::as_str));
    let mut vrfs: Vec<_> = rib.vrfs().collect();
    if !vrfs.contains(&0) {
        vrfs.insert(0, 0);
    }
    vrfs.truncate(config.limits.tables);
    Ok((Live::start(rib, &vrfs, engines, options, log())?, positions))
}

/// One line an event; sources can cause any number of tables without engines.
fn log() -> impl Fn(Event) + Send + Sync + 'static {
    let (without, begin) = (LogLimit::new(5), Instant::now());
    move |event| match event {
        Event::Engine { .. } => debug!("{event}"),
        Event::Difference { .. } | Event::Failed { .. } => error!("{event}"),
        Event::NotFollowed { .. } => {
            let Some(more) = without.admit(begin.elapsed()) else { return };
            if more > 0 {
                warn!("tables without engines: and {more} more");
            }
            warn!("{event}");
        }
        _ => warn!("{event}"),
    }
}

fn open(config: &ServeConfig) -> Result<(Rib, Positions), DaemonError> {
    if let Some(checkpoint) = &config.checkpoint {
        checkpoint.check_folder()?;
    }
    let checkpoint = config.checkpoint.as_ref().filter(|checkpoint| checkpoint.file.exists());
    let (mut rib, positions) = match checkpoint {
        Some(checkpoint) => match restored(&checkpoint.file) {
            Err(error) if checkpoint.on_damage == OnDamage::SetAside && is_damage(&error) => {
                let aside = set_aside(&checkpoint.file)?;
                warn!("{error}; it is kept as {}, and the table begins empty", aside.display());
                (Rib::default(), Positions::default())
            }
            restored => restored?,
        },
        None => (Rib::default(), Positions::default()),
    };
    let limits = &config.limits;
    rib.set_limits(Limits {
        peer_paths: limits.peer_routes,
        paths: limits.routes,
        peers: limits.peers,
    });
    if let Some(first) = config.sources().first() {
        // A checkpoint has this one as its table, and keeps it.
        rib.name_global(&first.table);
    }
    Ok((rib, positions))
}

/// Whether the file itself is wrong, rather than the disk, its rights or the version of the program.
fn is_damage(error: &DaemonError) -> bool {
    use SnapshotErrorKind::{Io, Version};
    matches!(error, DaemonError::Checkpoint(error) if !matches!(error.kind(), Io | Version))
}

/// Renames the file, to a name that no file has.
fn set_aside(file: &Path) -> Result<PathBuf, DaemonError> {
    let name = |number: u32| {
        let mut name = file.as_os_str().to_owned();
        name.push(if number == 0 { ".damaged".to_owned() } else { format!(".damaged-{number}") });
        PathBuf::from(name)
    };
    let aside = (0..u32::MAX).map(name).find(|aside| !aside.exists()).unwrap_or_else(|| name(0));
    let what = "the damaged checkpoint cannot be renamed";
    std::fs::rename(file, &aside).map_err(|error| DaemonError::System { what, error })?;
    Ok(aside)
}

fn restored(file: &Path) -> Result<(Rib, Positions), DaemonError> {
    let began = Instant::now();
    let restored = Rib::open(file, Preference::default()).map_err(DaemonError::Checkpoint)?;
    let paths = restored.rib.peers().len();
    let (file, time) = (file.display(), began.elapsed());
    info!(%file, peers = paths, "continuing from {file}, read in {time:.1?}");
    Ok((restored.rib, Positions::read(&restored.position)))
}
