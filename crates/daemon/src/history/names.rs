//! The names of tables and peers, which are numbers in changes.

use std::collections::HashMap;
use std::sync::Arc;

use fibula_core::Vrf;
use fibula_rib::{Changed, Live, Peer, Rib};

/// The most names of a kind that are remembered.
const MOST: usize = 65_536;

/// Names by number. A number never stands for another name while the program runs.
#[derive(Default)]
pub struct Names {
    tables: HashMap<Vrf, Arc<str>>,
    peers: HashMap<u32, Arc<Peer>>,
}

impl Names {
    /// Learns the names of these changes.
    pub fn learn(&mut self, live: &Live, changes: &[Changed]) {
        let is_unknown = |change: &&Changed| {
            !self.tables.contains_key(&change.vrf) || !self.peers.contains_key(&change.peer)
        };
        let unknown: Vec<_> = changes.iter().filter(is_unknown).collect();
        if !unknown.is_empty() {
            live.with_rib(|rib| {
                for change in unknown {
                    self.learn_table(rib, change.vrf);
                    self.learn_peer(rib, change.peer);
                }
            });
        }
    }

    pub fn learn_table(&mut self, rib: &Rib, vrf: Vrf) {
        if self.tables.contains_key(&vrf) {
            return;
        }
        if let Some(name) = rib.vrf_name(vrf) {
            if self.tables.len() >= MOST {
                self.tables.clear();
            }
            self.tables.insert(vrf, Arc::from(&**name));
        }
    }

    pub fn learn_peer(&mut self, rib: &Rib, number: u32) {
        if self.peers.contains_key(&number) {
            return;
        }
        if let Some(peer) = rib.peers().get(number) {
            if self.peers.len() >= MOST {
                self.peers.clear();
            }
            self.peers.insert(number, Arc::new(peer.clone()));
        }
    }

    /// The table's name, or its number if it has none.
    pub fn table(&self, vrf: Vrf) -> Arc<str> {
        self.tables.get(&vrf).cloned().unwrap_or_else(|| vrf.to_string().into())
    }

    pub fn peer(&self, number: u32) -> Option<Arc<Peer>> {
        self.peers.get(&number).cloned()
    }
}
