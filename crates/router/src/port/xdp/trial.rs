//! Programs without a port, to be tried on frames and addresses.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::map::Map;
use super::object::Programs;
use super::{FastPath, PortProgram};
use crate::port::bpf;

/// The result of a program for a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// It leaves by a port of the router, as this.
    Sent(Vec<u8>),
    /// It is passed on, unchanged.
    Passed,
    /// It is dropped: the port is gone.
    Dropped,
}

/// The program of a port without a port, to be tried on frames.
pub struct Trial {
    program: OwnedFd,
    look_up: OwnedFd,
}

impl FastPath {
    /// The program of the port with this number and MAC address, on a machine with these addresses
    /// ([`FastPath::set_own`] knows them, too). `is_partial`: as on a virtual link.
    ///
    /// # Errors
    /// If the system refuses; the error then contains the kernel verifier's message.
    pub fn trial(
        &self,
        port: u16,
        mac: [u8; 6],
        own: &[IpAddr],
        is_partial: bool,
    ) -> io::Result<Trial> {
        let programs = Programs::read()?;
        let make = |name| Ok::<_, io::Error>(Map::new(programs.spec(name, 64)?, None)?.fd);
        let (sockets, local4, local6) = (make("sockets")?, make("local4")?, make("local6")?);
        for address in own {
            match address {
                IpAddr::V4(v4) => bpf::update(&local4, &v4.octets(), 1)?,
                IpAddr::V6(v6) => bpf::update(&local6, &v6.octets(), 1)?,
            }
        }
        let own = [("sockets", &sockets), ("local4", &local4), ("local6", &local6)];
        let config = PortProgram { port, mac, is_partial };
        Ok(Trial {
            program: self.load("forward", &config, &own)?,
            look_up: self.load("look_up", &config, &own)?,
        })
    }
}

impl Trial {
    /// Runs the program on a frame of at least 14 bytes.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn frame(&self, frame: &[u8]) -> io::Result<Tried> {
        const DROP: u32 = 1;
        const REDIRECT: u32 = 4;
        match bpf::try_frame(&self.program, frame)? {
            (REDIRECT, frame) => Ok(Tried::Sent(frame)),
            (DROP, _) => Ok(Tried::Dropped),
            (_, after) if after == frame => Ok(Tried::Passed),
            (action, _) => Err(io::Error::other(format!("changed, and then {action}"))),
        }
    }

    /// The group of a destination.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn group(&self, destination: IpAddr) -> io::Result<Option<u32>> {
        let mut frame = [0_u8; 20];
        match destination {
            IpAddr::V4(v4) => {
                frame[0] = 4;
                frame[4..8].copy_from_slice(&v4.octets());
            }
            IpAddr::V6(v6) => frame[4..].copy_from_slice(&v6.octets()),
        }
        let (group, _) = bpf::try_frame(&self.look_up, &frame)?;
        Ok((group != u32::MAX).then_some(group))
    }
}
