//! Snapshot files that are not what their writer wrote, with right checksums: without them no mutation
//! would get past the first check. Written from the format as `fibula_rib`'s `snapshot` module
//! documents it.

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use twox_hash::{XxHash3_64, XxHash3_128};

const HEADER: usize = 64;
const ENTRY: usize = 64;
const NAME: usize = 40;

/// A section: what it is called and what is in it.
#[derive(Clone)]
pub struct Section {
    /// At most 40 bytes count.
    pub name: Vec<u8>,
    /// Anything.
    pub content: Vec<u8>,
}

impl Section {
    /// The content from item `at` on, of items of `size` bytes.
    fn rest(&mut self, at: u32, size: usize) -> &mut [u8] {
        let at = at as usize % (self.content.len() / size).max(1) * size;
        &mut self.content[at..]
    }
}

/// A change to a sound file. Section numbers are taken modulo the number of sections, places modulo their size.
#[derive(Arbitrary, Debug)]
#[expect(missing_docs, reason = "fields say what they are by their names")]
pub enum Edit<'a> {
    /// A byte.
    Byte { section: u8, at: u32, value: u8 },
    /// A word of four bytes, numbered from the section's begin.
    Word { section: u8, at: u32, value: u32 },
    /// Adds to a word.
    Add { section: u8, at: u32, value: i8 },
    /// Bytes, as far as there is room.
    Write { section: u8, at: u32, bytes: &'a [u8] },
    /// The whole content.
    Replace { section: u8, bytes: &'a [u8] },
    /// Cuts, or adds zeros.
    Resize { section: u8, len: u16 },
    /// Leaves out bytes at the end.
    Cut { section: u8, bytes: u8 },
    /// Swaps the contents of two sections.
    Exchange(u8, u8),
    /// The name.
    Rename { section: u8, name: &'a [u8] },
}

impl Edit<'_> {
    /// Edits the sections of a file, of which there is at least one.
    pub fn apply(&self, sections: &mut [Section]) {
        let count = sections.len();
        let of = |section: u8| usize::from(section) % count;
        let mut write = |section: u8, at: u32, size: usize, bytes: &[u8]| {
            let room = sections[of(section)].rest(at, size);
            let len = bytes.len().min(room.len());
            room[..len].copy_from_slice(&bytes[..len]);
        };
        match *self {
            Self::Byte { section, at, value } => write(section, at, 1, &[value]),
            Self::Word { section, at, value } => write(section, at, 4, &value.to_ne_bytes()),
            Self::Write { section, at, bytes } => write(section, at, 1, bytes),
            Self::Add { section, at, value } => {
                if let Some(word) = sections[of(section)].rest(at, 4).first_chunk_mut() {
                    *word =
                        u32::from_ne_bytes(*word).wrapping_add_signed(value.into()).to_ne_bytes();
                }
            }
            Self::Replace { section, bytes } => sections[of(section)].content = bytes.to_vec(),
            Self::Resize { section, len } => sections[of(section)].content.resize(len.into(), 0),
            Self::Cut { section, bytes } => {
                let content = &mut sections[of(section)].content;
                content.truncate(content.len().saturating_sub(bytes.into()));
            }
            Self::Exchange(a, b) => {
                let (a, b) = (of(a), of(b));
                if a != b {
                    let [a, b] = sections.get_disjoint_mut([a, b]).expect("two sections");
                    std::mem::swap(&mut a.content, &mut b.content);
                }
            }
            Self::Rename { section, name } => sections[of(section)].name = name.to_vec(),
        }
    }
}

/// The sections of a sound file.
pub fn sections(file: &[u8]) -> Vec<Section> {
    (0..number(file, 24))
        .map(|i| {
            let entry = &file[HEADER + i * ENTRY..][..ENTRY];
            let (start, len) = (number(entry, NAME), number(entry, NAME + 8));
            Section { name: name(entry).to_vec(), content: file[start..start + len].to_vec() }
        })
        .collect()
}

/// A file with these sections, laid out as it should be.
pub fn assemble(sections: &[Section]) -> Vec<u8> {
    assemble_as(1, sections)
}

/// The same, of this version of the format: 1 for a table, 2 for tables of several dates.
pub fn assemble_as(version: u32, sections: &[Section]) -> Vec<u8> {
    let mut file = vec![0; HEADER + sections.len() * ENTRY];
    file[..8].copy_from_slice(b"\x89FIBULA\n");
    file[8..12].copy_from_slice(&0x0a0b_0c0d_u32.to_ne_bytes());
    file[12..16].copy_from_slice(&version.to_ne_bytes());
    put(&mut file, 24, sections.len() as u64);
    for (i, section) in sections.iter().enumerate() {
        file.resize(file.len().next_multiple_of(64), 0);
        let (entry, start) = (HEADER + i * ENTRY, file.len() as u64);
        let len = section.name.len().min(NAME);
        file[entry..entry + len].copy_from_slice(&section.name[..len]);
        put(&mut file, entry + NAME, start);
        put(&mut file, entry + NAME + 8, section.content.len() as u64);
        file.extend_from_slice(&section.content);
    }
    let len = file.len() as u64;
    put(&mut file, 16, len);
    seal(&mut file);
    file
}

/// Makes all checksums and the digest right, as far as the section table makes sense.
pub fn seal(file: &mut [u8]) {
    if file.len() < HEADER {
        return;
    }
    let count = number(file, 24).min((file.len() - HEADER) / ENTRY);
    let mut summary = Vec::new();
    for entry in (0..count).map(|i| HEADER + i * ENTRY) {
        let (start, len) = (number(file, entry + NAME), number(file, entry + NAME + 8));
        let content = start.checked_add(len).and_then(|end| file.get(start..end));
        let Some(checksum) = content.map(XxHash3_64::oneshot) else { continue };
        put(file, entry + NAME + 16, checksum);
        let name = name(&file[entry..entry + ENTRY]);
        if is_logical(name) {
            summary.extend_from_slice(name);
            summary.push(0);
            summary.extend_from_slice(&(len as u64).to_le_bytes());
            summary.extend_from_slice(&checksum.to_le_bytes());
        }
    }
    file[32..48].copy_from_slice(&XxHash3_128::oneshot(&summary).to_ne_bytes());
    put(file, 56, 0);
    let checksum = XxHash3_64::oneshot(&file[..HEADER + count * ENTRY]);
    put(file, 56, checksum);
}

fn is_logical(name: &[u8]) -> bool {
    let derived = name.ends_with(b"/parent") || name.ends_with(b"/bucket");
    let is_other = [&b"engine/"[..], b"rib/"].iter().any(|prefix| name.starts_with(prefix));
    !(derived || is_other || name == b"engines" || name == b"provenance")
}

fn name(entry: &[u8]) -> &[u8] {
    entry[..NAME].split(|&b| b == 0).next().unwrap_or_default()
}

fn number(bytes: &[u8], at: usize) -> usize {
    let bytes = bytes[at..].first_chunk().expect("eight bytes");
    usize::try_from(u64::from_ne_bytes(*bytes)).unwrap_or(usize::MAX)
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
}
