//! The functions that JavaScript calls.
//!
//! A call has two inputs, a short text and data, and two outputs of the same kinds. The page asks for room for an input
//! and writes it there, calls a function, and reads the outputs where they lie; they are valid until the next call.
//! Numbers alone cross the border, so there are no pointers to check and no unsafe code: the bytes that the page writes
//! are in vectors that belong to this module.
//!
//! | function | text | data | text of the answer | data of the answer |
//! |---|---|---|---|---|
//! | [`page_open`] | the file's name | the file | the table: `{"name","v4","v6","columns","notes"}` | |
//! | [`page_lookup`] | an address or a prefix | | `{"question","covering","inside","more"}` | |
//! | [`page_annotate`] | `{"name","columns","add"}` | the file | the summary | the rows |
//!
//! A function returns 0, or 1 and then the text is a sentence about what is wrong.
#![allow(unsafe_code, reason = "the names of exported functions; there is no other unsafe code")]

use std::cell::RefCell;

use fibula_rib::AlignedBytes;

use crate::{AnnotateRequest, Reader};

/// The most bytes of a file: a table of a million routes has 30 MiB, and memory of WebAssembly has 4 GiB.
pub const LARGEST_DATA: usize = 512 << 20;
/// The most bytes of a text.
pub const LARGEST_TEXT: usize = 64 << 10;

struct State {
    text: Vec<u8>,
    data: AlignedBytes,
    reader: Option<Reader>,
    answer: Vec<u8>,
    rows: Vec<u8>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State {
        text: Vec::new(),
        data: AlignedBytes::zeroed(0),
        reader: None,
        answer: Vec::new(),
        rows: Vec::new(),
    });
}

/// Runs a function of the module and keeps its answer.
fn call(
    run: impl FnOnce(&mut State, &str, AlignedBytes) -> Result<(String, Vec<u8>), String>,
) -> u32 {
    STATE.with_borrow_mut(|state| {
        let text = std::mem::take(&mut state.text);
        let data = std::mem::replace(&mut state.data, AlignedBytes::zeroed(0));
        state.rows = Vec::new();
        let done = match String::from_utf8(text) {
            Ok(text) => run(state, &text, data),
            Err(_) => Err("the text is not UTF-8".to_owned()),
        };
        let (code, answer) = match done {
            Ok((answer, rows)) => {
                state.rows = rows;
                (0, answer)
            }
            Err(what) => (1, what),
        };
        state.answer = answer.into_bytes();
        code
    })
}

/// Room for the text of the next call; null if it is too long.
#[unsafe(no_mangle)]
pub extern "C" fn page_text(len: usize) -> *mut u8 {
    if len > LARGEST_TEXT {
        return std::ptr::null_mut();
    }
    STATE.with_borrow_mut(|state| {
        state.text = vec![0; len];
        state.text.as_mut_ptr()
    })
}

/// Room for the data of the next call; null if there are too many.
#[unsafe(no_mangle)]
pub extern "C" fn page_data(len: usize) -> *mut u8 {
    if len > LARGEST_DATA {
        return std::ptr::null_mut();
    }
    STATE.with_borrow_mut(|state| {
        // What the last call returned is not needed any more, and may be large.
        state.rows = Vec::new();
        state.data = AlignedBytes::zeroed(len);
        state.data.as_mut().as_mut_ptr()
    })
}

/// Opens a table in place of the one that is open, which stays if this fails.
#[unsafe(no_mangle)]
pub extern "C" fn page_open() -> u32 {
    call(|state, name, data| {
        let reader = Reader::open(name, data)?;
        let description = reader.description().to_string();
        state.reader = Some(reader);
        Ok((description, Vec::new()))
    })
}

/// Looks an address or a prefix up.
#[unsafe(no_mangle)]
pub extern "C" fn page_lookup() -> u32 {
    call(|state, text, _| Ok((open(state)?.lookup(text)?.to_string(), Vec::new())))
}

/// Annotates the rows of a file.
#[unsafe(no_mangle)]
pub extern "C" fn page_annotate() -> u32 {
    call(|state, text, data| {
        let request: AnnotateRequest = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let (rows, summary) = open(state)?.annotate(data, &request)?;
        Ok((summary.to_string(), rows))
    })
}

fn open(state: &State) -> Result<&Reader, String> {
    state.reader.as_ref().ok_or_else(|| "no table is open".to_owned())
}

/// Where the text of the answer lies.
#[unsafe(no_mangle)]
pub extern "C" fn page_answer() -> *const u8 {
    STATE.with_borrow(|state| state.answer.as_ptr())
}

/// The length of the text of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn page_answer_len() -> usize {
    STATE.with_borrow(|state| state.answer.len())
}

/// Where the data of the answer lie.
#[unsafe(no_mangle)]
pub extern "C" fn page_rows() -> *const u8 {
    STATE.with_borrow(|state| state.rows.as_ptr())
}

/// The length of the data of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn page_rows_len() -> usize {
    STATE.with_borrow(|state| state.rows.len())
}
