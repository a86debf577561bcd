//! What the functions return, a column of addresses at a time.

use fibula_annotate::{Address, write_prefix};
use fibula_core::{Addr, AnyPrefix, ColumnKind, Hop, Prefix, Value};
use fibula_fib::{Fib, OpenFamily, Pod};

/// What is asked about addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The longest prefix, and its values by name.
    Record,
    /// The longest prefix.
    Prefix,
    /// All prefixes, longest first.
    Covering,
    /// The value of one column, as text.
    Value,
    /// The value of one column of integers.
    Number,
}

impl Question {
    /// Whether it takes the name of a column.
    pub fn has_column(self) -> bool {
        matches!(self, Self::Value | Self::Number)
    }
}

/// Takes the answers, each row at most once. Rows that it is not told of are NULL.
pub trait Answers {
    /// The prefix of this row, as text.
    fn prefix(&mut self, row: usize, prefix: &[u8]);
    /// All prefixes of this row.
    fn covering(&mut self, row: usize, prefixes: &[Vec<u8>]);
    /// The prefix of this row and its values.
    fn record(&mut self, row: usize, prefix: &[u8], values: &[(&str, Value<'_>)]);
    /// The value of this row.
    fn value(&mut self, row: usize, value: Value<'_>);
}

/// Addresses of one family, with their rows, and what was found.
struct Keys<A> {
    rows: Vec<usize>,
    addresses: Vec<A>,
}

impl<A: Addr + Pod> Keys<A> {
    fn new(capacity: usize) -> Self {
        Self { rows: Vec::with_capacity(capacity), addresses: Vec::with_capacity(capacity) }
    }

    fn push(&mut self, row: usize, address: A) {
        self.rows.push(row);
        self.addresses.push(address);
    }

    fn found(
        &self,
        look: impl Fn(&[A], &mut [Hop]),
    ) -> impl Iterator<Item = (usize, A, Option<u32>)> {
        let mut found = vec![Hop::NONE; self.addresses.len()];
        look(&self.addresses, &mut found);
        let found = found.into_iter().map(Hop::index);
        self.rows.iter().zip(&self.addresses).zip(found).map(|((&row, &addr), at)| (row, addr, at))
    }

    fn lengths(&self, family: &OpenFamily<A>) -> impl Iterator<Item = (usize, AnyPrefix)> {
        let found = self.found(|addrs, lengths| family.lengths(addrs, lengths));
        found.filter_map(|(row, address, length)| {
            let prefix = Prefix::masked(address, u8::try_from(length?).ok()?).ok()?;
            Some((row, prefix.into()))
        })
    }

    fn hops(&self, family: &OpenFamily<A>) -> impl Iterator<Item = (usize, Option<u32>)> {
        let found = self.found(|addrs, hops| family.engine().lookup_batch(addrs, hops));
        found.map(|(row, _, hop)| (row, hop))
    }
}

/// Answers a question about the addresses of rows from one table.
///
/// # Errors
/// If there is no column of that name, or the table has no routes.
pub fn answer(
    table: &Fib,
    question: Question,
    column: Option<&str>,
    addresses: impl ExactSizeIterator<Item = (usize, Address)>,
    answers: &mut impl Answers,
) -> Result<(), String> {
    if question == Question::Covering {
        for (row, address) in addresses {
            let found = table.covering(AnyPrefix::host(address.into()));
            let found = found.map_err(|error| error.to_string())?;
            let text = |prefix| {
                let mut text = Vec::new();
                write_prefix(prefix, &mut text);
                text
            };
            let prefixes: Vec<_> = found.filter_map(|route| Some(text(route.prefix()?))).collect();
            if !prefixes.is_empty() {
                answers.covering(row, &prefixes);
            }
        }
        return Ok(());
    }
    let (mut v4, mut v6) = (Keys::new(addresses.len()), Keys::new(0));
    for (row, address) in addresses {
        match address {
            Address::V4(address) => v4.push(row, address),
            Address::V6(address) => v6.push(row, address),
        }
    }
    match question {
        Question::Value | Question::Number => {
            let column = column.ok_or("the name of a column is missing")?;
            let at = table.columns().find(column).ok_or_else(|| unknown(table, column))?;
            if question == Question::Number && table.columns().kind(at) != ColumnKind::Int {
                return Err(format!("the column {column:?} has no integers: use fibula_value"));
            }
            values(table, &v4, at, answers);
            values(table, &v6, at, answers);
        }
        Question::Record => {
            records(table, &v4, answers);
            records(table, &v6, answers);
        }
        Question::Prefix | Question::Covering => {
            prefixes(table, &v4, answers);
            prefixes(table, &v6, answers);
        }
    }
    Ok(())
}

fn prefixes<A: Addr + Pod>(table: &Fib, keys: &Keys<A>, answers: &mut impl Answers) {
    let mut text = Vec::new();
    for (row, prefix) in keys.lengths(table.family::<A>()) {
        text.clear();
        write_prefix(prefix, &mut text);
        answers.prefix(row, &text);
    }
}

fn values<A: Addr + Pod>(table: &Fib, keys: &Keys<A>, column: usize, answers: &mut impl Answers) {
    for (row, hop) in keys.hops(table.family::<A>()) {
        if let Some(hop) = hop {
            answers.value(row, table.columns().value(column, hop));
        }
    }
}

fn records<A: Addr + Pod>(table: &Fib, keys: &Keys<A>, answers: &mut impl Answers) {
    let (family, columns) = (table.family::<A>(), table.columns());
    let names: Vec<&str> = columns.names().collect();
    let mut hops = keys.hops(family);
    let (mut text, mut known) = (Vec::new(), Vec::new());
    for (row, prefix) in keys.lengths(family) {
        // Each address with a prefix has a hop: both are of the same order.
        let hop = hops.find(|(of, _)| *of == row).and_then(|(_, hop)| hop);
        text.clear();
        write_prefix(prefix, &mut text);
        known.clear();
        if let Some(hop) = hop {
            let values = names.iter().enumerate();
            let values = values.map(|(column, &name)| (name, columns.value(column, hop)));
            known.extend(values.filter(|(_, value)| *value != Value::Null));
        }
        answers.record(row, &text, &known);
    }
}

fn unknown(table: &Fib, column: &str) -> String {
    let names: Vec<_> = table.columns().names().collect();
    match names.is_empty() {
        true => format!("the table has no column {column:?}, nor any other"),
        false => format!("the table has no column {column:?}, but {}", names.join(", ")),
    }
}
