//! The output of rows, compressed if the file's name asks for it.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use zstd::Encoder as ZstdEncoder;

use crate::failure::Failure;
use crate::output::Output;

/// An output of rows.
pub enum Sink {
    /// Uncompressed.
    Plain(Output),
    /// Compressed with gzip.
    Gzip(GzEncoder<Output>),
    /// Compressed with Zstandard.
    Zstd(ZstdEncoder<'static, Output>),
}

impl Sink {
    /// Creates the file; `-` is standard output. Names in `.gz` and `.zst` are compressed.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("gz") => {
                Ok(Self::Gzip(GzEncoder::new(Output::create(path)?, Compression::default())))
            }
            Some("zst") => match ZstdEncoder::new(Output::create(path)?, 3) {
                Ok(encoder) => Ok(Self::Zstd(encoder)),
                Err(error) => Err(Failure::io(path.display(), &error)),
            },
            Some(ending @ ("bz2" | "xz")) => Err(Failure::new(format_args!(
                "{}: {ending} is read, but not written",
                path.display()
            ))
            .hint(".gz and .zst are written")),
            _ => Output::create(path).map(Self::Plain),
        }
    }

    /// Completes the output. The file gets its name only here, so an interrupted run leaves no partial file.
    pub fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Plain(output) => output.finish(),
            Self::Gzip(encoder) => encoder.finish()?.finish(),
            Self::Zstd(encoder) => encoder.finish()?.finish(),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(output) => output.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(output) => output.flush(),
            // A file's rows need not appear at once, and small blocks compress badly.
            Self::Gzip(_) | Self::Zstd(_) => Ok(()),
        }
    }
}
