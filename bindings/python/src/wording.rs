//! The libraries' texts name options as the command has them (`--key start,end`). Here they get the names that the
//! parameters have in Python (`key=("start", "end")`).

use std::iter::Peekable;
use std::str::CharIndices;

/// Options with a value behind them. Others are flags, or are named without a value.
const WITH_VALUE: &[&str] = &["key", "kind", "peer", "tags"];
/// Options that are named without their values.
const WITHOUT_VALUE: &[&str] = &["names", "columns", "origin", "delimiter", "format"];

/// The text with Python's names of options. Commands between backquotes and data between quotes stay as they are.
pub fn in_python(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = rest.next() {
        let is_option = matches!(before, ' ' | '(') && text[at..].starts_with("--");
        match c {
            '`' | '"' => {
                out.push(c);
                copy_quoted(&mut rest, c, &mut out);
            }
            '-' if is_option => {
                rest.next();
                option(text, &mut rest, &mut out);
            }
            _ => out.push(c),
        }
        before = c;
    }
    out
}

type Chars<'a> = Peekable<CharIndices<'a>>;

fn copy_quoted(rest: &mut Chars<'_>, quote: char, out: &mut String) {
    let mut is_escaped = false;
    for (_, c) in rest {
        out.push(c);
        if c == quote && !is_escaped {
            return;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
}

/// Writes the option behind two dashes, with its value.
fn option(text: &str, rest: &mut Chars<'_>, out: &mut String) {
    let mut name = String::new();
    while let Some((_, c)) = rest.next_if(|(_, c)| c.is_ascii_lowercase() || *c == '-') {
        name.push(if c == '-' { '_' } else { c });
    }
    if !WITH_VALUE.contains(&&*name) {
        let value = if WITHOUT_VALUE.contains(&&*name) { "..." } else { "True" };
        *out += &format!("{name}={value}");
        return;
    }
    rest.next_if(|(_, c)| *c == ' ');
    let value = match rest.next_if(|(_, c)| *c == '\'') {
        Some(_) => quoted(rest),
        None => word(text, rest),
    };
    *out += &match (&*name, value.split_once(','), value.split_once('=')) {
        ("kind", _, Some((column, kind))) => format!("kinds={{{}: {kind}}}", string(column)),
        ("key", Some((first, last)), _) => format!("key=({}, {})", string(first), string(last)),
        _ => format!("{name}={}", string(&value)),
    };
}

/// A value without quotes ends at a blank, or at punctuation before one.
fn word(text: &str, rest: &mut Chars<'_>) -> String {
    let mut word = String::new();
    while let Some((_, c)) = rest.next_if(|&(at, c)| {
        let mut behind = text[at + c.len_utf8()..].chars();
        let is_last = behind.next().is_none_or(char::is_whitespace);
        c != ' ' && c != ')' && !(is_last && ";:.,".contains(c))
    }) {
        word.push(c);
    }
    word
}

/// A value in a shell's single quotes, in which `'\''` is a quote.
fn quoted(rest: &mut Chars<'_>) -> String {
    let mut value = String::new();
    while let Some((_, c)) = rest.next() {
        match c {
            '\'' if rest.next_if(|(_, c)| *c == '\\').is_some() => {
                rest.nth(1);
                value.push('\'');
            }
            '\'' => break,
            _ => value.push(c),
        }
    }
    value
}

/// The value as a string of Python; `COLUMN` stands for one.
fn string(value: &str) -> String {
    if value == "COLUMN" { value.to_owned() } else { format!("{value:?}") }
}
