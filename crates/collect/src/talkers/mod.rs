//! The top talkers of the last minutes: which values of a column have most bytes.

mod heavy;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType};
use hashbrown::HashMap;

use crate::receive::now;
use heavy::{Heavy, Value};

pub use heavy::FlowSums;

/// A minute, in microseconds.
const MINUTE: u64 = 60_000_000;
/// Values of a column that are kept of a minute, and the bytes of a value. A longer one is cut.
const VALUES: usize = 2048;
const LONGEST: usize = 128;

/// Counts the flows of the last half hour by the values of some columns, minute by minute. [`CollectOptions`] has one;
/// who else holds it may ask it at any time.
///
/// Memory is bounded: of each column and minute, at most 2,048 values are kept. When there are more, those with the
/// fewest bytes are forgotten, and each answer says how much may be missing of a value.
///
/// [`CollectOptions`]: crate::CollectOptions
pub struct Talkers {
    columns: Vec<String>,
    values: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Which of the columns flows have had.
    seen: Vec<bool>,
    /// The minutes with flows, in order.
    minutes: VecDeque<Minute>,
}

struct Minute {
    /// Minutes since 1970.
    number: u64,
    all: FlowSums,
    columns: Vec<Heavy>,
}

/// The values of a column with most bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopTalkers {
    /// When the first of the minutes began, and when the last one ended or will end, in seconds since 1970.
    pub seconds: [u64; 2],
    /// All flows of these minutes.
    pub all: FlowSums,
    /// The values, most bytes first.
    pub top: Vec<Talker>,
}

/// A value of a column, with its flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Talker {
    /// The value as text; `None` for flows without one, such as those that no route covers.
    pub value: Option<String>,
    /// Its flows.
    pub sums: FlowSums,
    /// How many bytes more it may have had: 0 if it was never forgotten.
    pub missed: u64,
}

impl Talkers {
    /// The longest time that can be asked for, in minutes.
    pub const MINUTES: u64 = 30;
    /// The maximum number of columns.
    pub const COLUMNS: usize = 8;

    /// Counts by these columns of written flows, such as `src_prefix`; by the first eight, if there are more.
    #[must_use]
    pub fn new(columns: impl IntoIterator<Item = String>) -> Self {
        Self::with_limit(columns, VALUES)
    }

    fn with_limit(columns: impl IntoIterator<Item = String>, values: usize) -> Self {
        let columns: Vec<_> = columns.into_iter().take(Self::COLUMNS).collect();
        let state = State { seen: vec![false; columns.len()], minutes: VecDeque::new() };
        Self { columns, values, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is added is added as a whole, or is a count more or less.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The columns that flows have had so far, of those that are counted.
    #[must_use]
    pub fn columns(&self) -> Vec<&str> {
        let state = self.state();
        let all = self.columns.iter().zip(&state.seen);
        all.filter_map(|(name, seen)| seen.then_some(name.as_str())).collect()
    }

    /// The values of a column with most bytes in the last `minutes` (1 to 30), the one that runs included; `None` if
    /// flows have no such column, or it is not counted. Takes up to some milliseconds, in which no flows are counted.
    #[must_use]
    pub fn top(&self, column: &str, minutes: u64, limit: usize) -> Option<TopTalkers> {
        self.top_at(column, minutes, limit, now())
    }

    fn top_at(&self, column: &str, minutes: u64, limit: usize, now: u64) -> Option<TopTalkers> {
        let place = self.columns.iter().position(|name| name == column)?;
        let minutes = minutes.clamp(1, Self::MINUTES);
        let end = now / MINUTE + 1;
        let begin = end.saturating_sub(minutes);
        let state = self.state();
        if !state.seen[place] {
            return None;
        }
        let mut all = FlowSums::default();
        let mut values = HashMap::<&Value, Talker>::new();
        let mut missed = 0;
        let asked = state.minutes.iter().filter(|minute| (begin..end).contains(&minute.number));
        for minute in asked {
            all.add(minute.all);
            let heavy = &minute.columns[place];
            missed += heavy.missed();
            for (value, held) in heavy.values() {
                let sum = values.entry(value).or_insert_with(|| Talker {
                    value: None,
                    sums: FlowSums::default(),
                    missed: 0,
                });
                sum.sums.add(held.sums);
                // Less than what is missing of a value that is not there.
                sum.missed += heavy.missed() - held.missed;
            }
        }
        let mut top: Vec<_> = values.into_iter().collect();
        // Values with as many bytes are in the order of their text, so that answers do not change without a reason.
        top.sort_unstable_by(|(a, left), (b, right)| {
            right.sums.bytes.cmp(&left.sums.bytes).then_with(|| a.cmp(b))
        });
        top.truncate(limit);
        let named = |(value, talker): (&Value, Talker)| Talker {
            value: value.as_deref().map(str::to_owned),
            missed: missed - talker.missed,
            ..talker
        };
        let top = top.into_iter().map(named).collect();
        Some(TopTalkers { seconds: [begin * 60, end * 60], all, top })
    }

    /// Counts a batch of flows, received at this time in microseconds since 1970.
    pub(crate) fn add(&self, batch: &RecordBatch, time: u64) -> Result<(), ArrowError> {
        let sums = sums(batch);
        let mut all = FlowSums::default();
        sums.iter().for_each(|&sum| all.add(sum));
        // Summed up before the lock is taken.
        let columns = self.columns.iter().map(|name| {
            let column = batch.column_by_name(name);
            column.map(|column| by_value(column, &sums)).transpose()
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let mut state = self.state();
        let State { seen, minutes } = &mut *state;
        let Some(minute) = self.minute(minutes, time / MINUTE) else { return Ok(()) };
        minute.all.add(all);
        for ((values, seen), heavy) in columns.into_iter().zip(seen).zip(&mut minute.columns) {
            for (value, sums) in values.into_iter().flatten() {
                heavy.add(value.as_deref(), sums);
                *seen = true;
            }
        }
        Ok(())
    }

    /// The counts of a minute, which is added if it is not there. Older ones are dropped when it is the newest.
    fn minute<'a>(&self, minutes: &'a mut VecDeque<Minute>, number: u64) -> Option<&'a mut Minute> {
        let newest = minutes.back().map_or(0, |minute| minute.number);
        if number + Self::MINUTES < newest {
            // Batches are never that late: the clock was set back.
            minutes.clear();
        }
        let place = match minutes.binary_search_by_key(&number, |minute| minute.number) {
            Ok(place) => place,
            Err(place) => {
                let columns = self.columns.iter().map(|_| Heavy::new(self.values)).collect();
                minutes.insert(place, Minute { number, all: FlowSums::default(), columns });
                place
            }
        };
        let newest = minutes.back().map_or(0, |minute| minute.number);
        let old = minutes.iter().take_while(|at| at.number + Self::MINUTES <= newest).count();
        minutes.drain(..old);
        // `None` for the one minute that was just too old.
        minutes.get_mut(place.checked_sub(old)?)
    }
}

impl fmt::Debug for Talkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Talkers").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// What each flow of a batch counts.
fn sums(batch: &RecordBatch) -> Vec<FlowSums> {
    let numbers =
        |name| batch.column_by_name(name).map(|column| column.as_primitive::<UInt64Type>());
    let (bytes, packets) = (numbers("bytes"), numbers("packets"));
    let rates = batch.column_by_name("sampling").map(|column| column.as_primitive::<UInt32Type>());
    let sum = |row| {
        // Null and zero say that the exporter does not sample, or does not say so.
        let rate = rates.map_or(0, |rates| if rates.is_valid(row) { rates.value(row) } else { 0 });
        let scaled = |numbers: Option<&arrow_array::UInt64Array>| {
            let number = numbers.filter(|numbers| numbers.is_valid(row));
            number.map_or(0, |numbers| numbers.value(row).saturating_mul(u64::from(rate.max(1))))
        };
        FlowSums { bytes: scaled(bytes), packets: scaled(packets), flows: 1 }
    };
    (0..batch.num_rows()).map(sum).collect()
}

/// The sums of each value of a column.
fn by_value(column: &ArrayRef, sums: &[FlowSums]) -> Result<Vec<(Value, FlowSums)>, ArrowError> {
    if let Some(dictionary) = column.as_dictionary_opt::<Int32Type>() {
        // Compared by number: only the values that occur are made into text.
        let keys = dictionary.keys();
        let counted = counted(sums, |row| keys.is_valid(row).then(|| keys.value(row)));
        return texts(
            dictionary.values(),
            counted.into_iter().map(|(key, sums)| (key.map(|key| key as usize), sums)),
        );
    }
    match column.data_type() {
        DataType::Utf8 => {
            let column = column.as_string::<i32>();
            let counted = counted(sums, |row| column.is_valid(row).then(|| column.value(row)));
            Ok(counted.into_iter().map(|(value, sums)| (value.map(cut), sums)).collect())
        }
        DataType::UInt32 => {
            let column = column.as_primitive::<UInt32Type>();
            let counted = counted(sums, |row| column.is_valid(row).then(|| column.value(row)));
            let text = |number: u32| number.to_string().into_boxed_str();
            Ok(counted.into_iter().map(|(value, sums)| (value.map(text), sums)).collect())
        }
        // Lists, other numbers, times: rare, so each row is made into text.
        _ => {
            let rows = sums.iter().enumerate();
            texts(column, rows.map(|(row, &sums)| (column.is_valid(row).then_some(row), sums)))
        }
    }
}

/// The sums of equal keys. Flows next to each other often have the same one.
fn counted<K: Copy + Eq + std::hash::Hash>(
    sums: &[FlowSums],
    key: impl Fn(usize) -> Option<K>,
) -> HashMap<Option<K>, FlowSums> {
    let mut counted = HashMap::<Option<K>, FlowSums>::new();
    for (row, &sum) in sums.iter().enumerate() {
        counted.entry(key(row)).or_default().add(sum);
    }
    counted
}

/// The values at these places as text.
fn texts(
    values: &ArrayRef,
    places: impl Iterator<Item = (Option<usize>, FlowSums)>,
) -> Result<Vec<(Value, FlowSums)>, ArrowError> {
    let options = FormatOptions::default();
    let format = ArrayFormatter::try_new(values, &options)?;
    places
        .map(|(place, sums)| {
            let text = place.map(|place| format.value(place).try_to_string()).transpose()?;
            Ok((text.as_deref().map(cut), sums))
        })
        .collect()
}

/// A value of bounded length. One that is cut ends with an ellipsis.
fn cut(text: &str) -> Box<str> {
    if text.len() <= LONGEST {
        return text.into();
    }
    format!("{}…", &text[..text.floor_char_boundary(LONGEST - '…'.len_utf8())]).into()
}

#[cfg(test)]
mod tests;
