//! Protects the process from the file-format libraries when a file is damaged.
//!
//! The readers of Arrow and Parquet panic on some damaged files. Some lengths in a file make them allocate more than
//! the file can hold, which aborts the process. Therefore, lengths are compared with the file before a library uses
//! them, and panics become errors.

use std::any::Any;
use std::cell::Cell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::file::properties::DEFAULT_CREATED_BY;

use crate::AnnotateError;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread would now come from a damaged Parquet or Arrow file, and become an
/// [`AnnotateError::File`]. A panic hook need not report such a panic.
///
/// ```
/// let default = std::panic::take_hook();
/// std::panic::set_hook(Box::new(move |panic| {
///     if !fibula_annotate::panic_is_caught() {
///         default(panic);
///     }
/// }));
/// ```
pub fn panic_is_caught() -> bool {
    GUARDED.get()
}

/// Calls a file-format library, and catches its panics.
pub(super) fn guarded<T, E>(read: impl FnOnce() -> Result<T, E>) -> Result<T, AnnotateError>
where
    AnnotateError: From<E>,
{
    let outer = GUARDED.replace(true);
    // The library's state is dropped after an error.
    let done = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(outer);
    match done {
        Ok(done) => Ok(done?),
        Err(panic) => Err(damaged(format_args!("{} (a panic)", text(&*panic)))),
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let string = panic.downcast_ref::<String>().map(String::as_str);
    string.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// An error of the libraries, with their version. Both libraries are released together.
pub(super) fn damaged(what: impl Display) -> AnnotateError {
    let version = DEFAULT_CREATED_BY.rsplit(' ').next().unwrap_or_default();
    AnnotateError::File { what: format!("{what} (read with arrow-rs {version})") }
}

/// The error for an inconsistency that is found before a library sees the file.
pub(super) fn broken(what: impl Display) -> AnnotateError {
    AnnotateError::File { what: format!("the file is damaged: {what}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_errors() {
        std::panic::set_hook(Box::new(|_| assert!(panic_is_caught())));
        let failed = guarded(|| -> Result<(), AnnotateError> { panic!("no {}", 7) });
        let _ = std::panic::take_hook();
        let text = failed.unwrap_err().to_string();
        assert!(text.starts_with("no 7 (a panic) (read with arrow-rs "), "{text}");
        assert!(!panic_is_caught());
        assert!(guarded(|| Ok::<_, AnnotateError>(7)).is_ok_and(|seven| seven == 7));
    }
}
