//! The I/O layer: compression, detection, cut archives, failing readers, strictness.

use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;

use fibula_core::{Attributes, Change, Update, Value};
use fibula_ingest::{
    Damage, Format, PeerInfo, Progress, ReadError, ReadOptions, ReadReport, Sink, SourceInfo,
    SourceSpec, read, read_from,
};

#[derive(Debug, Default)]
struct Lines {
    info: SourceInfo,
    lines: Vec<String>,
    damage: Vec<String>,
}

impl Sink for Lines {
    fn begin(&mut self, info: &SourceInfo) {
        self.info = info.clone();
    }
    fn peer(&mut self, _: u32, _: &PeerInfo) {
        panic!("text has no peers");
    }
    fn update(&mut self, update: &Update<'_>) {
        let Change::Announce(Attributes::Values(values)) = update.change else {
            panic!("text announces values")
        };
        let value = match values {
            [Value::Int(n)] => n.to_string(),
            [Value::Str(s)] => (*s).to_owned(),
            _ => String::new(),
        };
        self.lines.push(format!("{} {value}", update.prefix));
    }
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        self.damage.push(damage.to_string());
        ControlFlow::Continue(())
    }
}

fn read_bytes(name: &str, bytes: &[u8]) -> Result<(ReadReport, Lines), ReadError> {
    let mut lines = Lines::default();
    let input = Cursor::new(bytes.to_vec());
    let spec = SourceSpec::new(name);
    let report = read_from(&spec, input, &mut ReadOptions::default(), &mut lines)?;
    Ok((report, lines))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzEncoder::new(bytes, flate2::Compression::fast()).read_to_end(&mut out).unwrap();
    out
}

#[test]
fn what_a_report_says() {
    let text = b"prefix,asn\n10.0.0.0/8,1\n\noops,2\n10.0.0.0/9,3\n";
    for bytes in [text.to_vec(), gzip(text)] {
        let (report, lines) = read_bytes("some/table.csv.gz", &bytes).unwrap();
        assert_eq!(lines.lines, ["10.0.0.0/8 1", "10.0.0.0/9 3"]);
        assert_eq!(
            lines.damage,
            ["some/table.csv.gz: record 4, byte 25: \
              not an address, a prefix or a range: \"oops\""]
        );
        assert_eq!((lines.info.name.as_str(), lines.info.format), ("some/table.csv.gz", "text"));
        let wanted = ReadReport {
            records: 5,
            updates: 2,
            damaged: 1,
            bytes: text.len() as u64,
            format: "text",
            ignored: vec![],
        };
        assert_eq!(report, wanted);
    }
}

#[test]
fn empty_inputs() {
    for bytes in [vec![], gzip(b""), b"\n\n".to_vec()] {
        let (report, lines) = read_bytes("-", &bytes).unwrap();
        assert_eq!((report.updates, report.damaged, lines.info.format), (0, 0, "text"));
    }
}

#[test]
fn a_cut_archive() {
    let text: String =
        (0..40_000).map(|i| format!("10.{}.{}.0/24 {i}\n", i / 256, i % 256)).collect();
    let bytes = gzip(text.as_bytes());
    let (report, lines) = read_bytes("cut.gz", &bytes[..bytes.len() / 2]).unwrap();
    assert!(report.updates > 10_000 && report.updates < 30_000);
    // Every line that came is a whole one of the file.
    let whole: Vec<&str> = text.lines().take(lines.lines.len()).collect();
    assert_eq!(lines.lines, whole);
    assert!(lines.damage.last().unwrap().contains("gzip stream is damaged or cut short"));

    // Damage of the archive within the head by which the format is told.
    let (report, lines) = read_bytes("cut.gz", &bytes[..40]).unwrap();
    assert!(report.updates < 1000 && !lines.damage.is_empty());
}

#[test]
fn a_failing_disk_is_no_damage() {
    struct Failing(Cursor<Vec<u8>>);
    impl Read for Failing {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buf)? {
                0 => Err(io::Error::other("the disk is gone")),
                n => Ok(n),
            }
        }
    }
    for bytes in [b"10.0.0.0/8 1\n".to_vec(), gzip(b"10.0.0.0/8 1\n")[..20].to_vec()] {
        let spec = SourceSpec::new("disk");
        let input = Failing(Cursor::new(bytes));
        let result = read_from(&spec, input, &mut ReadOptions::default(), &mut Lines::default());
        assert_eq!(result.unwrap_err().to_string(), "disk: the disk is gone");
    }
}

#[test]
fn refusals() {
    let error = read_bytes("x.zip", b"PK\x03\x04\x0a\0\0\0").unwrap_err();
    assert!(matches!(error, ReadError::UnknownFormat { .. }), "{error}");
    let missing = SourceSpec::new("/nonexistent/table");
    let error = read(&missing, &mut ReadOptions::default(), &mut Lines::default()).unwrap_err();
    assert!(matches!(&error, ReadError::Io { .. }), "{error}");

    let mut options = ReadOptions { strict: true, ..ReadOptions::default() };
    let text = Cursor::new(b"10.0.0.0/8\nx\n10.0.0.0/9\n");
    let mut lines = Lines::default();
    let result = read_from(&SourceSpec::new("t"), text, &mut options, &mut lines);
    let error = result.unwrap_err();
    assert!(matches!(&error, ReadError::Damaged(d) if d.record == 2), "{error}");
    assert_eq!((lines.lines.len(), lines.damage.len()), (1, 0));
}

#[test]
fn a_format_that_is_named_is_not_guessed() {
    let spec = SourceSpec { format: Format::Mrt, ..SourceSpec::new("t") };
    let mut lines = Lines::default();
    let text = Cursor::new(b"10.0.0.0/8 1\n".repeat(100));
    let report = read_from(&spec, text, &mut ReadOptions::default(), &mut lines).unwrap();
    assert_eq!((report.format, report.updates, report.damaged), ("mrt", 0, 1));
}

#[test]
fn small_reads_and_progress() {
    struct Dribble(Cursor<Vec<u8>>);
    impl Read for Dribble {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let len = buf.len().min(7);
            self.0.read(&mut buf[..len])
        }
    }
    let text: String = (0..2000).map(|i| format!("10.0.{}.0/24 {i}\n", i % 256)).collect();
    let mut last = None;
    let mut watch = |progress: Progress| last = Some(progress);
    let mut options = ReadOptions { progress: Some(&mut watch), ..ReadOptions::default() };
    let mut lines = Lines::default();
    let input = Dribble(Cursor::new(text.clone().into_bytes()));
    read_from(&SourceSpec::new("-"), input, &mut options, &mut lines).unwrap();
    assert_eq!(lines.lines.len(), 2000);
    let wanted = Progress { bytes_read: text.len() as u64, bytes_total: None, records: 2000 };
    assert_eq!(last, Some(wanted));
}
