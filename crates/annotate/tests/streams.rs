//! However the input arrives and wherever the output goes.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};
use std::rc::Rc;

use crate::common::World;
use fibula_annotate::{AnnotateError, AnnotateOptions, LogFormat};
use proptest::prelude::*;

fn options(format: LogFormat) -> (LogFormat, AnnotateOptions) {
    let mut options = AnnotateOptions::default();
    options.add = vec!["prefix".into(), "asn".into()];
    if format == LogFormat::JsonLines {
        options.columns = vec!["a".parse().unwrap(), "a.b".parse().unwrap()];
    }
    (format, options)
}

/// Gives a few bytes a read, with interruptions.
struct Pieces<'a> {
    data: &'a [u8],
    sizes: Vec<usize>,
    reads: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(3) {
            return Err(ErrorKind::Interrupted.into());
        }
        let size = self.sizes[self.reads % self.sizes.len()].max(1);
        let n = size.min(self.data.len()).min(buf.len());
        buf[..n].copy_from_slice(&self.data[..n]);
        self.data = &self.data[n..];
        Ok(n)
    }
}

proptest! {
    /// The output does not depend on how the input arrives, and no input makes it panic.
    #[test]
    fn pieces_do_not_matter(
        format in proptest::sample::select(LogFormat::ALL.to_vec()),
        parts in proptest::collection::vec(prop_oneof![
            Just("10.1.2.3".to_owned()), Just("2001:db8::1".to_owned()), Just(",".to_owned()),
            Just("\n".to_owned()), Just("\r\n".to_owned()), Just("\"".to_owned()), Just("\t".to_owned()),
            Just("{\"a\":\"10.0.0.1\"}\n".to_owned()), Just("{\"a\":{\"b\":\"".to_owned()),
            Just("\"}}".to_owned()), Just("[{}".to_owned()), Just("]".to_owned()), "[ -~\\n\\t]{0,8}", any::<String>(),
        ], 0..40),
        sizes in proptest::collection::vec(1usize..40, 1..5),
    ) {
        let world = World::new();
        let text = parts.concat();
        let mut whole = Vec::new();
        let expected = world.run_to(options(format), text.as_bytes(), &mut whole);
        let mut pieced = Vec::new();
        let pieces = Pieces { data: text.as_bytes(), sizes, reads: 0 };
        let result = world.run_to(options(format), pieces, &mut pieced);
        prop_assert_eq!(String::from_utf8_lossy(&whole), String::from_utf8_lossy(&pieced));
        match (expected, result) {
            (Ok(a), Ok(b)) => prop_assert_eq!(a, b),
            (Err(a), Err(b)) => prop_assert_eq!(a.to_string(), b.to_string()),
            (a, b) => prop_assert!(false, "{:?} {:?}", a, b),
        }
    }
}

#[test]
fn many_blocks_and_long_records() {
    let world = World::new();
    let line = "10.1.2.3,x\n";
    let long = format!("10.0.0.1,\"{}\"\n", "a\n".repeat(400_000));
    let input = format!("{}{long}{}", line.repeat(20_000), line.repeat(20_000));
    let mut output = Vec::new();
    let summary = world.run_to(options(LogFormat::Csv), input.as_bytes(), &mut output).unwrap();
    assert_eq!((summary.rows, summary.matched), (40_001, 40_001));
    let text = String::from_utf8(output).unwrap();
    assert!(text.starts_with("10.1.2.3,x,10.1.2.0/24,\n10.1.2.3,x,"));
    assert!(text.contains("a\n\",10.0.0.0/8,64500\n10.1.2.3,x,10.1.2.0/24,\n"));
}

#[test]
fn an_endless_record_is_an_error() {
    let endless = b"10.0.0.1\n".chain(io::repeat(b'x'));
    let result = World::new().run_to(options(LogFormat::List), endless, io::sink());
    assert!(matches!(result, Err(AnnotateError::TooLong { line: 2, .. })), "{result:?}");
}

/// A pipe whose reader goes away after some bytes.
struct Closing(usize);

impl Write for Closing {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = buf.len().min(self.0);
        self.0 -= n;
        if n == 0 { Err(ErrorKind::BrokenPipe.into()) } else { Ok(n) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_output_ends_quietly_and_a_full_disk_does_not() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let input = "10.0.0.1\n".repeat(100_000);
    let world = World::new();
    let summary = world.run_to(options(LogFormat::List), input.as_bytes(), Closing(10)).unwrap();
    assert!(summary.output_closed);
    assert!(summary.rows < 100_000);
    let result = world.run_to(options(LogFormat::List), input.as_bytes(), Full);
    assert!(matches!(result, Err(AnnotateError::Write(_))));
}

#[test]
fn rows_of_a_slow_pipe_come_out_as_they_come_in() {
    /// Checks before each read that what was given so far has come out.
    struct Slow<'a>(Rc<RefCell<Vec<u8>>>, &'a [&'a str], usize);
    impl Read for Slow<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            assert_eq!(self.0.borrow().iter().filter(|&&b| b == b'\n').count(), self.2);
            let Some((line, rest)) = self.1.split_first() else { return Ok(0) };
            (self.1, self.2) = (rest, self.2 + 1);
            buf[..line.len()].copy_from_slice(line.as_bytes());
            Ok(line.len())
        }
    }
    struct Shared(Rc<RefCell<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(buf)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let written = Rc::new(RefCell::new(Vec::new()));
    let slow = Slow(Rc::clone(&written), &["10.0.0.1\n", "10.0.0.2\n", "x\n"], 0);
    World::new().run_to(options(LogFormat::List), slow, Shared(written)).unwrap();
}
