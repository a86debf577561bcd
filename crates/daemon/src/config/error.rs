//! What is wrong with a configuration, and where.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use super::Problem;

/// The error of a configuration, or of a file that it names: the file, the line, the problem, and what to do.
#[derive(Debug)]
pub struct ConfigError {
    file: Option<PathBuf>,
    line: Option<usize>,
    problem: Problem,
    hint: Option<String>,
}

impl ConfigError {
    /// Names the file.
    #[must_use]
    pub fn in_file(self, file: impl Into<PathBuf>) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    /// Names the line, counted from 1.
    #[must_use]
    pub(crate) fn at_line(self, line: impl Into<Option<usize>>) -> Self {
        Self { line: line.into(), ..self }
    }

    /// Says what to do, where the problem itself does not.
    #[must_use]
    pub(crate) fn or_hint(self, hint: impl fmt::Display) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }

    /// The file, if the problem is in one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The line in the file, counted from 1, if the problem is at one.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        self.problem.hint().or_else(|| self.hint.clone())
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { file: None, line: None, problem, hint: None }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            if let Some(setting) = self.problem.setting() {
                write!(f, "{setting} ")?;
            }
            write!(f, "{}: ", file.display())?;
        }
        if let Some(line) = self.line {
            // A key is named behind its line; a line of rules or next hops is wrong as a whole.
            let separator = if self.problem.is_of_line() { ':' } else { ',' };
            write!(f, "line {line}{separator} ")?;
        }
        self.problem.fmt(f)
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.problem.source()
    }
}
