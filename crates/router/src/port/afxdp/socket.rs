//! XDP sockets: one for each queue of an interface, on the pool's area.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpOptionsFlags, XdpUmemReg,
    XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::program::Program;
use super::ring::{Consumer, Producer, Ring};
use super::{Copying, Interface};
use crate::port::system;
use crate::{Pool, pool};

/// The state that both halves of a queue share. The last half that is dropped closes the socket, and then returns the
/// slots that the kernel had.
pub(super) struct Socket<'p> {
    pub interface: Arc<Interface>,
    /// Ends, with the last queue and the last handle, the program's attachment.
    _attached: Arc<super::Attached>,
    fd: Option<OwnedFd>,
    pool: &'p Pool,
    kernel_had: Mutex<Vec<u32>>,
}

/// An opened socket and its rings.
pub(super) struct Opened<'p> {
    pub socket: Arc<Socket<'p>>,
    pub is_zero_copy: bool,
    pub fill: Producer<u64>,
    pub received: Consumer<XdpDesc>,
    pub sent: Producer<XdpDesc>,
    pub completed: Consumer<u64>,
}

/// The options of a socket.
pub(super) struct Wanted {
    pub queue: u32,
    pub ring: u32,
    pub copying: Copying,
}

/// The option for the number of packets that a system call sends in copy mode; 32 otherwise.
const XDP_MAX_TX_SKB_BUDGET: i32 = 9;
/// Bytes of packets that the kernel has copied and not yet sent.
const SEND_BUFFER: usize = 8 << 20;

impl<'p> Socket<'p> {
    /// Opens a socket on the whole area of the pool, and has the program send it the queue's packets.
    pub fn open(
        interface: &Arc<Interface>,
        attached: &Arc<super::Attached>,
        program: &Program,
        pool: &'p Pool,
        wanted: &Wanted,
    ) -> io::Result<Opened<'p>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        let (area, len) = pool.area();
        // Each socket registers the area as its own: queues of several interfaces then share nothing but the pool.
        sockopt::set_xdp_umem_reg(
            &fd,
            XdpUmemReg {
                addr: area.as_ptr().expose_provenance() as u64,
                len: len as u64,
                chunk_size: pool.stride() as u32,
                headroom: 0,
                flags: XdpUmemRegFlags::empty(),
                tx_metadata_len: 0,
            },
        )?;
        sockopt::set_xdp_umem_fill_ring_size(&fd, wanted.ring)?;
        sockopt::set_xdp_umem_completion_ring_size(&fd, wanted.ring)?;
        sockopt::set_xdp_rx_ring_size(&fd, wanted.ring)?;
        sockopt::set_xdp_tx_ring_size(&fd, wanted.ring)?;
        sockopt::set_socket_send_buffer_size(&fd, SEND_BUFFER)?;
        let at = sockopt::xdp_mmap_offsets(&fd)?;
        let (fill, completed) = (
            Ring::map(&fd, &at.fr, XDP_UMEM_PGOFF_FILL_RING, wanted.ring)?,
            Ring::map(&fd, &at.cr, XDP_UMEM_PGOFF_COMPLETION_RING, wanted.ring)?,
        );
        let (received, sent) = (
            Ring::map(&fd, &at.rx, XDP_PGOFF_RX_RING, wanted.ring)?,
            Ring::map(&fd, &at.tx, XDP_PGOFF_TX_RING, wanted.ring)?,
        );
        // Only newer kernels have it.
        let budget = wanted.ring.min(256);
        let _ = system::set_option(&fd, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget);
        let flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP
            | match wanted.copying {
                Copying::Auto => SocketAddrXdpFlags::empty(),
                Copying::Copy => SocketAddrXdpFlags::XDP_COPY,
                Copying::ZeroCopy => SocketAddrXdpFlags::XDP_ZEROCOPY,
            };
        bind(&fd, &SocketAddrXdp::new(flags, interface.index, wanted.queue))?;
        let is_zero_copy =
            sockopt::xdp_options(&fd)?.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY);
        program.set_socket(wanted.queue, &fd)?;
        let socket = Arc::new(Socket {
            interface: interface.clone(),
            _attached: attached.clone(),
            fd: Some(fd),
            pool,
            kernel_had: Mutex::default(),
        });
        Ok(Opened {
            socket,
            is_zero_copy,
            fill: Producer::new(fill),
            received: Consumer::new(received),
            sent: Producer::new(sent),
            completed: Consumer::new(completed),
        })
    }

    /// The socket, which is open as long as this is.
    pub fn fd(&self) -> &OwnedFd {
        self.fd.as_ref().expect("open until it is dropped")
    }

    /// Takes over the slots that the kernel has of a dropped half.
    pub fn leave(&self, held: &Held) {
        self.kernel_had.lock().expect("nobody panics with it").extend(held.slots());
    }
}

impl Drop for Socket<'_> {
    fn drop(&mut self) {
        // Both halves have unmapped their rings, which would keep the socket open; when this returns, the kernel
        // neither reads nor writes the area for it.
        self.fd = None;
        let slots = std::mem::take(self.kernel_had.get_mut().expect("nobody panics with it"));
        // SAFETY: their packets were forgotten when the kernel got the slots, and it has them no longer.
        let packets = slots
            .into_iter()
            .map(|slot| unsafe { self.pool.reclaim(slot, pool::HEADROOM as u32, 0) });
        self.pool.give(packets);
    }
}

/// How long the kernel may take to let go of a queue whose socket was closed.
const LETTING_GO: Duration = Duration::from_secs(1);

/// Binds the socket. The kernel has a queue for a moment longer than its last socket is open.
fn bind(fd: &OwnedFd, address: &SocketAddrXdp) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match rustix::net::bind(fd, address) {
            Err(Errno::BUSY) if began.elapsed() < LETTING_GO => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(Errno::BUSY) => {
                let what =
                    format!("another program has an XDP socket on queue {}", address.queue_id());
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, what));
            }
            result => return Ok(result?),
        }
    }
}

/// The slots that the kernel has of a half of a queue: a bit for each slot of the pool.
pub(super) struct Held(Vec<u64>);

impl Held {
    pub fn new(pool: &Pool) -> Self {
        Self(vec![0; pool.slots().div_ceil(64)])
    }

    pub fn insert(&mut self, slot: u32) {
        self.0[slot as usize / 64] |= 1 << (slot % 64);
    }

    /// Whether the kernel had the slot, which it has given back now.
    pub fn remove(&mut self, slot: u32) -> bool {
        let Some(word) = self.0.get_mut(slot as usize / 64) else { return false };
        let bit = 1 << (slot % 64);
        let had = *word & bit != 0;
        *word &= !bit;
        had
    }

    fn slots(&self) -> impl Iterator<Item = u32> {
        (0..self.0.len() as u32 * 64)
            .filter(|&slot| self.0[slot as usize / 64] >> (slot % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_held_until_it_is_removed() {
        let pool = Pool::new(130, 2048);
        let mut held = Held::new(&pool);
        for slot in [0, 63, 64, 129] {
            held.insert(slot);
        }
        assert!(held.remove(63));
        assert!(!held.remove(63));
        assert!(!held.remove(1));
        assert!(!held.remove(u32::MAX));
        assert_eq!(held.slots().collect::<Vec<_>>(), [0, 64, 129]);
    }
}
