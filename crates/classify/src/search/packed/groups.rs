//! Subtables in the lanes of a vector: a packet is looked up in a group of them at once.

use fibula_simd::{Lanes, Simd};

use super::lanes::passes;
use super::plan::{GROUP, Lane, Masks};
use super::{Pending, Run};
use crate::WORDS;
use crate::batch::{Batch, STRIDE};
use crate::hash::{mix, product};

impl<S: Simd> Run<'_, S> {
    /// Searches for all live rows from a subtable on, a group of them at once, until a filter lets them pass. No
    /// branch depends on a packet.
    #[inline(always)]
    pub(super) fn last(&mut self, from: usize) {
        let mut rest = 0;
        for row in self.live.iter() {
            self.scratch.rest[rest % Batch::MAX] = self.packet(row) as u32;
            rest += 1;
        }
        for g in from / GROUP..self.plan.groups.len() {
            let first = (g * GROUP).max(from);
            let (begin, mut left) = (self.pending, 0);
            for i in 0..rest {
                let packet = self.scratch.rest[i % Batch::MAX];
                let (pass, hashes) = self.group(packet as usize, g);
                let pass = pass >> (first % GROUP) << (first % GROUP);
                let lane = pass.trailing_zeros() as usize % GROUP;
                let rank = (g * GROUP + lane) as u32;
                if let Some(to) = self.scratch.pending.get_mut(self.pending) {
                    *to = Pending { packet, rank, hash: hashes[lane] };
                }
                self.pending += usize::from(pass != 0);
                self.scratch.rest[left % Batch::MAX] = packet;
                left += usize::from(pass == 0);
            }
            for i in begin..self.pending {
                let Pending { rank, hash, .. } = self.scratch.pending[i];
                self.search.counts.subtables += u64::from(rank) + 1 - first as u64;
                if let Some(table) = self.ranked(rank as usize) {
                    table.prefetch(hash as u32);
                }
            }
            let tables = self.search.order.len().min((g + 1) * GROUP) - first;
            self.search.counts.subtables += (left * tables) as u64;
            rest = left;
            if rest == 0 {
                break;
            }
        }
    }

    /// Searches for a packet from a subtable on, until a filter lets it pass.
    #[inline(always)]
    pub(super) fn packet_from(&mut self, packet: usize, from: usize) {
        for g in from / GROUP..self.plan.groups.len() {
            let skip = from.saturating_sub(g * GROUP);
            let (pass, hashes) = self.group(packet, g);
            let pass = pass >> skip << skip;
            if pass != 0 {
                let lane = pass.trailing_zeros() as usize % GROUP;
                let rank = g * GROUP + lane;
                self.search.counts.subtables += (rank + 1 - from) as u64;
                if let Some(table) = self.ranked(rank) {
                    self.pend(table, packet, rank, hashes[lane]);
                }
                return;
            }
        }
        self.search.counts.subtables += self.search.order.len().saturating_sub(from) as u64;
    }

    /// Which filters of a group let a packet pass, and its hashes for them.
    #[inline(always)]
    fn group(&self, packet: usize, g: usize) -> (u32, Lane) {
        let (simd, plan) = (self.simd, self.plan);
        let filters = &self.search.cache.filters[..];
        let columns = &self.search.batch.columns[..WORDS * STRIDE];
        let group = &plan.groups[g];
        let words = plan.masks(group);
        let (mut pass, mut hashes) = (0u32, [0; GROUP]);
        for at in (0..GROUP).step_by(Self::N) {
            let mut sum = S::Lanes::load(simd, &group.base, at);
            for Masks { word, key, masks } in words {
                let value = S::Lanes::splat(simd, columns[word * STRIDE + packet]);
                let masked = value.and(S::Lanes::load(simd, masks, at));
                sum = sum.add64(product(masked, S::Lanes::splat(simd, *key)));
            }
            let hash = mix(sum);
            hash.store(&mut hashes, at);
            let start = S::Lanes::load(simd, &group.start, at);
            let len = S::Lanes::load(simd, &group.len, at);
            let lanes = u32::from(passes(hash, start, len, filters)) & ((1 << Self::N) - 1);
            pass |= lanes << at;
        }
        (pass, hashes)
    }
}
