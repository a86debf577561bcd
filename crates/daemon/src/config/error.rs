//! Errors of a configuration.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use super::Problem;

/// The error of a configuration, or of a file that it names: the file, the line, the problem, and what to do.
#[derive(Debug)]
pub struct ConfigError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    file: Option<PathBuf>,
    line: Option<usize>,
    problem: Problem,
    hint: Option<String>,
}

impl ConfigError {
    /// Names the file.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.0.file = Some(file.into());
        self
    }

    /// Names the line, counted from 1.
    #[must_use]
    pub(crate) fn at_line(mut self, line: impl Into<Option<usize>>) -> Self {
        self.0.line = line.into();
        self
    }

    /// Adds a hint, if the problem has none.
    #[must_use]
    pub(crate) fn or_hint(mut self, hint: impl fmt::Display) -> Self {
        self.0.hint = Some(hint.to_string());
        self
    }

    /// The file, if the problem is in one.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The line in the file, counted from 1, if the problem is at one.
    pub fn line(&self) -> Option<usize> {
        self.0.line
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        self.0.problem.hint().or_else(|| self.0.hint.clone())
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self(Box::new(Inner { file: None, line: None, problem, hint: None }))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { file, line, problem, .. } = &*self.0;
        if let Some(file) = file {
            if let Some(setting) = problem.setting() {
                write!(f, "{setting} ")?;
            }
            write!(f, "{}: ", file.display())?;
        }
        if let Some(line) = line {
            // A key is named behind its line; a line of rules or next hops is wrong as a whole.
            let separator = if problem.is_of_line() { ':' } else { ',' };
            write!(f, "line {line}{separator} ")?;
        }
        problem.fmt(f)
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.problem.source()
    }
}
