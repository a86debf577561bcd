//! Packets for this machine, given to the kernel as if they came in by an interface: for ports that take everything
//! from it.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use super::asm::{Code, Reg};
use super::{Interface, bpf, hint};
use crate::port::system::explain;
use crate::port::{Queue, Receive, Transmit};
use crate::{Packet, Pool};

/// XDP_PASS: on to the network stack.
const PASS: i32 = 2;
/// Of an Ethernet header: the kernel takes nothing shorter.
const SHORTEST: usize = 14;

/// A queue whose transmitting half gives packets to the kernel as received by that interface, a system call each, and
/// whose receiving half has none: what the kernel sends leaves by the interface. An XDP program must be attached to the
/// interface. See [`Attached::host`](crate::pipeline::Attached::host).
///
/// # Errors
/// If there is no such interface, the kernel is older than 5.18, or a right is missing (CAP_NET_ADMIN and CAP_BPF).
pub fn to_kernel<'p>(name: &str) -> io::Result<Queue<'p>> {
    let interface = Interface::find("kernel", name)?;
    let mut code = Code::default();
    code.set(Reg::R0, PASS);
    code.exit();
    let program = bpf::load("fibula_pass", &code.finish())
        .map_err(|error| explain(&interface.port, hint(&error), error))?;
    Ok(Queue {
        receive: Box::new(Nothing),
        transmit: Box::new(ToKernel { interface, program, lost: 0 }),
    })
}

struct ToKernel {
    interface: Interface,
    program: OwnedFd,
    lost: u64,
}

impl<'p> Transmit<'p> for ToKernel {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        let mut result = Ok(());
        for packet in &*burst {
            let bytes = packet.bytes();
            let given = match bytes.len() {
                0..SHORTEST => Err(io::ErrorKind::InvalidInput.into()),
                _ => bpf::run(&self.program, bytes, self.interface.index, 1),
            };
            if let Err(error) = given {
                self.lost += 1;
                // The port itself reports that its interface is gone; a packet that is too long for a page is one lost.
                if error.kind() == io::ErrorKind::PermissionDenied {
                    result = Err(explain(&self.interface.port, hint(&error), error));
                }
            }
        }
        let count = burst.len();
        pool.give(burst.drain(..));
        result.map(|()| count)
    }

    fn flush(&mut self, _: &'p Pool) -> io::Result<()> {
        Ok(())
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

struct Nothing;

impl<'p> Receive<'p> for Nothing {
    fn receive(&mut self, _: &'p Pool, _: &mut Vec<Packet<'p>>, _: usize) -> io::Result<usize> {
        Ok(0)
    }

    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        thread::sleep(longest);
        Ok(())
    }

    fn is_over(&self) -> bool {
        true
    }
}
