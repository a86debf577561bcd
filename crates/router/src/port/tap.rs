//! TAP devices: an interface of this machine whose other end is the port.
//!
//! The port receives the packets that the kernel sends by the interface, and the kernel receives the packets that the
//! port sends. The kernel's end has the device's MAC address, the router another one: the same with the last bit of its
//! last byte flipped. The kernel completes checksums and cuts large packets before they come.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::Duration;

use super::system::{self, Interface, NEEDS_ADMIN, explain, is_full};
use super::{Port, Queue, Receive, Transmit};
use crate::{Packet, Pool};

/// Options of a TAP port.
#[derive(Clone, Debug)]
pub struct TapOptions {
    /// Queues, among which the kernel shares the flows.
    pub queues: u16,
    /// Whether a device that the port creates stays when the port is closed.
    pub is_persistent: bool,
}

impl Default for TapOptions {
    fn default() -> Self {
        Self { queues: 1, is_persistent: false }
    }
}

/// Opens the device of that name, which is made if there is none, and sets it up.
///
/// # Errors
/// If the name is that of another interface, or of a TAP device with another number of queues that something has open,
/// the system has no `/dev/net/tun`, the MTU is too large for the pool's slots, or a right is missing (CAP_NET_ADMIN).
pub fn open<'p>(name: &str, pool: &'p Pool, options: &TapOptions) -> io::Result<Port<'p>> {
    let name_of_port = format!("tap:{name}");
    let mut flags = libc::IFF_TAP | libc::IFF_NO_PI;
    if options.queues > 1 {
        flags |= libc::IFF_MULTI_QUEUE;
    }
    let files = (0..options.queues.max(1))
        .map(|_| attach(name, flags, options.is_persistent).map(|(file, _)| file))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => NEEDS_ADMIN,
                Some(libc::ENOENT | libc::ENODEV) => {
                    "the kernel has no TUN/TAP driver here (/dev/net/tun)"
                }
                Some(libc::EINVAL | libc::EEXIST) => {
                    "an interface of that name is not a TAP device, or has another number of queues"
                }
                Some(libc::EBUSY) => "something else has the device open",
                _ => "",
            };
            explain(&name_of_port, hint, error)
        })?;
    let interface = Arc::new(Interface::find("tap", name)?);
    interface.check_room(pool)?;
    interface.set_up()?;
    let queues = files
        .into_iter()
        .map(|file| {
            let half = Half::new(interface.clone(), file);
            let receive = Box::new(TapReceive(half.clone()));
            Queue { receive, transmit: Box::new(TapTransmit(half)) }
        })
        .collect();
    let mut mac = interface.mac;
    mac[5] ^= 1;
    Ok(Port {
        name: interface.port.clone(),
        interface: interface.index,
        mac,
        mtu: interface.mtu,
        is_shared: false,
        queues,
    })
}

/// Opens a queue of the device. Returns its name, in which the system has replaced `%d` by a number.
pub(super) fn attach(name: &str, flags: i32, is_persistent: bool) -> io::Result<(File, String)> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    let mut asked = system::named(name)?;
    asked.ifr_ifru.ifru_flags = flags as libc::c_short;
    system::ioctl(&file, libc::TUNSETIFF as libc::c_ulong, &mut asked)?;
    if is_persistent {
        system::set_persistent(&file)?;
    }
    let name = asked.ifr_name.iter().take_while(|&&byte| byte != 0);
    Ok((file, name.map(|&byte| char::from(byte as u8)).collect()))
}

/// The state that both halves of a queue share.
#[derive(Clone)]
pub(super) struct Half {
    pub(super) interface: Arc<Interface>,
    file: Arc<File>,
    lost: u64,
}

impl Half {
    pub(super) fn new(interface: Arc<Interface>, file: File) -> Self {
        Self { interface, file: Arc::new(file), lost: 0 }
    }
}

struct TapReceive(Half);
pub(super) struct TapTransmit(pub(super) Half);

impl<'p> Receive<'p> for TapReceive {
    fn receive(
        &mut self,
        pool: &'p Pool,
        burst: &mut Vec<Packet<'p>>,
        most: usize,
    ) -> io::Result<usize> {
        let before = burst.len();
        while burst.len() - before < most {
            let Some(mut packet) = pool.take() else { break };
            packet.set_len(packet.room());
            match (&*self.0.file).read(packet.bytes_mut()) {
                // One that fills the slot may have been cut.
                Ok(len) if len < packet.bytes().len() => {
                    packet.set_len(len);
                    burst.push(packet);
                }
                Ok(_) => {
                    self.0.lost += 1;
                    pool.give([packet]);
                }
                Err(error) => {
                    pool.give([packet]);
                    if !is_full(&error) {
                        self.0.interface.judge(error)?;
                    }
                    break;
                }
            }
        }
        Ok(burst.len() - before)
    }

    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        self.0.interface.wait(&self.0.file.as_fd(), longest)
    }

    fn lost(&self) -> u64 {
        self.0.lost
    }
}

impl<'p> Transmit<'p> for TapTransmit {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        let mut taken = 0;
        let mut result = Ok(());
        for packet in burst.iter() {
            match (&*self.0.file).write(packet.bytes()) {
                Ok(_) => {}
                Err(error) if is_full(&error) => break,
                // Shorter than an Ethernet header.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.0.lost += 1,
                Err(error) => {
                    self.0.lost += 1;
                    result = self.0.interface.judge(error);
                }
            }
            taken += 1;
            if result.is_err() {
                break;
            }
        }
        pool.give(burst.drain(..taken));
        result.map(|()| taken)
    }

    fn flush(&mut self, _: &'p Pool) -> io::Result<()> {
        Ok(())
    }

    fn lost(&self) -> u64 {
        self.0.lost
    }
}
