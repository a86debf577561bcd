//! A row of the table, found by the columns of its header.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use fibula_core::AnyPrefix;

const NAMES: [&str; 7] = ["Network", "Next", "Hop", "Metric", "LocPrf", "Weight", "Path"];
/// Letters and signs before the prefix, of all systems. Capitals are also FRR's results of RPKI (V, I, N).
const FLAGS: &[u8] = b" *>=sdhirSRmbfxacutelpVINLB|&+-";
/// So far from its column may a field be: lines that go on are indented by a fixed width, and a long number moves those
/// behind it. The columns of numbers are seven apart or more.
const TOLERANCE: usize = 3;

/// Characters of local preference and weight.
const WIDTH: usize = 7;

pub(super) fn is_header(line: &str) -> bool {
    line.split_whitespace().eq(NAMES)
}

/// The places of the columns, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    /// Where it begins.
    pub(super) network: usize,
    next_hop: usize,
    /// Where metric, local preference and weight end.
    ends: [usize; 3],
}

impl Columns {
    pub(super) fn of(header: &str) -> Option<Self> {
        let end = |name: &str| Some(header.find(name)? + name.len());
        Some(Self {
            network: header.find("Network")?,
            next_hop: header.find("Next")?,
            ends: [end("Metric")?, end("LocPrf")?, end("Weight")?],
        })
    }

    /// The number among metric, local preference and weight whose text ends here.
    fn number(&self, end: usize) -> Option<usize> {
        self.ends.iter().position(|column| column.abs_diff(end) <= TOLERANCE)
    }
}

/// A prompt, `router>` or `router# exit`: no flags, which may end so, too.
pub(super) fn is_prompt(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    let has_name = word.bytes().any(|byte| byte.is_ascii_alphanumeric() && !FLAGS.contains(&byte));
    word.ends_with(['>', '#']) && has_name
}

/// What the signs before a prefix say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags {
    pub(super) is_best: bool,
    pub(super) is_internal: bool,
    /// Withdrawn, and only remembered: history, or removed.
    pub(super) is_gone: bool,
}

impl Flags {
    pub(super) fn read(text: &str) -> Option<Self> {
        text.bytes().all(|byte| FLAGS.contains(&byte)).then(|| Self {
            is_best: text.contains('>'),
            is_internal: text.contains('i'),
            is_gone: text.contains(['h', 'R']),
        })
    }
}

/// The prefix. One without a length has that of its class.
pub(super) fn network(text: &str) -> Option<AnyPrefix> {
    if let Some((address, len)) = text.split_once('/') {
        return AnyPrefix::new(address.parse().ok()?, len.parse().ok()?).ok();
    }
    let address: Ipv4Addr = text.parse().ok()?;
    let len = match address.octets()[0] {
        _ if address.is_unspecified() => 0,
        0..128 => 8,
        128..192 => 16,
        192..224 => 24,
        _ => return None,
    };
    AnyPrefix::new(address.into(), len).ok()
}

/// The next hop. FRR adds the routing instance (`192.0.2.1@7<`) or the host's name in brackets.
fn next_hop(text: &str) -> Option<IpAddr> {
    text.split(['@', '<', '(']).next()?.parse().ok()
}

/// The first part of a path, which may go on in the next line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) flags: Flags,
    /// With 0.0.0.0 or :: for the router's own routes.
    pub(super) next_hop: Option<IpAddr>,
}

impl Row {
    /// Reads on behind byte `at` of a line; `None` if the line ends before the path.
    pub(super) fn read<'a>(
        &mut self,
        line: &'a str,
        at: usize,
        columns: Columns,
    ) -> Result<Option<Path<'a>>, &'static str> {
        let mut words = Words { line, at };
        if self.next_hop.is_none() {
            let Some((start, word)) = words.next() else { return Ok(None) };
            // A long prefix moves it.
            if start + TOLERANCE < columns.next_hop {
                return Err("no next hop in its column");
            }
            self.next_hop = Some(next_hop(word).ok_or("not a next hop")?);
        }
        let mut numbers = [None; 3];
        while numbers[2].is_none() {
            let Some((start, word)) = words.next() else {
                let is_begun = numbers.iter().any(Option::is_some);
                return if is_begun { Err("no weight") } else { Ok(None) };
            };
            let column = columns.number(start + word.len()).ok_or("a number in no column")?;
            if numbers[column..].iter().any(Option::is_some) {
                return Err("two numbers in one column");
            }
            // Then nothing separates it from the one before.
            if column > 0 && word.len() > WIDTH {
                return Err("a number that is wider than its column");
            }
            numbers[column] = Some(word.parse::<u32>().map_err(|_| "not a number")?);
        }
        let text = line[words.at..].trim();
        let (as_path, origin) = text.rsplit_once(' ').unwrap_or(("", text));
        let origin = match origin {
            "i" => 0,
            "e" => 1,
            "?" => 2,
            _ => return Err("no origin code (i, e or ?) at the end"),
        };
        Ok(Some(Path { metric: numbers[0], local_pref: numbers[1], as_path, origin }))
    }
}

/// The words of a line, each with its place.
struct Words<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.line.get(self.at..)?;
        let word = rest.trim_start();
        let start = self.at + rest.len() - word.len();
        let word = word.split(' ').next().filter(|word| !word.is_empty())?;
        self.at = start + word.len();
        Some((start, word))
    }
}

/// The rest of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'a> {
    pub(super) metric: Option<u32>,
    pub(super) local_pref: Option<u32>,
    as_path: &'a str,
    pub(super) origin: u8,
}

impl Path<'_> {
    /// Writes the AS path as other formats have it: one blank between two AS, and numbers with dots (`1.10`) as one.
    pub(super) fn write(&self, out: &mut String) -> Option<()> {
        out.clear();
        let mut number = String::new();
        let flush = |number: &mut String, out: &mut String| {
            let asn: u32 = match number.split_once('.') {
                _ if number.is_empty() => return Some(()),
                Some((high, low)) => {
                    u32::from(high.parse::<u16>().ok()?) << 16 | u32::from(low.parse::<u16>().ok()?)
                }
                None => number.parse().ok()?,
            };
            number.clear();
            write!(out, "{asn}").ok()
        };
        for (at, word) in self.as_path.split_whitespace().enumerate() {
            if at > 0 {
                out.push(' ');
            }
            for sign in word.chars() {
                match sign {
                    '0'..='9' | '.' => number.push(sign),
                    '{' | '}' | '(' | ')' | '[' | ']' | ',' => {
                        flush(&mut number, out)?;
                        out.push(sign);
                    }
                    _ => return None,
                }
            }
            flush(&mut number, out)?;
        }
        Some(())
    }
}
