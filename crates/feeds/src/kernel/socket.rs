//! The routing socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use super::Overruns;
use crate::net::{Got, StreamDevice};

/// The groups of notifications that are received, numbered from 1: links, IPv4 addresses and routes, IPv6 addresses
/// and routes, next hops.
const GROUPS: [u32; 6] = [1, 5, 7, 9, 11, 32];

/// A socket for the kernel's notifications about routes, in the network namespace of the thread that opens it. It
/// needs no privilege.
#[derive(Debug)]
pub struct KernelSocket {
    socket: OwnedFd,
    overruns: Overruns,
}

impl KernelSocket {
    /// Opens it, with a buffer of this many bytes if the system allows it. `overruns` counts the overflows.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn open(room: usize, overruns: Overruns) -> io::Result<Self> {
        Self::hearing(&GROUPS, room, overruns)
    }

    /// Opens a socket for other groups of notifications (RTNLGRP_*, below 33).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn hearing(groups: &[u32], room: usize, overruns: Overruns) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Protocol 0 is NETLINK_ROUTE.
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        // Beyond the system's limit only with CAP_NET_ADMIN.
        if sockopt::set_socket_recv_buffer_size_force(&socket, room).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, room)?;
        }
        let groups = groups.iter().fold(0, |groups, group| groups | 1 << (group - 1));
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(Self { socket, overruns })
    }
}

impl AsFd for KernelSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl StreamDevice for KernelSocket {
    /// Reads one datagram: whole messages. The kernel makes those of a dump as long as `into`, up to 32 KiB.
    fn read(&mut self, into: &mut [u8]) -> io::Result<Got> {
        let room = into.len();
        let got = match rustix::net::recv(&self.socket, into, RecvFlags::TRUNC) {
            Ok((_, len)) if len <= room => Got::Bytes(len),
            Ok(_) | Err(Errno::NOBUFS) => Got::Lost,
            Err(error) => return Err(error.into()),
        };
        if got == Got::Lost {
            self.overruns.fetch_add(1, Ordering::Relaxed);
        }
        Ok(got)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(&self.socket, bytes, SendFlags::empty())?)
    }
}
