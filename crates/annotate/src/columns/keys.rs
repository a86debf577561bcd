//! Reads addresses from Arrow arrays, a block of rows at a time, and splits them by family.

use std::cell::Cell;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::DataType;
use fibula_simd::{Isa, Kernel, Level, Simd, parse_v4_at, parse_v6_at};

use super::answers::Without;
use crate::AnnotateError;
use crate::address::Address;

/// The addresses of one family in a block, with the row of each.
#[derive(Debug)]
pub(super) struct Keys<A> {
    pub(super) addrs: Vec<A>,
    pub(super) rows: Vec<u32>,
}

impl<A> Default for Keys<A> {
    fn default() -> Self {
        Self { addrs: Vec::new(), rows: Vec::new() }
    }
}

/// A block of cells. Every row is in exactly one of `v4`, `v6` and `others`.
#[derive(Debug, Default)]
pub(super) struct Cells {
    pub(super) v4: Keys<u32>,
    pub(super) v6: Keys<u128>,
    pub(super) others: Vec<(u32, Without)>,
    /// Scratch space of `Texts::apart`: the rows that look like IPv4, and those that look like IPv6.
    apart: [Vec<u32>; 2],
}

impl Cells {
    pub(super) fn clear(&mut self) {
        self.v4.addrs.clear();
        self.v4.rows.clear();
        self.v6.addrs.clear();
        self.v6.rows.clear();
        self.others.clear();
    }

    /// Adds a cell that was already read.
    #[inline]
    pub(super) fn put(&mut self, row: u32, cell: Result<Address, Without>) {
        match cell {
            Ok(address) => self.address(row, Some(address)),
            Err(without) => self.others.push((row, without)),
        }
    }

    /// Calls `give` for each cell, not in the order of rows.
    pub(super) fn each(&self, mut give: impl FnMut(u32, Result<Address, Without>)) {
        let Self { v4, v6, others, .. } = self;
        v4.rows.iter().zip(&v4.addrs).for_each(|(row, addr)| give(*row, Ok(Address::V4(*addr))));
        v6.rows.iter().zip(&v6.addrs).for_each(|(row, addr)| give(*row, Ok(Address::V6(*addr))));
        others.iter().for_each(|(row, without)| give(*row, Err(*without)));
    }

    /// Removes the addresses of some rows and records `why`.
    pub(super) fn leave_out(&mut self, is_out: impl Fn(u32) -> bool, why: Without) {
        fn family<A: Copy>(
            keys: &mut Keys<A>,
            is_out: &impl Fn(u32) -> bool,
            mut out: impl FnMut(u32),
        ) {
            if !keys.rows.iter().any(|&row| is_out(row)) {
                return;
            }
            let mut kept = 0;
            for at in 0..keys.rows.len() {
                let row = keys.rows[at];
                if is_out(row) {
                    out(row);
                } else {
                    (keys.rows[kept], keys.addrs[kept]) = (row, keys.addrs[at]);
                    kept += 1;
                }
            }
            keys.rows.truncate(kept);
            keys.addrs.truncate(kept);
        }
        let Self { v4, v6, others, .. } = self;
        family(v4, &is_out, |row| others.push((row, why)));
        family(v6, &is_out, |row| others.push((row, why)));
    }

    #[inline]
    fn v4(&mut self, row: u32, addr: u32) {
        self.v4.addrs.push(addr);
        self.v4.rows.push(row);
    }

    #[inline]
    fn address(&mut self, row: u32, address: Option<Address>) {
        match address {
            Some(Address::V4(addr)) => self.v4(row, addr),
            Some(Address::V6(addr)) => {
                self.v6.addrs.push(addr);
                self.v6.rows.push(row);
            }
            None => self.others.push((row, Without::Unparsable)),
        }
    }

    /// Adds a cell of text. Whitespace around an address is ignored, as in the text formats.
    #[inline]
    fn text(&mut self, row: u32, text: &[u8]) {
        match Address::parse(text) {
            None => self.odd(row, text),
            address => self.address(row, address),
        }
    }

    #[cold]
    fn odd(&mut self, row: u32, text: &[u8]) {
        match text.trim_ascii() {
            [] => self.others.push((row, Without::Empty)),
            trimmed => self.address(row, Address::parse(trimmed)),
        }
    }

    /// Adds a cell of bytes; an address has four or sixteen, in network order.
    #[inline]
    fn bytes(&mut self, row: u32, bytes: &[u8]) {
        let address = match *bytes {
            [a, b, c, d] => Some(Address::V4(u32::from_be_bytes([a, b, c, d]))),
            _ => bytes.try_into().ok().map(|bytes| Address::from_v6(u128::from_be_bytes(bytes))),
        };
        self.address(row, address);
    }

    #[inline]
    fn number(&mut self, row: u32, number: Option<u32>) {
        self.address(row, number.map(Address::V4));
    }
}

/// The text of a block's rows: row `i` is at `offsets[i]..offsets[i + 1]`.
struct Texts<'a, O> {
    offsets: &'a [O],
    data: &'a [u8],
}

/// Reads a block of text.
struct Read<'a, 'c, O, V> {
    texts: Texts<'a, O>,
    /// Whether a row is not null.
    valid: V,
    cells: &'c mut Cells,
    apart: bool,
}

impl<O: OffsetSizeTrait, V: Fn(usize) -> bool> Kernel for Read<'_, '_, O, V> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { texts, valid, cells, apart } = self;
        if apart { texts.apart(valid, cells) } else { texts.in_order(valid, cells) }
    }
}

impl<O: OffsetSizeTrait> Texts<'_, O> {
    #[inline(always)]
    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline(always)]
    fn bounds(&self, place: u32) -> (usize, usize) {
        let place = place as usize;
        (self.offsets[place].as_usize(), self.offsets[place + 1].as_usize())
    }

    #[inline(always)]
    fn v4(&self, place: u32, cells: &mut Cells) {
        let (start, end) = self.bounds(place);
        match parse_v4_at(self.data, start, end) {
            Some(addr) => cells.v4(place, addr),
            None => self.v6(place, cells),
        }
    }

    #[inline(always)]
    fn v6(&self, place: u32, cells: &mut Cells) {
        let (start, end) = self.bounds(place);
        match parse_v6_at(self.data, start, end).map(Address::from_v6) {
            Some(address) => cells.address(place, Some(address)),
            None => cells.text(place, &self.data[start..end]),
        }
    }

    #[inline(always)]
    fn in_order(&self, valid: impl Fn(usize) -> bool, cells: &mut Cells) {
        for place in 0..self.rows() {
            if valid(place) {
                self.v4(place as u32, cells);
            } else {
                cells.others.push((place as u32, Without::Empty));
            }
        }
    }

    /// Reads first one family, then the other. If both are mixed, a branch on the family of each row would often be
    /// mispredicted.
    #[inline(always)]
    fn apart(&self, valid: impl Fn(usize) -> bool, cells: &mut Cells) {
        let [mut v4, mut v6] = std::mem::take(&mut cells.apart);
        v4.resize(self.rows(), 0);
        v6.resize(self.rows(), 0);
        let (mut v4_len, mut v6_len) = (0, 0);
        for place in 0..self.rows() {
            if valid(place) {
                let start = self.offsets[place].as_usize();
                let head = self.data.get(start..).and_then(|rest| rest.first_chunk::<8>());
                let colon = head.is_some_and(|head| begins_with_colon(*head));
                v4[v4_len] = place as u32;
                v6[v6_len] = place as u32;
                v4_len += usize::from(!colon);
                v6_len += usize::from(colon);
            } else {
                cells.others.push((place as u32, Without::Empty));
            }
        }
        // Loops instead of closures, which would be compiled without the instruction set of the kernel.
        for &place in &v4[..v4_len] {
            self.v4(place, cells);
        }
        for &place in &v6[..v6_len] {
            self.v6(place, cells);
        }
        cells.apart = [v4, v6];
    }
}

/// Whether a colon is among the first five characters, as in all IPv6 addresses.
#[inline(always)]
fn begins_with_colon(text: [u8; 8]) -> bool {
    let differ = u64::from_le_bytes(text) ^ u64::from_ne_bytes([b':'; 8]);
    let ones = u64::from_ne_bytes([1; 8]);
    // The high bit of each zero byte is set, and no high bit before the first zero byte.
    differ.wrapping_sub(ones) & !differ & ones << 7 & 0xff_ffff_ffff != 0
}

/// A column of addresses, by kind of type.
pub(super) enum Addresses<'a> {
    /// IPv4 addresses as numbers, without nulls. Without dates, they are looked up in place.
    Numbers(&'a [u32]),
    /// Any other type, read cell by cell.
    Cells(Reader<'a>),
    /// Keys and distinct values.
    Dictionary { keys: Vec<Option<usize>>, values: &'a ArrayRef },
}

/// Reads a range of rows into a block, in which rows are counted from the start of the range.
pub(super) type Reader<'a> = Box<dyn Fn(std::ops::Range<usize>, &mut Cells) + 'a>;

/// Whether columns of this type can contain addresses.
pub(crate) fn is_supported(kind: &DataType) -> bool {
    has_cells(super::listed::item(kind).unwrap_or(kind))
}

/// Whether cells of this type can contain addresses.
fn has_cells(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => has_cells(values),
        DataType::FixedSizeBinary(width) => matches!(width, 4 | 16),
        kind => matches!(
            kind,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::UInt32
                | DataType::UInt64
                | DataType::Int64
                | DataType::Null
        ),
    }
}

impl<'a> Addresses<'a> {
    pub(super) fn new(array: &'a dyn Array) -> Result<Self, AnnotateError> {
        /// Reads cells one by one; `each` reads a row that is not null.
        fn cells<'a>(
            array: &'a dyn Array,
            each: impl Fn(usize, u32, &mut Cells) + 'a,
        ) -> Addresses<'a> {
            let nulls = array.logical_nulls();
            let read = move |rows: std::ops::Range<usize>, cells: &mut Cells| {
                let first = rows.start;
                for row in rows {
                    let place = (row - first) as u32;
                    if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                        cells.others.push((place, Without::Empty));
                    } else {
                        each(row, place, cells);
                    }
                }
            };
            Addresses::Cells(Box::new(read))
        }
        /// Text in one buffer. Addresses are parsed there, which may read bytes after their end.
        fn text<'a, O: OffsetSizeTrait>(array: &'a dyn Array) -> Addresses<'a> {
            let strings = array.as_string::<O>();
            let (offsets, data) = (strings.value_offsets(), strings.value_data());
            let nulls = strings.nulls();
            let (level, mixed) = (Level::new(Isa::detect()), Cell::new(false));
            Addresses::Cells(Box::new(move |rows, cells| {
                let texts = Texts { offsets: &offsets[rows.start..=rows.end], data };
                let valid =
                    |place: usize| nulls.is_none_or(|nulls| nulls.is_valid(rows.start + place));
                level.run(Read { texts, valid, cells: &mut *cells, apart: mixed.get() });
                mixed.set(!cells.v4.rows.is_empty() && !cells.v6.rows.is_empty());
            }))
        }
        Ok(match array.data_type() {
            DataType::Utf8 => text::<i32>(array),
            DataType::LargeUtf8 => text::<i64>(array),
            DataType::Utf8View => {
                let strings = array.as_string_view();
                cells(array, move |row, at, cells| cells.text(at, strings.value(row).as_bytes()))
            }
            DataType::Binary => {
                let bytes = array.as_binary::<i32>();
                cells(array, move |row, at, cells| cells.bytes(at, bytes.value(row)))
            }
            DataType::LargeBinary => {
                let bytes = array.as_binary::<i64>();
                cells(array, move |row, at, cells| cells.bytes(at, bytes.value(row)))
            }
            DataType::BinaryView => {
                let bytes = array.as_binary_view();
                cells(array, move |row, at, cells| cells.bytes(at, bytes.value(row)))
            }
            DataType::FixedSizeBinary(4 | 16) => {
                let bytes = array.as_fixed_size_binary();
                cells(array, move |row, at, cells| cells.bytes(at, bytes.value(row)))
            }
            DataType::UInt32 => {
                let numbers = array.as_primitive::<UInt32Type>().values();
                if array.null_count() == 0 {
                    return Ok(Self::Numbers(numbers));
                }
                cells(array, move |row, at, cells| cells.number(at, Some(numbers[row])))
            }
            DataType::UInt64 => {
                let numbers = array.as_primitive::<UInt64Type>().values();
                cells(array, move |row, at, cells| cells.number(at, numbers[row].try_into().ok()))
            }
            DataType::Int64 => {
                let numbers = array.as_primitive::<Int64Type>().values();
                cells(array, move |row, at, cells| cells.number(at, numbers[row].try_into().ok()))
            }
            DataType::Null => {
                cells(array, |_, place, cells| cells.others.push((place, Without::Empty)))
            }
            DataType::Dictionary(_, kind) if has_cells(kind) => {
                let dictionary = array.as_any_dictionary();
                let values = dictionary.values();
                if values.is_empty() {
                    // Then all keys are null.
                    let keys = vec![None; array.len()];
                    return Ok(Self::Dictionary { keys, values });
                }
                let keys = dictionary.normalized_keys();
                let nulls = dictionary.keys().nulls();
                let key = |(row, key)| nulls.is_none_or(|nulls| nulls.is_valid(row)).then_some(key);
                let keys = keys.into_iter().enumerate().map(key).collect();
                Self::Dictionary { keys, values }
            }
            kind => return Err(AnnotateError::Type { kind: kind.to_string() }),
        })
    }
}

/// Whether a cell is null, or a dictionary key whose value is null.
pub(crate) fn is_null(array: &dyn Array, row: usize) -> bool {
    array.logical_nulls().is_some_and(|nulls| nulls.is_null(row))
}

/// The text of a cell, for messages.
pub(crate) fn text(array: &dyn Array, row: usize) -> String {
    let text = match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).to_owned(),
        DataType::Utf8View => array.as_string_view().value(row).to_owned(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Dictionary(..) => {
            // The function is called only for cells that are not null, so there are values.
            let dictionary = array.as_any_dictionary();
            let key = dictionary.normalized_keys()[row];
            return text(dictionary.values(), key);
        }
        DataType::Binary => hex(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => hex(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => hex(array.as_binary_view().value(row)),
        _ => String::new(),
    };
    text.chars().take(60).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
