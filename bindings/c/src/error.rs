//! The last error of each thread.

use std::any::Any;
use std::cell::Cell;
use std::error::Error;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bytes of the text of an error, with its NUL.
const SIZE: usize = 1024;

thread_local! {
    /// At one address as long as the thread lives, so that a pointer of C stays valid.
    static LAST: [Cell<u8>; SIZE] = const { [const { Cell::new(0) }; SIZE] };
}

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// What a function returns that can fail: its result, or `failed`, and then the text of the error is kept.
pub(crate) fn guarded<T>(failed: T, run: impl FnOnce() -> Outcome<T>) -> T {
    // What a panic leaves half done are the tables of `rib`, which stop then, and say so.
    let text = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => return result,
        Ok(Err(error)) => error.to_string(),
        Err(panic) => format!("an error in fibula itself: {}", message(&*panic)),
    };
    keep(&text.replace('\0', " "));
    failed
}

/// Keeps the text, as much of it as there is room for.
fn keep(text: &str) {
    let text = &text.as_bytes()[..text.floor_char_boundary(SIZE - 1)];
    LAST.with(|last| last.iter().zip(text.iter().chain(&[0])).for_each(|(to, &from)| to.set(from)));
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// A text of C in UTF-8; `what` it is, for the error.
///
/// # Safety
/// `text` is NULL, or ends with a NUL and is not written to during `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(format!("{what} is NULL").into());
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| format!("{what} is not UTF-8: {}", text.to_string_lossy()).into())
}

/// The text of the last error in this thread; empty before the first. All errors of a thread have one address.
#[unsafe(no_mangle)]
pub extern "C" fn fibula_error() -> *const c_char {
    LAST.with(|last| last.as_ptr().cast())
}

/// The version, such as 0.1.0.
#[unsafe(no_mangle)]
pub extern "C" fn fibula_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no NUL"),
        };
    VERSION.as_ptr()
}
