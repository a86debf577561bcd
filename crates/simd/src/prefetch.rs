/// Prefetches the cache line of `slice[index]` for reading. It does nothing if the index is out of bounds, or if the
/// machine has no prefetch instruction.
#[inline(always)]
pub fn prefetch_read<T>(slice: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // A prefetch of any address is harmless, so the pointer is computed without a bounds check.
        let line = slice.as_ptr().wrapping_add(index);
        // SAFETY: every x86-64 machine has SSE; a prefetch reads nothing that the program can see
        // and does not fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let line = slice.as_ptr().wrapping_add(index);
        // SAFETY: a prefetch reads nothing that the program can see and does not fault, whatever the address.
        unsafe {
            core::arch::asm!("prfm pldl1keep, [{}]", in(reg) line, options(nomem, nostack, preserves_flags));
        }
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = (slice, index);
}

/// Like [`prefetch_read`], but only into the second-level cache, for lines that are read a few hundred cycles later.
/// A core has few buffers for lines on their way to its first level (24 on Zen 4), and these limit lookups in tables
/// in memory. Prefetches into the second level leave these buffers sooner.
#[inline(always)]
pub fn prefetch_read_l2<T>(slice: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let line = slice.as_ptr().wrapping_add(index);
        // SAFETY: as in `prefetch_read`.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let line = slice.as_ptr().wrapping_add(index);
        // SAFETY: as in `prefetch_read`.
        unsafe {
            core::arch::asm!("prfm pldl2keep, [{}]", in(reg) line, options(nomem, nostack, preserves_flags));
        }
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = (slice, index);
}
