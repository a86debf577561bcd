//! What is known about a cache that VRPs and ASPAs are received from.

use std::time::SystemTime;

/// The state of the connection to a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheState {
    /// Not connected, because a cache that is preferred to it is, or because nothing was tried yet.
    #[default]
    Idle,
    /// Being connected to, or connected and without its first whole set.
    Connecting,
    /// Connected, and its VRPs are those that are used.
    Up,
    /// The connection failed or ended. It is tried again.
    Lost,
}

impl CacheState {
    /// `"idle"`, `"connecting"`, `"up"` or `"lost"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Up => "up",
            Self::Lost => "lost",
        }
    }
}

/// A cache, the server that sends validated data to routers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Its name or address, and its port.
    pub endpoint: String,
    /// The state of the connection.
    pub state: CacheState,
    /// Connections that were opened.
    pub connections: u64,
    /// The session's number, and the serial number of the data, of the last whole answer.
    pub session: Option<(u16, u32)>,
    /// VRPs that it has, once they were received.
    pub vrps: usize,
    /// ASPAs that it has, one for each customer. Caches send them since version 2 of the protocol.
    pub aspas: usize,
    /// The time of the last whole answer, with or without changes.
    pub updated: Option<SystemTime>,
    /// Until when its data may be used unless it is heard of again.
    pub expires: Option<SystemTime>,
    /// Answers that changed something, and answers that had the whole set.
    pub updates: u64,
    /// Those of them that had the whole set.
    pub resets: u64,
    /// What belongs neither to routes' origins nor to their paths, and was not kept: BGPsec keys.
    pub ignored: u64,
    /// Why the last connection failed or ended.
    pub trouble: Option<String>,
}
