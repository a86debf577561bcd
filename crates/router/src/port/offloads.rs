//! Offloads of an interface that make frames longer than a slot, or hide their VLAN tags from XDP programs.

use std::io;

use super::system::{Interface, NEEDS_ADMIN, explain};

/// An offload, which `ethtool -K` turns off by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// The kernel merges received packets of a flow.
    Gro,
    /// The device does.
    Lro,
    /// The device takes VLAN tags off.
    RxVlan,
}

impl Offload {
    const ALL: [Self; 3] = [Self::Gro, Self::Lro, Self::RxVlan];

    /// The name in ethtool.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::RxVlan => "rxvlan",
        }
    }

    /// The requests that read and write it, and its bit of their value: ETHTOOL_GGRO and SGRO, or GFLAGS and SFLAGS.
    const fn requests(self) -> (u32, u32, u32) {
        match self {
            Self::Gro => (0x2b, 0x2c, 1),
            Self::Lro => (0x25, 0x26, 1 << 15),
            Self::RxVlan => (0x25, 0x26, 1 << 8),
        }
    }

    fn read(self, interface: &Interface) -> io::Result<u32> {
        let mut value = [0_u8; 8]; // struct ethtool_value
        value[..4].copy_from_slice(&self.requests().0.to_ne_bytes());
        interface.ethtool(&mut value)?;
        Ok(u32::from_ne_bytes([value[4], value[5], value[6], value[7]]))
    }

    fn set(self, interface: &Interface, is_on: bool) -> io::Result<()> {
        let (_, set, bit) = self.requests();
        let before = self.read(interface)?;
        let after = if is_on { before | bit } else { before & !bit };
        let mut value = [0_u8; 8];
        value[..4].copy_from_slice(&set.to_ne_bytes());
        value[4..].copy_from_slice(&after.to_ne_bytes());
        interface.ethtool(&mut value)
    }
}

/// The offloads of an interface. Those that were turned off are turned on again when this is dropped.
pub struct Offloads {
    interface: Interface,
    on: Vec<Offload>,
    turned_off: Vec<Offload>,
}

impl Offloads {
    /// Those of the interface that a port is opened on: `find("afxdp", "eth1")`.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn find(kind: &str, name: &str) -> io::Result<Self> {
        let interface = Interface::find(kind, name)?;
        // What a driver does not know is off.
        let is_on = |offload: &Offload| {
            offload.read(&interface).is_ok_and(|value| value & offload.requests().2 != 0)
        };
        let on = Offload::ALL.into_iter().filter(is_on).collect();
        Ok(Self { interface, on, turned_off: Vec::new() })
    }

    /// Those that are on.
    pub fn on(&self) -> &[Offload] {
        &self.on
    }

    /// Turns them off.
    ///
    /// # Errors
    /// If the driver cannot do this, or a right is missing (CAP_NET_ADMIN).
    pub fn turn_off(&mut self) -> io::Result<()> {
        while let Some(&offload) = self.on.last() {
            offload.set(&self.interface, false).map_err(|error| {
                let what = format!("{} cannot be turned off: {NEEDS_ADMIN}", offload.name());
                explain(&self.interface.port, &what, error)
            })?;
            self.on.pop();
            self.turned_off.push(offload);
        }
        Ok(())
    }
}

impl Drop for Offloads {
    fn drop(&mut self) {
        for offload in &self.turned_off {
            // The interface may be gone.
            let _ = offload.set(&self.interface, true);
        }
    }
}
