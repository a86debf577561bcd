//! Text formats with fixed lines: the output of registries, routing and firewall tools, bgpdump and the like. One file
//! each.

mod bgpdump;
mod delegated;
mod dialects;
mod diff;
mod ipset;
mod prefix_list;
mod routes;
mod show_bgp;

use std::borrow::Cow;

use memchr::memchr;

use crate::{Damage, Decoder, Format, Sink, SourceInfo, StopReason, Tail};

/// A longer line is damage. This bounds the buffer.
const MAX_LINE: usize = 64 << 10;

/// Reads the lines of one form.
trait Form: Send {
    /// The description of the source, except its name and date.
    fn info(&self) -> SourceInfo;

    /// Whether a later line may take a prefix from an earlier one; see [`Sink::record`].
    fn takes(&self) -> bool {
        false
    }

    /// Reads a line, without its end. The error describes the fault.
    fn line(&mut self, line: &str, sink: &mut dyn Sink) -> Result<(), Cow<'static, str>>;

    /// After the last line. The error describes what is missing.
    fn end(&mut self) -> Result<(), Cow<'static, str>> {
        Ok(())
    }
}

/// Whether a line has a form.
type IsLine = fn(&str) -> bool;

/// The form of a text that begins so, if it has one of these.
pub(crate) fn detect(head: &[u8]) -> Option<Format> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    // The last line may be cut.
    let whole = memchr::memrchr(b'\n', text).map_or(text, |end| &text[..end]);
    let text = String::from_utf8_lossy(whole);
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines.by_ref().take(20).find_map(|line| {
        let forms: [(Format, IsLine); 7] = [
            (Format::Bgpdump, bgpdump::is_line),
            (Format::Delegated, delegated::is_line),
            (Format::Routes, routes::is_line),
            (Format::Ipset, ipset::is_line),
            (Format::PrefixList, prefix_list::is_line),
            (Format::Diff, diff::is_line),
            (Format::ShowBgp, show_bgp::is_line),
        ];
        forms.iter().find(|(_, is_line)| is_line(line)).map(|(format, _)| *format)
    })
}

/// The decoder of a form; `None` for a format that is none of these. `all_paths`: not only those that a router chose.
pub(crate) fn decoder(format: Format, all_paths: bool) -> Option<Box<dyn Decoder>> {
    Some(match format {
        Format::Bgpdump => Box::new(Lines::new(bgpdump::Bgpdump::default())),
        Format::Delegated => Box::new(Lines::new(delegated::Delegated)),
        Format::Routes => Box::new(Lines::new(routes::Routes::default())),
        Format::Ipset => Box::new(Lines::new(ipset::Ipset::default())),
        Format::PrefixList => Box::new(Lines::new(prefix_list::PrefixList)),
        Format::Diff => Box::new(Lines::new(diff::Differences)),
        Format::ShowBgp => Box::new(Lines::new(show_bgp::ShowBgp::new(all_paths))),
        _ => return None,
    })
}

/// Decodes lines; a record is a line, counted from 1.
struct Lines<F> {
    form: F,
    begun: bool,
    records: u64,
    offset: u64,
    /// Within a line that is too long.
    skipping: bool,
}

impl<F: Form> Lines<F> {
    fn new(form: F) -> Self {
        Self { form, begun: false, records: 0, offset: 0, skipping: false }
    }

    fn line(&mut self, line: &[u8], sink: &mut dyn Sink) -> Result<(), Cow<'static, str>> {
        if line.len() > MAX_LINE {
            return Err(format!("a line of more than {MAX_LINE} bytes").into());
        }
        let line = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8")?.trim_end();
        match line.trim_start() {
            "" => Ok(()),
            text if text.starts_with('#') => Ok(()),
            _ => {
                sink.record(self.records, self.form.takes());
                self.form.line(line, sink)
            }
        }
    }
}

impl<F: Form> Decoder for Lines<F> {
    fn decode(
        &mut self,
        input: &[u8],
        tail: Tail,
        sink: &mut dyn Sink,
    ) -> Result<usize, StopReason> {
        if !std::mem::replace(&mut self.begun, true) {
            sink.begin(&self.form.info());
        }
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            let (line, len) = match memchr(b'\n', rest) {
                Some(end) => (&rest[..end], end + 1),
                // A line that is too long is skipped while it arrives.
                None if rest.len() > MAX_LINE || tail.is_last() => (rest, rest.len()),
                None => break,
            };
            let is_whole = len > line.len();
            let was_skipping = std::mem::replace(&mut self.skipping, !is_whole);
            if !was_skipping {
                self.records += 1;
                let result = match is_whole || tail != Tail::Cut {
                    true => self.line(line, sink),
                    false => Err("the last line is cut off".into()),
                };
                if let Err(what) = result {
                    let damage = Damage::new(self.records, self.offset + at as u64, what);
                    if sink.damage(&damage).is_break() {
                        return Err(StopReason::BySink);
                    }
                }
            }
            at += len;
        }
        self.offset += at as u64;
        if tail.is_last()
            && let Err(what) = self.form.end()
            && sink.damage(&Damage::new(self.records, self.offset, what)).is_break()
        {
            return Err(StopReason::BySink);
        }
        Ok(at)
    }

    fn records(&self) -> u64 {
        self.records
    }
}

/// A part of a line, fit to be shown.
fn excerpt(text: &str) -> String {
    let shown: String = text.chars().take(60).collect();
    let dots = if shown.len() < text.len() { "..." } else { "" };
    format!("{shown:?}{dots}")
}

#[cfg(test)]
fn decode(format: Format, text: &str) -> crate::Collected {
    let mut whole = crate::Collected::default();
    let taken = decoder(format, true).unwrap().decode(text.as_bytes(), Tail::End, &mut whole);
    assert_eq!(taken, Ok(text.len()));
    // Byte by byte, the result is the same.
    let mut parts = crate::Collected::default();
    let mut driver = crate::Driver::new(decoder(format, true).unwrap(), 1 << 20);
    text.as_bytes().iter().for_each(|byte| driver.push(&[*byte], &mut parts).unwrap());
    driver.finish(Tail::End, &mut parts).unwrap();
    assert_eq!(whole, parts);
    assert_eq!(detect(text.as_bytes()), Some(format), "{text}");
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collected;

    #[test]
    fn long_and_cut_lines() {
        let long = "x".repeat(200_000);
        let text =
            format!("BGP4MP|1|W|192.0.2.1|1|10.0.0.0/8\n{long}\nBGP4MP|1|W|192.0.2.1|1|::/0");
        let mut driver = crate::Driver::new(decoder(Format::Bgpdump, true).unwrap(), 1 << 20);
        let mut sink = Collected::default();
        text.as_bytes().chunks(1000).for_each(|piece| driver.push(piece, &mut sink).unwrap());
        driver.finish(Tail::Cut, &mut sink).unwrap();
        assert_eq!(sink.lines, ["- 0 10.0.0.0/8"]);
        let places: Vec<_> = sink.damage.iter().map(|d| (d.record, d.offset)).collect();
        assert_eq!(places, [(2, 34), (3, 200_035)]);
    }

    #[test]
    fn other_texts_have_no_form() {
        for text in
            ["", "10.0.0.0/8 1\n", "prefix,asn\n", "a|b|c\n", "default,1\n", "{\n", "\n\n#\n"]
        {
            assert_eq!(detect(text.as_bytes()), None, "{text}");
        }
    }
}
