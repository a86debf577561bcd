use std::fmt;
use std::io;

use fibula_core::{BuildError, Family, Hop, Vrf};

/// An engine that refused a table.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineRefusal {
    /// The engine's name.
    pub engine: &'static str,
    /// The reason; `None` if it panicked.
    pub error: Option<BuildError>,
}

impl fmt::Display for EngineRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(f, "{error}"),
            None => write!(f, "engine {} panicked while it was built", self.engine),
        }
    }
}

/// Information for the operator of a table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Another engine is used from now on, because the one before refused the table, or because this one suits the
    /// changed table better.
    Engine {
        /// The engine that is used.
        now: &'static str,
        /// The refusals of the preferred engines.
        refused: Vec<EngineRefusal>,
    },
    /// Every engine failed. The last good generation stays in use.
    Failed {
        /// The error of each engine.
        refused: Vec<EngineRefusal>,
    },
    /// The live engine gives other answers than the RIB, and is being rebuilt.
    Difference {
        /// The prefix at whose boundary the answers differ.
        prefix: String,
        /// The address.
        addr: String,
        /// The RIB's answer.
        expected: Hop,
        /// The engine's answer.
        found: Hop,
        /// Number of probes of this audit with different answers.
        differences: u64,
    },
    /// Idle readers hold two old generations: nothing can be published until one is released.
    Stalled,
    /// A new VRF is only in the RIB: it has no compiled table.
    NotFollowed {
        /// Its name.
        name: String,
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine { now, refused } if refused.is_empty() => {
                write!(f, "engine {now} serves from now on")
            }
            Self::Engine { now, refused } => {
                write!(f, "engine {now} serves from now on: ")?;
                list(f, refused)
            }
            Self::Failed { refused } => {
                f.write_str("no engine could be built, the last good table stays in use: ")?;
                list(f, refused)
            }
            Self::Difference { prefix, addr, expected, found, differences } => write!(
                f,
                "the engine is wrong at {addr}, near {prefix}: {found:?}, but {expected:?} in the RIB \
                 ({differences} probes differ); it is being built anew"
            ),
            Self::NotFollowed { name, reason } => {
                write!(f, "table {name} has no engine, only lookups one by one: {reason}")
            }
            Self::Stalled => f.write_str(
                "idle readers hold two old tables; nothing new is published until they release one",
            ),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, refused: &[EngineRefusal]) -> fmt::Result {
    if refused.is_empty() {
        return f.write_str("there is none to choose from");
    }
    let mut between = "";
    for refusal in refused {
        write!(f, "{between}{refusal}")?;
        between = "; ";
    }
    Ok(())
}

/// The error of starting a live table.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// Every engine refused the table.
    NoEngine {
        /// The VRF.
        vrf: Vrf,
        /// The family.
        family: Family,
        /// The error of each engine.
        refused: Vec<EngineRefusal>,
    },
    /// The system could not start a compiler thread.
    Thread(io::Error),
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEngine { vrf, family, refused } => {
                write!(f, "no engine takes the IP{family} table")?;
                if *vrf != 0 {
                    write!(f, " of VRF {vrf}")?;
                }
                f.write_str(": ")?;
                list(f, refused)
            }
            Self::Thread(error) => write!(f, "no thread for a compiler: {error}"),
        }
    }
}

impl std::error::Error for LiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoEngine { refused, .. } => refused
                .iter()
                .find_map(|refusal| refusal.error.as_ref())
                .map(|error| error as &(dyn std::error::Error + 'static)),
            Self::Thread(error) => Some(error),
        }
    }
}
