//! Inputs that come byte by byte, pause, and break off at each byte.

use std::io::{self, Cursor, ErrorKind, Read};

use fibula_core::{Attributes, Change, Update};
use fibula_ingest::mrt::MrtDecoder;
use fibula_ingest::text::TextDecoder;
use fibula_ingest::{
    Collected, Decoder, DriveError, Driver, PullResult, ReadError, ReadOptions, Sink, SourceSpec,
    StopReason, Tail, read_from,
};

/// Gives a byte at a time, with a pause before each, and then fails or ends.
struct Dribble {
    data: Vec<u8>,
    at: usize,
    pauses: usize,
    fails: bool,
}

impl Dribble {
    fn new(data: &[u8]) -> Self {
        Self { data: data.to_vec(), at: 0, pauses: 0, fails: false }
    }
}

impl Read for Dribble {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        const PAUSES: [ErrorKind; 3] =
            [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];
        if self.pauses <= self.at {
            self.pauses += 1;
            return Err(PAUSES[self.at % PAUSES.len()].into());
        }
        match self.data.get(self.at) {
            Some(&byte) => {
                buf[0] = byte;
                self.at += 1;
                Ok(1)
            }
            None if self.fails => Err(ErrorKind::ConnectionReset.into()),
            None => Ok(0),
        }
    }
}

/// A route a line, decoded as soon as its line ends; [`TextDecoder`] waits for a megabyte first.
#[derive(Default)]
struct Lines(u64);

impl Decoder for Lines {
    fn decode(
        &mut self,
        input: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        let mut taken = 0;
        while let Some(len) = input[taken..].iter().position(|&b| b == b'\n') {
            let prefix = std::str::from_utf8(&input[taken..taken + len]).unwrap().parse().unwrap();
            sink.update(&Update::new(prefix, Change::Announce(Attributes::Values(&[]))));
            self.0 += 1;
            taken += len + 1;
        }
        Ok(if tail.is_last() { input.len() } else { taken })
    }

    fn records(&self) -> u64 {
        self.0
    }
}

/// Pulls until the end. Returns the number of pauses, and the rest.
fn pull_all(
    driver: &mut Driver,
    input: &mut dyn Read,
    tail: Tail,
    sink: &mut Collected,
) -> (usize, usize) {
    let mut pauses = 0;
    loop {
        match driver.pull(input, sink).unwrap() {
            PullResult::Bytes(_) => {}
            PullResult::Paused => pauses += 1,
            PullResult::End => return (pauses, driver.finish(tail, sink).unwrap()),
        }
    }
}

fn mrt() -> Vec<u8> {
    std::fs::read(crate::common::cuts().join("mrt/made-updates.broken-off")).unwrap()
}

#[test]
fn a_stream_of_lines_broken_off_at_each_byte() {
    let text = b"10.0.0.0/8\n192.0.2.0/24\n2001:db8::/32\n::/0\n";
    for cut in 0..=text.len() {
        let (whole, rest) = match text[..cut].iter().rposition(|&b| b == b'\n') {
            Some(at) => text[..cut].split_at(at + 1),
            None => (&text[..0], &text[..cut]),
        };
        let lines: Vec<&str> = std::str::from_utf8(whole).unwrap().lines().collect();
        let mut sink = Collected::default();
        let mut driver = Driver::new(Box::new(Lines::default()), 20);
        let left = pull_all(&mut driver, &mut Dribble::new(&text[..cut]), Tail::Cut, &mut sink);
        assert_eq!(left, (cut + 1, rest.len()), "cut at {cut}");
        assert_eq!(sink.lines, lines, "cut at {cut}");
        assert_eq!(driver.offset(), cut as u64);

        // Pushed in two pieces, it is the same.
        for piece in 0..=cut {
            let mut sink = Collected::default();
            let mut driver = Driver::new(Box::new(Lines::default()), 20);
            driver.push(&text[..piece], &mut sink).unwrap();
            driver.push(&text[piece..cut], &mut sink).unwrap();
            assert_eq!(sink.lines, lines);
            assert_eq!(driver.pending(), rest);
        }
    }
}

type Make = fn() -> Box<dyn Decoder>;

#[test]
fn mrt_and_text_broken_off_at_each_byte() {
    let text = b"prefix,asn\n10.0.0.0/8,1\n\"192.0.2.0/24\",2\n::/0,3";
    let mrt = mrt();
    let decoders: [(&[u8], Make); 2] =
        [(text, || Box::new(TextDecoder::default())), (&mrt, || Box::new(MrtDecoder::default()))];
    for (bytes, decoder) in decoders {
        for cut in 0..=bytes.len() {
            let mut whole = Collected::default();
            decoder().decode(&bytes[..cut], Tail::Cut, &mut whole).unwrap();
            let mut parts = Collected::default();
            let mut driver = Driver::new(decoder(), 1 << 20);
            pull_all(&mut driver, &mut Dribble::new(&bytes[..cut]), Tail::Cut, &mut parts);
            assert_eq!(whole, parts, "cut at {cut}");
        }
    }
}

#[test]
fn what_never_ends_is_bounded() {
    let mut driver = Driver::new(Box::new(Lines::default()), 20);
    let mut sink = Collected::default();
    driver.push(&[b'1'; 20], &mut sink).unwrap();
    let error = driver.push(b"1", &mut sink).unwrap_err();
    assert!(matches!(error, DriveError::TooLong { bytes: 21 }), "{error}");
    let mut driver = Driver::new(Box::new(Lines::default()), 20);
    let error = driver.pull(&mut Cursor::new([b'1'; 100]), &mut sink).unwrap_err();
    assert!(matches!(error, DriveError::TooLong { bytes: 100 }), "{error}");
    assert_eq!(error.to_string(), "no record ends within 100 bytes");
}

#[test]
fn a_reader_that_fails_is_no_end() {
    let mut driver = Driver::new(Box::new(Lines::default()), 20);
    let mut sink = Collected::default();
    let mut input = Dribble { fails: true, ..Dribble::new(b"::/0\n::/") };
    let error = loop {
        match driver.pull(&mut input, &mut sink) {
            Ok(PullResult::End) => panic!("it failed"),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, DriveError::Io(e) if e.kind() == ErrorKind::ConnectionReset));
    assert_eq!(
        (driver.finish(Tail::Cut, &mut sink).unwrap(), &*sink.lines),
        (3, &["::/0".to_owned()][..])
    );
}

/// `read` waits where its source pauses: neither an error nor an end, compressed or not.
#[test]
fn a_pause_is_neither_an_error_nor_an_end() {
    let gz: &[u8] = include_bytes!("../testdata/three-prefixes.gz");
    for bytes in [b"10.0.0.0/8\n192.0.2.0/24\n::/0\n".as_slice(), gz] {
        let mut sink = Collected::default();
        let input = Dribble::new(bytes);
        let spec = SourceSpec::new("-");
        let report = read_from(&spec, input, &mut ReadOptions::default(), &mut sink).unwrap();
        assert_eq!(sink.lines, ["10.0.0.0/8", "192.0.2.0/24", "::/0"]);
        assert_eq!((report.damaged, report.updates), (0, 3));
        let input = Dribble { fails: true, ..Dribble::new(bytes) };
        let error = read_from(&spec, input, &mut ReadOptions::default(), &mut sink).unwrap_err();
        let is_reset = |e: &io::Error| e.kind() == ErrorKind::ConnectionReset;
        assert!(matches!(&error, ReadError::Io { error, .. } if is_reset(error)), "{error}");
    }
}
