//! Answers that somebody worked out by hand, or found wrong.

use std::fmt;
use std::net::IpAddr;

use fibula_core::{Addr, AnyPrefix, Hop, Prefix};

/// A table with the expected answers, from a text of such lines:
///
/// ```
/// use fibula_core::Hop;
/// use fibula_testkit::case::Case;
///
/// let case = Case::parse("
///     ## A comment: what was wrong.
///     route 10.0.0.0/8 7
///     answer 10.1.2.3 7
///     answer 11.0.0.0 none
/// ")?;
/// assert_eq!(case.routes::<u32>()[0].1, Hop::new(7));
/// assert_eq!(case.answers::<u32>(), [(0x0a01_0203, Hop::new(7)), (0x0b00_0000, Hop::NONE)]);
/// assert_eq!(Case::parse("answer 10.0.0.0/8 7").unwrap_err().line, 1);
/// # Ok::<(), fibula_testkit::case::CaseError>(())
/// ```
///
/// Both families may be in one text. The files of `testdata/answers` are such texts; the tests of `engines`
/// give them to every engine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    routes: Vec<(AnyPrefix, Hop)>,
    answers: Vec<(IpAddr, Hop)>,
}

/// A line that is no part of a [`Case`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseError {
    /// Its number, from 1 on.
    pub line: usize,
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}: expected \"route PREFIX HOP\", \"answer ADDRESS HOP\" or \"answer ADDRESS none\"",
            self.line
        )
    }
}

impl std::error::Error for CaseError {}

impl Case {
    /// Reads the text.
    ///
    /// # Errors
    /// The first line that is neither empty, a comment, a route nor an answer.
    pub fn parse(text: &str) -> Result<Self, CaseError> {
        let mut case = Self::default();
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                case.line(line).ok_or(CaseError { line: number })?;
            }
        }
        Ok(case)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let (verb, what, hop) = (words.next()?, words.next()?, words.next()?);
        let hop = match hop {
            "none" if verb == "answer" => Hop::NONE,
            hop => Hop::new(hop.parse().ok()?),
        };
        match verb {
            "route" => self.routes.push((what.parse().ok()?, hop)),
            "answer" => self.answers.push((what.parse().ok()?, hop)),
            _ => return None,
        }
        words.next().is_none().then_some(())
    }

    /// The routes of a family, in the order of the text.
    pub fn routes<A: Addr>(&self) -> Vec<(Prefix<A>, Hop)> {
        let family = |prefix: AnyPrefix| {
            let (ip, len) = match prefix {
                AnyPrefix::V4(prefix) => (prefix.first().to_ip(), prefix.len()),
                AnyPrefix::V6(prefix) => (prefix.first().to_ip(), prefix.len()),
            };
            Prefix::new(A::from_ip(ip)?, len).ok()
        };
        let routes = self.routes.iter();
        routes.filter_map(|(prefix, hop)| Some((family(*prefix)?, *hop))).collect()
    }

    /// The answers of a family, in the order of the text.
    pub fn answers<A: Addr>(&self) -> Vec<(A, Hop)> {
        let answers = self.answers.iter();
        answers.filter_map(|(addr, hop)| Some((A::from_ip(*addr)?, *hop))).collect()
    }
}
