//! Finds MRT records.
//!
//! ```text
//!  0       4      6      8       12
//!  | time  | type | sub  | length | body ...            (RFC 6396, 2)
//! ```
//! A record with a valid header and an invalid body is skipped by the header's length. So is one of an unregistered
//! type, if another header or the end of the input follows at its end. If the header itself is invalid, the decoder
//! searches for the next valid one: its type and time must be plausible, and another header must follow at its end.

use super::table_dump;
use crate::Tail;

/// Bytes of the header.
pub(super) const HEADER: usize = 12;
/// The largest record body that is buffered. RIB records of the largest collectors stay below 1 MiB.
pub(super) const MAX_LEN: usize = 16 << 20;
/// The largest record that resynchronisation believes in.
const MAX_RESYNC_LEN: usize = 1 << 20;
/// Resynchronisation believes in times this close to the last good one (seconds).
const NEAR: u32 = 30 * 24 * 3600;
/// 1990-01-01: there was no MRT before.
const DAWN: u32 = 631_152_000;

pub(super) mod kind {
    pub(in super::super) const BGP: u16 = 5;
    pub(in super::super) const TABLE_DUMP: u16 = 12;
    pub(in super::super) const TABLE_DUMP_V2: u16 = 13;
    pub(in super::super) const BGP4MP: u16 = 16;
    pub(in super::super) const BGP4MP_ET: u16 = 17;
}

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Seconds since 1970.
    pub(super) time: u32,
    pub(super) kind: u16,
    pub(super) subtype: u16,
    /// Bytes of the body, as declared.
    pub(super) len: usize,
}

impl Header {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (header, _) = bytes.split_first_chunk::<HEADER>()?;
        let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let u32_at =
            |at| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let len = usize::try_from(u32_at(8)).unwrap_or(usize::MAX);
        Some(Self { time: u32_at(0), kind: u16_at(4), subtype: u16_at(6), len })
    }

    /// Whether the framing may rely on it: the type is registered, the length within reason.
    fn is_plausible(&self) -> bool {
        let is_registered = matches!(self.kind, 0..=13 | 16 | 17 | 32 | 33 | 48 | 49);
        is_registered && self.subtype < 256 && self.len <= MAX_LEN
    }

    /// Whether this may be a record of an unregistered type. The next header must confirm it.
    fn is_possible(&self) -> bool {
        self.time >= DAWN && self.subtype < 256 && self.len <= MAX_RESYNC_LEN
    }

    /// Whether it is a header beyond doubt.
    fn is_certain(&self, near: Option<u32>) -> bool {
        let subtypes = match self.kind {
            kind::BGP => 0..=7,
            kind::TABLE_DUMP => 1..=4,
            kind::TABLE_DUMP_V2 => 1..=12,
            kind::BGP4MP | kind::BGP4MP_ET => 0..=11,
            11 | 32 | 33 | 48 | 49 => 0..=16,
            _ => return false,
        };
        let in_time = match near {
            Some(near) => self.time.abs_diff(near) < NEAR,
            None => self.time >= DAWN,
        };
        subtypes.contains(&self.subtype) && in_time && (1..=MAX_RESYNC_LEN).contains(&self.len)
    }
}

/// Whether an input that begins so is MRT.
pub(crate) fn looks_like_mrt(head: &[u8]) -> bool {
    Header::read(head).is_some_and(|header| header.is_certain(None))
}

/// The result of reading the beginning of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// More input is needed to decide.
    Need,
    /// A record with this many bytes of body.
    Record(Header, usize),
    /// A record that the end of the input cuts short.
    Cut(Option<Header>),
    /// No header.
    Lost(Header),
}

/// Looks at the front of `input`, which is not empty.
pub(super) fn next(input: &[u8], tail: Tail) -> Frame {
    let Some(header) = Header::read(input) else {
        return if tail.is_last() { Frame::Cut(None) } else { Frame::Need };
    };
    if !header.is_plausible() {
        return foreign(header, input, tail);
    }
    let Some(len) = body_len(&header, &input[HEADER..], tail) else { return Frame::Need };
    match input.len() >= HEADER + len {
        true => Frame::Record(header, len),
        false if tail.is_last() => Frame::Cut(Some(header)),
        false => Frame::Need,
    }
}

/// A record of an unregistered type. Its content must not be read as records of this input.
fn foreign(header: Header, input: &[u8], tail: Tail) -> Frame {
    if !header.is_possible() {
        return Frame::Lost(header);
    }
    let after = input.get(HEADER + header.len..);
    let is_confirmed = match after.and_then(Header::read) {
        Some(next) => next.is_certain(None),
        None if !tail.is_last() => return Frame::Need,
        None => after.is_some_and(<[u8]>::is_empty),
    };
    if is_confirmed { Frame::Record(header, header.len) } else { Frame::Lost(header) }
}

/// The body's true length; `None` if more input is needed to decide.
///
/// Collectors of 1999 and 2000 wrote several TABLE_DUMP entries into a record and left its first four
/// bytes (view and sequence) out of the length. It is taken as four longer if the entries then end
/// exactly at the end and a header comes after, while none comes where it is declared to end.
fn body_len(header: &Header, body: &[u8], tail: Tail) -> Option<usize> {
    const SHORT: usize = 4;
    if header.kind != kind::TABLE_DUMP {
        return Some(header.len);
    }
    let seen = header.len + SHORT + HEADER;
    if body.len() < seen && !tail.is_last() {
        return None;
    }
    let longer = header.len + SHORT;
    let body = &body[..body.len().min(seen)];
    if table_dump::entries_end(body, header.subtype, header.len) != longer {
        return Some(header.len);
    }
    let is_header_at = |at: usize| {
        body.get(at..).and_then(Header::read).is_some_and(|next| next.is_certain(Some(header.time)))
    };
    let ends_there = body.len() >= longer && body.len() < longer + HEADER;
    let is_longer = !is_header_at(header.len) && (ends_there || is_header_at(longer));
    Some(if is_longer { longer } else { header.len })
}

/// The result of [`resync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resync {
    /// A record begins after this many bytes.
    Found(usize),
    /// There is none in this many bytes; beyond them, more input is needed to decide.
    Need(usize),
    /// There is none up to the end of the input.
    Nothing,
}

/// Searches for the next record; `near` is the time of the last good one.
pub(super) fn resync(input: &[u8], near: Option<u32>, tail: Tail) -> Resync {
    for at in 0..input.len() {
        let rest = &input[at..];
        let Some(header) = Header::read(rest) else {
            return if tail.is_last() { Resync::Nothing } else { Resync::Need(at) };
        };
        if !header.is_certain(near) {
            continue;
        }
        let after = rest.get(HEADER + header.len..);
        match after.and_then(Header::read) {
            Some(next) if next.is_certain(Some(header.time)) => return Resync::Found(at),
            Some(_) => {}
            None if !tail.is_last() => return Resync::Need(at),
            // The last record of the input, or followed by less than a header.
            None if after.is_some() => return Resync::Found(at),
            None => {}
        }
    }
    if tail.is_last() { Resync::Nothing } else { Resync::Need(input.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u32, kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
        let len = body.len() as u32;
        [
            &time.to_be_bytes()[..],
            &kind.to_be_bytes(),
            &subtype.to_be_bytes(),
            &len.to_be_bytes(),
            body,
        ]
        .concat()
    }

    const NOW: u32 = 1_445_558_400;

    #[test]
    fn records_are_framed() {
        let bytes = record(NOW, 16, 4, &[0; 30]);
        let header = Header { time: NOW, kind: 16, subtype: 4, len: 30 };
        assert_eq!(next(&bytes, Tail::More), Frame::Record(header, 30));
        assert_eq!(next(&bytes[..41], Tail::More), Frame::Need);
        assert_eq!(next(&bytes[..41], Tail::End), Frame::Cut(Some(header)));
        assert_eq!(next(&bytes[..11], Tail::More), Frame::Need);
        assert_eq!(next(&bytes[..11], Tail::Cut), Frame::Cut(None));
        assert!(matches!(next(&record(NOW, 14458, 31256, &[]), Tail::More), Frame::Lost(_)));
        // An unregistered type needs the next header as confirmation.
        let foreign = record(NOW, 99, 1, &bytes);
        let header = Header { time: NOW, kind: 99, subtype: 1, len: 42 };
        assert_eq!(next(&foreign, Tail::End), Frame::Record(header, 42));
        assert_eq!(next(&foreign, Tail::More), Frame::Need);
        let later = record(NOW + 2 * NEAR, 16, 4, &[0; 30]);
        assert_eq!(next(&[&*foreign, &*later].concat(), Tail::More), Frame::Record(header, 42));
        assert_eq!(
            next(&[&*foreign, b"no header at all"].concat(), Tail::End),
            Frame::Lost(header)
        );
        assert_eq!(next(&foreign[..50], Tail::End), Frame::Lost(header));
        assert!(looks_like_mrt(&bytes));
        assert!(!looks_like_mrt(b"10.0.0.0/8 1\n"));
    }

    #[test]
    fn the_next_record_is_found() {
        let good = record(NOW, 16, 4, &[0; 30]);
        let lost = [b"some bytes of another kind".as_slice(), &good, &good].concat();
        assert_eq!(resync(&lost, Some(NOW), Tail::End), Resync::Found(26));
        assert_eq!(resync(&lost[..60], Some(NOW), Tail::More), Resync::Need(26));
        assert_eq!(resync(&lost[..68], Some(NOW), Tail::End), Resync::Found(26));
        assert_eq!(resync(&lost[..60], Some(NOW), Tail::End), Resync::Nothing);
        assert_eq!(resync(&lost[..20], Some(NOW), Tail::More), Resync::Need(9));
        // A month away is another file's time.
        assert_eq!(resync(&lost, Some(NOW + 2 * NEAR), Tail::End), Resync::Nothing);
    }

    #[test]
    fn early_table_dumps_are_four_bytes_longer_than_their_length() {
        let entry = |n: u8| {
            let mut bytes = vec![10, n, 0, 0, 16, 1, 0, 0, 0, 0, 192, 0, 2, 1, 0, 5, 0, 3];
            bytes.extend([0x40, 1, 0]);
            bytes
        };
        let batch = [&[0, 0, 0, 0][..], &entry(1), &entry(2)].concat();
        let mut short = record(NOW, 12, 1, &batch);
        let declared = batch.len() - 4;
        short[11] = declared as u8;
        for after in [vec![], short.clone(), record(NOW, 12, 1, &batch)] {
            let bytes = [short.as_slice(), &after].concat();
            let Frame::Record(header, len) = next(&bytes, Tail::End) else { panic!("no record") };
            assert_eq!((header.len, len), (declared, batch.len()));
        }
        // Without the last entry's end it is a cut record, with an honest length a normal one.
        let honest = record(NOW, 12, 1, &batch);
        assert!(matches!(next(&honest, Tail::End), Frame::Record(_, len) if len == batch.len()));
        assert!(matches!(next(&honest, Tail::More), Frame::Need));
    }
}
