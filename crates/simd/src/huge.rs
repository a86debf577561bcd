//! How much of an array lies on huge pages, for reports.

use crate::pages;

/// How many of these bytes lie on huge pages at present. `None` if the system does not say: it is not Linux, or older
/// than 6.7.
///
/// ```
/// let small = vec![1u8; 100];
/// assert!(fibula_simd::huge_bytes(&small).is_none_or(|bytes| bytes == 0 || bytes == 100));
/// assert!(fibula_simd::huge_bytes(&[]).is_none_or(|bytes| bytes == 0));
/// ```
pub fn huge_bytes(bytes: &[u8]) -> Option<usize> {
    let range = bytes.as_ptr_range();
    system::huge_bytes(range.start.addr(), range.end.addr())
}

/// Why tables have no huge pages: `FIBULA_HUGE_PAGES=off`, or `off in the system`. `None` if they may have some.
pub fn huge_pages_off() -> Option<&'static str> {
    if pages::is_disabled() {
        return Some("FIBULA_HUGE_PAGES=off");
    }
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    (cfg!(target_os = "linux") && setting.map_or(true, |words| words.contains("[never]")))
        .then_some("off in the system")
}

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod system {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    /// `struct pm_scan_arg` of linux/fs.h.
    #[repr(C)]
    #[derive(Default)]
    struct Scan {
        size: u64,
        flags: u64,
        start: u64,
        end: u64,
        walk_end: u64,
        regions: u64,
        regions_len: u64,
        max_pages: u64,
        category_inverted: u64,
        category_mask: u64,
        category_anyof_mask: u64,
        return_mask: u64,
    }

    /// `struct page_region` there.
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Region {
        start: u64,
        end: u64,
        categories: u64,
    }

    const _: () = assert!(size_of::<Scan>() == 96 && size_of::<Region>() == 24);
    /// `_IOWR('f', 16, struct pm_scan_arg)`.
    const PAGEMAP_SCAN: libc::c_ulong = 3 << 30 | 96 << 16 | (b'f' as libc::c_ulong) << 8 | 16;
    const PAGE_IS_HUGE: u64 = 1 << 6;
    /// The largest of the ordinary pages.
    const SMALL: u64 = 64 << 10;

    pub(super) fn huge_bytes(start: usize, end: usize) -> Option<usize> {
        let pages = File::open("/proc/self/pagemap").ok()?;
        let (start, end) = (start as u64, end as u64);
        let mut regions = [Region::default(); 64];
        let mut sum = 0;
        let mut at = start / SMALL * SMALL;
        while at < end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start: at,
                end: end.next_multiple_of(SMALL),
                regions: regions.as_mut_ptr().expose_provenance() as u64,
                regions_len: regions.len() as u64,
                category_mask: PAGE_IS_HUGE,
                return_mask: PAGE_IS_HUGE,
                ..Scan::default()
            };
            // SAFETY: the structure is the one of the request. The system writes to it, and to as many regions as it
            // says; both live until the call returns. It only reads the state of pages. A system that does not know
            // the request returns an error.
            let found = unsafe { libc::ioctl(pages.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut scan) };
            let found = regions.get(..usize::try_from(found).ok()?)?;
            sum += found
                .iter()
                .map(|region| region.end.min(end).saturating_sub(region.start.max(start)))
                .sum::<u64>();
            if scan.walk_end <= at {
                return None;
            }
            at = scan.walk_end;
        }
        usize::try_from(sum).ok()
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
mod system {
    pub(super) fn huge_bytes(_: usize, _: usize) -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    /// A table has what the system gives; parts of it never have more than all of it.
    #[test]
    fn parts_add_up() {
        let table = Table::<u8>::with(5 << 20, |bytes| bytes.fill(1));
        let Some(all) = huge_bytes(&table) else { return };
        assert!(all <= table.len());
        if huge_pages_off().is_some() {
            assert_eq!(all, 0);
        }
        for cut in [1, 4095, 1 << 20, (2 << 20) + 7, 5 << 20] {
            let (one, other) = table.split_at(cut);
            assert_eq!(huge_bytes(one).zip(huge_bytes(other)).map(|(a, b)| a + b), Some(all));
        }
    }
}
