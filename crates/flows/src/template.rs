//! Templates, and the programs that read their records.

use std::ops::Range;

use crate::elements::{Clock, Element, element};
use crate::fault::ExportFaultKind;
use crate::record::{FlowRecord, Slot, bit};

/// The length that announces a field of variable length.
pub(crate) const VARIABLE: u16 = u16::MAX;

/// A field of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// 0 for the standard numbers.
    pub(crate) enterprise: u32,
    pub(crate) number: u16,
    pub(crate) len: u16,
}

/// A template: its fields, and how their records are read.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) specs: Box<[Spec]>,
    /// The number of scope fields of an options template.
    pub(crate) scopes: Option<u16>,
    /// The length of the shortest record.
    pub(crate) least: usize,
    /// Of a template of flows.
    pub(crate) program: Program,
    /// The decoder's tick of the last use.
    pub(crate) used: u64,
}

/// The longest record: a datagram's.
const LONGEST: usize = 65_535;

impl Template {
    /// A template of fields, of which the first `scopes` are the scope.
    pub(crate) fn new(
        specs: Vec<Spec>,
        scopes: Option<u16>,
        variable: bool,
        used: u64,
    ) -> Result<Self, ExportFaultKind> {
        let least = specs.iter().map(|spec| match spec.len {
            VARIABLE if variable => 1,
            len => usize::from(len),
        });
        let least = least.sum();
        if !(1..=LONGEST).contains(&least) {
            return Err(ExportFaultKind::TemplateLength);
        }
        let program = match scopes {
            None => Program::new(&specs),
            Some(_) => Program::default(),
        };
        Ok(Self { specs: specs.into(), scopes, least, program, used })
    }

    /// What the template takes in memory, about: with its place in a map that may be half empty, and what an allocator
    /// adds to each array.
    pub(crate) fn cost(&self) -> usize {
        let program = &self.program;
        let arrays = size_of_val(&*self.specs)
            + size_of_val(&*program.moves)
            + size_of_val(&*program.parts)
            + size_of_val(&*program.segments);
        2 * size_of::<(u16, Self)>() + arrays + 4 * 24
    }
}

/// Copies an integer of a record to its slot.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// Where the field ends, from the segment's beginning.
    end: u16,
    /// How many upper bits of the eight bytes before that end belong to other fields.
    above: u8,
    slot: u8,
}

/// Bytes of a record with a fixed length, and perhaps a field of variable length behind them.
#[derive(Clone, Debug)]
struct Segment {
    moves: Range<usize>,
    parts: Range<usize>,
    len: usize,
    variable: Option<Target>,
}

/// What a field is used for that is not an integer of fixed length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Integer(u8),
    Wide(u8),
    Duration(u16),
    Frame,
    Packet,
    Skip,
}

/// A field at a place of its segment.
#[derive(Clone, Copy, Debug)]
struct Part {
    at: u16,
    len: u16,
    target: Target,
}

/// Reads the records of a template.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    moves: Box<[Move]>,
    parts: Box<[Part]>,
    segments: Box<[Segment]>,
    /// The slots of fields with a fixed length.
    present: u64,
    wide: u8,
    pub(crate) start: Clock,
    pub(crate) end: Clock,
}

/// The best field of each slot: its rank and number, from which it follows whether a field is used.
#[derive(Clone, Copy, Default)]
struct Best(Option<(u8, usize)>);

impl Best {
    fn offer(&mut self, rank: u8, index: usize) {
        if self.0.is_none_or(|(best, _)| rank < best) {
            self.0 = Some((rank, index));
        }
    }

    fn is(self, index: usize) -> bool {
        self.0.is_some_and(|(_, best)| best == index)
    }
}

/// Which field fills each slot.
struct Choice {
    integers: [Best; 64],
    wide: [Best; 8],
    duration: Best,
}

impl Choice {
    fn of(specs: &[Spec]) -> Self {
        let mut choice = Self {
            integers: [Best::default(); 64],
            wide: [Best::default(); 8],
            duration: Best::default(),
        };
        for (index, spec) in specs.iter().enumerate() {
            match usable(spec) {
                Element::Integer { slot, rank } => {
                    choice.integers[usize::from(slot)].offer(rank, index);
                }
                Element::Wide { slot, rank } => choice.wide[slot as usize].offer(rank, index),
                Element::Time { start, end, rank, .. } => {
                    for (slot, used) in [(Slot::RawStart, start), (Slot::RawEnd, end)] {
                        if used {
                            choice.integers[slot as usize].offer(rank, index);
                        }
                    }
                }
                Element::Duration { .. } => choice.duration.offer(0, index),
                Element::Frame | Element::Packet | Element::Other => {}
            }
        }
        choice
    }
}

/// What a field is for, if its length allows it.
fn usable(spec: &Spec) -> Element {
    let element = element(spec.enterprise, spec.number);
    let len = spec.len;
    let fits = len == VARIABLE
        || match element {
            // Addresses are whole; other integers may be longer or shorter than usual.
            Element::Integer { slot, .. } if slot <= Slot::Exporter4 as u8 => len == 4,
            Element::Integer { .. } | Element::Duration { .. } => (1..=8).contains(&len),
            Element::Wide { .. } => len == 16,
            Element::Time { clock: Clock::Ntp, .. } => len == 8,
            Element::Time { .. } => (1..=8).contains(&len),
            Element::Frame | Element::Packet | Element::Other => true,
        };
    if fits { element } else { Element::Other }
}

impl Program {
    pub(crate) fn new(specs: &[Spec]) -> Self {
        let choice = Choice::of(specs);
        let mut program = Self::default();
        let (mut moves, mut parts, mut segments) = (Vec::new(), Vec::new(), Vec::new());
        let (mut first_move, mut first_part, mut at) = (0, 0, 0usize);
        for (index, spec) in specs.iter().enumerate() {
            let mut targets = [Target::Skip; 2];
            match usable(spec) {
                Element::Integer { slot, .. } if choice.integers[usize::from(slot)].is(index) => {
                    targets[0] = Target::Integer(slot);
                }
                Element::Wide { slot, .. } if choice.wide[slot as usize].is(index) => {
                    targets[0] = Target::Wide(slot as u8);
                }
                Element::Time { start, end, clock, .. } => {
                    if start && choice.integers[Slot::RawStart as usize].is(index) {
                        targets[0] = Target::Integer(Slot::RawStart as u8);
                        program.start = clock;
                    }
                    if end && choice.integers[Slot::RawEnd as usize].is(index) {
                        targets[1] = Target::Integer(Slot::RawEnd as u8);
                        program.end = clock;
                    }
                }
                Element::Duration { unit } if choice.duration.is(index) => {
                    targets[0] = Target::Duration(unit);
                }
                Element::Frame => targets[0] = Target::Frame,
                Element::Packet => targets[0] = Target::Packet,
                _ => {}
            }
            if spec.len == VARIABLE {
                let target = targets.into_iter().find(|target| *target != Target::Skip);
                segments.push(Segment {
                    moves: first_move..moves.len(),
                    parts: first_part..parts.len(),
                    len: at,
                    variable: Some(target.unwrap_or(Target::Skip)),
                });
                (first_move, first_part, at) = (moves.len(), parts.len(), 0);
                continue;
            }
            let end = at + usize::from(spec.len);
            for target in targets {
                match target {
                    Target::Skip => {}
                    Target::Integer(slot) => {
                        program.present |= 1 << slot;
                        let above = 64 - 8 * spec.len as u8;
                        moves.push(Move { end: end as u16, above, slot });
                    }
                    target => {
                        if let Target::Wide(slot) = target {
                            program.wide |= 1 << slot;
                        }
                        parts.push(Part { at: at as u16, len: spec.len, target });
                    }
                }
            }
            at = end;
        }
        if at > 0 || segments.is_empty() {
            let (moves, parts) = (first_move..moves.len(), first_part..parts.len());
            segments.push(Segment { moves, parts, len: at, variable: None });
        }
        (program.moves, program.parts) = (moves.into(), parts.into());
        program.segments = segments.into();
        program
    }

    /// Reads the record at `at`, and returns where it ends; `None` if it does not end before `end`. Before a record are
    /// at least eight bytes of headers.
    #[inline]
    pub(crate) fn read(
        &self,
        data: &[u8],
        at: usize,
        end: usize,
        record: &mut FlowRecord,
    ) -> Option<usize> {
        record.begin(self.present, self.wide);
        let mut base = at;
        for segment in &self.segments {
            if end.checked_sub(base)? < segment.len {
                return None;
            }
            for step in &self.moves[segment.moves.clone()] {
                let value = eight_before(data, base + usize::from(step.end));
                record.store(step.slot, value & u64::MAX >> step.above);
            }
            for part in &self.parts[segment.parts.clone()] {
                let from = base + usize::from(part.at);
                let bytes = data.get(from..from + usize::from(part.len))?;
                apply(part.target, bytes, record);
            }
            base += segment.len;
            if let Some(target) = segment.variable {
                let bytes = variable(data, &mut base, end)?;
                apply(target, bytes, record);
            }
        }
        Some(base)
    }

    /// Whether times must be computed from other fields of the record or of its message.
    #[inline]
    pub(crate) fn has_times(&self) -> bool {
        self.start != Clock::None || self.end != Clock::None
    }
}

/// The eight bytes before an offset. A field may be shorter: its other bits are those of the fields before it, or of
/// the message's header.
#[inline]
fn eight_before(data: &[u8], end: usize) -> u64 {
    let bytes = data.get(end.wrapping_sub(8)..end).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// The field of variable length at `at`, which is moved to its end.
pub(crate) fn variable<'a>(data: &'a [u8], at: &mut usize, end: usize) -> Option<&'a [u8]> {
    let (from, len) = match *data.get(*at)? {
        255 => (*at + 3, crate::bytes::u16_at(data, *at + 1)?.into()),
        len => (*at + 1, usize::from(len)),
    };
    let bytes = data.get(from..from + len)?;
    *at = from + len;
    (*at <= end).then_some(bytes)
}

/// Stores a field that is not a plain move.
fn apply(target: Target, bytes: &[u8], record: &mut FlowRecord) {
    match target {
        Target::Integer(slot) => {
            let address = slot <= Slot::Exporter4 as u8;
            if let Some(value) = crate::bytes::integer(bytes)
                && (!address || bytes.len() == 4)
            {
                record.begin_slot(slot);
                record.store(slot, value);
            }
        }
        Target::Wide(slot) => {
            if let Some(value) = bytes.first_chunk().filter(|_| bytes.len() == 16) {
                record.begin_wide(slot);
                record.store_wide(slot, *value);
            }
        }
        Target::Duration(unit) => {
            if let Some(value) = crate::bytes::integer(bytes) {
                record.set(Slot::Duration, value.saturating_mul(unit.into()));
            }
        }
        Target::Frame => crate::sflow::packet::frame(bytes, bytes.len(), record),
        Target::Packet => crate::sflow::packet::packet(bytes, bytes.len(), record),
        Target::Skip => {}
    }
}

/// The slots that sampling rates are computed from.
pub(crate) const SAMPLING: u64 = bit(Slot::Rate)
    | bit(Slot::SampledRun)
    | bit(Slot::SampledGap)
    | bit(Slot::SampleSize)
    | bit(Slot::SamplePopulation)
    | bit(Slot::Sampler);
