//! Columns of a chunk: of arguments, which are read, and of results, which are written.

use std::ffi::c_char;
use std::marker::PhantomData;
use std::slice;

use libduckdb_sys as duckdb;

use crate::address::{self, AddressType};
use fibula_annotate::Address;

/// Bytes that a text has in a column; those of a longer one are elsewhere.
const INLINE: usize = 12;

/// A text, or bytes, as DuckDB has it in columns: up to 12 bytes lie in it.
#[repr(transparent)]
pub struct Text(duckdb::duckdb_string_t);

impl Text {
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: both forms begin with the length; up to 12 bytes are here, more are where the pointer leads, as long as
        // the column lives.
        unsafe {
            let length = self.0.value.inlined.length;
            let first = match length as usize <= INLINE {
                true => (&raw const self.0.value.inlined.inlined).cast::<u8>(),
                false => self.0.value.pointer.ptr.cast::<u8>().cast_const(),
            };
            slice::from_raw_parts(first, length as usize)
        }
    }
}

/// A column of arguments.
#[derive(Clone, Copy)]
pub struct Argument<'a> {
    vector: duckdb::duckdb_vector,
    rows: usize,
    chunk: PhantomData<&'a ()>,
}

impl<'a> Argument<'a> {
    /// The column with this number.
    ///
    /// # Safety
    /// The chunk has the column, and lives during `'a`.
    pub unsafe fn of(chunk: duckdb::duckdb_data_chunk, column: u64) -> Self {
        // SAFETY: as the caller promises.
        let (vector, rows) = unsafe {
            let rows = duckdb::duckdb_data_chunk_get_size(chunk);
            (duckdb::duckdb_data_chunk_get_vector(chunk, column), rows as usize)
        };
        Self { vector, rows, chunk: PhantomData }
    }

    /// The values of a type that lies in the column as `T` does.
    ///
    /// # Safety
    /// The column has this type.
    unsafe fn values<T>(self) -> &'a [T] {
        // SAFETY: arguments are flat: there is a value for each row, those of NULL being arbitrary ones. The type is right,
        // as the caller promises.
        unsafe {
            slice::from_raw_parts(duckdb::duckdb_vector_get_data(self.vector).cast(), self.rows)
        }
    }

    fn validity(self) -> Validity<'a> {
        // SAFETY: NULL, or a bit for each row.
        let words = unsafe {
            let words = duckdb::duckdb_vector_get_validity(self.vector);
            let count = self.rows.div_ceil(64);
            (!words.is_null()).then(|| slice::from_raw_parts(words.cast_const(), count))
        };
        Validity(words)
    }

    /// Texts; `None` for NULL.
    ///
    /// # Safety
    /// The column is `VARCHAR` or `BLOB`.
    pub unsafe fn texts(self) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> + 'a {
        let validity = self.validity();
        // SAFETY: the type is one of those.
        let texts = unsafe { self.values::<Text>() };
        let text = move |(row, text): (usize, &'a Text)| validity.has(row).then(|| text.bytes());
        texts.iter().enumerate().map(text)
    }

    /// Addresses by row; none of NULL and of what is no address.
    ///
    /// # Safety
    /// The column has this type.
    pub unsafe fn addresses(self, of: AddressType) -> Vec<Option<Address>> {
        let validity = self.validity();
        // SAFETY: the column has the type, as the caller promises, and a STRUCT its members.
        unsafe {
            match of {
                AddressType::Text => self.texts().map(|text| Address::parse_cell(text?)).collect(),
                AddressType::Bytes => self.texts().map(|bytes| address::of_bytes(bytes?)).collect(),
                AddressType::V4 => {
                    valid(self.values::<u32>(), validity, |&v4| Some(Address::V4(v4)))
                }
                AddressType::Signed => {
                    let v4 = |&v4: &i64| u32::try_from(v4).ok().map(Address::V4);
                    valid(self.values(), validity, v4)
                }
                AddressType::Number => {
                    let number = |number: &duckdb::duckdb_uhugeint| {
                        let number = u128::from(number.upper) << 64 | u128::from(number.lower);
                        Some(address::of_number(number))
                    };
                    valid(self.values(), validity, number)
                }
                AddressType::Inet | AddressType::InetParts => {
                    let member = |index| Self {
                        vector: duckdb::duckdb_struct_vector_get_child(self.vector, index),
                        ..self
                    };
                    let families = member(0).values::<u8>();
                    let numbers = member(1).values::<duckdb::duckdb_hugeint>();
                    let lengths = member(2).values::<u16>();
                    let of = |row: usize| {
                        let number = numbers[row];
                        let number = i128::from(number.upper) << 64 | i128::from(number.lower);
                        address::of_inet(families[row], number, lengths[row])
                    };
                    (0..self.rows).map(|row| validity.has(row).then(|| of(row)).flatten()).collect()
                }
            }
        }
    }
}

fn valid<T>(
    values: &[T],
    validity: Validity<'_>,
    address: impl Fn(&T) -> Option<Address>,
) -> Vec<Option<Address>> {
    let of = |(row, value)| if validity.has(row) { address(value) } else { None };
    values.iter().enumerate().map(of).collect()
}

/// Which rows are not NULL.
#[derive(Clone, Copy)]
struct Validity<'a>(Option<&'a [u64]>);

impl Validity<'_> {
    fn has(self, row: usize) -> bool {
        self.0.is_none_or(|words| words[row / 64] >> (row % 64) & 1 != 0)
    }
}

/// A column that is written.
#[derive(Clone, Copy)]
pub struct Output {
    vector: duckdb::duckdb_vector,
}

impl Output {
    /// # Safety
    /// The vector is DuckDB's, is written by nobody else, and outlives this value and its parts.
    pub unsafe fn of(vector: duckdb::duckdb_vector) -> Self {
        Self { vector }
    }

    /// A member of a `STRUCT`.
    pub fn member(self, index: u64) -> Self {
        // SAFETY: callers know the types of their columns.
        Self { vector: unsafe { duckdb::duckdb_struct_vector_get_child(self.vector, index) } }
    }

    /// The elements of a `LIST`, or the entries of a `MAP`: a `STRUCT` of key and value.
    pub fn elements(self) -> Self {
        // SAFETY: as above.
        Self { vector: unsafe { duckdb::duckdb_list_vector_get_child(self.vector) } }
    }

    /// Makes the first rows NULL.
    pub fn nulls(self, rows: usize) {
        // SAFETY: there is a bit for each row once it is writable.
        unsafe {
            duckdb::duckdb_vector_ensure_validity_writable(self.vector);
            let words = duckdb::duckdb_vector_get_validity(self.vector);
            slice::from_raw_parts_mut(words, rows.div_ceil(64)).fill(0);
        }
    }

    /// Makes a row that [`Self::nulls`] made NULL have a value.
    pub fn set(self, row: usize) {
        // SAFETY: `nulls` made the bits writable; callers stay below its rows.
        unsafe {
            let words = duckdb::duckdb_vector_get_validity(self.vector);
            *words.add(row / 64) |= 1 << (row % 64);
        }
    }

    /// Writes text, which is UTF-8, to a row.
    pub fn text(self, row: usize, text: &[u8]) {
        // SAFETY: the column is VARCHAR and has the row. Up to 12 bytes lie in it, behind their number, and the rest of
        // these is 0; longer ones are copied by DuckDB.
        unsafe {
            if text.len() <= INLINE {
                let mut inlined = duckdb::duckdb_string_t__bindgen_ty_1__bindgen_ty_2 {
                    length: text.len() as u32,
                    inlined: [0; INLINE],
                };
                inlined.inlined.iter_mut().zip(text).for_each(|(to, &from)| *to = from as c_char);
                let value = duckdb::duckdb_string_t__bindgen_ty_1 { inlined };
                let place = duckdb::duckdb_vector_get_data(self.vector);
                *place.cast::<duckdb::duckdb_string_t>().add(row) =
                    duckdb::duckdb_string_t { value };
                return;
            }
            duckdb::duckdb_vector_assign_string_element_len(
                self.vector,
                row as u64,
                text.as_ptr().cast(),
                text.len() as u64,
            );
        }
    }

    /// Writes a number to a row of `UBIGINT`.
    pub fn number(self, row: usize, number: u64) {
        // SAFETY: the column has this type, and the row.
        unsafe { *duckdb::duckdb_vector_get_data(self.vector).cast::<u64>().add(row) = number }
    }

    /// Notes where the elements of a row are, of a `LIST` or a `MAP`.
    pub fn list(self, row: usize, offset: usize, length: usize) {
        let entry = duckdb::duckdb_list_entry { offset: offset as u64, length: length as u64 };
        // SAFETY: the column has this type, and the row.
        unsafe {
            *duckdb::duckdb_vector_get_data(self.vector)
                .cast::<duckdb::duckdb_list_entry>()
                .add(row) = entry
        }
    }

    /// Makes room for so many elements of all rows. Their number is then [`Self::close`]d.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn reserve(self, elements: usize) -> Result<(), String> {
        // SAFETY: the column is a LIST or a MAP.
        let state = unsafe { duckdb::duckdb_list_vector_reserve(self.vector, elements as u64) };
        match state {
            duckdb::duckdb_state_DuckDBSuccess => Ok(()),
            _ => Err("no memory for a list".to_owned()),
        }
    }

    /// Says how many elements all rows have together.
    pub fn close(self, elements: usize) {
        // SAFETY: the column is a LIST or a MAP, with room for them.
        unsafe { duckdb::duckdb_list_vector_set_size(self.vector, elements as u64) };
    }
}
