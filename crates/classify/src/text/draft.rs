//! Words with their positions, and rules while they are read.

use super::{RuleText, TextError};
use crate::{Action, Condition, Field, Rule};

/// Rules of one text at most: lists within a line multiply.
const MOST: usize = 4_000_000;

/// A word and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl<'a> Word<'a> {
    pub(super) fn error(&self, what: impl Into<String>) -> TextError {
        TextError { line: self.line, column: self.column, what: what.into() }
    }

    /// The same place, with a part of the text that begins so many bytes behind.
    pub(super) fn part(&self, text: &'a str, behind: usize) -> Self {
        let before = self.text.get(..behind).unwrap_or_default().chars().count() as u32;
        Self { text, column: self.column + before, ..*self }
    }
}

/// The words of a line. What stands between quotes is one word, with its first quote; a backslash takes the next
/// character as it is. A word that begins with `#` ends the line.
pub(super) fn words(text: &str, line: u32) -> Result<Vec<Word<'_>>, TextError> {
    let mut words = Vec::new();
    let (mut start, mut quoted, mut escaped, mut column) = (None, false, false, 0);
    for (at, character) in text.char_indices() {
        column += 1;
        match (start, character) {
            (_, _) if escaped => escaped = false,
            (Some(_), '\\') if quoted => escaped = true,
            (Some((from, first)), '"') if quoted => {
                words.push(Word { text: &text[from..=at], line, column: first });
                (start, quoted) = (None, false);
            }
            (None, '#') => return Ok(words),
            (None, '"') => (start, quoted) = (Some((at, column)), true),
            (None, _) if !character.is_whitespace() => start = Some((at, column)),
            (Some((from, first)), _) if !quoted && character.is_whitespace() => {
                words.push(Word { text: &text[from..at], line, column: first });
                start = None;
            }
            _ => {}
        }
    }
    if let Some((from, column)) = start {
        let word = Word { text: &text[from..], line, column };
        if quoted {
            return Err(word.error("the quote is not closed: add a \" at its end"));
        }
        words.push(word);
    }
    Ok(words)
}

/// The text within a word's quotes, or the word.
pub(super) fn unquoted(word: &str) -> String {
    let Some(inner) = word.strip_prefix('"') else { return word.to_owned() };
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let (mut text, mut escaped) = (String::new(), false);
    for character in inner.chars() {
        if character == '\\' && !escaped {
            escaped = true;
        } else {
            escaped = false;
            text.push(character);
        }
    }
    text
}

/// One line's conditions. Of each list one must hold: a rule for each combination.
#[derive(Clone, Debug)]
pub(super) struct Draft<'a> {
    /// Each with the word that it came from.
    all: Vec<(Word<'a>, Field, Condition)>,
    lists: Vec<(Word<'a>, Vec<(Field, Condition)>)>,
    pub(super) label: Option<String>,
    pub(super) priority: u32,
}

impl<'a> Draft<'a> {
    pub(super) fn new() -> Self {
        Self { all: Vec::new(), lists: Vec::new(), label: None, priority: 0 }
    }

    pub(super) fn is(&mut self, word: Word<'a>, field: Field, condition: Condition) {
        self.all.push((word, field, condition));
    }

    pub(super) fn one_of(&mut self, word: Word<'a>, conditions: Vec<(Field, Condition)>) {
        match conditions[..] {
            [(field, condition)] => self.is(word, field, condition),
            _ => self.lists.push((word, conditions)),
        }
    }

    /// Appends the rules. A combination that no packet meets is left out, unless it is the only one.
    pub(super) fn finish(
        self,
        at: Word<'a>,
        action: &Action,
        out: &mut RuleText,
    ) -> Result<(), TextError> {
        let mut rule = Rule::new(action.clone());
        (rule.label, rule.priority, rule.line) =
            (self.label.as_deref().map(Into::into), self.priority, at.line);
        for (word, field, condition) in &self.all {
            rule = rule.when(*field, *condition).map_err(|error| word.error(error.to_string()))?;
        }
        let combinations = self.lists.iter().try_fold(1usize, |all, (_, list)| {
            all.checked_mul(list.len()).filter(|all| all + out.rules.len() <= MOST)
        });
        if combinations.is_none() {
            return Err(
                at.error(format!("the lists give more than {MOST} rules: make them shorter"))
            );
        }
        let (mut rules, mut last) = (vec![rule], None);
        for (word, list) in &self.lists {
            let mut longer = Vec::new();
            for rule in &rules {
                for &(field, condition) in list {
                    match rule.clone().when(field, condition) {
                        Ok(rule) => longer.push(rule),
                        Err(error) => last = Some(word.error(error.to_string())),
                    }
                }
            }
            rules = longer;
        }
        if let (true, Some(error)) = (rules.is_empty(), last) {
            return Err(error);
        }
        for rule in rules {
            out.rules.insert(rule).map_err(|error| at.error(error.to_string()))?;
        }
        Ok(())
    }
}
