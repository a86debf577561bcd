//! Packets that the kernel makes, for measurements: many more a second than a socket could send.

use std::io;
use std::os::fd::OwnedFd;

use fibula_packet::checksum;

use super::Interface;
use super::asm::{Call, Code, If, Reg, Size};
use crate::port::bpf;
use crate::port::system::explain;

/// Sends copies of an IPv4 packet by an interface, to random addresses of 198.18.0.0/16. The interface must be able to
/// send frames of XDP programs; one of a veth pair can if an XDP program is on the other one.
pub struct Generator {
    interface: Interface,
    program: OwnedFd,
    frame: Vec<u8>,
}

/// Sends the packet back by its interface.
const XDP_TX: i32 = 3;
const DROP: i32 = 1;

impl Generator {
    /// Copies of this frame, of at least 34 bytes: Ethernet without a tag, and an IPv4 header without options.
    ///
    /// # Errors
    /// If there is no such interface, the frame is too short, or a right is missing (CAP_NET_ADMIN and CAP_BPF).
    pub fn new(name: &str, frame: &[u8]) -> io::Result<Self> {
        let interface = Interface::find("generate", name)?;
        if frame.len() < 34 {
            return Err(
                interface.error(io::ErrorKind::InvalidInput, "a frame of less than 34 bytes")
            );
        }
        let mut frame = frame.to_vec();
        frame[24..26].fill(0);
        frame[28..30].fill(0xff);
        frame[32..34].fill(0);
        let sum = checksum::compute(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        let program = bpf::load("fibula_make", &instructions(&frame))
            .map_err(|error| explain(&interface.port, super::hint(&error), error))?;
        Ok(Self { interface, program, frame })
    }

    /// Makes so many.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn make(&self, count: u32) -> io::Result<()> {
        bpf::run(&self.program, &self.frame, self.interface.index, count)
            .map_err(|error| explain(&self.interface.port, "", error))
    }
}

/// The kernel uses the memory of packets again, as receivers left them: the link header and the IPv4 header are
/// written each time. The lower half of the source is the complement of the destination's, so that the header's
/// checksum is the same for all of them.
fn instructions(frame: &[u8]) -> Vec<u64> {
    use Reg::{R0, R1, R2, R6, R7, R8};
    use Size::{Half, Word};
    let mut code = Code::default();
    code.copy(R6, R1);
    code.call(Call::Random);
    code.load(Word, R7, R6, 0);
    code.load(Word, R8, R6, 4);
    code.copy(R2, R7);
    code.add(R2, 34);
    code.jump_registers(If::Above, R2, R8, "drop");
    for (at, word) in frame[..32].chunks_exact(4).enumerate() {
        let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        code.store_value(Word, R7, at as i16 * 4, word);
    }
    // The source's lower half makes up for the destination's.
    code.store(Half, R7, 32, R0);
    code.xor(R0, 0xffff);
    code.store(Half, R7, 28, R0);
    code.set(R0, XDP_TX);
    code.exit();
    code.label("drop");
    code.set(R0, DROP);
    code.exit();
    code.finish()
}
