//! Reads the five fields of flows from Arrow arrays.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use fibula_classify::text::protocol;
use fibula_classify::{FiveTuple, Flow};
use fibula_simd::parse_v4;

use super::bytes::BytesForm;

/// Reads the cell of a row, or returns its fault.
type Read<'a, T> = Box<dyn Fn(usize) -> Result<T, String> + 'a>;

/// Makes a reader of a column that is not a dictionary.
type OfCells<'a, T> = fn(&'a dyn Array) -> Read<'a, T>;

/// The columns of flows in a batch. A column's type is examined once.
pub(crate) struct FlowColumns<'a> {
    ends: [Read<'a, IpAddr>; 2],
    protocol: Read<'a, u8>,
    /// Source and destination port. A row without ports has nulls.
    ports: Option<[Read<'a, Option<u16>>; 2]>,
}

impl<'a> FlowColumns<'a> {
    /// Source, destination, protocol, and source and destination port unless there are no columns of ports.
    pub(crate) fn new(columns: &'a [ArrayRef]) -> Self {
        let array = |at: usize| columns[at].as_ref();
        let address = |at| reader(array(at), addresses, Err("null".to_owned()));
        let port = |at| reader(array(at), ports, Ok(None));
        Self {
            ends: [0, 1].map(address),
            protocol: reader(array(2), protocols, Err("null".to_owned())),
            ports: (columns.len() == 5).then(|| [3, 4].map(port)),
        }
    }

    /// The flow of a row; otherwise the number of the wrong column, and its fault.
    pub(crate) fn flow(&self, row: usize) -> Result<Flow, (usize, String)> {
        let of_column = |at| move |what| (at, what);
        let ports = match &self.ports {
            None => None,
            Some([from, to]) => {
                match (from(row).map_err(of_column(3))?, to(row).map_err(of_column(4))?) {
                    (Some(from), Some(to)) => Some((from, to)),
                    (None, None) => None,
                    _ => return Err((3, "one port is null, and the other is not".to_owned())),
                }
            }
        };
        let [src, dst] = &self.ends;
        let five = FiveTuple {
            src: src(row).map_err(of_column(0))?,
            dst: dst(row).map_err(of_column(1))?,
            protocol: (self.protocol)(row).map_err(of_column(2))?,
            ports,
        };
        Flow::try_from(&five).map_err(|error| (1, error.to_string()))
    }
}

/// A reader of a column of cells, or of a dictionary of them. The values of a dictionary are read once, unless there
/// are more of them than rows.
fn reader<'a, T: Clone + 'a>(
    array: &'a dyn Array,
    of_cells: OfCells<'a, T>,
    null: Result<T, String>,
) -> Read<'a, T> {
    let nulls = array.logical_nulls();
    let is_null = move |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let Some(dictionary) = array.as_any_dictionary_opt() else {
        let read = of_cells(array);
        return Box::new(move |row| if is_null(row) { null.clone() } else { read(row) });
    };
    let values = dictionary.values().as_ref();
    if values.is_empty() {
        // Then all keys are null.
        return Box::new(move |_| null.clone());
    }
    let keys = dictionary.normalized_keys();
    let read = reader(values, of_cells, null.clone());
    if values.len() > array.len() {
        return Box::new(move |row| if is_null(row) { null.clone() } else { read(keys[row]) });
    }
    let values: Vec<Result<T, String>> = (0..values.len()).map(read).collect();
    Box::new(move |row| if is_null(row) { null.clone() } else { values[keys[row]].clone() })
}

/// The text of cells.
fn texts<'a>(array: &'a dyn Array) -> Option<Box<dyn Fn(usize) -> &'a str + 'a>> {
    Some(match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            Box::new(|row| array.value(row))
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            Box::new(|row| array.value(row))
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            Box::new(|row| array.value(row))
        }
        _ => return None,
    })
}

/// The bytes of cells.
fn bytes<'a>(array: &'a dyn Array) -> Option<Box<dyn Fn(usize) -> &'a [u8] + 'a>> {
    Some(match array.data_type() {
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            Box::new(|row| array.value(row))
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            Box::new(|row| array.value(row))
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            Box::new(|row| array.value(row))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            Box::new(|row| array.value(row))
        }
        _ => return None,
    })
}

/// The numbers of cells.
fn numbers<'a>(array: &'a dyn Array) -> Option<Box<dyn Fn(usize) -> i128 + 'a>> {
    macro_rules! of {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>().values();
            Box::new(|row| values[row].into())
        }};
    }
    Some(match array.data_type() {
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        _ => return None,
    })
}

fn other_type<'a, T>(array: &'a dyn Array, wanted: &'static str) -> Read<'a, T> {
    Box::new(move |_| Err(format!("it has {}, not {wanted}", array.data_type())))
}

/// Addresses: text, four or sixteen bytes, or IPv4 addresses as numbers.
fn addresses<'a>(array: &'a dyn Array) -> Read<'a, IpAddr> {
    fn wrong(what: impl Display) -> Result<IpAddr, String> {
        Err(what.to_string())
    }
    if let Some(text) = texts(array) {
        return Box::new(move |row| {
            let text = text(row);
            let trimmed = text.trim();
            match parse_v4(trimmed.as_bytes()) {
                Some(v4) => Ok(Ipv4Addr::from_bits(v4).into()),
                None => trimmed.parse().map_err(|_| format!("{text:?} is not an address")),
            }
        });
    }
    if let Some(number) = numbers(array) {
        return Box::new(move |row| match u32::try_from(number(row)) {
            Ok(v4) => Ok(Ipv4Addr::from_bits(v4).into()),
            Err(_) => wrong(format_args!("{} is not an IPv4 address", number(row))),
        });
    }
    let Some(bytes) = bytes(array) else { return other_type(array, "addresses") };
    let valid = (0..array.len()).filter(|row| array.is_valid(*row));
    // Cells of other lengths are faults of their rows.
    if let Ok(BytesForm::Text) = BytesForm::of(valid.map(&bytes)) {
        return Box::new(move |row| {
            let text = String::from_utf8_lossy(bytes(row));
            text.trim().parse().map_err(|_| format!("{text:?} is not an address"))
        });
    }
    Box::new(move |row| match *bytes(row) {
        [a, b, c, d] => Ok(Ipv4Addr::new(a, b, c, d).into()),
        ref bytes => match <[u8; 16]>::try_from(bytes) {
            Ok(bytes) => Ok(Ipv6Addr::from(bytes).into()),
            Err(_) => wrong(format_args!("an address of {} bytes, which has 4 or 16", bytes.len())),
        },
    })
}

/// Protocols: names or numbers.
fn protocols<'a>(array: &'a dyn Array) -> Read<'a, u8> {
    if let Some(text) = texts(array) {
        return Box::new(move |row| {
            let text = text(row);
            let wrong = || format!("{text:?} is no protocol: give its number");
            protocol(text.trim()).ok_or_else(wrong)
        });
    }
    let Some(number) = numbers(array) else { return other_type(array, "protocols") };
    let wrong = |_| "protocols are 0 to 255".to_owned();
    Box::new(move |row| u8::try_from(number(row)).map_err(wrong))
}

/// Ports. A column of nulls may have any type.
fn ports<'a>(array: &'a dyn Array) -> Read<'a, Option<u16>> {
    let Some(number) = numbers(array) else { return other_type(array, "ports") };
    let wrong = |_| "ports are 0 to 65535".to_owned();
    Box::new(move |row| u16::try_from(number(row)).map(Some).map_err(wrong))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, Int32Array, NullArray, StringArray, UInt8Array};
    use fibula_classify::Field;

    use super::*;

    /// A dictionary is read value by value or cell by cell; nulls may be among its keys or its values.
    #[test]
    fn dictionaries() {
        let values = |extra: usize| {
            let mut values = vec![Some("10.0.0.1"), None, Some("ten")];
            values.resize(3 + extra, Some("10.0.0.2"));
            Arc::new(StringArray::from(values)) as ArrayRef
        };
        for extra in [0, 100] {
            let keys = Int32Array::from(vec![Some(0), None, Some(1), Some(2), Some(0)]);
            let src = DictionaryArray::<Int32Type>::new(keys, values(extra));
            let dst: StringArray = vec!["10.0.0.9"; 5].into();
            let columns: [ArrayRef; 5] = [
                Arc::new(src),
                Arc::new(dst),
                Arc::new(UInt8Array::from(vec![6; 5])),
                Arc::new(NullArray::new(5)),
                Arc::new(NullArray::new(5)),
            ];
            let flows = FlowColumns::new(&columns);
            assert_eq!(flows.flow(4).unwrap().get(Field::Ipv4Src), 0x0a00_0001);
            for row in [1, 2] {
                assert_eq!(flows.flow(row).unwrap_err(), (0, "null".to_owned()));
            }
            assert_eq!(flows.flow(3).unwrap_err(), (0, "\"ten\" is not an address".to_owned()));
        }
        let none = DictionaryArray::<Int32Type>::new(
            Int32Array::from(vec![None::<i32>]),
            Arc::new(StringArray::from(Vec::<&str>::new())),
        );
        let address: ArrayRef = Arc::new(none);
        let columns = [Arc::clone(&address), address, Arc::new(UInt8Array::from(vec![6])) as _];
        assert_eq!(FlowColumns::new(&columns).flow(0).unwrap_err(), (0, "null".to_owned()));
    }
}
