//! Next-hop objects, and the routes that use them.

use std::collections::{BTreeSet, HashMap};

use fibula_core::{NextHop, NextHops, RouteKind};

use super::next_hop::Content;
use super::users::{Key, Users};

/// The next-hop objects of a feed by number. When a next hop is replaced, the routes that use it are announced again.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Where an object stands in `all`, by its number.
    places: HashMap<u32, u32>,
    all: Vec<Object>,
    free: Vec<u32>,
    users: Users,
    /// The objects that have changed since their routes were announced.
    changed: BTreeSet<u32>,
}

#[derive(Debug, Default)]
struct Object {
    id: u32,
    /// `None` for a number that routes or groups name and that was not announced.
    content: Option<Content>,
    /// The next hops that its routes are announced with; see [`Objects::next_hops`].
    next_hops: NextHops,
    /// Routes that use it.
    users: usize,
    /// Groups that it is a member of.
    groups: BTreeSet<u32>,
}

impl Objects {
    /// Adds an object, or replaces the one with this number.
    pub(super) fn set(&mut self, id: u32, content: Content) -> Result<(), &'static str> {
        let place = self.place(id)?;
        self.leave_groups(place);
        if let Content::Group(members) = &content {
            for member in members {
                let member = self.place(member.id)?;
                self.all[member as usize].groups.insert(place);
            }
        }
        self.all[place as usize].content = Some(content);
        self.resolve(place);
        Ok(())
    }

    /// Removes an object and the routes that use it. Returns these routes.
    pub(super) fn remove(&mut self, id: u32) -> Option<Vec<Key>> {
        let place = *self.places.get(&id)?;
        let object = &mut self.all[place as usize];
        object.content.as_ref()?;
        let mut users = Vec::with_capacity(object.users);
        if object.users > 0 {
            self.users.of(|number| number == place, |key, _| users.push(key));
        }
        for &key in &users {
            self.users.remove(key);
        }
        self.changed.remove(&place);
        self.leave_groups(place);
        let object = &mut self.all[place as usize];
        (object.content, object.users) = (None, 0);
        self.resolve(place);
        self.free_if_unused(place);
        Some(users)
    }

    /// Whether an object of this number was announced.
    pub(super) fn has(&self, id: u32) -> bool {
        self.places.get(&id).is_some_and(|&place| self.all[place as usize].content.is_some())
    }

    /// A route uses this object from now on. Gives its next hops: none of them if it was not announced.
    pub(super) fn used(&mut self, key: Key, id: u32) -> Result<&NextHops, &'static str> {
        let place = self.place(id)?;
        let old = self.users.set(key, place);
        if old != Some(place) {
            self.all[place as usize].users += 1;
            self.left(old);
        }
        Ok(&self.all[place as usize].next_hops)
    }

    /// Whether this route uses an object.
    pub(super) fn is_user(&self, key: Key) -> bool {
        self.users.has(key)
    }

    /// A route uses no object from now on.
    pub(super) fn unused(&mut self, key: Key) {
        if !self.places.is_empty() {
            let old = self.users.remove(key);
            self.left(old);
        }
    }

    /// Calls `each` for the routes whose next hops changed since the last call, with the current next hops.
    pub(super) fn settle(&mut self, mut each: impl FnMut(Key, &NextHops)) {
        if self.changed.is_empty() {
            return;
        }
        let changed = std::mem::take(&mut self.changed);
        if changed.iter().all(|&place| self.all[place as usize].users == 0) {
            return;
        }
        let is_changed = |place| changed.contains(&place);
        self.users.of(is_changed, |key, place| each(key, &self.all[place as usize].next_hops));
    }

    /// Whether [`Objects::settle`] may have something to give.
    pub(super) fn is_unsettled(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The place of this number, a new one if it has none.
    fn place(&mut self, id: u32) -> Result<u32, &'static str> {
        if let Some(&place) = self.places.get(&id) {
            return Ok(place);
        }
        let object = Object { id, ..Object::default() };
        let place = match self.free.pop() {
            Some(place) => {
                self.all[place as usize] = object;
                place
            }
            None => {
                let place = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
                if place >= Users::NUMBERS {
                    return Err("there are more than 16 million next-hop objects");
                }
                self.all.push(object);
                place
            }
        };
        self.places.insert(id, place);
        Ok(place)
    }

    /// A route does not use this one any more.
    fn left(&mut self, old: Option<u32>) {
        if let Some(place) = old {
            self.all[place as usize].users -= 1;
            self.free_if_unused(place);
        }
    }

    fn free_if_unused(&mut self, place: u32) {
        let object = &self.all[place as usize];
        if object.content.is_none() && object.users == 0 && object.groups.is_empty() {
            self.places.remove(&object.id);
            self.changed.remove(&place);
            self.free.push(place);
        }
    }

    /// If it is a group, its members forget it.
    fn leave_groups(&mut self, group: u32) {
        let object = &mut self.all[group as usize];
        if let Some(Content::Group(members)) = object.content.take() {
            for member in members {
                if let Some(&place) = self.places.get(&member.id) {
                    self.all[place as usize].groups.remove(&group);
                    if place != group {
                        self.free_if_unused(place);
                    }
                }
            }
        }
    }

    /// Computes the next hops of an object and of the groups that contain it.
    fn resolve(&mut self, place: u32) {
        let groups = self.all[place as usize].groups.clone();
        for place in std::iter::once(place).chain(groups) {
            let next_hops = self.next_hops(place);
            let object = &mut self.all[place as usize];
            if object.next_hops != next_hops {
                object.next_hops = next_hops;
                if object.users > 0 {
                    self.changed.insert(place);
                }
            }
        }
    }

    /// The next hops of an object, sorted; none, of the type unicast, if it has no content. A group has those of its
    /// members that are next hops themselves: groups do not nest.
    fn next_hops(&self, place: u32) -> NextHops {
        let mut found = NextHops::default();
        let mut add = |content: Option<&Content>, weight| match content {
            Some(Content::Hop(hop)) => found.hops.push(NextHop { weight, ..*hop }),
            Some(Content::Blackhole) => found.kind = RouteKind::Blackhole,
            _ => {}
        };
        match &self.all[place as usize].content {
            Some(Content::Group(members)) => {
                for member in members {
                    let place = self.places.get(&member.id);
                    let content = place.and_then(|&at| self.all[at as usize].content.as_ref());
                    add(content, member.weight);
                }
            }
            content => add(content.as_ref(), 1),
        }
        if !found.hops.is_empty() {
            found.kind = RouteKind::Unicast;
        }
        found.hops.sort_unstable();
        found
    }
}
