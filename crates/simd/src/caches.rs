use std::path::Path;
use std::sync::OnceLock;

/// The cache sizes, in bytes, that a core of this machine can use. A cache shared with other cores counts completely,
/// because the share of the other cores changes all the time.
///
/// ```
/// use fibula_simd::Caches;
/// if let Some(bytes) = Caches::detect().last {
///     println!("tables of up to {} MiB stay out of memory", bytes >> 20);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caches {
    /// The second level; `None` if unknown.
    pub second: Option<usize>,
    /// The last level, which is the second one if there is no third; `None` if unknown.
    pub last: Option<usize>,
}

impl Caches {
    /// The caches of the first core, as Linux reports them in `/sys`. They are read once.
    pub fn detect() -> Self {
        static CACHES: OnceLock<Caches> = OnceLock::new();
        *CACHES.get_or_init(|| Self::read(Path::new("/sys/devices/system/cpu/cpu0/cache")))
    }

    /// Reads a folder that has one for each cache, as Linux lays them out.
    fn read(folder: &Path) -> Self {
        let word = |index: u32, file: &str| {
            std::fs::read_to_string(folder.join(format!("index{index}")).join(file)).ok()
        };
        let mut caches = Self::default();
        let mut deepest = 1;
        for index in 0.. {
            let Some(level) = word(index, "level").and_then(|w| w.trim().parse::<u32>().ok())
            else {
                return caches;
            };
            let Some(size) = word(index, "size").and_then(|w| bytes(w.trim())) else { continue };
            if level == 2 {
                caches.second = Some(size);
            }
            if level > deepest {
                (deepest, caches.last) = (level, Some(size));
            }
        }
        caches
    }
}

/// `1024K` or `32M`.
fn bytes(word: &str) -> Option<usize> {
    let (number, shift) = match word.as_bytes().last()? {
        b'K' => (&word[..word.len() - 1], 10),
        b'M' => (&word[..word.len() - 1], 20),
        _ => (word, 0),
    };
    number.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_by_level() {
        let folder = std::env::temp_dir().join(format!("fibula-caches-{}", std::process::id()));
        let caches = [("1", "32K"), ("1", "32K"), ("2", "1024K"), ("3", "96M")];
        for (i, (level, size)) in caches.into_iter().enumerate() {
            let cache = folder.join(format!("index{i}"));
            std::fs::create_dir_all(&cache).unwrap();
            std::fs::write(cache.join("level"), format!("{level}\n")).unwrap();
            std::fs::write(cache.join("size"), format!("{size}\n")).unwrap();
        }
        let read = Caches::read(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(read, Caches { second: Some(1 << 20), last: Some(96 << 20) });
        assert_eq!(Caches::read(&folder), Caches::default());
        assert_eq!([bytes("x"), bytes(""), bytes("512")], [None, None, Some(512)]);
    }
}
