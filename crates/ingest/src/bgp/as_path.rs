//! AS paths (RFC 4271, 5.1.2; RFC 5065; RFC 6793).

use std::fmt::Write;

use super::cursor::{AsWidth, Cursor, DecodeFault};
use super::rules::PathFacts;

/// A segment's kind, as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentKind {
    Set,
    Sequence,
    ConfedSequence,
    ConfedSet,
}

#[derive(Clone, Copy)]
struct Segment<'a> {
    kind: SegmentKind,
    asns: &'a [u8],
    width: AsWidth,
}

impl<'a> Segment<'a> {
    fn asns(self) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator + 'a {
        self.asns.chunks_exact(self.width.bytes()).map(|bytes| match *bytes {
            [a, b, c, d] => u32::from_be_bytes([a, b, c, d]),
            [a, b] => u32::from(u16::from_be_bytes([a, b])),
            _ => 0,
        })
    }

    /// Its contribution to the path's length in BGP's decision: a set counts once, confederations not.
    fn hops(self) -> u32 {
        match self.kind {
            SegmentKind::Sequence => self.asns().len() as u32,
            SegmentKind::Set => u32::from(!self.asns.is_empty()),
            SegmentKind::ConfedSequence | SegmentKind::ConfedSet => 0,
        }
    }
}

/// An AS path whose segments were checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsPath<'a> {
    bytes: &'a [u8],
    width: AsWidth,
    has_empty_segment: bool,
    has_confederation: bool,
}

impl<'a> AsPath<'a> {
    pub(crate) fn check(mut cursor: Cursor<'a>, width: AsWidth) -> Result<Self, DecodeFault> {
        let (bytes, mut has_empty_segment, mut has_confederation) = (cursor.rest(), false, false);
        while !cursor.is_empty() {
            let kind = cursor.u8("AS path segment")?;
            if !matches!(kind, 1..=4) {
                return Err(cursor.fault(format!("AS path segment of unknown kind {kind}")));
            }
            let count = cursor.u8("AS path segment")?;
            cursor.bytes(usize::from(count) * width.bytes(), "AS path segment")?;
            has_empty_segment |= count == 0;
            has_confederation |= kind > 2;
        }
        Ok(Self { bytes, width, has_empty_segment, has_confederation })
    }

    /// What the rules look at.
    pub(crate) fn facts(self) -> PathFacts {
        let Self { bytes, has_empty_segment, has_confederation, .. } = self;
        let (has_as_0, is_empty) = (self.has(0), bytes.is_empty());
        PathFacts { has_as_0, has_empty_segment, has_confederation, is_empty }
    }

    /// Whether an AS is in it.
    pub(crate) fn has(self, asn: u32) -> bool {
        self.segments().any(|segment| segment.asns().any(|other| other == asn))
    }

    fn segments(self) -> impl Iterator<Item = Segment<'a>> {
        let (mut rest, width) = (self.bytes, self.width);
        std::iter::from_fn(move || {
            let (&[kind, count], after) = rest.split_first_chunk()?;
            let (asns, after) = after.split_at_checked(usize::from(count) * width.bytes())?;
            rest = after;
            let kind = match kind {
                1 => SegmentKind::Set,
                2 => SegmentKind::Sequence,
                3 => SegmentKind::ConfedSequence,
                _ => SegmentKind::ConfedSet,
            };
            Some(Segment { kind, asns, width })
        })
    }

    /// The length in BGP's decision.
    pub(crate) fn hops(self) -> u32 {
        self.segments().map(Segment::hops).sum()
    }

    /// The last AS. None if the path ends in a set, even of one AS (RFC 6811, section 2: the origin "NONE").
    pub(crate) fn origin(self) -> Option<u32> {
        let is_real = |s: &Segment<'_>| s.hops() > 0;
        let last = self.segments().filter(is_real).last()?;
        (last.kind == SegmentKind::Sequence).then(|| last.asns().next_back()).flatten()
    }

    /// As bgpdump writes it: `1 2 {3,4}`, confederations as `(1 2)` and `[1,2]`.
    pub(crate) fn write(self, out: &mut String) {
        for segment in self.segments().filter(|segment| !segment.asns.is_empty()) {
            if !out.is_empty() {
                out.push(' ');
            }
            let (open, between, close) = match segment.kind {
                SegmentKind::Sequence => ("", ' ', ""),
                SegmentKind::Set => ("{", ',', "}"),
                SegmentKind::ConfedSequence => ("(", ' ', ")"),
                SegmentKind::ConfedSet => ("[", ',', "]"),
            };
            out.push_str(open);
            for (i, asn) in segment.asns().enumerate() {
                if i > 0 {
                    out.push(between);
                }
                let _ = write!(out, "{asn}");
            }
            out.push_str(close);
        }
    }

    /// The path of a speaker of two-byte AS numbers, completed by the AS4_PATH that it carried
    /// (RFC 6793, 4.2.3): the ASes by which this path is longer, then that one. The result, in
    /// four-byte numbers, is put into `buffer`.
    pub(crate) fn complete<'b>(self, as4: AsPath<'_>, buffer: &'b mut Vec<u8>) -> AsPath<'b> {
        buffer.clear();
        let (hops, as4_hops) = (self.hops(), as4.hops());
        let keeps_own = as4_hops > hops;
        let mut keep = if keeps_own { u32::MAX } else { hops - as4_hops };
        for segment in self.segments() {
            // A confederation segment has no hops: the leading ones are kept.
            if keep == 0 && segment.hops() > 0 {
                break;
            }
            let take = match segment.kind {
                SegmentKind::Sequence => segment.asns().len().min(keep as usize),
                _ => segment.asns().len(),
            };
            push_segment(segment, take, buffer);
            keep = keep.saturating_sub(segment.hops());
        }
        if !keeps_own {
            as4.segments()
                .filter(|segment| segment.hops() > 0)
                .for_each(|segment| push_segment(segment, segment.asns().len(), buffer));
        }
        let (width, has_confederation) = (AsWidth::Four, self.has_confederation);
        AsPath { bytes: buffer, width, has_empty_segment: false, has_confederation }
    }
}

fn push_segment(segment: Segment<'_>, take: usize, buffer: &mut Vec<u8>) {
    let kind = match segment.kind {
        SegmentKind::Set => 1,
        SegmentKind::Sequence => 2,
        SegmentKind::ConfedSequence => 3,
        SegmentKind::ConfedSet => 4,
    };
    // A count is one byte on the wire, so `take` fits.
    buffer.extend([kind, take as u8]);
    segment.asns().take(take).for_each(|asn| buffer.extend(asn.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bytes: &[u8], width: AsWidth) -> AsPath<'_> {
        AsPath::check(Cursor::new(bytes), width).unwrap()
    }

    fn text(path: AsPath<'_>) -> String {
        let mut out = String::new();
        path.write(&mut out);
        out
    }

    #[test]
    fn segments() {
        let p = path(&[3, 1, 0, 9, 2, 2, 0, 1, 0, 2, 1, 2, 0, 3, 0, 4, 4, 1, 0, 8], AsWidth::Two);
        assert_eq!(text(p), "(9) 1 2 {3,4} [8]");
        assert_eq!((p.hops(), p.origin()), (3, None));
        let p = path(&[2, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 7], AsWidth::Four);
        assert_eq!((text(p).as_str(), p.hops(), p.origin()), ("65536 {7}", 2, None));
        let p = path(&[], AsWidth::Four);
        assert_eq!((text(p).as_str(), p.hops(), p.origin()), ("", 0, None));
        let p = path(&[2, 1, 0, 5, 2, 0], AsWidth::Two);
        assert_eq!((text(p).as_str(), p.origin()), ("5", Some(5)));
    }

    #[test]
    fn faults() {
        for bytes in [&[2, 2, 0, 1][..], &[2], &[7, 0]] {
            assert!(AsPath::check(Cursor::new(bytes), AsWidth::Two).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn two_byte_paths_are_completed() {
        let own = path(&[2, 3, 0, 1, 0x5b, 0xa0, 0x5b, 0xa0], AsWidth::Two); // 1 23456 23456
        let as4 = path(&[2, 2, 0, 1, 0, 0, 0, 1, 0, 1], AsWidth::Four);
        let mut buffer = Vec::new();
        let whole = own.complete(as4, &mut buffer);
        assert_eq!((text(whole).as_str(), whole.hops()), ("1 65536 65537", 3));
        // A longer AS4_PATH is a lie and is left out.
        let as4 = path(&[2, 2, 0, 1, 0, 0, 0, 1, 0, 1], AsWidth::Four);
        let own = path(&[2, 1, 0, 1], AsWidth::Two);
        assert_eq!(text(own.complete(as4, &mut buffer)), "1");
        // Confederation segments at the front stay.
        let own = path(&[3, 1, 0, 9, 2, 1, 0, 1], AsWidth::Two);
        let as4 = path(&[2, 1, 0, 1, 0, 0], AsWidth::Four);
        assert_eq!(text(own.complete(as4, &mut buffer)), "(9) 65536");
    }
}
