use super::*;

/// Numbers without order, the same in each run.
fn numbers(mut state: u64) -> impl FnMut() -> usize {
    move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize
    }
}

fn bytes(piece: &mut Piece) -> &mut [u8] {
    // SAFETY: the piece has these bytes, written by `fill` or zero, and is borrowed for as long.
    unsafe { std::slice::from_raw_parts_mut(piece.start.as_ptr(), piece.len) }
}

#[test]
fn units_in_a_row_are_found() {
    assert_eq!((place(0, 128), place(1, 128), place(u128::MAX, 1)), (Some(0), None, None));
    assert_eq!(mask(0, 128), u128::MAX);
    for units in 1..=128u32 {
        for at in 0..=128 - units {
            // All others are taken, in the second case also one in the middle.
            let free = mask(at, units);
            assert_eq!(place(!free, units), Some(at));
            assert_eq!(place(!free | 1 << (at + units / 2), units), None);
            assert!(units == 128 || place(!free, units + 1).is_none());
        }
    }
    // A gap that is too small is passed over.
    assert_eq!(place(0b1001_0001, 2), Some(1));
    assert_eq!(place(0b1001_0001, 4), Some(8));
}

#[test]
fn arrays_have_whole_pages_and_units_of_one_more() {
    assert_eq!(parts(FROM), (0, (FROM / UNIT) as u32));
    assert_eq!(parts(PAGE - UNIT), (0, 127));
    assert_eq!(parts(PAGE), (PAGE, 0));
    assert_eq!(parts(3 * PAGE + UNIT), (3 * PAGE, 1));
}

#[test]
fn small_and_impossible_arrays_have_no_huge_pages() {
    for bytes in [0, FROM - 1, usize::MAX, usize::MAX - PAGE, usize::MAX / 2, 1 << 55] {
        assert!(Piece::new(bytes, true).is_none(), "{bytes}");
    }
}

/// Pieces of all sizes, made and dropped in any order by several threads, do not overlap, and are zero if wanted.
#[test]
fn pieces_are_apart() {
    let work = |thread: u64| {
        let mut next = numbers(thread);
        let mut pieces: Vec<(Piece, u8)> = Vec::new();
        for round in 0..100 {
            let len = [FROM, 6 * FROM, PAGE, 2 * PAGE][next() % 4] + next() % (2 * FROM);
            let zeroed = round % 3 > 0;
            let Some(mut piece) = Piece::new(len, zeroed) else { return };
            assert!(piece.len >= len && piece.len < len + UNIT);
            assert!(!zeroed || bytes(&mut piece).iter().all(|&byte| byte == 0));
            let mark = (1 + thread * 60 + round % 60) as u8;
            bytes(&mut piece).fill(mark);
            pieces.push((piece, mark));
            if pieces.len() > 12 {
                let (mut piece, mark) = pieces.swap_remove(next() % 12);
                assert!(bytes(&mut piece).iter().all(|&byte| byte == mark));
            }
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || work(thread));
        }
    });
}

/// A hundred arrays of 64 KiB take some four pages, not a hundred.
#[test]
fn arrays_share_pages() {
    let pieces: Vec<Piece> = (0..100).map_while(|_| Piece::new(FROM, false)).collect();
    let mut pages: Vec<usize> =
        pieces.iter().map(|piece| piece.start.addr().get() / PAGE).collect();
    pages.sort_unstable();
    pages.dedup();
    // Other tests' arrays lie between them.
    assert!(pages.len() <= 40, "{}", pages.len());
}

/// What is dropped is used again, or unmapped: shared pages, pages of one array, and both together.
#[test]
fn nothing_leaks() {
    // In pages of 4 KiB.
    let mapped = || -> Option<usize> {
        std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()
    };
    let before = mapped();
    for len in [3 * PAGE / 4, PAGE, PAGE + FROM, 7 * PAGE] {
        for _ in 0..2000 {
            // Two, so that the page that is kept is not all.
            drop([Piece::new(len, false), Piece::new(len, false)]);
        }
    }
    let (shared, after) = (pages().len(), mapped());
    // Other tests have some at the same time; a leak would be thousands, and tens of GiB.
    assert!(shared < 500, "{shared} shared pages");
    if let (Some(before), Some(after)) = (before, after) {
        assert!(after < before + (2 << 30) / 4096, "{before} and then {after} pages");
    }
}

/// Children make and drop arrays, and end, while other threads of the parent have the lock most of the time.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
#[test]
fn a_child_process_has_the_lock() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let done = AtomicBool::new(false);
    let mine = Piece::new(FROM, false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    drop([Piece::new(FROM, false), Piece::new(2 * FROM, false)]);
                }
            });
        }
        let mut stuck = 0;
        for _ in 0..100 {
            // SAFETY: the child only does what is tested, and ends. What it uses is its own copy, and the lock.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: the alarm ends a child that waits for the lock. `mine` is this process's own copy, which
                // nobody drops again, because the process ends here.
                unsafe {
                    libc::alarm(5);
                    drop(std::ptr::read(&raw const mine));
                    drop(Piece::new(FROM, true));
                    libc::_exit(0);
                }
            }
            let mut status = 0;
            // SAFETY: waits for the child made above.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            stuck += u32::from(status != 0);
            if stuck > 0 {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(stuck, 0);
    });
}
