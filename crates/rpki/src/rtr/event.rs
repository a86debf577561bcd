//! What happens to the connections, for a log.

use std::fmt;
use std::sync::Arc;

/// Something that happened to a cache. One that fails can cause any number of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RtrEvent<'a> {
    /// It is connected, and has sent a whole answer.
    Connected {
        /// The serial number of its data.
        serial: u32,
        /// Its VRPs.
        vrps: usize,
        /// Its ASPAs.
        aspas: usize,
    },
    /// It has sent everything anew on a connection that worked.
    Reset {
        /// Its VRPs.
        vrps: usize,
        /// Its ASPAs.
        aspas: usize,
    },
    /// It could not be connected to, or the connection ended.
    Lost {
        /// Why.
        why: &'a str,
    },
    /// Nothing was heard of it for so long that its data is not used any more.
    Expired,
}

impl RtrEvent<'_> {
    /// Whether somebody should look after it.
    pub const fn is_trouble(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Expired)
    }
}

impl fmt::Display for RtrEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected { serial, vrps, aspas } => {
                write!(f, "connected, serial {serial}: {vrps} VRPs, {aspas} ASPAs")
            }
            Self::Reset { vrps, aspas } => {
                write!(f, "sent everything anew: {vrps} VRPs, {aspas} ASPAs")
            }
            Self::Lost { why } => write!(f, "lost: {why}"),
            Self::Expired => f.write_str("its VRPs have expired: routes have no validity"),
        }
    }
}

/// Takes the endpoint of a cache and what happened to it.
type Notified = dyn Fn(&str, RtrEvent<'_>) + Send + Sync;

/// A function that is called with the endpoint of a cache and what happened to it. It must not block: the connection
/// waits for it.
#[derive(Clone)]
pub struct RtrNotify(pub Arc<Notified>);

impl fmt::Debug for RtrNotify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RtrNotify")
    }
}
