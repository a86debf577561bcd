//! Functions of rows: `fibula`, `fibula_prefix`, `fibula_covering`, `fibula_value`, `fibula_number`.

use std::ffi::{CStr, c_void};
use std::fmt::Write;
use std::{ptr, str};

use fibula_annotate::Address;
use fibula_core::Value;
use libduckdb_sys as duckdb;

use super::guarded;
use super::types::{SqlType, c_text};
use super::vector::{Argument, Output};
use crate::address::AddressType;
use crate::answers::{Answers, Question, answer};
use crate::open;

/// The functions by name.
pub const FUNCTIONS: [(&CStr, Question); 5] = [
    (c"fibula", Question::Record),
    (c"fibula_prefix", Question::Prefix),
    (c"fibula_covering", Question::Covering),
    (c"fibula_value", Question::Value),
    (c"fibula_number", Question::Number),
];

/// A function for one type of addresses.
struct Overload {
    question: Question,
    addresses: AddressType,
}

unsafe extern "C" fn drop_overload(overload: *mut c_void) {
    // SAFETY: it is the box that `register` leaked.
    drop(unsafe { Box::from_raw(overload.cast::<Overload>()) });
}

/// Adds a function, for all types of addresses.
///
/// # Safety
/// The connection is open.
pub unsafe fn register(
    connection: duckdb::duckdb_connection,
    name: &CStr,
    question: Question,
) -> Result<(), String> {
    let (text, result) = (SqlType::text(), SqlType::of_answers(question));
    // SAFETY: functions and sets are created, used and destroyed here; types and names are copied.
    unsafe {
        let mut set = duckdb::duckdb_create_scalar_function_set(name.as_ptr());
        for addresses in AddressType::ALL {
            let mut function = duckdb::duckdb_create_scalar_function();
            duckdb::duckdb_scalar_function_set_name(function, name.as_ptr());
            duckdb::duckdb_scalar_function_add_parameter(function, text.raw());
            let address = SqlType::of_addresses(addresses);
            duckdb::duckdb_scalar_function_add_parameter(function, address.raw());
            if question.has_column() {
                duckdb::duckdb_scalar_function_add_parameter(function, text.raw());
            }
            duckdb::duckdb_scalar_function_set_return_type(function, result.raw());
            // NULL is handled row by row.
            duckdb::duckdb_scalar_function_set_special_handling(function);
            duckdb::duckdb_scalar_function_set_function(function, Some(call));
            let overload = Box::into_raw(Box::new(Overload { question, addresses }));
            duckdb::duckdb_scalar_function_set_extra_info(
                function,
                overload.cast(),
                Some(drop_overload),
            );
            duckdb::duckdb_add_scalar_function_to_set(set, function);
            duckdb::duckdb_destroy_scalar_function(&raw mut function);
        }
        let state = duckdb::duckdb_register_scalar_function_set(connection, set);
        duckdb::duckdb_destroy_scalar_function_set(&raw mut set);
        match state {
            duckdb::duckdb_state_DuckDBSuccess => Ok(()),
            _ => Err(format!("DuckDB does not take the function {}", name.to_string_lossy())),
        }
    }
}

unsafe extern "C" fn call(
    info: duckdb::duckdb_function_info,
    chunk: duckdb::duckdb_data_chunk,
    output: duckdb::duckdb_vector,
) {
    let run = || {
        // SAFETY: the pointer is that of `register`. Types and number of the columns are those that were registered; DuckDB
        // keeps chunk and vector until this returns, and nobody else writes.
        unsafe {
            let overload = duckdb::duckdb_scalar_function_get_extra_info(info);
            let overload = &*overload.cast::<Overload>();
            let tables: Vec<_> = Argument::of(chunk, 0).texts().collect();
            let addresses = Argument::of(chunk, 1).addresses(overload.addresses);
            let columns = match overload.question.has_column() {
                true => Argument::of(chunk, 2).texts().collect(),
                false => Vec::new(),
            };
            rows(overload.question, &tables, &addresses, &columns, Output::of(output))
        }
    };
    if let Err(error) = guarded(run) {
        let error = c_text(&format!("fibula: {error}"));
        // SAFETY: the text is copied.
        unsafe { duckdb::duckdb_scalar_function_set_error(info, error.as_ptr()) };
    }
}

/// Answers all rows of a chunk: rows of one table, and one column, at a time.
fn rows(
    question: Question,
    tables: &[Option<&[u8]>],
    addresses: &[Option<Address>],
    columns: &[Option<&[u8]>],
    output: Output,
) -> Result<(), String> {
    let mut answers = Columns::new(question, addresses.len(), output);
    let column_of = |row: usize| columns.get(row).copied().flatten();
    let mut begin = 0;
    while begin < addresses.len() {
        let (table, column) = (tables[begin], column_of(begin));
        let is_other = |row: &usize| differ(tables[*row], table) || differ(column_of(*row), column);
        let end = (begin + 1..addresses.len()).find(is_other).unwrap_or(addresses.len());
        if let Some(table) = table
            && (!question.has_column() || column.is_some())
        {
            let name = |text| str::from_utf8(text).map_err(|_| "a name is not UTF-8".to_owned());
            let table = open(name(table)?)?;
            let column = column.map(name).transpose()?;
            let found = addresses[begin..end].iter().enumerate();
            let found = found.filter_map(|(row, address)| Some((begin + row, (*address)?)));
            let found: Vec<_> = found.collect();
            answer(&table, question, column, found.into_iter(), &mut answers)?;
        }
        begin = end;
    }
    answers.close()
}

/// Whether two names differ. Those of a constant are mostly at the same place.
fn differ(one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => !ptr::eq(one, other) && one != other,
        _ => one != other,
    }
}

/// The column of results.
struct Columns {
    output: Output,
    question: Question,
    /// Elements of lists and maps so far, and for how many there is room.
    elements: usize,
    room: usize,
    number: String,
    error: Option<String>,
}

impl Columns {
    fn new(question: Question, rows: usize, output: Output) -> Self {
        output.nulls(rows);
        if question == Question::Record {
            output.member(0).nulls(rows);
            output.member(1).nulls(rows);
        }
        Self { output, question, elements: 0, room: 0, number: String::new(), error: None }
    }

    /// The column with lists or maps.
    fn lists(&self) -> Output {
        match self.question {
            Question::Record => self.output.member(1),
            _ => self.output,
        }
    }

    /// Places the elements of a row. False if there is no memory.
    fn begin(&mut self, row: usize, elements: usize) -> Option<usize> {
        let (begin, lists) = (self.elements, self.lists());
        if begin + elements > self.room {
            self.room = (begin + elements).max(2 * self.room).max(4096);
            if let Err(error) = lists.reserve(self.room) {
                self.error = Some(error);
                return None;
            }
        }
        lists.list(row, begin, elements);
        lists.set(row);
        self.elements += elements;
        Some(begin)
    }

    fn close(self) -> Result<(), String> {
        if matches!(self.question, Question::Record | Question::Covering) {
            self.lists().close(self.elements);
        }
        self.error.map_or(Ok(()), Err)
    }
}

impl Answers for Columns {
    fn prefix(&mut self, row: usize, prefix: &[u8]) {
        self.output.text(row, prefix);
        self.output.set(row);
    }

    fn covering(&mut self, row: usize, prefixes: &[Vec<u8>]) {
        if let Some(begin) = self.begin(row, prefixes.len()) {
            let elements = self.output.elements();
            prefixes.iter().enumerate().for_each(|(at, prefix)| elements.text(begin + at, prefix));
        }
    }

    fn record(&mut self, row: usize, prefix: &[u8], values: &[(&str, Value<'_>)]) {
        self.output.set(row);
        self.output.member(0).text(row, prefix);
        self.output.member(0).set(row);
        let Some(begin) = self.begin(row, values.len()) else { return };
        let entries = self.output.member(1).elements();
        let (names, texts) = (entries.member(0), entries.member(1));
        for (at, (name, value)) in values.iter().enumerate() {
            names.text(begin + at, name.as_bytes());
            write_value(texts, begin + at, *value, &mut self.number);
        }
    }

    fn value(&mut self, row: usize, value: Value<'_>) {
        if let (Question::Number, Value::Int(number)) = (self.question, value) {
            self.output.number(row, number);
            self.output.set(row);
        } else if write_value(self.output, row, value, &mut self.number) {
            self.output.set(row);
        }
    }
}

/// Writes a value as text. Returns whether there is one.
pub fn write_value(column: Output, row: usize, value: Value<'_>, number: &mut String) -> bool {
    match value {
        Value::Null => return false,
        Value::Str(text) => column.text(row, text.as_bytes()),
        Value::Int(int) => {
            number.clear();
            let _ = write!(number, "{int}");
            column.text(row, number.as_bytes());
        }
    }
    true
}
