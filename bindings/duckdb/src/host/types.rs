//! Types of SQL.

use std::ffi::{CStr, CString};

use libduckdb_sys as duckdb;

use crate::address::AddressType;
use crate::answers::Question;

/// A type of SQL, which is freed.
pub struct SqlType(duckdb::duckdb_logical_type);

impl Drop for SqlType {
    fn drop(&mut self) {
        // SAFETY: it was created, and is destroyed once.
        unsafe { duckdb::duckdb_destroy_logical_type(&raw mut self.0) }
    }
}

impl SqlType {
    /// The type for calls that copy it.
    pub fn raw(&self) -> duckdb::duckdb_logical_type {
        self.0
    }

    fn of(id: duckdb::DUCKDB_TYPE) -> Self {
        // SAFETY: it is the number of a type without parameters.
        Self(unsafe { duckdb::duckdb_create_logical_type(id) })
    }

    pub fn text() -> Self {
        Self::of(duckdb::DUCKDB_TYPE_DUCKDB_TYPE_VARCHAR)
    }

    pub fn number() -> Self {
        Self::of(duckdb::DUCKDB_TYPE_DUCKDB_TYPE_UBIGINT)
    }

    fn list(of: &Self) -> Self {
        // SAFETY: the type is copied.
        Self(unsafe { duckdb::duckdb_create_list_type(of.0) })
    }

    fn map(keys: &Self, values: &Self) -> Self {
        // SAFETY: both types are copied.
        Self(unsafe { duckdb::duckdb_create_map_type(keys.0, values.0) })
    }

    fn record(members: &[(&CStr, &Self)]) -> Self {
        let mut types: Vec<_> = members.iter().map(|(_, of)| of.0).collect();
        let mut names: Vec<_> = members.iter().map(|(name, _)| name.as_ptr()).collect();
        let count = members.len() as u64;
        // SAFETY: both arrays have that many elements; types and names are copied.
        Self(unsafe {
            duckdb::duckdb_create_struct_type(types.as_mut_ptr(), names.as_mut_ptr(), count)
        })
    }

    /// The type of addresses.
    pub fn of_addresses(of: AddressType) -> Self {
        match of {
            AddressType::Text => Self::text(),
            AddressType::Bytes => Self::of(duckdb::DUCKDB_TYPE_DUCKDB_TYPE_BLOB),
            AddressType::V4 => Self::of(duckdb::DUCKDB_TYPE_DUCKDB_TYPE_UINTEGER),
            AddressType::Signed => Self::of(duckdb::DUCKDB_TYPE_DUCKDB_TYPE_BIGINT),
            AddressType::Number => Self::of(duckdb::DUCKDB_TYPE_DUCKDB_TYPE_UHUGEINT),
            AddressType::Inet => {
                let inet = Self::of_addresses(AddressType::InetParts);
                // SAFETY: the name is copied.
                unsafe { duckdb::duckdb_logical_type_set_alias(inet.0, c"INET".as_ptr()) };
                inet
            }
            AddressType::InetParts => Self::record(&[
                (c"ip_type", &Self::of(duckdb::DUCKDB_TYPE_DUCKDB_TYPE_UTINYINT)),
                (c"address", &Self::of(duckdb::DUCKDB_TYPE_DUCKDB_TYPE_HUGEINT)),
                (c"mask", &Self::of(duckdb::DUCKDB_TYPE_DUCKDB_TYPE_USMALLINT)),
            ]),
        }
    }

    /// The type of answers.
    pub fn of_answers(question: Question) -> Self {
        let text = Self::text();
        match question {
            Question::Record => {
                let values = Self::map(&text, &text);
                Self::record(&[(c"prefix", &text), (c"value", &values)])
            }
            Question::Covering => Self::list(&text),
            Question::Number => Self::number(),
            Question::Prefix | Question::Value => text,
        }
    }
}

/// Text for C, which has no byte 0: what is behind one is cut off.
pub fn c_text(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// Text that DuckDB allocated, which is freed; `None` for NULL and for what is not UTF-8.
///
/// # Safety
/// `text` was allocated by DuckDB, ends with 0, and is not used again.
pub unsafe fn taken_text(text: *mut std::ffi::c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let copy = unsafe { CStr::from_ptr(text) }.to_str().ok().map(str::to_owned);
    // SAFETY: as the caller promises.
    unsafe { duckdb::duckdb_free(text.cast()) };
    copy
}
