//! Columns of lists of addresses. The added columns are lists too, with a value for each address.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeListArray, ListArray, OffsetSizeTrait};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef};

/// The addresses of all lists in one array, and the end of each list.
pub(super) struct Listed {
    pub(super) values: ArrayRef,
    ends: Ends,
    nulls: Option<NullBuffer>,
}

enum Ends {
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
}

/// The type of the items, if `kind` is a list type.
pub(super) fn item(kind: &DataType) -> Option<&DataType> {
    match kind {
        DataType::List(item) | DataType::LargeList(item) => Some(item.data_type()),
        _ => None,
    }
}

/// The field of a column that is added for an address column of type `kind`; `field` is the one for single addresses.
pub(super) fn field(kind: &DataType, field: &FieldRef) -> FieldRef {
    let item = || Arc::new(Field::new_list_field(field.data_type().clone(), true));
    match kind {
        DataType::List(_) => Arc::new(Field::new(field.name(), DataType::List(item()), true)),
        DataType::LargeList(_) => {
            Arc::new(Field::new(field.name(), DataType::LargeList(item()), true))
        }
        _ => Arc::clone(field),
    }
}

impl Listed {
    /// `None` if the column has no lists.
    pub(super) fn new(array: &dyn Array) -> Option<Self> {
        /// The values in use, and offsets that count from the first of them.
        fn parts<O: OffsetSizeTrait>(
            offsets: &OffsetBuffer<O>,
            values: &ArrayRef,
        ) -> (OffsetBuffer<O>, ArrayRef) {
            let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
            let moved = offsets.iter().map(|&offset| offset - first).collect::<Vec<_>>();
            let values = values.slice(first.as_usize(), (last - first).as_usize());
            (OffsetBuffer::new(moved.into()), values)
        }
        let (values, ends) = match array.data_type() {
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                let (ends, values) = parts(lists.offsets(), lists.values());
                (values, Ends::Small(ends))
            }
            DataType::LargeList(_) => {
                let lists = array.as_list::<i64>();
                let (ends, values) = parts(lists.offsets(), lists.values());
                (values, Ends::Large(ends))
            }
            _ => return None,
        };
        Some(Self { values, ends, nulls: array.nulls().cloned() })
    }

    /// The row of an address.
    pub(super) fn row(&self, value: usize) -> usize {
        fn row<O: OffsetSizeTrait>(ends: &OffsetBuffer<O>, value: usize) -> usize {
            ends.partition_point(|end| end.as_usize() <= value).saturating_sub(1)
        }
        match &self.ends {
            Ends::Small(ends) => row(ends, value),
            Ends::Large(ends) => row(ends, value),
        }
    }

    /// Converts an added column with a value for each address to a column of lists.
    pub(super) fn lists(&self, column: ArrayRef) -> ArrayRef {
        let item = Arc::new(Field::new_list_field(column.data_type().clone(), true));
        let nulls = self.nulls.clone();
        match &self.ends {
            Ends::Small(ends) => Arc::new(ListArray::new(item, ends.clone(), column, nulls)),
            Ends::Large(ends) => Arc::new(LargeListArray::new(item, ends.clone(), column, nulls)),
        }
    }
}
