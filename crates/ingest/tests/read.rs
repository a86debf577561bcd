//! The I/O layer: compression, detection, cut archives, failing readers, strictness.

use std::fs::{self, OpenOptions};
use std::io::{self, Cursor, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

use fibula_core::{Attributes, Change, Update, Value};
use fibula_ingest::{
    Collected, Damage, Format, PeerInfo, ReadError, ReadOptions, ReadProgress, ReadReport, Sink,
    SourceInfo, SourceSpec, read, read_from,
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
    read_by(name, bytes, ReadOptions::default())
}

fn read_by(
    name: &str,
    bytes: &[u8],
    mut options: ReadOptions<'_>,
) -> Result<(ReadReport, Lines), ReadError> {
    let mut lines = Lines::default();
    let input = Cursor::new(bytes.to_vec());
    let report = read_from(&SourceSpec::new(name), input, &mut options, &mut lines)?;
    Ok((report, lines))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzEncoder::new(bytes, flate2::Compression::fast()).read_to_end(&mut out).unwrap();
    out
}

#[test]
fn contents_of_a_report() {
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
            remarks: vec![],
            records: 5,
            updates: 2,
            damaged: 1,
            bytes: text.len() as u64,
            format: "text",
            ignored: vec![],
            noted: vec![],
        };
        assert_eq!(report, wanted);
    }
}

#[test]
fn empty_inputs() {
    for bytes in [vec![], gzip(b""), b"\n\n".to_vec(), b"# nothing today\n".to_vec()] {
        let error = read_bytes("-", &bytes).unwrap_err();
        assert!(matches!(error, ReadError::Empty { .. }), "{error}");
        let options = ReadOptions { allow_empty: true, ..ReadOptions::default() };
        let (report, lines) = read_by("-", &bytes, options).unwrap();
        assert_eq!((report.updates, report.damaged, lines.info.format), (0, 0, "text"));
    }
    // A dump of no routes is one nevertheless: sessions that stayed as they were.
    let state = [
        &[0x56, 0x29, 0x78, 0x80, 0, 16, 0, 0, 0, 0, 0, 20][..],
        &[0xfb, 0xf4, 0xfd, 0xe8, 0, 0, 0, 1, 192, 0, 2, 1, 192, 0, 2, 2, 0, 3, 0, 1],
    ]
    .concat();
    let mut sink = Collected::default();
    let input = Cursor::new(state);
    read_from(&SourceSpec::new("u"), input, &mut ReadOptions::default(), &mut sink).unwrap();
    assert_eq!((sink.states.len(), sink.damage.len()), (1, 0));
}

#[test]
fn what_is_mostly_damaged_is_no_table() {
    let text = b"10.0.0.0/8 1\nx\n10.0.0.1/8 1\n# more\n\n\n\n";
    let error = read_bytes("t", text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "t: hardly a routing table, 2 of 7 records are damaged; the first at record 2, byte 13: \
         not an address, a prefix or a range: \"x\""
    );
    let options = ReadOptions { allow_empty: true, ..ReadOptions::default() };
    assert_eq!(read_by("t", text, options).unwrap().0.damaged, 2);
    assert_eq!(read_bytes("t", b"10.0.0.0/8 1\nx\n").unwrap().0.damaged, 1);
    let page = b"<!DOCTYPE html>\n<title>503</title>\n10.0.0.0/8\n10.0.0.0/9\n10.0.0.0/10\n";
    let error = read_bytes("t.csv", page).unwrap_err();
    assert!(matches!(error, ReadError::NoTable { .. }), "{error}");
    let error = read_bytes("-", b"\x89FIBULA\n\0\0").unwrap_err().to_string();
    assert!(error.starts_with("-: this is a fibula snapshot in a pipe"), "{error}");
}

fn table(routes: u32) -> String {
    (0..routes).map(|i| format!("10.{}.{}.0/24 {i}\n", i / 256, i % 256)).collect()
}

#[test]
fn a_cut_archive() {
    let text = table(40_000);
    let bytes = gzip(text.as_bytes());
    for cut in [40, bytes.len() / 2, bytes.len() - 1] {
        let error = read_bytes("cut.gz", &bytes[..cut]).unwrap_err();
        assert!(matches!(error, ReadError::Archive { .. }), "{error}");
        assert!(error.to_string().starts_with("cut.gz: the gzip archive is damaged or cut short"));
    }
    let salvage = || ReadOptions { salvage: true, allow_empty: true, ..ReadOptions::default() };
    let (report, lines) = read_by("cut.gz", &bytes[..bytes.len() / 2], salvage()).unwrap();
    assert!(report.updates > 10_000 && report.updates < 30_000);
    // Every line that came is a whole one of the file.
    let whole: Vec<&str> = text.lines().take(lines.lines.len()).collect();
    assert_eq!(lines.lines, whole);
    assert!(lines.damage.last().unwrap().contains("gzip stream is damaged or cut short"));

    // Damage of the archive within the head by which the format is detected.
    let (report, lines) = read_by("cut.gz", &bytes[..40], salvage()).unwrap();
    assert!(report.updates < 1000 && !lines.damage.is_empty());
}

/// 400 MB of zeros in 300 bytes: a file that is read as a whole does not take all memory.
#[test]
fn an_archive_that_unpacks_to_no_end() {
    let zeros = include_bytes!("../testdata/zeros.mmdb.bz2");
    let error = read_bytes("zeros.mmdb.bz2", zeros).unwrap_err().to_string();
    assert!(error.ends_with("the archive unpacks to more bytes than any mmdb file has"), "{error}");
}

/// A flipped bit makes other routes, which only the checksum at the end detects.
#[test]
fn a_failed_checksum_is_fatal() {
    for (name, bytes) in [
        ("gz", include_bytes!("../testdata/three-prefixes.gz").as_slice()),
        ("bz2", include_bytes!("../testdata/three-prefixes.bz2")),
        ("xz", include_bytes!("../testdata/three-prefixes.xz")),
        ("zst", include_bytes!("../testdata/three-prefixes.zst")),
    ] {
        let sound = read_bytes(name, bytes).unwrap().1.lines;
        assert_eq!(sound.len(), 3, "{name}");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Some bits mean nothing: a time, a flag for the operating system.
            if let Ok((_, lines)) = read_bytes(name, &flipped) {
                assert_eq!(lines.lines, sound, "{name}: bit {bit}");
            }
        }
        for cut in 1..bytes.len() {
            assert!(read_bytes(name, &bytes[..cut]).is_err(), "{name}: cut at {cut}");
        }
    }
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
    assert!(matches!(error, ReadError::NoTable { .. }), "{error}");
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
    let mut options = ReadOptions { allow_empty: true, ..ReadOptions::default() };
    let report = read_from(&spec, text, &mut options, &mut lines).unwrap();
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
    let mut watch = |progress: ReadProgress| last = Some(progress);
    let mut options = ReadOptions { progress: Some(&mut watch), ..ReadOptions::default() };
    let mut lines = Lines::default();
    let input = Dribble(Cursor::new(text.clone().into_bytes()));
    read_from(&SourceSpec::new("-"), input, &mut options, &mut lines).unwrap();
    assert_eq!(lines.lines.len(), 2000);
    let wanted = ReadProgress { bytes_read: text.len() as u64, bytes_total: None, records: 2000 };
    assert_eq!(last, Some(wanted));
}

/// Half a table, or half of each of two, is no table. A file that takes the other's name leaves that one whole.
#[test]
fn a_file_that_is_written_while_it_is_read() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("written-while-read.txt");
    let text: String =
        (0..100_000).map(|i| format!("10.{}.{}.0/24 1\n", i / 256 % 256, i % 256)).collect();
    let read_while = |change: &dyn Fn()| {
        fs::write(&path, &text).unwrap();
        let mut is_first = true;
        let mut progress = |_: ReadProgress| {
            if std::mem::take(&mut is_first) {
                change();
            }
        };
        let spec = SourceSpec::new(path.to_str().unwrap());
        let mut options = ReadOptions { progress: Some(&mut progress), ..Default::default() };
        read(&spec, &mut options, &mut Lines::default()).map(|report| report.updates)
    };
    assert_eq!(read_while(&|| ()).unwrap(), 100_000);
    let append = || {
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"11.0.0.0/8 1\n").unwrap();
    };
    for change in [&append as &dyn Fn(), &|| fs::write(&path, "11.0.0.0/8 1\n").unwrap()] {
        let error = read_while(change).unwrap_err().to_string();
        assert!(error.contains(".txt: it changed while it was read"), "{error}");
    }
    let replace = || {
        let other = path.with_extension("other");
        fs::write(&other, "11.0.0.0/8 1\n").unwrap();
        fs::rename(other, &path).unwrap();
    };
    assert_eq!(read_while(&replace).unwrap(), 100_000);
}
