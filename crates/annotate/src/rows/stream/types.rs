//! The types of the columns of RowBinary, as ClickHouse writes them.

use std::str::FromStr;

/// The types of all columns of a row of RowBinary, in their order: `String, Nullable(IPv6), UInt16`. Columns with
/// addresses are `String`, `IPv4` or `UInt32`, `IPv6` or `FixedString(16)`, or `FixedString(4)`, also nullable. Other
/// columns have any type whose values have one length, or are `String`.
///
/// ```
/// use fibula_annotate::CellTypes;
/// assert!("String, LowCardinality(Nullable(String)), DateTime64(3, 'UTC')".parse::<CellTypes>().is_ok());
/// assert!("Array(String)".parse::<CellTypes>().is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellTypes(pub(super) Vec<CellType>);

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CellType {
    pub(super) name: String,
    pub(super) nullable: bool,
    pub(super) form: CellForm,
}

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellForm {
    /// A length and bytes.
    Text,
    /// An IPv4 address as a number, in little-endian order.
    Number,
    /// An address of 4 or 16 bytes in network order.
    Network(usize),
    /// This many bytes, which are no address.
    Fixed(usize),
}

impl CellTypes {
    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for CellTypes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut depth, mut quoted) = (0u32, false);
        let types = text.split(|byte: char| {
            match byte {
                '\'' => quoted = !quoted,
                '(' if !quoted => depth += 1,
                ')' if !quoted => depth = depth.saturating_sub(1),
                _ => {}
            }
            byte == ',' && depth == 0 && !quoted
        });
        types.map(|name| cell_type(name.trim())).collect::<Result<_, _>>().map(Self)
    }
}

fn cell_type(name: &str) -> Result<CellType, String> {
    let inside = |name: &str, of: &str| {
        let inside = name.strip_prefix(of)?.strip_prefix('(')?.strip_suffix(')')?;
        Some(inside.trim().to_owned())
    };
    // RowBinary has the values of a dictionary themselves.
    let plain = inside(name, "LowCardinality").unwrap_or_else(|| name.to_owned());
    let (plain, nullable) = match inside(&plain, "Nullable") {
        Some(plain) => (plain, true),
        None => (plain, false),
    };
    let form = form(&plain).ok_or_else(|| {
        format!("{name:?} is no type of RowBinary with values of one length, and not String")
    })?;
    Ok(CellType { name: name.to_owned(), nullable, form })
}

fn form(name: &str) -> Option<CellForm> {
    let (base, arguments) = match name.split_once('(') {
        Some((base, rest)) => (base.trim(), Some(rest.strip_suffix(')')?)),
        None => (name, None),
    };
    Some(match (base, arguments) {
        ("String", None) => CellForm::Text,
        ("UInt32" | "IPv4", None) => CellForm::Number,
        ("IPv6", None) => CellForm::Network(16),
        ("FixedString", Some(len)) => match len.trim().parse().ok()? {
            len @ (4 | 16) => CellForm::Network(len),
            len @ 1..=0xff_ffff => CellForm::Fixed(len),
            _ => return None,
        },
        ("Int8" | "UInt8" | "Bool", None) | ("Enum8", Some(_)) => CellForm::Fixed(1),
        ("Int16" | "UInt16" | "Date" | "BFloat16", None) | ("Enum16", Some(_)) => {
            CellForm::Fixed(2)
        }
        ("Int32" | "Float32" | "Date32", None) | ("DateTime", _) | ("Decimal32", Some(_)) => {
            CellForm::Fixed(4)
        }
        ("Int64" | "UInt64" | "Float64", None) | ("DateTime64" | "Decimal64", Some(_)) => {
            CellForm::Fixed(8)
        }
        ("Int128" | "UInt128" | "UUID", None) | ("Decimal128", Some(_)) => CellForm::Fixed(16),
        ("Int256" | "UInt256", None) | ("Decimal256", Some(_)) => CellForm::Fixed(32),
        _ => return None,
    })
}
