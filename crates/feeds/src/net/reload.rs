//! Replaces the sources by others: all of them, or none.

use std::collections::BTreeSet;
use std::sync::Arc;

use fibula_core::AnyPrefix;

use super::hub::Hub;
use super::slots::Thing;
use super::source::{Endpoint, FeedSource, FeedSourceError, Listen};
use fibula_rib::Listener;

use crate::{Clock, FeedError};

/// The TCP MD5 keys that the door of a source had.
type Keys = (String, Vec<(AnyPrefix, Vec<u8>)>);

impl Hub {
    /// Everything that can fail is done while the sources still run as they did. If anything fails, the reasons are
    /// returned and nothing has changed.
    pub(super) fn reload(
        &mut self,
        sources: Vec<FeedSource>,
        to: &mut dyn Listener,
    ) -> Result<Vec<FeedSourceError>, FeedError> {
        let mut failed = refused(&sources);
        if !failed.is_empty() {
            return Ok(failed);
        }
        let stays = |source: &FeedSource| {
            let running = self.sources.get(&*source.name);
            running.is_some_and(|running| running.identity == source.identity())
        };
        let (mut stay, new): (Vec<_>, Vec<_>) = sources.into_iter().partition(stays);
        let is_gone = |name: &&Arc<str>| !stay.iter().any(|source| *source.name == ***name);
        let gone: Vec<Arc<str>> = self.sources.keys().filter(is_gone).cloned().collect();

        let shut = self.make_way(&gone, &new);
        let mut made = Vec::new();
        for source in new {
            match self.make(source) {
                Ok(one) => made.push(one),
                Err(error) => failed.push(error),
            }
        }
        let keys = self.change_keys(&mut stay, &mut failed);
        if !failed.is_empty() {
            for (name, before) in keys {
                // These settings were accepted before.
                self.door_mut(&name).map(|door| door.set_keys(before));
            }
            for one in made {
                if let Thing::Folder(folder) = one.thing {
                    folder.close(self.poll.registry());
                }
            }
            shut.into_iter().for_each(|key| self.reopen(key));
            return Ok(failed);
        }

        for name in gone {
            self.remove(&name, to)?;
        }
        for one in made {
            self.start(one);
        }
        for source in stay {
            if let Endpoint::Listen(listen) = source.endpoint {
                self.change(&source.name, listen, to)?;
            }
        }
        Ok(failed)
    }

    /// Closes the doors that are removed and whose ports new doors use: two sockets cannot listen on 0.0.0.0 and on
    /// 127.0.0.1 at one port. Connections stay.
    fn make_way(&mut self, gone: &[Arc<str>], new: &[FeedSource]) -> Vec<usize> {
        let ports: BTreeSet<u16> = new
            .iter()
            .filter_map(|source| match &source.endpoint {
                Endpoint::Listen(listen) => Some(listen.address.port()),
                _ => None,
            })
            .collect();
        let mut shut = Vec::new();
        for name in gone {
            let key = self.sources[name].main;
            if let Some(door) = self.door_mut(name)
                && ports.contains(&door.address.port())
            {
                door.shut();
                shut.push(key);
            }
        }
        shut
    }

    /// Sets the new keys of the doors that stay, and returns their previous keys.
    fn change_keys(
        &mut self,
        stay: &mut [FeedSource],
        failed: &mut Vec<FeedSourceError>,
    ) -> Vec<Keys> {
        let mut before = Vec::new();
        for source in stay {
            let Endpoint::Listen(listen) = &mut source.endpoint else { continue };
            let Some(door) = self.door_mut(&source.name) else { continue };
            before.push((source.name.clone(), door.keys()));
            if let Err(error) = door.set_keys(std::mem::take(&mut listen.keys)) {
                let (name, address) = (source.name.clone(), listen.address);
                failed.push(FeedSourceError::Listen { name, address, error });
            }
        }
        before
    }

    /// Replaces the speakers of a source that keeps its listening address.
    fn change(
        &mut self,
        name: &str,
        listen: Listen,
        to: &mut dyn Listener,
    ) -> Result<(), FeedError> {
        let Some((name, running)) = self.sources.get_key_value(name) else { return Ok(()) };
        let (name, sessions) = (Arc::clone(name), running.sessions.clone());
        let Some(door) = self.door_mut(&name) else { return Ok(()) };
        door.change(listen);
        for (address, key) in sessions {
            let speaker = self.door(&name).and_then(|door| door.speaker(address));
            let Some(Thing::Link(link)) = self.slots.get(key).map(|slot| &slot.thing) else {
                continue;
            };
            if speaker.is_none_or(|speaker| speaker.settings != link.settings) {
                self.end(key, to)?;
            }
        }
        self.name_hosts(&name);
        Ok(())
    }

    /// Opens a closed door again.
    pub(super) fn reopen(&mut self, key: usize) {
        let now = self.clock.now();
        let Self { slots, poll, on_report, .. } = self;
        if let Some(slot) = slots.get_mut(key)
            && let Thing::Door(door) = &mut slot.thing
        {
            door.reopen(poll.registry(), now, on_report);
        }
        self.settle(key, now);
    }
}

/// Checks the sources before any of them is opened.
fn refused(sources: &[FeedSource]) -> Vec<FeedSourceError> {
    let mut names = BTreeSet::new();
    let twice = |source: &FeedSource| match names.insert(source.name.clone()) {
        true => source.check().err(),
        false => Some(FeedSourceError::Twice { name: source.name.clone() }),
    };
    sources.iter().filter_map(twice).collect()
}
