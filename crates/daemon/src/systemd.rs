//! Notifications to systemd (sd_notify(3)).

/// Notifies systemd that the service is ready, if systemd requested this.
#[cfg(target_os = "linux")]
pub fn ready() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let sent =
        UnixDatagram::unbound().and_then(|socket| socket.send_to_addr(b"READY=1", &address?));
    if let Err(error) = sent {
        tracing::warn!("cannot notify systemd that the service is ready: {error}");
    }
}

/// Other systems have no systemd.
#[cfg(not(target_os = "linux"))]
pub fn ready() {}
