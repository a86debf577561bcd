//! TCP MD5 signatures (RFC 2385), an option of a listening socket that its connections inherit.
#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd};

use fibula_core::AnyPrefix;

/// Bytes of the longest key.
pub const LONGEST_KEY: usize = 80;
/// The flag of an entry that stands for a prefix.
const FLAG_PREFIX: u8 = 1;

/// `struct tcp_md5sig` of `linux/tcp.h`: the address as a `sockaddr_storage` (128 bytes), flags, the length of the
/// prefix, the length of the key, an interface, the key.
#[repr(C, align(8))]
struct Entry([u8; 216]);

/// Connections to this listening socket from an address, or from any of a prefix, must be signed with the
/// key, and are signed with it; with `None` they no longer are. Existing connections keep their key.
///
/// The system drops segments with a wrong signature, or without one, and sends no answer: the neighbour sees a port on
/// which nobody listens. Connections from other addresses are as before.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for an empty key, one of more than 80 bytes, or a prefix of IPv6 at a socket of
/// IPv4; [`io::ErrorKind::NotFound`] if there is no key to remove; otherwise the error of the system call (a kernel
/// without `CONFIG_TCP_MD5SIG`: [`io::ErrorKind::Unsupported`] or `NotFound`).
pub fn set_md5_key(socket: &impl AsFd, from: AnyPrefix, key: Option<&[u8]>) -> io::Result<()> {
    let listener = TcpListener::from(socket.as_fd().try_clone_to_owned()?);
    let entry = entry(listener.local_addr()?.ip(), from, key)?;
    let option = if entry.0[128] == FLAG_PREFIX { libc::TCP_MD5SIG_EXT } else { libc::TCP_MD5SIG };
    // SAFETY: the pointer is that of an array of 216 bytes, which lives until the call returns and of which the
    // kernel reads exactly the length passed.
    let result = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            std::ptr::from_ref(&entry.0).cast(),
            size_of::<Entry>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn entry(local: IpAddr, from: AnyPrefix, key: Option<&[u8]>) -> io::Result<Entry> {
    let error = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
    let key = match key {
        Some([]) => return Err(error("a TCP MD5 key must not be empty")),
        Some(key) if key.len() > LONGEST_KEY => {
            return Err(error("a TCP MD5 key has at most 80 bytes"));
        }
        key => key.unwrap_or_default(),
    };
    let (address, len, bits) = match from {
        AnyPrefix::V4(prefix) => (IpAddr::V4(prefix.addr().into()), prefix.len(), 32),
        AnyPrefix::V6(prefix) => (IpAddr::V6(prefix.addr().into()), prefix.len(), 128),
    };
    let mut bytes = [0; 216];
    let (family, start, octets) = match (local, address) {
        (IpAddr::V4(_), IpAddr::V4(address)) => (libc::AF_INET, 4, address.octets().to_vec()),
        (IpAddr::V6(_), IpAddr::V6(address)) => (libc::AF_INET6, 8, address.octets().to_vec()),
        // A socket of both families; the length stays that of IPv4.
        (IpAddr::V6(_), IpAddr::V4(address)) => {
            (libc::AF_INET6, 8, address.to_ipv6_mapped().octets().to_vec())
        }
        (IpAddr::V4(_), IpAddr::V6(_)) => {
            return Err(error("the socket is of IPv4, the neighbour of IPv6"));
        }
    };
    bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    bytes[start..start + octets.len()].copy_from_slice(&octets);
    if len < bits {
        bytes[128] = FLAG_PREFIX;
        bytes[129] = len;
    }
    bytes[130..132].copy_from_slice(&(key.len() as u16).to_ne_bytes());
    bytes[136..136 + key.len()].copy_from_slice(key);
    Ok(Entry(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    fn any() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").unwrap()
    }

    fn host(text: &str) -> AnyPrefix {
        text.parse().unwrap()
    }

    /// Whether a connection without a signature gets through within a second.
    fn connects(listener: &TcpListener) -> bool {
        let address = listener.local_addr().unwrap();
        let connection = TcpStream::connect_timeout(&address, Duration::from_millis(300));
        connection.is_ok_and(|mut stream| {
            let (mut other, _) = listener.accept().unwrap();
            stream.write_all(b"x").unwrap();
            other.read_exact(&mut [0]).is_ok()
        })
    }

    #[test]
    fn keys_that_cannot_be() {
        let listener = any();
        let text = |from: &str, key: &[u8]| {
            set_md5_key(&listener, host(from), Some(key)).unwrap_err().to_string()
        };
        assert_eq!(text("127.0.0.1/32", b""), "a TCP MD5 key must not be empty");
        assert_eq!(text("127.0.0.1/32", &[b'x'; 81]), "a TCP MD5 key has at most 80 bytes");
        assert_eq!(text("2001:db8::1/128", b"x"), "the socket is of IPv4, the neighbour of IPv6");
    }

    /// An unsigned connection does not get through once there is a key, and does when it is gone. On a kernel without
    /// TCP MD5 the test prints this.
    #[test]
    fn unsigned_connections() {
        for from in ["127.0.0.1/32", "127.0.0.0/8"] {
            let listener = any();
            assert!(connects(&listener));
            match set_md5_key(&listener, host(from), Some(b"secret")) {
                Ok(()) => {}
                Err(error) => {
                    eprintln!("not tested, the kernel refuses TCP MD5 keys: {error}");
                    return;
                }
            }
            assert!(!connects(&listener), "{from}");
            set_md5_key(&listener, host(from), None).unwrap();
            assert!(connects(&listener), "{from}");
            let gone = set_md5_key(&listener, host(from), None).unwrap_err();
            assert_eq!(gone.kind(), io::ErrorKind::NotFound);
        }
    }

    /// The entry's bytes, as `linux/tcp.h` lays them out.
    #[test]
    fn layout() {
        let bytes = |local: &str, from: &str| {
            entry(local.parse().unwrap(), host(from), Some(b"key")).unwrap().0
        };
        let v4 = bytes("0.0.0.0", "192.0.2.9/32");
        assert_eq!((&v4[..2], &v4[4..8]), (&2u16.to_ne_bytes()[..], &[192, 0, 2, 9][..]));
        assert_eq!(
            (&v4[128..132], &v4[136..140]),
            (&[&[0, 0][..], &3u16.to_ne_bytes()].concat()[..], &b"key\0"[..])
        );
        let v6 = bytes("::", "2001:db8::/32");
        assert_eq!((&v6[..2], &v6[8..12]), (&10u16.to_ne_bytes()[..], &[0x20, 1, 0xd, 0xb8][..]));
        assert_eq!(v6[128..130], [1, 32]);
        let mapped = bytes("::", "192.0.0.0/16");
        assert_eq!(
            (&mapped[18..24], &mapped[128..130]),
            (&[0xff, 0xff, 192, 0, 0, 0][..], &[1, 16][..])
        );
    }
}
