//! Files in the forms that validators write, whole and spoilt.

use std::path::{Path, PathBuf};

use fibula_rpki::{Aspas, RpkiError, Vrp, decode, decode_aspas, read, read_all_aspas, read_aspas};

pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/rpki").join(name)
}

pub fn file(name: &str) -> Vec<u8> {
    let path = path(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const VRPS: [&str; 4] = [
    "192.0.2.0/24-24 AS64500",
    "198.51.100.0/22-23 AS64501",
    "203.0.113.0/24-32 AS0",
    "2001:db8::/32-48 AS64500",
];

/// Each file, whether it has its time of writing, and its number of expiry times.
const FILES: [(&str, bool, usize); 7] = [
    ("routinator.json", true, 0),
    ("routinator.jsonext", true, 0),
    ("rpki-client.json", true, 4),
    ("rpki-client.csv", false, 4),
    ("routinator.csv", false, 0),
    ("routinator.csvcompat", false, 0),
    ("routinator.csvext", false, 3),
];

#[test]
fn all_forms_are_equal() {
    for (name, is_dated, expiries) in FILES {
        let file = read(&path(name), false).unwrap();
        let vrps: Vec<String> = file.decoded.vrps.iter().map(Vrp::to_string).collect();
        assert_eq!(vrps, VRPS, "{name}");
        assert_eq!(file.decoded.generated, is_dated.then_some(1_790_138_131), "{name}");
        assert_eq!(file.decoded.expiries.len(), expiries, "{name}");
        if expiries > 0 {
            let of = |now| file.expired(now);
            assert_eq!(
                (of(1_790_200_000), of(1_790_200_001), of(u64::MAX)),
                (0, 1, expiries),
                "{name}"
            );
        }
    }
}

/// The files with ASPAs, and their number of expiry times.
const ASPAS: [(&str, usize); 3] =
    [("routinator.json", 0), ("routinator.jsonext", 0), ("rpki-client.json", 3)];

#[test]
fn aspas_are_equal_in_all_forms() {
    let expected: Aspas =
        [(64500, vec![64501, 64502]), (64501, vec![0]), (64503, vec![64501])].into_iter().collect();
    for (name, expiries) in ASPAS {
        let file = read_aspas(&path(name), false).unwrap();
        assert_eq!(file.decoded.generated, Some(1_790_138_131), "{name}");
        assert_eq!(file.decoded.expiries.len(), expiries, "{name}");
        let of = |now| file.expired(now);
        let first = usize::from(expiries > 0);
        assert_eq!((of(1_790_200_000), of(1_790_200_001), of(u64::MAX)), (0, first, expiries));
        assert_eq!((file.record().announced, &*file.record().format), (3, "aspas, json"));
        assert_eq!(file.decoded.aspas.into_iter().collect::<Aspas>(), expected, "{name}");
    }
    let twice = ASPAS.map(|(name, _)| path(name));
    let (all, records) = read_all_aspas(&twice, false, |_| {}).unwrap();
    assert_eq!((all, records.len()), (expected, 3));
    for (name, ..) in FILES.iter().filter(|(name, ..)| name.contains("csv")) {
        let error = read_aspas(&path(name), true).unwrap_err().to_string();
        assert!(error.ends_with(", line 1: not JSON: only JSON has ASPAs"), "{error}");
    }
}

/// A document of which something is missing is none.
#[test]
fn cut_files_have_no_aspas() {
    for (name, _) in ASPAS {
        let bytes = file(name);
        for len in 1..bytes.trim_ascii_end().len() {
            assert!(decode_aspas(&bytes[..len]).is_err(), "{name} cut at {len}");
        }
    }
}

/// Those who want VRPs get them, whatever the ASPAs beside them are.
#[test]
fn damaged_aspas_do_no_harm_to_vrps() {
    let text = String::from_utf8(file("routinator.json")).unwrap();
    let spoilt = text.replace("\"AS64502\"", "\"AS4294967296\"");
    assert_ne!(spoilt, text);
    assert_eq!(decode(spoilt.as_bytes()).unwrap(), decode(text.as_bytes()).unwrap());
    let error = decode_aspas(spoilt.as_bytes()).unwrap_err();
    assert_eq!(error.line, 16);
    assert_eq!(error.what, "ASPA 1: \"AS4294967296\" is no AS number");
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.json");
    std::fs::write(&empty, "{\"roas\": [], \"aspas\": []}").unwrap();
    assert!(matches!(read_aspas(&empty, false), Err(RpkiError::NoAspas { .. })));
    assert!(read_aspas(&empty, true).unwrap().decoded.aspas.is_empty());
}

/// Wherever a file is cut it is refused, or has the VRPs of whole lines: of CSV, the line that is cut is refused or is
/// itself a VRP.
#[test]
fn cut_files_never_panic() {
    for (name, ..) in FILES {
        let bytes = file(name);
        for len in 1..bytes.len() {
            if let Ok(decoded) = decode(&bytes[..len]) {
                let is_json = name.contains("json");
                assert!(!is_json || bytes[len..].trim_ascii().is_empty(), "{name} cut at {len}");
                assert!(decoded.vrps.len() <= 4);
            }
        }
    }
}

#[test]
fn what_is_no_file_of_vrps() {
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let empty = with("empty.json", b"{\"roas\": []}");
    assert!(matches!(read(&empty, false), Err(RpkiError::Empty { .. })));
    assert_eq!(read(&empty, true).unwrap().decoded.vrps, []);
    for header in [&b""[..], b"ASN,IP Prefix,Max Length,Trust Anchor\n", b"\n\n"] {
        assert!(matches!(read(&with("empty.csv", header), false), Err(RpkiError::Empty { .. })));
    }
    let missing = read(Path::new("no/such/file"), false).unwrap_err();
    assert!(missing.to_string().starts_with("no/such/file: "), "{missing}");
    let page = read(&with("page", b"\n<!doctype html>\n"), false).unwrap_err().to_string();
    assert!(page.ends_with("page, line 2: \"<!doctype html>\" is no AS number"), "{page}");
    let binary = read(&with("rib", b"\x00\x01\xff\xfe"), false).unwrap_err().to_string();
    assert!(binary.ends_with("rib, line 1, byte 3: not UTF-8, so no CSV"), "{binary}");
    let gz = [&b"\x1f\x8b\x08\0\0\0\0\0"[..], &[0xff; 30]].concat();
    assert!(matches!(read(&with("x.csv.gz", &gz), false), Err(RpkiError::Io { .. })));
}
