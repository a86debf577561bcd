//! Why the last call of a thread failed.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs what Java asks for. An error, and a panic, gives `failed`, and its text is kept for [`last`].
pub fn guarded<T>(failed: T, run: impl FnOnce() -> Result<T, String>) -> T {
    let text = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => return result,
        Ok(Err(text)) => text,
        Err(panic) => format!("a fault in fibula: {}", said(&*panic)),
    };
    // A thread that ends has no place for it any more, nor anybody who asks.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
    failed
}

/// The text of the last error in this thread; empty before the first.
pub fn last() -> String {
    LAST.with(|last| last.borrow().clone())
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason is known")
}
