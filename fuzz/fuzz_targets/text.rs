//! Text in all its forms: the options come from the first bytes, the rest is the file.
#![no_main]

use fibula_fuzz::decode;
use fibula_ingest::text::{HeaderLine, KeyColumns, TextDecoder, TextOptions};
use fibula_ingest::{ColumnKind, Format, HostBits, ScalarType, Tail};
use libfuzzer_sys::fuzz_target;

/// The layout is found out from the first megabyte; only behind it does the decoder wait for lines.
const HEAD: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&[format, key, names, step], input)) = data.split_first_chunk() else { return };
    let delimiters =
        [None, Some(b','), Some(b';'), Some(b' '), Some(b'\t'), Some(b'|'), Some(b'"')];
    let columns = |key: &str| (key.to_owned(), ColumnKind::Str);
    let options = TextOptions {
        delimiter: delimiters[usize::from(key >> 4) % delimiters.len()],
        header: [HeaderLine::Auto, HeaderLine::Present, HeaderLine::Absent][usize::from(key) % 3],
        names: (0..names & 7).map(|i| format!("{}", (b'a' + i) as char)).collect(),
        key: match key % 5 {
            0..3 => KeyColumns::Auto,
            3 => KeyColumns::Prefix("1".into()),
            _ => KeyColumns::Range("a".into(), "2".into()),
        },
        columns: (names & 8 != 0).then(|| vec!["3".into(), "b".into()]),
        kinds: if names & 16 != 0 { vec![columns("c")] } else { Vec::new() },
        types: if names & 64 != 0 { vec![("b".into(), ScalarType::Double)] } else { Vec::new() },
        host_bits: if names & 32 != 0 { HostBits::Mask } else { HostBits::Refuse },
    };
    let formats = [Format::Text, Format::Csv, Format::Tsv, Format::Ranges];
    let format_of = formats[usize::from(format) % 4];
    let tail = if format & 4 != 0 { Tail::Cut } else { Tail::End };
    let run = |input: &[u8], first| {
        let mut whole = TextDecoder::new(options.clone(), format_of);
        let whole = decode(&mut whole, input, (input.len(), 1), tail);
        let mut parts = TextDecoder::new(options.clone(), format_of);
        let parts = decode(&mut parts, input, (first, step.into()), tail);
        assert_eq!(whole.verdict(), parts.verdict());
    };
    if names < 0xf8 {
        run(input, 0);
    } else {
        // A megabyte of comments between the two halves.
        let (head, rest) = input.split_at(input.len() / 2);
        let comment = [&b"#"[..], &[b'x'; 60_000], b"\n"].concat();
        let long = [head, b"\n", &comment.repeat(HEAD / comment.len() + 1), rest].concat();
        run(&long, long.len() - rest.len());
    }
});
