//! The fast path for objects of printable ASCII without escapes, as on most lines.
//!
//! In such text a string ends at the next quote, so strings are skipped by the positions of quotes, which are found
//! sixty-four bytes at a time. Everything else is checked as `serde_json` does. Text that is not plain, or invalid, is
//! left to `serde_json`.

use fibula_simd::{byte_marks, parse_v4_at, unprintable_marks};

use super::find::{Found, MemberValue, Names};
use super::shape::LineTemplate;
use crate::address::Address;

/// The maximum depth of nested objects and arrays.
const MAX_DEPTH: u32 = 32;

/// Like [`find`](super::find::find), if the text is plain and one object; otherwise `None`. `found` has an entry for
/// each column. The shape may learn the text between the values.
#[inline]
pub(super) fn find(
    text: &[u8],
    names: &Names,
    found: &mut [Found],
    shape: &mut LineTemplate,
) -> Option<Option<usize>> {
    let mut plain = Plain::begin(text, 0)?;
    plain.blanks();
    plain.expect(b'{')?;
    let mut taken = None;
    let is_lesson = shape.learns();
    if is_lesson {
        shape.forget();
    }
    let (mut learns, mut end) = (is_lesson, 0);
    let is_object = plain.object(0, &mut |plain, key| {
        if taken.is_none() {
            taken = names.added.iter().position(|added| is(key, added));
        }
        let (mut exact, mut is_path) = (None, false);
        for (slot, name) in names.columns.iter().enumerate() {
            if is(key, name) {
                exact = Some(slot);
            } else {
                is_path |= goes_on(key, name);
            }
        }
        if is_path && plain.peek() == Some(b'{') {
            return None;
        }
        learns = learns && shape.learn(&text[end..plain.at], exact, is_path);
        match exact {
            Some(slot) => found[slot].set(plain.place()?),
            None => plain.value(1)?,
        }
        end = plain.at;
        Some(())
    });
    plain.blanks();
    let is_whole = is_object.is_some() && plain.at == text.len();
    if is_lesson && !(is_whole && taken.is_none() && learns) {
        shape.forget();
    }
    is_whole.then_some(taken)
}

/// Whether the key is this name. Most differ in length or in their first byte.
#[inline(always)]
fn is(key: &[u8], name: &str) -> bool {
    key.len() == name.len() && key.first() == name.as_bytes().first() && key == name.as_bytes()
}

/// Whether the name continues inside the key's object.
fn goes_on(key: &[u8], name: &str) -> bool {
    name.as_bytes().strip_prefix(key).is_some_and(|rest| rest.starts_with(b"."))
}

pub(super) struct Plain<'t> {
    text: &'t [u8],
    at: usize,
    /// The offset of the 64 bytes that `quotes` describes.
    base: usize,
    /// The quotes in these bytes that are not yet read.
    quotes: u64,
}

/// The quotes in the first 64 bytes; `None` if these are not plain.
#[inline(always)]
fn marks(text: &[u8]) -> Option<u64> {
    let mut padded = [b' '; 64];
    let text = text.first_chunk::<64>().unwrap_or_else(|| {
        padded[..text.len()].copy_from_slice(text);
        &padded
    });
    let odd = unprintable_marks(text) | byte_marks(text, b'\\');
    (odd == 0).then(|| byte_marks(text, b'"'))
}

impl<'t> Plain<'t> {
    /// Starts at an offset that is not within a string; `None` if the next 64 bytes are not plain.
    #[inline(always)]
    pub(super) fn begin(text: &'t [u8], at: usize) -> Option<Self> {
        Some(Self { text, at, base: at, quotes: marks(&text[at..])? })
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline(always)]
    fn expect(&mut self, byte: u8) -> Option<()> {
        let is = self.peek() == Some(byte);
        self.at += 1;
        is.then_some(())
    }

    #[inline(always)]
    fn blanks(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// Reads the next quote and returns its position.
    #[inline(always)]
    fn quote(&mut self) -> Option<usize> {
        while self.quotes == 0 {
            self.base += 64;
            self.quotes = marks(self.text.get(self.base..)?)?;
        }
        let at = self.base + self.quotes.trailing_zeros() as usize;
        self.quotes &= self.quotes - 1;
        Some(at)
    }

    /// Reads the string that begins here and returns its content.
    #[inline(always)]
    fn string(&mut self) -> Option<&'t [u8]> {
        self.expect(b'"')?;
        let open = self.quote()?;
        debug_assert_eq!(open + 1, self.at, "strings are passed whole");
        let close = self.quote()?;
        let string = self.text.get(self.at..close)?;
        self.at = close + 1;
        Some(string)
    }

    /// Reads the members of an object after its brace. `member` gets each key and must read the value, which comes
    /// next.
    #[inline(always)]
    fn object(
        &mut self,
        depth: u32,
        member: &mut impl FnMut(&mut Self, &'t [u8]) -> Option<()>,
    ) -> Option<()> {
        self.blanks();
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        if depth > MAX_DEPTH {
            return None;
        }
        loop {
            let key = self.string()?;
            self.blanks();
            self.expect(b':')?;
            self.blanks();
            member(self, key)?;
            self.blanks();
            self.at += 1;
            match self.text.get(self.at - 1)? {
                b',' => self.blanks(),
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Skips a value.
    #[inline(always)]
    pub(super) fn value(&mut self, depth: u32) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'-' | b'0'..=b'9' => self.number().map(drop),
            _ => self.other(depth),
        }
    }

    #[inline(never)]
    fn other(&mut self, depth: u32) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        for literal in [&b"null"[..], b"true", b"false", b"NaN", b"Infinity"] {
            if rest.starts_with(literal) {
                self.at += literal.len();
                return Some(());
            }
        }
        self.at += 1;
        match rest.first()? {
            b'{' => self.object(depth, &mut |plain, _| plain.value(depth + 1)),
            b'[' => self.array(depth),
            _ => None,
        }
    }

    fn array(&mut self, depth: u32) -> Option<()> {
        self.blanks();
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        if depth > MAX_DEPTH {
            return None;
        }
        loop {
            self.value(depth + 1)?;
            self.blanks();
            self.at += 1;
            match self.text.get(self.at - 1)? {
                b',' => self.blanks(),
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    #[inline(always)]
    fn digits(&mut self) -> usize {
        let from = self.at;
        // Eight bytes at once. All bytes are below 0x80, so nothing carries up to the first byte that is not a digit.
        while let Some(chunk) = self.text.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            let bytes = u64::from_le_bytes(*chunk);
            let ones = u64::from_ne_bytes([1; 8]);
            let others = bytes.wrapping_add(0x46 * ones) | bytes.wrapping_sub(0x30 * ones);
            let others = others & (ones << 7);
            self.at += others.trailing_zeros() as usize / 8;
            if others != 0 {
                return self.at - from;
            }
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - from
    }

    /// Reads a number and returns whether it has only digits.
    #[inline(always)]
    fn number(&mut self) -> Option<bool> {
        let mut natural = true;
        if self.peek() == Some(b'-') {
            self.at += 1;
            natural = false;
        }
        let zero = self.peek() == Some(b'0');
        let digits = self.digits();
        if digits == 0 || zero && digits > 1 {
            return None;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            natural = false;
            (self.digits() > 0).then_some(())?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            natural = false;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            (self.digits() > 0).then_some(())?;
        }
        Some(natural)
    }

    /// Reads the value of a member that may have an address.
    #[inline(always)]
    fn place(&mut self) -> Option<MemberValue> {
        match self.peek()? {
            b'"' => {
                let text = self.string()?;
                let end = self.at - 1;
                Some(place_of(self.text, end - text.len(), end))
            }
            b'n' => self.other(0).map(|()| MemberValue::Empty),
            b'0'..=b'9' => {
                let from = self.at;
                // `serde_json` may convert longer numbers to other text.
                let natural = self.number()? && self.at - from < 20;
                let text = str::from_utf8(&self.text[from..self.at]).ok()?;
                natural.then(|| MemberValue::Other(text.to_owned()))
            }
            _ => None,
        }
    }
}

/// The value of the string at `start..end`. Bytes after it may be read, but do not affect the result.
#[inline(always)]
pub(super) fn place_of(text: &[u8], start: usize, end: usize) -> MemberValue {
    match parse_v4_at(text, start, end) {
        Some(v4) => MemberValue::Address(Address::V4(v4)),
        None => MemberValue::of_text(&text[start..end]),
    }
}

impl MemberValue {
    fn of_text(text: &[u8]) -> Self {
        match Address::parse(text) {
            Some(address) => Self::Address(address),
            None => Self::of_odd_text(text),
        }
    }

    #[cold]
    fn of_odd_text(text: &[u8]) -> Self {
        let text = text.trim_ascii();
        match Address::parse(text) {
            Some(address) => Self::Address(address),
            None if text.is_empty() => Self::Empty,
            None => Self::Other(String::from_utf8_lossy(text).into_owned()),
        }
    }
}
