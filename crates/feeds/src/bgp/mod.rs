//! BGP as a collector: a session that neighbours open, and that announces nothing.
mod agreed;
mod link;
#[cfg(target_os = "linux")]
mod md5;
mod message;
mod neighbour;
mod notification;
mod resync;
mod routes;
mod session;

pub use agreed::{Agreed, Graceful, Refresh};
#[cfg(target_os = "linux")]
pub use md5::{LONGEST_KEY, set_md5_key};
pub use neighbour::Neighbour;
pub use notification::Notification;
pub use session::BgpSession;
