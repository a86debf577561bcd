//! Caches and packets of the experiments.

use std::hint::black_box;

use fibula_classify::{Context, Field, Flow, MISS, Mask, Match};
use fibula_packet::{Frame, LinkType};
use fibula_papers::forms::{Batch, Cache, Form, Searcher};
use fibula_simd::Isa;
use fibula_testkit::Rng;

/// The input port, the fields that classify an IP packet, and the protocol, as Open vSwitch's megaflows have them;
/// prefixes of both addresses of 13 to 32 bits, others for each mask, and the destination port in every other mask.
pub fn mask(number: usize) -> Mask {
    let exact = [Field::InPort, Field::EthType, Field::IpVersion, Field::Fragment, Field::Protocol];
    let mut mask = exact.into_iter().fold(Mask::EMPTY, |mask, field| mask | Mask::exact(field));
    let lengths = (13 + number / 20 % 20, 32 - number % 20);
    mask |= Mask::prefix(Field::Ipv4Src, lengths.0 as u32);
    mask |= Mask::prefix(Field::Ipv4Dst, lengths.1 as u32);
    if number % 2 == 1 {
        mask |= Mask::exact(Field::DstPort) | Mask::exact(Field::Transport);
    }
    mask
}

/// The bytes of a frame.
pub type Bytes = [u8; 64];

/// A TCP packet over IPv4 between random ends, with or without a VLAN tag.
fn frame(random: &mut Rng, tagged: bool) -> Bytes {
    let mut frame = [0; 64];
    frame[..12].copy_from_slice(b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02");
    let mut at = 12;
    if tagged {
        frame[12..16].copy_from_slice(b"\x81\0\0\x05");
        at = 16;
    }
    frame[at..at + 6].copy_from_slice(b"\x08\0\x45\0\0\x2e");
    let ip = at + 2;
    (frame[ip + 8], frame[ip + 9]) = (64, 6);
    frame[ip + 12..ip + 20].copy_from_slice(&random.next_u64().to_be_bytes());
    frame[ip + 20..ip + 24].copy_from_slice(&(random.next_u64() as u32).to_be_bytes());
    (frame[ip + 32], frame[ip + 33]) = (0x50, 0x10);
    frame
}

/// The protocol of packets without a megaflow.
const UDP: u8 = 17;

/// Where the protocol is in a frame.
fn protocol_at(frame: &Bytes) -> usize {
    let tag = if frame[12..14] == [0x81, 0] { 4 } else { 0 };
    14 + tag + 9
}

/// The packets, and the megaflows that they belong to.
pub struct Set {
    pub frames: Vec<Bytes>,
    pub megaflows: Vec<Match>,
}

/// Where packets arrive.
pub const PORT: Context = Context { in_port: 1, mark: 0, metadata: 0, tunnel_id: 0 };

impl Set {
    /// So many megaflows of each of so many masks; packets that belong to one of them, drawn at random; so many of
    /// 100 have a VLAN tag.
    pub fn new(masks: usize, rules: usize, packets: usize, tagged: u64, seed: u64) -> Self {
        let mut random = Rng::new(seed);
        let mut set = Self { frames: Vec::new(), megaflows: Vec::new() };
        let mut all = Vec::new();
        for number in 0..masks {
            for _ in 0..rules {
                let is_tagged = random.below(100) < tagged;
                let frame = frame(&mut random, is_tagged);
                all.push(frame);
                set.megaflows.push(Match::new(flow(&frame), mask(number)));
            }
        }
        set.frames.extend((0..packets).map(|_| all[random.below(all.len() as u64) as usize]));
        set
    }

    /// The same, but so many of 100 packets belong to no megaflow: their protocol is UDP, which none has.
    pub fn with_misses(mut self, percent: u64, seed: u64) -> Self {
        let mut random = Rng::new(seed);
        for frame in &mut self.frames {
            if random.below(100) < percent {
                frame[protocol_at(frame)] = UDP;
            }
        }
        self
    }

    /// The packets that belong to one.
    pub fn hits(&self) -> usize {
        self.frames.iter().filter(|frame| frame[protocol_at(frame)] != UDP).count()
    }

    /// A cache of the megaflows, numbered by their places.
    pub fn cache(&self, form: Form, isa: Isa) -> Cache {
        let mut cache = Cache::with(form, isa, 1);
        for (number, megaflow) in (0..).zip(&self.megaflows) {
            cache.insert(*megaflow, number);
        }
        cache
    }

    /// A batch of some of the packets.
    pub fn batch(&self, form: Form, packets: std::ops::Range<usize>) -> Batch {
        let mut batch = Batch::new(form);
        fill(&mut batch, &self.frames[packets]);
        batch
    }

    /// Searches for all packets: the first whose answer is none of its megaflows, or a megaflow where it has none.
    pub fn check(&self, cache: &Cache, searcher: &mut Searcher, together: usize) -> Option<usize> {
        let mut numbers = vec![0; self.frames.len()];
        run(cache, searcher, &self.frames, together, &mut numbers);
        self.frames.iter().zip(numbers).position(|(frame, number)| {
            let matches = |megaflow: &Match| megaflow.matches(&flow(frame));
            match frame[protocol_at(frame)] {
                UDP => number != MISS,
                _ => !self.megaflows.get(number as usize).is_some_and(matches),
            }
        })
    }
}

fn flow(bytes: &[u8]) -> Flow {
    let mut flow = Flow::from(&Frame::parse(LinkType::Ethernet, bytes));
    flow.set(Field::InPort, PORT.in_port.into());
    flow
}

/// From the frames' bytes to the numbers of their megaflows.
pub fn run(
    cache: &Cache,
    searcher: &mut Searcher,
    frames: &[Bytes],
    together: usize,
    numbers: &mut [u32],
) {
    let mut batch = Batch::new(cache.form());
    for (frames, numbers) in frames.chunks(together).zip(numbers.chunks_mut(together)) {
        fill(&mut batch, frames);
        searcher.search(cache, &batch, numbers);
    }
}

/// The same without the search.
pub fn extract(form: Form, frames: &[Bytes], together: usize) {
    let mut batch = Batch::new(form);
    for frames in frames.chunks(together) {
        fill(&mut batch, frames);
        black_box(&mut batch);
    }
}

/// Parses and extracts a batch.
fn fill(batch: &mut Batch, frames: &[Bytes]) {
    batch.clear();
    for bytes in frames {
        batch.push_frame(&Frame::parse(LinkType::Ethernet, bytes), &PORT);
    }
}
