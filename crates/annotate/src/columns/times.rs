//! Reads columns of times.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};
use fibula_fib::{Dates, Moment, TimeFormat};

use super::keys;
use crate::AnnotateError;

/// The times of a column.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// For each row, the number of the table that was valid at its time.
    pub(super) dates: Vec<u16>,
    /// Rows before the first table.
    pub(super) before: u64,
    /// Rows without a time.
    pub(super) untimed: u64,
    /// The first time that cannot be read.
    pub(super) first_unreadable: Option<(usize, String)>,
}

/// Seconds in a day.
const DAY: i64 = 86_400;

impl Times {
    /// Reads a column: timestamps of any unit, with a zone or without one (UTC), dates, text, numbers, and
    /// dictionaries of these.
    ///
    /// # Errors
    /// If columns of this type cannot contain times.
    pub(super) fn new(
        array: &dyn Array,
        dates: &Dates,
        format: TimeFormat,
    ) -> Result<Self, AnnotateError> {
        let mut times = Self { dates: Vec::with_capacity(array.len()), ..Self::default() };
        for (row, time) in moments(array, format)?.into_iter().enumerate() {
            let date = time.map_or(Dates::NONE, |time| dates.number(time));
            times.dates.push(date);
            if date != Dates::NONE {
                continue;
            }
            if time.is_some() {
                times.before += 1;
                continue;
            }
            times.untimed += 1;
            if times.first_unreadable.is_none() {
                // Nulls and empty text are not invalid times.
                let is_null = keys::is_null(array, row);
                let text = if is_null { String::new() } else { keys::text(array, row) };
                times.first_unreadable =
                    Some((row, text)).filter(|(_, text)| !text.trim().is_empty());
            }
        }
        Ok(times)
    }
}

/// The times of all rows.
fn moments(array: &dyn Array, format: TimeFormat) -> Result<Vec<Option<Moment>>, AnnotateError> {
    /// The times of an array of numbers; `None` for nulls.
    fn numbers<T: ArrowPrimitiveType>(
        array: &dyn Array,
        moment: impl Fn(T::Native) -> Option<Moment>,
    ) -> Vec<Option<Moment>> {
        array.as_primitive::<T>().iter().map(|value| value.and_then(&moment)).collect()
    }
    let unit = |per: i64| move |value: i64| Some(Moment::from_unix(value.div_euclid(per)));
    let text = |value: Option<&str>| value.and_then(|text| format.parse(text.as_bytes()));
    Ok(match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => numbers::<TimestampSecondType>(array, unit(1)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            numbers::<TimestampMillisecondType>(array, unit(1_000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            numbers::<TimestampMicrosecondType>(array, unit(1_000_000))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            numbers::<TimestampNanosecondType>(array, unit(1_000_000_000))
        }
        DataType::Date64 => numbers::<Date64Type>(array, unit(1_000)),
        DataType::Date32 => {
            let day = |days| Some(Moment::from_unix(i64::from(days) * DAY));
            numbers::<Date32Type>(array, day)
        }
        DataType::Int64 => numbers::<Int64Type>(array, |number| format.number(number)),
        DataType::Int32 => numbers::<Int32Type>(array, |number| format.number(number.into())),
        DataType::UInt32 => numbers::<UInt32Type>(array, |number| format.number(number.into())),
        DataType::UInt64 => {
            let moment = |number| format.number(i64::try_from(number).ok()?);
            numbers::<UInt64Type>(array, moment)
        }
        DataType::Float64 => numbers::<Float64Type>(array, |number| format.fraction(number)),
        DataType::Utf8 => array.as_string::<i32>().iter().map(text).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(text).collect(),
        DataType::Utf8View => array.as_string_view().iter().map(text).collect(),
        DataType::Null => vec![None; array.len()],
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = moments(dictionary.values(), format)?;
            if values.is_empty() {
                return Ok(vec![None; array.len()]); // all keys are null then
            }
            let keys = dictionary.normalized_keys().into_iter().enumerate();
            let is_null = |row| dictionary.keys().is_null(row);
            keys.map(|(row, key)| if is_null(row) { None } else { values[key] }).collect()
        }
        kind => return Err(AnnotateError::TimeType { kind: kind.to_string() }),
    })
}

/// Checks that columns of this type can contain times.
///
/// # Errors
/// [`AnnotateError::TimeType`].
pub(crate) fn check_type(kind: &DataType) -> Result<(), AnnotateError> {
    moments(&arrow_array::new_empty_array(kind), TimeFormat::Auto).map(|_| ())
}
