//! Decompression; the format is detected by magic bytes.

use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Uncompressed.
    None,
    /// gzip (several members are one stream).
    Gzip,
    /// bzip2 (several streams are read as one).
    Bzip2,
    /// xz (several streams are read as one).
    Xz,
    /// Zstandard (several frames are read as one).
    Zstd,
}

impl Compression {
    const MAGIC: [(Self, &'static [u8]); 5] = [
        (Self::Gzip, b"\x1f\x8b"),
        (Self::Bzip2, b"BZh"),
        (Self::Xz, b"\xfd7zXZ\0"),
        (Self::Zstd, b"\x28\xb5\x2f\xfd"),
        // A skippable frame may come first (pzstd writes one); 0x50 to 0x5f, of which 0 is used.
        (Self::Zstd, b"\x50\x2a\x4d\x18"),
    ];

    /// Detects the compression from the first bytes of a file. Six bytes are enough.
    ///
    /// ```
    /// use fibula_ingest::Compression;
    /// assert_eq!(Compression::detect(b"\x1f\x8b\x08"), Compression::Gzip);
    /// assert_eq!(Compression::detect(b"192.0."), Compression::None);
    /// ```
    pub fn detect(head: &[u8]) -> Self {
        Self::MAGIC.iter().find(|(_, magic)| head.starts_with(magic)).map_or(Self::None, |m| m.0)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        })
    }
}

/// Refuses xz files that need more memory than this; `xz -9` needs 65 MiB.
const XZ_LIMIT_KIB: u32 = 1 << 20;
/// Refuses zstd files with larger windows; `zstd --long` uses 128 MiB.
const ZSTD_WINDOW_LIMIT: u64 = 256 << 20;
const BUFFER: usize = 64 << 10;

/// Wraps `input` in the decompressor for its first bytes. Uncompressed input is passed through.
///
/// # Errors
/// If the first bytes cannot be read. Damage further on becomes an error of the reader.
pub fn open(mut input: impl Read + 'static) -> io::Result<(Compression, Box<dyn Read>)> {
    let mut head = [0; 6];
    let mut len = 0;
    while len < head.len() {
        match input.read(&mut head[len..]) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let compression = Compression::detect(&head[..len]);
    let input = Cursor::new(head).take(len as u64).chain(input);
    let input = BufReader::with_capacity(BUFFER, input);
    let reader: Box<dyn Read> = match compression {
        Compression::None => Box::new(input),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
        Compression::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(input, true, XZ_LIMIT_KIB)),
        Compression::Zstd => Box::new(ZstdReader::new(input)),
    };
    Ok((compression, reader))
}

/// Reads all frames of a Zstandard file, checks their checksums, and returns the decoded part of a truncated frame.
struct ZstdReader<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
    /// Reported once the bytes before it are read.
    error: Option<io::Error>,
}

impl<R: BufRead> ZstdReader<R> {
    fn new(input: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(ZSTD_WINDOW_LIMIT);
        Self { input, decoder, in_frame: false, error: None }
    }

    /// Begins the next frame; `false` at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.input) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped =
                        io::copy(&mut (&mut self.input).take(length.into()), &mut io::sink())?;
                    if skipped < length.into() {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(e) => return Err(io::Error::new(ErrorKind::InvalidData, e)),
            }
        }
        Ok(false)
    }

    /// Decodes blocks until there is something to give or the frame ends.
    fn decode_some(&mut self) {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let step = || BlockDecodingStrategy::UptoBlocks(1);
            if let Err(e) = self.decoder.decode_blocks(&mut self.input, step()) {
                self.error = Some(io::Error::new(ErrorKind::InvalidData, e));
                // The decoder holds the last window of data back until the frame's last block. Give it
                // an empty raw one (and a checksum, which is then not looked at).
                let last: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
                let _ = self.decoder.decode_blocks(last.as_slice(), step());
                return;
            }
        }
    }

    fn check_sum(&self) -> io::Result<()> {
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(stored), Some(found)) if stored != found => {
                Err(io::Error::new(ErrorKind::InvalidData, "checksum mismatch"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.in_frame {
                if self.error.is_none() {
                    self.decode_some();
                }
                let read = self.decoder.read(buf)?;
                if read > 0 || buf.is_empty() {
                    return Ok(read);
                }
                if let Some(error) = self.error.take() {
                    return Err(error);
                }
                self.in_frame = false;
                self.check_sum()?;
            }
            if !self.next_frame()? {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // `printf 'fibula %s\n' 1 2 3 | zstd --check | xxd -i`, and the like.
    const ZSTD: &[u8] = include_bytes!("../testdata/three-lines.zst");
    const XZ: &[u8] = include_bytes!("../testdata/three-lines.xz");
    const BZ2: &[u8] = include_bytes!("../testdata/three-lines.bz2");
    const GZ: &[u8] = include_bytes!("../testdata/three-lines.gz");
    const TEXT: &[u8] = b"fibula 1\nfibula 2\nfibula 3\n";

    fn unpack(bytes: &[u8]) -> (Compression, Vec<u8>, Option<io::Error>) {
        let (compression, mut reader) = open(Cursor::new(bytes.to_vec())).unwrap();
        let mut out = Vec::new();
        let error = reader.read_to_end(&mut out).err();
        (compression, out, error)
    }

    #[test]
    fn all_formats_and_several_members() {
        for (bytes, kind) in [
            (GZ, Compression::Gzip),
            (BZ2, Compression::Bzip2),
            (XZ, Compression::Xz),
            (ZSTD, Compression::Zstd),
            (TEXT, Compression::None),
        ] {
            let (compression, out, error) = unpack(bytes);
            assert_eq!((compression, out.as_slice()), (kind, TEXT));
            assert!(error.is_none());
            let (_, twice, error) = unpack(&[bytes, bytes].concat());
            assert_eq!(twice, [TEXT, TEXT].concat(), "{kind}");
            assert!(error.is_none());
        }
    }

    #[test]
    fn what_is_cut_is_an_error() {
        for bytes in [GZ, BZ2, XZ, ZSTD] {
            for len in 7..bytes.len() {
                let (kind, out, error) = unpack(&bytes[..len]);
                assert!(error.is_some(), "{kind} cut at {len}");
                assert!(TEXT.starts_with(&out), "{kind} cut at {len}");
            }
        }
    }

    #[test]
    fn a_zstd_frame_gives_what_came_before_the_cut() {
        // Two blocks in one frame: the second is cut, the first must come out.
        let block = |last: u8, text: &[u8]| {
            let size = (text.len() as u32) << 3 | u32::from(last);
            [&size.to_le_bytes()[..3], text].concat()
        };
        let header = b"\x28\xb5\x2f\xfd\x00\x58";
        let whole = [header.as_slice(), &block(0, b"first\n"), &block(1, b"second\n")].concat();
        let (_, out, error) = unpack(&whole);
        assert_eq!((out.as_slice(), error.is_none()), (b"first\nsecond\n".as_slice(), true));
        let (_, out, error) = unpack(&whole[..whole.len() - 3]);
        assert_eq!((out.as_slice(), error.is_some()), (b"first\n".as_slice(), true));
    }

    #[test]
    fn a_skippable_frame_is_skipped() {
        let skip = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc";
        let (kind, out, error) = unpack(&[skip.as_slice(), ZSTD].concat());
        assert_eq!((kind, out.as_slice(), error.is_none()), (Compression::Zstd, TEXT, true));
    }
}
