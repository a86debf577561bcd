//! What a port depends on, to notice that it must be opened anew.

use std::io;

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice};

use super::system::{self, Interface};
use crate::Pool;

/// The state of an interface that an open port depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The interface's index, which no later interface has.
    pub index: u32,
    /// Its name, which may be another one than when the port was opened.
    pub name: String,
    /// Its MAC address, which the programs of XDP sockets compare.
    pub mac: [u8; 6],
    /// The longest IP packet, in bytes.
    pub mtu: u32,
    /// Its receive and transmit queues; each has an XDP socket.
    pub queues: (u32, u32),
}

impl Identity {
    /// That of the interface with this name, in the network namespace of the thread.
    ///
    /// # Errors
    /// If there is none, or it is not an Ethernet interface.
    pub fn named(name: &str) -> io::Result<Self> {
        let interface = Interface::find("port", name)?;
        Ok(Self {
            index: interface.index,
            mac: interface.mac,
            mtu: interface.mtu,
            queues: interface.channels(),
            name: interface.name,
        })
    }

    /// Whether its packets fit into the slots of the pool.
    pub fn fits(&self, pool: &Pool) -> bool {
        system::room(pool) >= self.mtu as usize
    }

    /// That of the interface with this index; `None` if it is gone, or in another network namespace.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn at(index: u32) -> io::Result<Option<Self>> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        let socket = rustix::net::socket_with(AddressFamily::INET, kind, flags, None)?;
        let Ok(name) = netdevice::index_to_name(&socket, index) else { return Ok(None) };
        // It may be renamed or removed meanwhile.
        Ok(Self::named(&name).ok().filter(|now| now.index == index))
    }
}
