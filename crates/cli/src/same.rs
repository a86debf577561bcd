//! Checks whether an output is also an input: whether two file names or standard streams refer to the same file.

use std::fs::{File, Metadata};
use std::path::Path;

use crate::failure::Failure;
use crate::input::Input;
use crate::source::Source;

/// Refuses an output that is also one of the tables, because the table would be lost.
pub fn refuse_tables(sources: &[(String, Source)], output: &Path) -> Result<(), Failure> {
    sources.iter().try_for_each(|(_, source)| match source {
        Source::Snapshot(path) | Source::Checkpoint { path, .. } | Source::Feed(path) => {
            refuse(path, output)
        }
        Source::Embedded | Source::Generated(_) => Ok(()),
    })
}

/// As [`refuse_tables`], but a snapshot may take the place of one that it is made from: it is written whole or not at
/// all.
pub fn refuse_feeds(sources: &[(String, Source)], output: &Path) -> Result<(), Failure> {
    sources.iter().try_for_each(|(_, source)| match source {
        Source::Feed(path) => refuse(path, output),
        Source::Snapshot(_)
        | Source::Checkpoint { .. }
        | Source::Embedded
        | Source::Generated(_) => Ok(()),
    })
}

/// Refuses an output that is also the input: the command would read its own output without end, or find an empty
/// file.
pub fn refuse(input: &Path, output: &Path) -> Result<(), Failure> {
    match opened(input, stdin) {
        Some(read) => refuse_read(&read, input, output),
        None => Ok(()),
    }
}

/// Like [`refuse`], for an input that was opened. Another file may have its name now.
pub fn refuse_opened(input: &Input, output: &Path) -> Result<(), Failure> {
    match input.metadata() {
        Some(read) => refuse_read(read, input.path(), output),
        None => refuse(input.path(), output),
    }
}

fn refuse_read(read: &Metadata, input: &Path, output: &Path) -> Result<(), Failure> {
    let Some(written) = opened(output, stdout) else { return Ok(()) };
    if !read.is_file() || !written.is_file() || !is_same(read, &written, input, output) {
        return Ok(());
    }
    let name = |path: &Path, stream: &'static str| match path.as_os_str() == "-" {
        true => stream.to_owned(),
        false => path.display().to_string(),
    };
    let (input, output) = (name(input, "standard input"), name(output, "standard output"));
    let message = match input == output {
        true => format!("{input}: is input and output"),
        false => format!("{input} and {output} are the same file, which is input and output"),
    };
    Err(Failure::new(message).hint("write to another file"))
}

fn opened(path: &Path, stream: fn() -> Option<Metadata>) -> Option<Metadata> {
    if path.as_os_str() == "-" { stream() } else { path.metadata().ok() }
}

#[cfg(unix)]
fn stdin() -> Option<Metadata> {
    use std::os::fd::AsFd;
    let stream = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    File::from(stream).metadata().ok()
}

#[cfg(unix)]
fn stdout() -> Option<Metadata> {
    use std::os::fd::AsFd;
    let stream = std::io::stdout().as_fd().try_clone_to_owned().ok()?;
    File::from(stream).metadata().ok()
}

#[cfg(unix)]
fn is_same(read: &Metadata, written: &Metadata, _: &Path, _: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    (read.dev(), read.ino()) == (written.dev(), written.ino())
}

#[cfg(not(unix))]
fn stdin() -> Option<Metadata> {
    None
}

#[cfg(not(unix))]
fn stdout() -> Option<Metadata> {
    None
}

#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata, input: &Path, output: &Path) -> bool {
    input.canonicalize().ok() == output.canonicalize().ok()
}
