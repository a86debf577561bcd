//! The guess of columns: a table with a header is read alike in any order of its columns, or it is refused, or a note
//! says that there is another way.
#![no_main]

use fibula_ingest::text::{TextDecoder, TextOptions};
use fibula_ingest::{Collected, Decoder, Format, Tail};
use libfuzzer_sys::fuzz_target;

/// The prefixes; `None` if the table is refused, also since most of its rows are damaged, or has a note.
fn prefixes(columns: &[Vec<&str>]) -> Option<Vec<String>> {
    let rows = columns.iter().map(Vec::len).max()?;
    let mut text = String::new();
    for row in 0..rows {
        let cells: Vec<&str> =
            columns.iter().map(|cells| cells.get(row).copied().unwrap_or_default()).collect();
        text += &(cells.join(",") + "\n");
    }
    let mut sink = Collected::default();
    let mut decoder = TextDecoder::new(TextOptions::default(), Format::Csv);
    decoder.decode(text.as_bytes(), Tail::End, &mut sink).ok()?;
    let prefix = |line: String| line.split(' ').next().unwrap_or_default().to_owned();
    (sink.noted.is_empty() && sink.damage.len() * 2 < rows)
        .then(|| sink.lines.into_iter().map(prefix).collect())
}

// The first bytes say how the columns are turned; then a column a line, its name first, with commas between its cells.
fuzz_target!(|data: &[u8]| {
    let Some((turns, text)) = data.split_first_chunk::<8>() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let columns: Vec<Vec<&str>> =
        text.lines().take(8).map(|line| line.split(',').take(40).collect()).collect();
    let names: Vec<String> = columns
        .iter()
        .filter_map(|column| column.first())
        .map(|name| name.to_ascii_lowercase().replace([' ', '-', '_'], ""))
        .collect();
    // Names that say something, each something else.
    let is_name =
        |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    // As the first line of a file, others are damage.
    let begin_as_names = columns.iter().all(|column| {
        column.first().is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
    });
    let is_known =
        names.iter().enumerate().all(|(at, name)| is_name(name) && !names[..at].contains(name));
    if columns.len() < 2 || !is_known || !begin_as_names || text.contains(['"', '#', ';']) {
        return;
    }
    let mut turned = columns.clone();
    for (at, turn) in turns.iter().enumerate().take(columns.len()) {
        turned.swap(at, usize::from(*turn) % columns.len());
    }
    if let (Some(one), Some(two)) = (prefixes(&columns), prefixes(&turned)) {
        assert_eq!(one, two);
    }
});
