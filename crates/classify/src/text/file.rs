//! Reads a file of rules: one function for the command, the router and Python.

use std::error::Error;
use std::fmt;
use std::io::{self, Read};

use super::{RuleFormat, RuleOptions, RuleText, TextError, read};

/// Why a file of rules is refused.
#[derive(Debug)]
pub struct RuleFileError {
    file: String,
    problem: RuleFileProblem,
}

/// The fault of a file of rules.
#[derive(Debug)]
#[non_exhaustive]
pub enum RuleFileProblem {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The text is not a text of rules.
    Text {
        /// The error, with its line and column.
        error: TextError,
        /// The format, if it was guessed.
        guessed: Option<RuleFormat>,
    },
    /// The file has no rules. Most likely it was cut off, or an editor is about to write it anew.
    Empty,
}

impl RuleFileError {
    /// The name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, counted from 1, if the problem is at one.
    pub fn line(&self) -> Option<u32> {
        self.text_error().map(|error| error.line)
    }

    /// The character in the line, counted from 1, if the problem is at one.
    pub fn column(&self) -> Option<u32> {
        self.text_error().map(|error| error.column)
    }

    /// The problem.
    pub fn problem(&self) -> &RuleFileProblem {
        &self.problem
    }

    /// The problem, without the name of the file.
    pub fn into_problem(self) -> RuleFileProblem {
        self.problem
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        self.problem.hint()
    }

    fn text_error(&self) -> Option<&TextError> {
        match &self.problem {
            RuleFileProblem::Text { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl RuleFileProblem {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Text { guessed, .. } => {
                guessed.map(|format| format!("it was read as {format}, by its first line"))
            }
            _ => None,
        }
    }
}

impl fmt::Display for RuleFileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => error.fmt(f),
            Self::Text { error, .. } => error.fmt(f),
            Self::Empty => f.write_str("it has no rules: `any -> allow` is one for all packets"),
        }
    }
}

impl fmt::Display for RuleFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.problem)
    }
}

impl Error for RuleFileProblem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable(error) => Some(error),
            Self::Text { error, .. } => Some(error),
            Self::Empty => None,
        }
    }
}

impl Error for RuleFileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.problem)
    }
}

/// Reads the rules of a file, which the caller has opened and decompressed. Without a format, the first line decides
/// (see [`RuleFormat::guess`]). `file` is the name for errors.
///
/// ```
/// use fibula_classify::text::{RuleOptions, read_file};
///
/// let read = |text: &'static str| read_file(text.as_bytes(), "acl", None, &RuleOptions::default());
/// assert_eq!(read("10.0.0.0/8 drop\n")?.rules.len(), 1);
/// let error = read("any -> dorp\n").unwrap_err();
/// assert_eq!((error.file(), error.line(), error.column()), ("acl", Some(1), Some(8)));
/// assert!(read("# any -> drop\n").is_err());
/// # Ok::<(), fibula_classify::text::RuleFileError>(())
/// ```
///
/// # Errors
///
/// If the file cannot be read, its text is refused as by [`read`], or it has no rules.
pub fn read_file(
    mut data: impl Read,
    file: impl fmt::Display,
    format: Option<RuleFormat>,
    options: &RuleOptions,
) -> Result<RuleText, RuleFileError> {
    let failed = |problem| RuleFileError { file: file.to_string(), problem };
    let mut bytes = Vec::new();
    data.read_to_end(&mut bytes).map_err(|error| failed(RuleFileProblem::Unreadable(error)))?;
    let (used, guessed) = match format {
        Some(format) => (format, None),
        None => {
            let format = RuleFormat::guess(&String::from_utf8_lossy(&bytes));
            (format, Some(format))
        }
    };
    let read = read(&bytes, used, options);
    let read = read.map_err(|error| failed(RuleFileProblem::Text { error, guessed }))?;
    match read.rules.is_empty() {
        true => Err(failed(RuleFileProblem::Empty)),
        false => Ok(read),
    }
}
