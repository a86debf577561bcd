//! Plain lists and logs: each line is a row, usually with an address at its beginning.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::csv::scan::Dialect;
use super::within::within;
use super::{Decode, LogDecoder, Style, last_line_end, line_end, set};
use crate::block::{Block, Row, RowKind};
use crate::fault::Fault;
use crate::{Address, AnnotateError, AnnotateOptions, Column, LogFormat, LookupTable};

/// Decoder of lists. Words are separated by blanks, tabs, commas, semicolons and bars. Empty lines and lines that begin
/// with `#` are copied unchanged.
#[derive(Clone)]
pub(crate) struct List {
    /// The numbers of the words with addresses, ascending and counted from 0, each with its slot.
    words: Vec<(usize, usize)>,
    names: Vec<String>,
    strict: bool,
    /// Whether addresses are found anywhere in a line. `words` then has the numbers of addresses.
    scan: bool,
    /// The table, if a line is kept or left out by all of its addresses: its word is then the first one that the table
    /// has.
    table: Option<Arc<dyn LookupTable>>,
    /// Whether any line of the input is a row.
    any: Arc<AtomicBool>,
    /// The maximum number of `words` that a line of the input had.
    present: Arc<AtomicUsize>,
    /// The byte before each added value.
    delimiter: u8,
    /// For each slot, the range of its word in a line.
    found: Vec<(usize, usize)>,
}

impl List {
    /// A list whose lines are looked up in this table.
    pub(crate) fn of_table(
        options: &AnnotateOptions,
        table: &Arc<dyn LookupTable>,
    ) -> Result<Self, AnnotateError> {
        let any_counts = options.scan && options.only.is_some() && options.columns.is_empty();
        let table = any_counts.then(|| Arc::clone(table));
        Ok(Self { table, ..Self::new(options)? })
    }

    fn new(options: &AnnotateOptions) -> Result<Self, AnnotateError> {
        let mut words = Vec::new();
        for (slot, column) in options.columns.iter().enumerate() {
            match column {
                Column::Number(number) => words.push((number.saturating_sub(1), slot)),
                Column::Name(_) => {
                    return Err(AnnotateError::ColumnKind {
                        format: LogFormat::List,
                        column: column.clone(),
                    });
                }
            }
        }
        if words.is_empty() {
            words.push((0, 0));
        }
        let names = words.iter().map(|(word, _)| (word + 1).to_string()).collect();
        words.sort_unstable();
        if let Some(pair) = words.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(AnnotateError::Twice { name: (pair[0].0 + 1).to_string() });
        }
        let found = vec![(0, 0); words.len()];
        let delimiter = options.delimiter.unwrap_or(b'\t');
        let (strict, scan) = (options.strict, options.scan);
        let (any, present) = Default::default();
        Ok(Self { words, names, strict, scan, table: None, any, present, delimiter, found })
    }

    /// Finds the words with addresses in a line. Missing words get empty ranges.
    fn find(&mut self, line: &[u8]) {
        self.found.fill((0, 0));
        if let Some(table) = &self.table {
            let mut places = within(line).peekable();
            let Some(first) = places.next() else { return };
            let is_only = places.peek().is_none();
            let mut all = std::iter::once(first).chain(places);
            let known = if is_only { None } else { all.find(|place| has(&**table, line, *place)) };
            self.found[0] = known.unwrap_or(first);
            return;
        }
        if self.scan {
            let mut wanted = self.words.iter().peekable();
            for (index, place) in within(line).enumerate() {
                let Some(&&(word, slot)) = wanted.peek() else { return };
                if index == word {
                    self.found[slot] = place;
                    wanted.next();
                }
            }
            return;
        }
        let mut at = line.len() - line.trim_ascii_start().len();
        let mut wanted = self.words.iter().enumerate().peekable();
        for index in 0.. {
            let Some(&(place, &(word, slot))) = wanted.peek() else { return };
            if at >= line.len() {
                return;
            }
            let len = line[at..].iter().position(|&b| parts(b)).unwrap_or(line.len() - at);
            if index == word {
                self.found[slot] = (at, at + len);
                if self.present.load(Ordering::Relaxed) <= place {
                    self.present.fetch_max(place + 1, Ordering::Relaxed);
                }
                wanted.next();
            }
            at += len;
            // Any run of separators counts as one.
            at += line[at..].iter().position(|&b| !parts(b)).unwrap_or(line.len() - at);
        }
    }
}

/// Whether the table has a prefix for the address at this place of the line.
fn has(table: &dyn LookupTable, line: &[u8], (from, to): (usize, usize)) -> bool {
    match Address::parse(&line[from..to]) {
        Some(Address::V4(addr)) => table.v4().routes().matched(addr).is_some(),
        Some(Address::V6(addr)) => table.v6().routes().matched(addr).is_some(),
        None => false,
    }
}

#[inline]
fn parts(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b',' | b';' | b'|' | b'\r')
}

impl Decode for List {
    fn decode(&mut self, data: &[u8], end: bool, block: &mut Block) -> Result<usize, Fault> {
        let mut start = 0;
        while !block.is_full() {
            let Some((content, next)) = line_end(&data[start..], end) else { break };
            let line = &data[start..start + content];
            if line.first().is_none_or(|&b| b == b'#') || line.trim_ascii().is_empty() {
                block.pass(start, start + next);
                start += next;
                continue;
            }
            self.find(line);
            set(&self.any);
            for (slot, &(from, to)) in self.found.iter().enumerate() {
                let word = &line[from..to];
                if block.cell(word).is_err() {
                    let fault = || Fault::Unparsable { at: start, slot, text: word.to_vec() };
                    block.bad_cell(self.strict, fault)?;
                }
            }
            block.row(Row {
                start,
                insert: start + content,
                end: start + next,
                pad: 0,
                kind: RowKind::Annotate,
            });
            start += next;
        }
        Ok(start)
    }

    fn fork(&self) -> Option<Box<dyn Decode>> {
        Some(Box::new(self.clone()))
    }
}

impl LogDecoder for List {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn cut(&mut self, data: &[u8]) -> usize {
        last_line_end(data)
    }

    fn finish(&self) -> Result<(), AnnotateError> {
        match self.words.get(self.present.load(Ordering::Relaxed)) {
            // With `scan`, a log may have no address at all.
            Some((word, _)) if self.any.load(Ordering::Relaxed) && !self.scan => {
                Err(AnnotateError::InNoRow { column: Column::Number(word + 1) })
            }
            _ => Ok(()),
        }
    }

    fn style(&self) -> Style {
        Style::Fields(Dialect { delimiter: self.delimiter, quote: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::answers::Without;
    use proptest::prelude::*;

    fn decode(columns: &[usize], text: &str) -> (Block, usize) {
        let columns = columns.iter().map(|&n| Column::Number(n)).collect();
        let options = AnnotateOptions { columns, ..AnnotateOptions::default() };
        let mut block = Block::default();
        let used = List::new(&options).unwrap().decode(text.as_bytes(), true, &mut block).unwrap();
        (block, used)
    }

    #[test]
    fn first_words() {
        let text = "# ips\n10.0.0.1\t7\r\n\n  10.0.0.2 - - [x]\n10.0.0.3,x\nhost\n2001:db8::1";
        let (block, used) = decode(&[], text);
        assert_eq!(used, text.len());
        assert_eq!(block.keys.v4.addrs, [0x0a00_0001, 0x0a00_0002, 0x0a00_0003]);
        assert_eq!(block.keys.v6.addrs.len(), 1);
        assert_eq!((block.tally.rows, block.count(Without::Unparsable)), (5, 1));
        assert_eq!(&text[block.rows[1].insert..block.rows[1].end], "\r\n");
    }

    #[test]
    fn words_by_number_in_any_order() {
        let (block, _) = decode(&[3, 1], "10.0.0.1  ->  10.0.0.2\n10.0.0.3\n");
        assert_eq!(block.keys.v4.addrs, [0x0a00_0002, 0x0a00_0001, 0x0a00_0003]);
        assert_eq!(block.keys.v4.cells, [0, 1, 3]);
        assert_eq!(block.count(Without::Empty), 1);
    }

    #[test]
    fn an_incomplete_line_waits() {
        let mut list = List::new(&AnnotateOptions::default()).unwrap();
        let mut block = Block::default();
        assert_eq!(list.decode(b"10.0.0.1\n10.0.", false, &mut block).unwrap(), 9);
    }

    proptest! {
        #[test]
        fn rows_tile_the_input(text in "[0-9. \t\r\n,#a-f:]{0,200}") {
            let (block, used) = decode(&[1, 2], &text);
            prop_assert_eq!(used, text.len());
            let mut at = 0;
            for row in &block.rows {
                prop_assert!(row.start == at && row.insert <= row.end && row.start <= row.insert);
                at = row.end;
            }
            prop_assert_eq!(at, text.len());
        }
    }
}
