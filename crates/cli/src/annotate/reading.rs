//! Decides how an opened input is read: its format, from its name or its first bytes, and a reader for the format.

use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};

use fibula_annotate::{ColumnInput, LogFormat};

use crate::failure::Failure;
use crate::input::{Input, Position};

/// The bytes of an input, for the annotator of its format. All come from the descriptor that the input was opened with.
pub enum Reading {
    /// Text or a capture, without its compression.
    Rows(BufReader<Box<dyn Read>>, Position),
    /// Parquet or Arrow.
    Columns(ColumnInput<'static>),
}

impl Reading {
    /// Decides how the input is read. Without a named format, the first bytes give the format: those of a file as it is
    /// stored if they are of a columnar format, otherwise those without its compression. `is_final`: the format is not
    /// only that of the file's name.
    pub fn of(
        mut input: Input,
        named: Option<LogFormat>,
        is_final: bool,
    ) -> Result<(LogFormat, Self), Failure> {
        let head = input.head(8)?;
        let columns = match named.unwrap_or_else(|| LogFormat::guess(&head)) {
            LogFormat::Parquet => (LogFormat::Parquet, ColumnInput::Parquet(seekable(input)?)),
            LogFormat::Arrow if head.starts_with(b"ARROW1") => {
                (LogFormat::Arrow, ColumnInput::ArrowFile(seekable(input)?))
            }
            LogFormat::Arrow => {
                (LogFormat::Arrow, ColumnInput::ArrowStream(input.decompressed()?.0))
            }
            _ => return Self::rows(input, named, is_final),
        };
        Ok((columns.0, Self::Columns(columns.1)))
    }

    fn rows(
        input: Input,
        named: Option<LogFormat>,
        is_final: bool,
    ) -> Result<(LogFormat, Self), Failure> {
        let path = input.path().to_owned();
        let (mut data, position) = input.decompressed()?;
        let head = beginning(&mut data).map_err(|error| Failure::io(path.display(), &error))?;
        let guessed = LogFormat::guess(&head);
        let format = match named {
            // Logs of Zeek and IIS are often called .log, as plain ones are.
            Some(LogFormat::List) if !is_final => {
                LogFormat::of_directives(&head).unwrap_or(LogFormat::List)
            }
            Some(format) => format,
            None => guessed,
        };
        let is_other =
            matches!(format, LogFormat::Pcap | LogFormat::Flows) || guessed.is_columnar();
        if let Some(what) = fibula_ingest::container(&head).filter(|_| !is_other) {
            return Err(Failure::new(format_args!("{}: {what}", path.display())));
        }
        let data: Box<dyn Read> = Box::new(Cursor::new(head).chain(data));
        Ok((format, Self::Rows(BufReader::with_capacity(256 << 10, data), position)))
    }
}

/// Reads as much as [`LogFormat::guess`] needs: the first line that is no comment, unless the format is clear before.
fn beginning(data: &mut impl Read) -> io::Result<Vec<u8>> {
    const LONGEST: usize = 64 << 10;
    let mut head = vec![0; LONGEST];
    let mut len = 0;
    while len < LONGEST && !is_enough(&head[..len]) {
        match data.read(&mut head[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(len);
    Ok(head)
}

fn is_enough(head: &[u8]) -> bool {
    let is_clear =
        !matches!(LogFormat::guess(head), LogFormat::List | LogFormat::Csv | LogFormat::Tsv);
    let is_row = |line: &[u8]| !matches!(line.trim_ascii(), [] | [b'#', ..] | b"[");
    let lines = head.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    is_clear || LogFormat::of_directives(head).is_some() || lines.into_iter().any(is_row)
}

/// The file that was opened.
fn seekable(input: Input) -> Result<File, Failure> {
    input.file().ok_or_else(|| {
        Failure::new("Parquet needs a seekable file, so it cannot come from standard input")
            .hint("give the file's name")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Inputs of all formats that are decided from content, each with a name that gives no format.
    const INPUTS: [(LogFormat, &[u8]); 7] = [
        (LogFormat::Csv, b"src,dst\n192.0.2.1,192.0.2.2\n"),
        (LogFormat::Tsv, b"src\tdst\n192.0.2.1\t192.0.2.2\n"),
        (LogFormat::JsonLines, b"{\"src\":\"192.0.2.1\"}\n"),
        (LogFormat::List, b"192.0.2.1\n192.0.2.2\n"),
        (LogFormat::Parquet, b"PAR1 columns PAR1"),
        (LogFormat::Arrow, b"ARROW1\0\0 batches ARROW1"),
        (LogFormat::Arrow, b"\xff\xff\xff\xff\x10\0\0\0 a schema and batches"),
    ];

    /// Gives `path` another content by renaming, as a program does that replaces a file.
    fn replace(path: &Path, content: &[u8]) {
        let new = path.with_extension("new");
        fs::write(&new, content).unwrap();
        fs::rename(&new, path).unwrap();
    }

    fn bytes(reading: Reading) -> Vec<u8> {
        let mut bytes = Vec::new();
        match reading {
            Reading::Rows(mut data, _) => data.read_to_end(&mut bytes),
            Reading::Columns(ColumnInput::Parquet(mut file) | ColumnInput::ArrowFile(mut file)) => {
                file.read_to_end(&mut bytes)
            }
            Reading::Columns(ColumnInput::ArrowStream(mut stream)) => {
                stream.read_to_end(&mut bytes)
            }
        }
        .unwrap();
        bytes
    }

    /// A rename after any step has no effect: the format and all bytes are those of the file that was opened.
    #[test]
    fn renames_between_the_steps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input");
        for (format, content) in INPUTS {
            for (_, other) in INPUTS {
                for (after_open, after_head, after_format) in
                    [(true, false, false), (false, true, false), (false, false, true)]
                {
                    replace(&path, content);
                    let mut input = Input::open(&path).unwrap();
                    if after_open {
                        replace(&path, other);
                    }
                    assert_eq!(input.head(4).unwrap(), content[..4]);
                    if after_head {
                        replace(&path, other);
                    }
                    let (found, reading) = Reading::of(input, None, false).unwrap();
                    if after_format {
                        replace(&path, other);
                    }
                    assert_eq!((found, bytes(reading)), (format, content.to_vec()));
                }
            }
        }
    }

    /// A file that was removed, or that became a folder, is still read.
    #[test]
    fn a_removed_name() {
        let folder = tempfile::tempdir().unwrap();
        for (format, content) in INPUTS {
            let path = folder.path().join("input");
            fs::write(&path, content).unwrap();
            let input = Input::open(&path).unwrap();
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            let (found, reading) = Reading::of(input, None, false).unwrap();
            assert_eq!((found, bytes(reading)), (format, content.to_vec()));
            fs::remove_dir(&path).unwrap();
        }
    }
}
