use std::marker::PhantomData;

use super::line::{Code, Item, Line, TOP_BITS};

/// Lines that still have room, at most. The more there are, the fuller lines become, and the longer a search takes.
const OPEN_MAX: usize = 12;

/// Puts sets of prefixes into lines. Several sets share a line where there is room, because a line's prefixes are
/// routes of the table, which are true for every address.
pub(super) struct Packer<C> {
    /// The number of the first line.
    first: usize,
    lines: Vec<Line>,
    open: Vec<Open>,
    /// The code of addresses that no prefix of a line covers.
    rest: u32,
    codes: PhantomData<C>,
}

/// A line with room.
struct Open {
    number: usize,
    items: Vec<Item>,
}

impl<C: Code> Packer<C> {
    /// Line 0 is never named by a word: addresses that are answered already search it in batches.
    pub(super) fn new(rest: u32) -> Self {
        Self { lines: vec![[0; 8]], ..Self::after(0, rest) }
    }

    /// For lines that follow so many others.
    pub(super) fn after(lines: usize, rest: u32) -> Self {
        Self { first: lines, lines: Vec::new(), open: Vec::new(), rest, codes: PhantomData }
    }

    /// The number of a line that has all of these prefixes, at least one. `carried` may be in a line because of other
    /// sets, `own` are in this set alone. All have the same top bits.
    pub(super) fn place(&mut self, carried: &[Item], own: &[Item]) -> usize {
        let top = |item: &Item| item.key >> (64 - TOP_BITS);
        let first = carried.first().or(own.first()).expect("a set is not empty");
        if self.open.first().is_some_and(|open| top(&open.items[0]) != top(first)) {
            self.close_all();
        }
        let mut best: Option<(usize, usize)> = None;
        for (at, open) in self.open.iter().enumerate().rev() {
            let room = C::ITEMS - open.items.len();
            if room < own.len() {
                continue;
            }
            let new = own.len() + carried.iter().filter(|item| !open.has(item)).count();
            // Few new prefixes first, then little room left.
            let score = new * C::ITEMS + room - new.min(room);
            if new <= room && best.is_none_or(|(_, least)| score < least) {
                best = Some((at, score));
            }
        }
        let at = match best {
            Some((at, _)) => at,
            None => self.begin(),
        };
        let open = &mut self.open[at];
        for item in carried {
            if !open.has(item) {
                open.items.push(*item);
            }
        }
        open.items.extend_from_slice(own);
        open.number
    }

    /// All lines.
    pub(super) fn finish(mut self) -> Vec<Line> {
        self.close_all();
        self.lines
    }

    /// Begins a line, and closes the fullest one if there are too many. Returns its place among those with room.
    fn begin(&mut self) -> usize {
        if self.open.len() == OPEN_MAX {
            let fullest = (0..OPEN_MAX).max_by_key(|&at| self.open[at].items.len()).unwrap_or(0);
            let open = self.open.remove(fullest);
            self.close(open);
        }
        let number = self.first + self.lines.len();
        self.open.push(Open { number, items: Vec::with_capacity(C::ITEMS) });
        self.lines.push([0; 8]);
        self.open.len() - 1
    }

    fn close(&mut self, mut open: Open) {
        open.items.sort_by_key(|item| std::cmp::Reverse(item.len));
        self.lines[open.number - self.first] = C::line(&open.items, self.rest);
    }

    fn close_all(&mut self) {
        for open in std::mem::take(&mut self.open) {
            self.close(open);
        }
    }
}

impl Open {
    fn has(&self, item: &Item) -> bool {
        self.items.iter().any(|own| own.is_prefix(item))
    }
}
