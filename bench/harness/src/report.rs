//! Records for people: text in Markdown.

use std::fmt::Write;

use fibula_testkit::measure::Stamp;

use crate::record::{Record, Row};

/// Wall time by processor time from which on a contestant is reported as disturbed.
const DISTURBED: f64 = 1.05;

/// A record as a page.
pub fn text(record: &Record) -> String {
    let mut out = String::new();
    let Record { title, table, family, prefixes, .. } = record;
    let Record { keys, threads, rounds, baseline, .. } = record;
    let _ = writeln!(out, "# {title}\n");
    let _ = writeln!(out, "{}", circumstances(record));
    let _ = writeln!(
        out,
        "{table}, IP{family}, {} prefixes; {} keys for each round and thread, threads: {threads}, rounds: {rounds}.\n\
         Rates are million lookups a second, by processor time with one thread; medians. Ratios are those of the\n\
         contestant to {baseline} in the same round.",
        grouped(*prefixes as u64),
        grouped(*keys as u64),
    );
    let mut kinds: Vec<&str> = Vec::new();
    for row in &record.rows {
        if !kinds.contains(&&*row.traffic) {
            kinds.push(&row.traffic);
        }
    }
    for kind in kinds {
        let rows: Vec<&Row> = record.rows.iter().filter(|row| row.traffic == kind).collect();
        let _ = writeln!(out, "\n## {kind}\n\n{}", grid(&rows));
    }
    out + &footnotes(record)
}

/// The stamp in a paragraph.
pub fn circumstances(record: &Record) -> String {
    let Stamp { date, command, commit, processor, caches, huge_pages, kernel, load } =
        &record.stamp;
    let commit = commit.as_ref().map_or("no commit".to_owned(), |commit| {
        let dirty = if commit.is_dirty { ", with changes" } else { "" };
        format!("commit {}{dirty}", commit.id.get(..12).unwrap_or(&commit.id))
    });
    let caches: Vec<String> = caches
        .iter()
        .filter(|cache| cache.contents != "Instruction")
        .map(|cache| format!("L{} {}", cache.level, size(cache.bytes)))
        .collect();
    format!(
        "{processor}; {}; {kernel}; huge pages: {}, {} reserved; load {:.2} before, {:.2} after.\n{commit}, {date}.\n\
         `{command}`\n",
        caches.join(", "),
        huge_pages.transparent,
        huge_pages.reserved,
        load[0],
        record.load_after[0],
    )
}

fn grid(rows: &[&Row]) -> String {
    let mut out = "| contestant | batch | Mlps | min | max | ratio | table | build ms |\n\
                   |---|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for row in rows {
        let rates = match (&row.rate, &row.wrong) {
            (Some(rate), _) => {
                let ratio = rate.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
                format!("{:.1} | {:.1} | {:.1} | {ratio}", rate.mlps, rate.min, rate.max)
            }
            (None, Some(_)) => "wrong | | |".to_owned(),
            (None, None) => "right | | |".to_owned(),
        };
        let (name, batch, build, bytes) = (&row.contestant, row.batch, row.build_ms, memory(row));
        let _ = writeln!(out, "| {name} | {batch} | {rates} | {bytes} | {build:.0} |");
    }
    out
}

/// A line for each contestant: its median rate with each kind of traffic, by the baseline's in brackets.
pub fn summary(record: &Record) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for row in &record.rows {
        if !kinds.contains(&&*row.traffic) {
            kinds.push(&row.traffic);
        }
        if !names.contains(&&*row.contestant) {
            names.push(&row.contestant);
        }
    }
    let mut out = format!("| contestant | {} | memory | build ms |\n", kinds.join(" | "));
    let _ = writeln!(out, "|---|{}--:|--:|", "--:|".repeat(kinds.len()));
    for name in names {
        let of = |kind: &str| {
            record.rows.iter().find(|row| row.contestant == name && row.traffic == kind)
        };
        let cells: Vec<String> = kinds
            .iter()
            .map(|kind| match of(kind).and_then(|row| row.rate.as_ref()) {
                Some(rate) => {
                    let ratio = rate.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
                    let digits = usize::from(rate.mlps < 10.0);
                    format!("{:.digits$} ({ratio})", rate.mlps)
                }
                None => "wrong".to_owned(),
            })
            .collect();
        let Some(row) = kinds.first().and_then(|kind| of(kind)) else { continue };
        let (memory, build) = (memory(row), row.build_ms);
        let _ = writeln!(out, "| {name} | {} | {memory} | {build:.0} |", cells.join(" | "));
    }
    out
}

/// The bytes that a contestant states, or what its process grew by.
pub fn memory(row: &Row) -> String {
    let resident = || row.resident.map(|bytes| format!("{} resident", size(bytes)));
    row.bytes.map(size).or_else(resident).unwrap_or_default()
}

/// Who is who, who was wrong, absent or disturbed.
pub fn footnotes(record: &Record) -> String {
    let mut out = "\n## Contestants\n\n".to_owned();
    let mut named: Vec<&str> = Vec::new();
    for row in &record.rows {
        if !named.contains(&&*row.contestant) {
            named.push(&row.contestant);
            let note = if row.note.is_empty() { String::new() } else { format!(": {}", row.note) };
            let _ = writeln!(out, "- {}: {}{note}", row.contestant, row.version);
        }
    }
    for row in &record.rows {
        if let Some(wrong) = &row.wrong {
            let _ = writeln!(out, "- **{}, {}: {wrong}**", row.contestant, row.traffic);
        }
    }
    let disturbed: Vec<String> = record
        .rows
        .iter()
        .filter_map(|row| {
            let busy = row.rate.as_ref()?.wall_by_cpu;
            let (name, traffic) = (&row.contestant, &row.traffic);
            (busy > DISTURBED).then(|| format!("{name} {traffic} {busy:.2}"))
        })
        .collect();
    if !disturbed.is_empty() {
        let all = disturbed.join(", ");
        let _ = writeln!(out, "- disturbed, so many times as long by the wall clock: {all}");
    }
    for absent in &record.absent {
        let _ = writeln!(out, "- absent: {}: {}", absent.contestant, absent.reason);
    }
    out
}

/// `1.5 MiB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// `900,000`.
fn grouped(number: u64) -> String {
    fibula_core::grouped(number).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Absent;
    use crate::record::tests::record;

    #[test]
    fn a_wrong_contestant_has_no_rate() {
        let mut record = record(&[("a", &[2.0, 4.0]), ("b", &[1.0, 1.0])]);
        record.rows[1].rate = None;
        record.rows[1].wrong = Some("wrong 3 of 10, first 10.0.0.1: 4, right 5".to_owned());
        record.absent =
            vec![Absent { contestant: "c".to_owned(), reason: "not installed".to_owned() }];
        let text = text(&record);
        assert!(text.contains("| a | 256 | 3.0 | 2.0 | 4.0 | 1.00 | 1.0 MiB | 1 |"), "{text}");
        assert!(text.contains("| b | 256 | wrong | | | |"), "{text}");
        assert!(text.contains("b, RND: wrong 3 of 10, first 10.0.0.1: 4, right 5"), "{text}");
        assert!(text.contains("absent: c: not installed"), "{text}");
    }

    #[test]
    fn a_summary_has_a_line_for_each_contestant() {
        let mut record = record(&[("a", &[20.0, 40.0]), ("b", &[1.0, 1.0])]);
        let mut other = record.rows.clone();
        other.iter_mut().for_each(|row| row.traffic = "PFX".to_owned());
        other[1].rate = None;
        record.rows.extend(other);
        let expected = "| contestant | RND | PFX | memory | build ms |\n|---|--:|--:|--:|--:|\n\
                        | a | 30 (1.00) | 30 (1.00) | 1.0 MiB | 1 |\n\
                        | b | 1.0 (0.04) | wrong | 1.0 MiB | 1 |\n";
        assert_eq!(summary(&record), expected);
    }

    #[test]
    fn a_disturbed_round_is_reported() {
        let mut record = record(&[("a", &[2.0])]);
        assert!(!text(&record).contains("disturbed"));
        record.rows[0].rate.as_mut().unwrap().wall_by_cpu = 1.3;
        assert!(text(&record).contains("wall clock: a RND 1.30"));
    }
}
