//! The system's settings of an interface, and messages for its errors.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use crate::Pool;
use crate::pool::HEADROOM;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice};

/// An interface of the network namespace that the thread was in when it was found.
pub(super) struct Interface {
    /// The port's name: `afxdp:eth1`.
    pub port: String,
    /// The interface's name when it was found.
    pub name: String,
    pub index: u32,
    pub mac: [u8; 6],
    pub mtu: u32,
    /// For questions; it belongs to the namespace.
    socket: OwnedFd,
}

impl Interface {
    /// The interface of that name, for a port of that kind.
    pub fn find(kind: &str, name: &str) -> io::Result<Self> {
        let port = format!("{kind}:{name}");
        let socket = rustix::net::socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let index = netdevice::name_to_index(&socket, name).map_err(|error| {
            let hint = "is there such an interface in this network namespace? `ip link` lists them";
            explain(&port, hint, error.into())
        })?;
        let mut this = Self { port, name: name.to_owned(), index, mac: [0; 6], mtu: 0, socket };
        let ifreq = this.ask(libc::SIOCGIFHWADDR, |_| ())?;
        // SAFETY: the kernel filled in the address, which is what this request is for.
        let (family, bytes) = unsafe {
            let address = ifreq.ifr_ifru.ifru_hwaddr;
            (address.sa_family, address.sa_data)
        };
        if family != libc::ARPHRD_ETHER {
            return Err(this.error(io::ErrorKind::Unsupported, "it is not an Ethernet interface"));
        }
        this.mac = std::array::from_fn(|at| bytes[at] as u8);
        // SAFETY: as above.
        let mtu = unsafe { this.ask(libc::SIOCGIFMTU, |_| ())?.ifr_ifru.ifru_mtu };
        this.mtu = u32::try_from(mtu).unwrap_or_default();
        Ok(this)
    }

    /// An error of this port.
    pub fn error(&self, kind: io::ErrorKind, what: &str) -> io::Error {
        io::Error::new(kind, format!("{}: {what}", self.port))
    }

    /// That the longest packets fit into the pool's slots.
    pub fn check_room(&self, pool: &Pool) -> io::Result<()> {
        let room = room(pool);
        if self.mtu as usize <= room {
            return Ok(());
        }
        let what = format!(
            "its packets have up to {} bytes (MTU), the pool's slots have room for {room}: make slots longer, or the MTU smaller",
            self.mtu
        );
        Err(self.error(io::ErrorKind::InvalidInput, &what))
    }

    /// Whether the interface is still there, in this namespace.
    pub fn is_there(&self) -> bool {
        netdevice::index_to_name_inlined(&self.socket, self.index).is_ok()
    }

    /// The error of a port whose interface is gone; nothing while it is there.
    pub fn check_there(&self) -> io::Result<()> {
        if self.is_there() {
            return Ok(());
        }
        let what = "the interface was removed, or is in another network namespace now";
        Err(self.error(io::ErrorKind::NotConnected, what))
    }

    /// Decides what an error of a system call means for the port: nothing while the link is down, for it may come up
    /// again.
    pub fn judge(&self, error: io::Error) -> io::Result<()> {
        match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV | libc::EBADFD | libc::EIO) => {
                self.check_there()
            }
            _ => Err(explain(&self.port, "", error)),
        }
    }

    /// Waits until there is something to read, or for that long. A port without an interface is an error.
    pub fn wait(&self, socket: &impl AsFd, longest: Duration) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: longest.as_secs().min(1 << 30) as i64,
            tv_nsec: longest.subsec_nanos().into(),
        };
        let mut polled = [PollFd::new(socket, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&timeout)) {
            Ok(1..) if polled[0].revents() == PollFlags::IN => Ok(()),
            Ok(_) => self.check_there(),
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(explain(&self.port, "", error.into())),
        }
    }

    /// The name of its driver, as `ethtool -i` prints it; empty if it is unknown.
    pub fn driver(&self) -> String {
        let mut info = [0_u8; 196]; // struct ethtool_drvinfo
        info[..4].copy_from_slice(&3_u32.to_ne_bytes()); // ETHTOOL_GDRVINFO
        if self.ethtool(&mut info).is_err() {
            return String::new();
        }
        let name = info[4..36].split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    /// How many receive and transmit queues it has, as `ethtool -l` prints it; one if it is unknown.
    pub fn channels(&self) -> (u32, u32) {
        let mut info = [0_u8; 36]; // struct ethtool_channels: command, four maxima, rx, tx, other, combined
        info[..4].copy_from_slice(&0x3c_u32.to_ne_bytes()); // ETHTOOL_GCHANNELS
        if self.ethtool(&mut info).is_err() {
            return (1, 1);
        }
        let field = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| info[at * 4 + byte]));
        let (receive, transmit, combined): (u32, u32, u32) = (field(5), field(6), field(8));
        ((receive + combined).max(1), (transmit + combined).max(1))
    }

    pub fn ethtool(&self, info: &mut [u8]) -> io::Result<()> {
        self.ask(libc::SIOCETHTOOL, |request| {
            request.ifr_ifru.ifru_data = info.as_mut_ptr().cast();
        })
        .map(drop)
    }

    /// Asks the kernel about the interface.
    fn ask(
        &self,
        request: libc::c_ulong,
        fill: impl FnOnce(&mut libc::ifreq),
    ) -> io::Result<libc::ifreq> {
        let mut ifreq = named(&self.name)?;
        fill(&mut ifreq);
        ioctl(&self.socket, request, &mut ifreq).map_err(|error| explain(&self.port, "", error))?;
        Ok(ifreq)
    }

    /// Gives the interface the MAC address that it has, as one that was chosen: what sets devices up (udev) leaves such
    /// a one alone.
    pub fn keep_mac(&self) -> io::Result<()> {
        let mut ifreq = self.ask(libc::SIOCGIFHWADDR, |_| ())?;
        ioctl(&self.socket, libc::SIOCSIFHWADDR, &mut ifreq)
            .map_err(|error| explain(&self.port, NEEDS_ADMIN, error))
    }

    /// Sets the interface up.
    pub fn set_up(&self) -> io::Result<()> {
        let mut ifreq = self.ask(libc::SIOCGIFFLAGS, |_| ())?;
        // SAFETY: the kernel filled in the flags.
        unsafe { ifreq.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short };
        ioctl(&self.socket, libc::SIOCSIFFLAGS, &mut ifreq)
            .map_err(|error| explain(&self.port, NEEDS_ADMIN, error))
    }
}

/// The longest IP packet that fits into a slot, behind an Ethernet header with two VLAN tags.
pub(super) fn room(pool: &Pool) -> usize {
    pool.slot_len().saturating_sub(HEADROOM + 14 + 8)
}

/// The advice if the right to change interfaces is missing.
pub(super) const NEEDS_ADMIN: &str = "run it as root, or give the program CAP_NET_ADMIN";

/// A request about the interface of that name.
pub(super) fn named(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zero is a valid value of this C struct.
    let mut ifreq: libc::ifreq = unsafe { mem::zeroed() };
    if name.len() >= ifreq.ifr_name.len() || name.is_empty() || name.contains('\0') {
        let what = format!("{name:?} cannot be the name of an interface: 1 to 15 bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    for (to, from) in ifreq.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(ifreq)
}

pub(super) fn ioctl(
    socket: &impl AsFd,
    request: libc::c_ulong,
    ifreq: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: all requests of this folder take a struct ifreq; what its pointer may point to outlives the call.
    let result =
        unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), request as _, std::ptr::from_mut(ifreq)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets an option of a socket.
pub(super) fn set_option<T: Copy>(
    socket: &impl AsFd,
    level: i32,
    option: i32,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads so many bytes of the value, which lives until the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether an error means that there is nothing to read, or no room to write, at the moment.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::ENOBUFS | libc::EBUSY | libc::EINTR | libc::ENOMEM)
    )
}

/// The error with the port's name, and what to do about it.
pub(super) fn explain(port: &str, hint: &str, error: io::Error) -> io::Error {
    let between = if hint.is_empty() { "" } else { ": " };
    io::Error::new(error.kind(), format!("{port}: {error}{between}{hint}"))
}

/// Keeps a TAP device when no program has it open.
pub(super) fn set_persistent(file: &impl AsFd) -> io::Result<()> {
    // SAFETY: the request takes a number, no pointer.
    let result = unsafe {
        libc::ioctl(file.as_fd().as_raw_fd(), libc::TUNSETPERSIST as _, 1 as libc::c_ulong)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
