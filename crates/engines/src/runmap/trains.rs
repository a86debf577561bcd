//! Batches in which addresses stand several times in succession, as those of a flow's packets do. Each such train is
//! looked up once. On a Zen 4 this is 1.5 to 2 times as fast if trains have 16 addresses, and 1.4 times if they have 8
//! on average, of any length (`docs/engines/runmap-notes.md`). It has no branch that depends on the lengths:
//! mispredicted, those would cost more than the lookups. Plain code and AVX2 gain nothing and do without.

use fibula_simd::{Kernel, Level, Row, Simd, byte_marks, prefetch_read_l2};

use super::batch::Answer;

/// Number of pairs of neighbours that are compared to detect trains.
const SAMPLE: usize = 16;
/// The number of them that must be equal.
const EQUAL: usize = 13;
/// Number of addresses whose trains are found together.
const BLOCK: usize = 256;
/// Number of addresses that are compared together. Shorter batches are looked up without trains.
const GROUP: usize = 64;
/// Addresses that are packed together.
const ROW: usize = 16;
/// Hops that are written together.
const HALF_ROW: usize = 8;
/// How far ahead addresses are prefetched, for the reasons that `batch.rs` gives: less far than there, into the second
/// level, which is 1.03 times as fast with addresses from memory.
const AHEAD: usize = 2048 / size_of::<u32>();

/// Whether a batch consists of trains, judging by its first addresses.
#[inline(always)]
pub(super) fn come(addrs: &[u32]) -> bool {
    if addrs.len() <= GROUP {
        return false;
    }
    let (before, behind) = (&addrs[..SAMPLE], &addrs[1..=SAMPLE]);
    before.iter().zip(behind).filter(|(before, behind)| before == behind).count() >= EQUAL
}

/// Looks up the first address of each train.
#[inline(never)]
pub(super) fn look_up<A: Answer>(
    level: Level,
    addrs: &[u32],
    hops: &mut [A],
    look_up: impl Fn(&[u32], &mut [A]),
) {
    let mut masks = [0; BLOCK / GROUP];
    let mut firsts = [0; BLOCK + ROW];
    for (addrs, hops) in addrs.chunks(BLOCK).zip(hops.chunks_mut(BLOCK)) {
        if addrs.len() <= GROUP {
            look_up(addrs, hops);
            continue;
        }
        let count = level.run(Starts { addrs, masks: &mut masks, firsts: &mut firsts });
        look_up(&firsts[..count], &mut hops[..count]);
        level.run(Spread { masks: &masks, count, hops });
    }
}

/// Finds the first address of each train; the number of trains. The masks have a bit for each of these addresses.
struct Starts<'a> {
    addrs: &'a [u32],
    masks: &'a mut [u64; BLOCK / GROUP],
    firsts: &'a mut [u32; BLOCK + ROW],
}

impl Kernel for Starts<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        let Self { addrs, masks, firsts } = self;
        let mut count = 0;
        for ((group, row_addrs), mask) in addrs.chunks(GROUP).enumerate().zip(masks) {
            *mask = marks(addrs, group * GROUP);
            let mut marks = *mask;
            let (rows, rest) = row_addrs.as_chunks::<ROW>();
            for row in rows {
                prefetch_read_l2(row, AHEAD);
                let to = firsts[count..].first_chunk_mut::<ROW>().expect("room for a row");
                *to = simd.row(row).pack(marks as u16).words();
                count += (marks as u16).count_ones() as usize;
                marks >>= ROW;
            }
            for &addr in rest {
                firsts[count] = addr;
                count += (marks & 1) as usize;
                marks >>= 1;
            }
        }
        count
    }
}

/// Which of the addresses from this place on, up to a group of them, are the first ones of trains. There is more than a
/// group in all.
#[inline(always)]
fn marks(addrs: &[u32], at: usize) -> u64 {
    // Where there are fewer from there on, or none before, a group that overlaps it is compared.
    let start = at.clamp(1, addrs.len() - GROUP);
    let before = addrs[start - 1..].first_chunk::<GROUP>().expect("a group");
    let behind = addrs[start..].first_chunk::<GROUP>().expect("a group");
    let mut differ = [0; GROUP];
    for i in 0..GROUP {
        differ[i] = u8::from(before[i] != behind[i]);
    }
    let marks = byte_marks(&differ, 1);
    if at == 0 { marks << 1 | 1 } else { marks >> (at - start) }
}

/// Writes the hops, of which there is one for each train at the front, to all their places: from the back on, so that
/// none is overwritten before it is read.
struct Spread<'a, A> {
    masks: &'a [u64; BLOCK / GROUP],
    count: usize,
    hops: &'a mut [A],
}

impl<A: Answer> Kernel for Spread<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // Trains that start before a row, or in it.
        let Self { masks, mut count, hops } = self;
        let marks = |at: usize| masks[at / GROUP] >> (at % GROUP);
        let row = simd.splat_half_row(0);
        let rows = hops.len() / HALF_ROW;
        for at in (rows * HALF_ROW..hops.len()).rev() {
            hops[at] = hops[count - 1];
            count -= (marks(at) & 1) as usize;
        }
        for at in (0..rows).rev().map(|row| row * HALF_ROW) {
            let mask = marks(at) as u8;
            count -= mask.count_ones() as usize;
            // The train of the row's first address starts with it, or before.
            let train = count + usize::from(mask & 1) - 1;
            let found = hops[train..].first_chunk::<HALF_ROW>().expect("a row");
            let mut words = [0; HALF_ROW];
            for i in 0..HALF_ROW {
                words[i] = found[i].code();
            }
            let places = row.halves(&TRAINS[usize::from(mask)]);
            let words = row.load(&words).pick(places).words();
            let to = hops[at..].first_chunk_mut::<HALF_ROW>().expect("a row");
            for i in 0..HALF_ROW {
                to[i] = A::of(words[i]);
            }
        }
    }
}

/// For each mask, in which train each place of a row is, counted from that of the first place.
static TRAINS: [[u16; HALF_ROW]; 256] = {
    let mut trains = [[0; HALF_ROW]; 256];
    let mut mask = 0;
    while mask < 256 {
        let mut at = 1;
        while at < HALF_ROW {
            trains[mask][at] = trains[mask][at - 1] + (mask >> at & 1) as u16;
            at += 1;
        }
        mask += 1;
    }
    trains
};

#[cfg(test)]
mod tests {
    use fibula_core::{Engine, Hop, Lookup};
    use fibula_simd::Isa;
    use fibula_testkit::{Rng, probes};

    use super::super::tests::{WIDTHS, up_to};
    use super::super::{Config, Runmap};
    use super::*;

    /// Trains of any length, in batches of any length, in every instruction set, though only one of them looks trains
    /// up once.
    #[test]
    fn every_address_has_its_hop() {
        let mut rng = Rng::new(7);
        let routes = up_to(300);
        let probes: Vec<u32> = probes::boundary(&routes).collect();
        let mut with_trains = 0;
        let isas = Isa::available();
        for (&isa, width) in isas.iter().flat_map(|isa| WIDTHS.map(|width| (isa, width))) {
            let runmap = Runmap::build(&routes, &Config { width: Some(width), isa }).unwrap();
            for round in 0..400 {
                let longest = [1, 2, 20, 70, 300][round % 5];
                let len = rng.below(700) as usize;
                let mut addrs = vec![];
                while addrs.len() < len {
                    let addr = rng.choose(&probes).unwrap();
                    addrs.extend((0..=rng.below(longest)).map(|_| addr));
                }
                addrs.truncate(len);
                with_trains += usize::from(come(&addrs));
                let expected: Vec<Hop> = addrs.iter().map(|&addr| runmap.lookup(addr)).collect();
                let mut hops = vec![Hop::new(7); len];
                runmap.lookup_batch(&addrs, &mut hops);
                assert_eq!(hops, expected, "{width:?} {isa}");
                hops.fill(Hop::new(7));
                look_up(isa.level(), &addrs, &mut hops, |addrs, hops| {
                    runmap.lookup_batch(addrs, hops);
                });
                assert_eq!(hops, expected, "{width:?} {isa}, the trains of {len} addresses");
                let narrow: Vec<u16> = expected.iter().map(|hop| hop.to_bits() as u16).collect();
                let mut hops16 = vec![7; len];
                runmap.lookup_batch16(&addrs, &mut hops16);
                assert_eq!(hops16, narrow, "{width:?} {isa}, 16 bits");
            }
        }
        assert!(with_trains > 100, "{with_trains} batches of trains");
    }
}
