//! Reads addresses from Arrow arrays, a block of rows at a time, and splits them by family.

use std::cell::{Cell, RefCell};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::DataType;
use fibula_simd::{Isa, Kernel, Level, Simd, parse_v4_at, parse_v6_at};

use super::bytes::{BytesForm, is_printable};
use crate::pipeline::answers::Without;
use crate::pipeline::keys::{Cells, KeySink};
use crate::{Address, AnnotateError};

/// Reads cells into a block, in which rows are counted from its beginning.
impl Cells {
    /// Adds a cell of text. Whitespace around an address is ignored, as in the text formats.
    #[inline]
    fn text(&mut self, row: u32, text: &[u8]) {
        match Address::parse(text) {
            None => self.odd(row, text),
            Some(address) => self.address(row, address),
        }
    }

    #[cold]
    fn odd(&mut self, row: u32, text: &[u8]) {
        match text.trim_ascii() {
            [] => self.without(row, Without::Empty),
            trimmed => self.parsed(row, Address::parse_cell(trimmed)),
        }
    }

    /// Adds a cell of bytes; an address has four or sixteen, in network order.
    #[inline]
    fn bytes(&mut self, row: u32, bytes: &[u8]) {
        let address = match *bytes {
            [a, b, c, d] => Some(Address::V4(u32::from_be_bytes([a, b, c, d]))),
            _ => bytes.try_into().ok().map(|bytes| Address::from_v6(u128::from_be_bytes(bytes))),
        };
        self.parsed(row, address);
    }

    #[inline]
    fn number(&mut self, row: u32, number: Option<u32>) {
        self.parsed(row, number.map(Address::V4));
    }

    #[inline]
    fn parsed(&mut self, row: u32, address: Option<Address>) {
        self.put(row, address.ok_or(Without::Unparsable));
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
    /// The rows of each family, if they are read one after the other.
    apart: Option<&'c mut [Vec<u32>; 2]>,
}

impl<O: OffsetSizeTrait, V: Fn(usize) -> bool> Kernel for Read<'_, '_, O, V> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { texts, valid, cells, apart } = self;
        match apart {
            Some(apart) => texts.apart(valid, cells, apart),
            None => texts.in_order(valid, cells),
        }
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
            Some(address) => cells.address(place, address),
            None => cells.text(place, &self.data[start..end]),
        }
    }

    #[inline(always)]
    fn in_order(&self, valid: impl Fn(usize) -> bool, cells: &mut Cells) {
        for place in 0..self.rows() {
            if valid(place) {
                self.v4(place as u32, cells);
            } else {
                cells.without(place as u32, Without::Empty);
            }
        }
    }

    /// Reads first one family, then the other. If both are mixed, a branch on the family of each row would often be
    /// mispredicted.
    #[inline(always)]
    fn apart(
        &self,
        valid: impl Fn(usize) -> bool,
        cells: &mut Cells,
        [v4, v6]: &mut [Vec<u32>; 2],
    ) {
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
                cells.without(place as u32, Without::Empty);
            }
        }
        // Loops instead of closures, which would be compiled without the instruction set of the kernel.
        for &place in &v4[..v4_len] {
            self.v4(place, cells);
        }
        for &place in &v6[..v6_len] {
            self.v6(place, cells);
        }
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

/// Reads cells one by one; `each` reads a row that is not null.
fn cells<'a>(array: &'a dyn Array, each: impl Fn(usize, u32, &mut Cells) + 'a) -> Addresses<'a> {
    let nulls = array.logical_nulls();
    let read = move |rows: std::ops::Range<usize>, cells: &mut Cells| {
        let first = rows.start;
        for row in rows {
            let place = (row - first) as u32;
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                cells.without(place, Without::Empty);
            } else {
                each(row, place, cells);
            }
        }
    };
    Addresses::Cells(Box::new(read))
}

impl<'a> Addresses<'a> {
    pub(super) fn new(array: &'a dyn Array) -> Result<Self, AnnotateError> {
        /// Text in one buffer. Addresses are parsed there, which may read bytes after their end.
        fn text<'a, O: OffsetSizeTrait>(array: &'a dyn Array) -> Addresses<'a> {
            let strings = array.as_string::<O>();
            let (offsets, data) = (strings.value_offsets(), strings.value_data());
            let nulls = strings.nulls();
            let (level, mixed) = (Level::new(Isa::detect()), Cell::new(false));
            let families = RefCell::new([Vec::new(), Vec::new()]);
            Addresses::Cells(Box::new(move |rows, cells| {
                let texts = Texts { offsets: &offsets[rows.start..=rows.end], data };
                let valid =
                    |place: usize| nulls.is_none_or(|nulls| nulls.is_valid(rows.start + place));
                let mut families = families.borrow_mut();
                let apart = mixed.get().then_some(&mut *families);
                level.run(Read { texts, valid, cells: &mut *cells, apart });
                mixed.set(!cells.v4.cells.is_empty() && !cells.v6.cells.is_empty());
            }))
        }
        Ok(match array.data_type() {
            DataType::Utf8 => text::<i32>(array),
            DataType::LargeUtf8 => text::<i64>(array),
            DataType::Utf8View => {
                let strings = array.as_string_view();
                cells(array, move |row, at, cells| cells.text(at, strings.value(row).as_bytes()))
            }
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(4 | 16) => {
                /// Reads cells of bytes, or of text that was stored as bytes.
                fn of<'a>(
                    array: &'a dyn Array,
                    value: impl Fn(usize) -> &'a [u8] + 'a,
                ) -> Result<Addresses<'a>, AnnotateError> {
                    let is_valid = |row: &usize| array.is_valid(*row);
                    let all = (0..array.len()).filter(is_valid).map(&value);
                    Ok(match BytesForm::of(all)? {
                        BytesForm::Bytes => {
                            cells(array, move |row, at, cells| cells.bytes(at, value(row)))
                        }
                        BytesForm::Text => {
                            cells(array, move |row, at, cells| cells.text(at, value(row)))
                        }
                    })
                }
                return match array.data_type() {
                    DataType::Binary => {
                        let bytes = array.as_binary::<i32>();
                        of(array, |row| bytes.value(row))
                    }
                    DataType::LargeBinary => {
                        let bytes = array.as_binary::<i64>();
                        of(array, |row| bytes.value(row))
                    }
                    DataType::BinaryView => {
                        let bytes = array.as_binary_view();
                        of(array, |row| bytes.value(row))
                    }
                    _ => {
                        let bytes = array.as_fixed_size_binary();
                        of(array, |row| bytes.value(row))
                    }
                };
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
            DataType::Null => cells(array, |_, place, cells| cells.without(place, Without::Empty)),
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
        DataType::Binary => text_or_hex(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => text_or_hex(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => text_or_hex(array.as_binary_view().value(row)),
        _ => String::new(),
    };
    text.chars().take(60).collect()
}

fn text_or_hex(bytes: &[u8]) -> String {
    if is_printable(bytes) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
