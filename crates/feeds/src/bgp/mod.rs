//! BGP as a collector: a session that neighbours open, and that announces nothing.
mod agreed;
mod link;
mod message;
mod neighbour;
mod notification;
mod resync;
mod routes;
mod session;

pub use agreed::{Agreed, Graceful, Refresh};
pub use neighbour::Neighbour;
pub use notification::Notification;
pub use session::BgpSession;
