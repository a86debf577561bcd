//! The TCP MD5 keys of a listening socket, which change with its configuration.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;

use fibula_core::AnyPrefix;

#[cfg(target_os = "linux")]
use crate::bgp::set_md5_key;

#[cfg(not(target_os = "linux"))]
fn set_md5_key(_: &impl AsFd, _: AnyPrefix, _: Option<&[u8]>) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "TCP MD5 keys are known on Linux alone"))
}

/// The keys that the socket has.
#[derive(Default)]
pub(super) struct Keys(HashMap<AnyPrefix, Vec<u8>>);

impl Keys {
    /// The keys of a socket that is still to be created.
    pub(super) fn of(keys: Vec<(AnyPrefix, Vec<u8>)>) -> Self {
        Self(keys.into_iter().collect())
    }

    pub(super) fn all(&self) -> Vec<(AnyPrefix, Vec<u8>)> {
        self.0.iter().map(|(from, key)| (*from, key.clone())).collect()
    }

    /// Sets the keys of the socket and removes all others. A failed change is tried again with the next configuration.
    pub(super) fn set(
        &mut self,
        socket: &impl AsFd,
        wanted: Vec<(AnyPrefix, Vec<u8>)>,
    ) -> io::Result<()> {
        let is_wanted = |from: &AnyPrefix| wanted.iter().any(|(wanted, _)| wanted == from);
        let gone: Vec<AnyPrefix> = self.0.keys().copied().filter(|from| !is_wanted(from)).collect();
        for from in gone {
            match set_md5_key(socket, from, None) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => self.0.remove(&from),
            };
        }
        for (from, key) in wanted {
            if self.0.get(&from) != Some(&key) {
                set_md5_key(socket, from, Some(&key))?;
                self.0.insert(from, key);
            }
        }
        Ok(())
    }
}
