//! What is kept of exporters: templates, names and rates of their domains, within the limits.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;

use crate::ExportProtocol;
use crate::counts::ExportCounts;
use crate::limits::FlowLimits;
use crate::sequence::Sequence;
use crate::template::Template;

/// What distinguishes the domains of an exporter. Templates of one are not used for another (RFC 7011, section 8;
/// RFC 3954, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DomainKey {
    pub(crate) protocol: ExportProtocol,
    pub(crate) port: u16,
    /// Of sFlow, whose datagrams may have been relayed.
    pub(crate) agent: Option<IpAddr>,
    pub(crate) id: u32,
}

/// An exporter, by its address.
#[derive(Debug, Default)]
pub(crate) struct Exporter {
    pub(crate) used: u64,
    pub(crate) domains: HashMap<DomainKey, Domain>,
    /// What the domains take in memory, about.
    pub(crate) bytes: usize,
}

/// What a sampling rate applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RateKey {
    All,
    Sampler(u64),
    Interface(u32),
}

/// A set that waits for its template, as a message with this set alone.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) template: u16,
    pub(crate) message: Box<[u8]>,
}

/// A domain of an exporter.
#[derive(Debug, Default)]
pub(crate) struct Domain {
    pub(crate) used: u64,
    pub(crate) templates: HashMap<u16, Template>,
    /// Sorted by key.
    pub(crate) rates: Vec<(RateKey, u32)>,
    pub(crate) interfaces: HashMap<u32, Box<str>>,
    pub(crate) vrfs: HashMap<u32, Box<str>>,
    /// When the exporter started, in milliseconds since 1970.
    pub(crate) system_init: Option<u64>,
    pub(crate) sequence: Sequence,
    /// Sequence numbers of sFlow's samples, by source.
    pub(crate) samples: HashMap<u64, Sequence>,
    held: VecDeque<Held>,
    held_bytes: usize,
    pub(crate) counts: ExportCounts,
    /// What templates, names, rates and sets that wait take in memory, about.
    bytes: usize,
}

/// What entries of maps take, beside their values' own memory.
const DOMAIN: usize = size_of::<(DomainKey, Domain)>() + 64;
const EXPORTER: usize = size_of::<(IpAddr, Exporter)>() + 64;
const NAME: usize = size_of::<(u32, Box<str>)>() + 48;
const RATE: usize = 2 * size_of::<(RateKey, u32)>();
const SAMPLES: usize = 2 * size_of::<(u64, Sequence)>();
const HELD: usize = 2 * size_of::<Held>() + 32;

/// Names are cut at so many bytes.
const LONGEST_NAME: usize = 255;

/// Sources of sFlow's samples whose sequence numbers are followed.
const SAMPLE_SOURCES: usize = 1024;

impl Domain {
    /// Stores a template; returns whether it replaced one with other fields, and whether one was forgotten for it.
    pub(crate) fn define(&mut self, number: u16, template: Template, limit: usize) -> (bool, bool) {
        let mut forgotten = false;
        if self.templates.len() >= limit.max(1) && !self.templates.contains_key(&number) {
            forgotten = self.forget_template();
        }
        self.bytes += template.cost();
        let (specs, scopes) = (template.specs.clone(), template.scopes);
        let old = self.templates.insert(number, template);
        if let Some(old) = &old {
            self.bytes -= old.cost();
        }
        (old.is_some_and(|old| old.specs != specs || old.scopes != scopes), forgotten)
    }

    /// Forgets a template; returns whether it was there.
    pub(crate) fn remove(&mut self, number: u16) -> bool {
        let old = self.templates.remove(&number);
        self.bytes -= old.as_ref().map_or(0, Template::cost);
        old.is_some()
    }

    /// Forgets the template that was not used for the longest time.
    fn forget_template(&mut self) -> bool {
        let oldest = self.templates.iter().min_by_key(|(_, template)| template.used);
        let number = oldest.map(|(number, _)| *number);
        number.is_some_and(|number| self.remove(number))
    }

    pub(crate) fn set_rate(&mut self, key: RateKey, rate: u32, limit: usize) {
        match self.rates.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => self.rates[at].1 = rate,
            Err(at) if self.rates.len() < limit => {
                self.rates.insert(at, (key, rate));
                self.bytes += RATE;
            }
            Err(_) => {}
        }
    }

    pub(crate) fn rate(&self, key: RateKey) -> Option<u32> {
        let at = self.rates.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        self.rates.get(at).map(|(_, rate)| *rate)
    }

    /// The rate of records without a sampler: that of the whole domain, or the only one.
    pub(crate) fn common_rate(&self) -> Option<u32> {
        let only = || match self.rates[..] {
            [(RateKey::Sampler(_), rate)] => Some(rate),
            _ => None,
        };
        self.rate(RateKey::All).or_else(only)
    }

    pub(crate) fn name_interface(&mut self, number: u32, name: &[u8], limit: usize) {
        rename(&mut self.interfaces, &mut self.bytes, number, name, limit);
    }

    pub(crate) fn name_vrf(&mut self, number: u32, name: &[u8], limit: usize) {
        rename(&mut self.vrfs, &mut self.bytes, number, name, limit);
    }

    /// The sequence of a source of sFlow's samples; `None` if too many are followed.
    pub(crate) fn samples_of(&mut self, source: u64) -> Option<&mut Sequence> {
        let full = self.samples.len() >= SAMPLE_SOURCES;
        if full && !self.samples.contains_key(&source) {
            return None;
        }
        Some(self.samples.entry(source).or_default())
    }

    /// Keeps a set until its template comes; returns how many sets were dropped for it, or the set itself was.
    pub(crate) fn hold(&mut self, held: Held, limit: usize) -> u64 {
        let cost = held.cost();
        if cost > limit {
            return 1;
        }
        let mut dropped = 0;
        while self.held_bytes + cost > limit {
            let Some(oldest) = self.held.pop_front() else { break };
            self.unhold(&oldest);
            dropped += 1;
        }
        self.held_bytes += cost;
        self.bytes += cost;
        self.held.push_back(held);
        dropped
    }

    /// Takes the oldest set that waited for a template.
    pub(crate) fn release(&mut self, template: u16) -> Option<Held> {
        let at = self.held.iter().position(|held| held.template == template)?;
        let held = self.held.remove(at)?;
        self.unhold(&held);
        Some(held)
    }

    fn unhold(&mut self, held: &Held) {
        self.held_bytes -= held.cost();
        self.bytes -= held.cost();
    }

    /// What it takes in memory, about.
    pub(crate) fn cost(&self) -> usize {
        DOMAIN + self.bytes + self.samples.len() * SAMPLES
    }
}

impl Held {
    fn cost(&self) -> usize {
        HELD + self.message.len()
    }
}

/// Sets a name, and adds to `bytes` what it takes.
pub(crate) fn rename(
    names: &mut HashMap<u32, Box<str>>,
    bytes: &mut usize,
    number: u32,
    name: &[u8],
    limit: usize,
) {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(&name[..name.len().min(LONGEST_NAME)]);
    let name = name.trim();
    if name.is_empty() || names.len() >= limit && !names.contains_key(&number) {
        return;
    }
    if names.get(&number).is_some_and(|old| **old == *name) {
        return;
    }
    *bytes += NAME + name.len();
    if let Some(old) = names.insert(number, name.into()) {
        *bytes -= NAME + old.len();
    }
}

impl Exporter {
    /// What it takes in memory, about.
    pub(crate) fn cost(&self) -> usize {
        EXPORTER + self.bytes
    }

    /// Forgets until the limits of one exporter hold, domains other than `current` first. Returns how many domains and
    /// templates were forgotten.
    pub(crate) fn trim(&mut self, current: &DomainKey, limits: &FlowLimits) -> u64 {
        let mut forgotten = 0;
        while self.domains.len() > limits.domains.max(1) || self.cost() > limits.exporter_bytes {
            if let Some(key) = least_used(&self.domains, current, |domain| domain.used) {
                self.bytes -= self.domains.remove(&key).map_or(0, |domain| domain.cost());
            } else if let Some(domain) = self.domains.get_mut(current) {
                let before = domain.cost();
                if domain.forget_template() {
                    self.bytes -= before - domain.cost();
                } else {
                    // Names and sets that wait exceed the limit alone.
                    self.bytes -= before;
                    self.domains.remove(current);
                }
            } else {
                break;
            }
            forgotten += 1;
        }
        forgotten
    }
}

/// The key whose value was used least recently.
pub(crate) fn least_used<K: Copy + Eq + Hash, V>(
    map: &HashMap<K, V>,
    except: &K,
    used: impl Fn(&V) -> u64,
) -> Option<K> {
    map.iter().filter(|(key, _)| *key != except).min_by_key(|(_, v)| used(v)).map(|(key, _)| *key)
}
