//! Flows of each VRF are looked up in a table of its own.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::{DataType, FieldRef};
use fibula_annotate::AnnotateError;

use crate::FlowTable;
use crate::columns::ENDS;
use crate::table::{TIMES, Values};

/// The columns that say a flow's VRF: the number of the ingress, the name, the number of the egress.
const VRFS: [&str; 3] = ["input_vrf", "vrf_name", "output_vrf"];

/// The place of a table, or that there is none.
type Place = Option<usize>;

pub(crate) struct VrfTables {
    tables: Vec<Arc<FlowTable>>,
    /// For each table, where the columns that are added are among its own.
    places: Vec<Vec<Place>>,
    fields: Vec<FieldRef>,
    main: Place,
    names: HashMap<String, Place>,
    numbers: HashMap<u32, Place>,
}

/// Rows of a batch that are looked up in one table.
struct Group {
    table: Place,
    rows: Vec<u32>,
}

impl VrfTables {
    pub(crate) fn new(
        main: Option<Arc<FlowTable>>,
        vrfs: &[(String, Option<Arc<FlowTable>>)],
    ) -> Result<Self, AnnotateError> {
        let mut tables: Vec<Arc<FlowTable>> = Vec::new();
        // Several VRFs may have one table.
        let mut place = |table: &Option<Arc<FlowTable>>| {
            let table = table.as_ref()?;
            let known = tables.iter().position(|known| Arc::ptr_eq(known, table));
            Some(known.unwrap_or_else(|| {
                tables.push(Arc::clone(table));
                tables.len() - 1
            }))
        };
        let main = place(&main);
        let (mut names, mut numbers) = (HashMap::new(), HashMap::new());
        for (vrf, table) in vrfs {
            let place = place(table);
            names.insert(vrf.clone(), place);
            if let Ok(number) = vrf.parse() {
                numbers.insert(number, place);
            }
        }
        let fields = all_fields(&tables)?;
        let places = tables.iter().map(|table| {
            let own = table.added();
            let place = |field: &FieldRef| own.iter().position(|own| own.name() == field.name());
            fields.iter().map(place).collect()
        });
        Ok(Self { places: places.collect(), tables, fields, main, names, numbers })
    }

    /// The columns that are added.
    pub(crate) fn fields(&self) -> &[FieldRef] {
        &self.fields
    }

    /// The values for flows, in their order.
    pub(crate) fn values(&self, batch: &RecordBatch) -> Result<Values, AnnotateError> {
        let (groups, order) = self.groups(batch);
        let names = [&ENDS[..], &TIMES, &VRFS].concat();
        let needed = names.iter().filter_map(|name| batch.schema_ref().index_of(name).ok());
        let needed = batch.project(&needed.collect::<Vec<_>>())?;
        // For each group its values; nulls are a row of their own.
        let mut found = Vec::new();
        for group in groups {
            let Some(place) = group.table else {
                found.push(None);
                continue;
            };
            let rows = UInt32Array::from(group.rows);
            let part = arrow_select::take::take_record_batch(&needed, &rows)?;
            found.push(Some((place, self.tables[place].values(&part)?)));
        }
        let columns = self.fields.iter().enumerate().map(|(at, field)| {
            let parts = found.iter().map(|part| {
                let own = part.as_ref().and_then(|(place, values)| {
                    self.places[*place][at].map(|place| &values.columns[place])
                });
                match own {
                    Some(values) => arrow_cast::cast(values, field.data_type()),
                    None => Ok(new_null_array(field.data_type(), 1)),
                }
            });
            let parts = parts.collect::<Result<Vec<ArrayRef>, _>>()?;
            let arrays: Vec<&dyn Array> = parts.iter().map(|part| &**part).collect();
            let row = |&(group, row): &(usize, usize)| {
                let is_there = found[group]
                    .as_ref()
                    .is_some_and(|(place, _)| self.places[*place][at].is_some());
                (group, if is_there { row } else { 0 })
            };
            let rows: Vec<_> = order.iter().map(row).collect();
            Ok(arrow_select::interleave::interleave(&arrays, &rows)?)
        });
        let columns = columns.collect::<Result<_, AnnotateError>>()?;
        let matched = [0, 1].map(|end| {
            let of_row = |&(group, row): &(usize, usize)| {
                found[group].as_ref().and_then(|(_, values)| values.matched[end][row])
            };
            order.iter().map(of_row).collect()
        });
        Ok(Values { columns, matched })
    }

    /// The rows of each table that is needed, and for each row of the batch its group and its place there.
    fn groups(&self, batch: &RecordBatch) -> (Vec<Group>, Vec<(usize, usize)>) {
        let [input, name, output] = VRFS.map(|name| batch.column_by_name(name));
        let [input, output] = [input, output]
            .map(|column| column.and_then(|column| column.as_primitive_opt::<UInt32Type>()));
        let name = name.and_then(|name| name.as_string_opt::<i32>());
        let of_number = |column: Option<&UInt32Array>, row: usize| {
            let column = column.filter(|column| column.is_valid(row))?;
            self.numbers.get(&column.value(row)).copied()
        };
        let of_name = |row: usize| {
            let name = name.filter(|name| name.is_valid(row))?;
            self.names.get(name.value(row)).copied()
        };
        let (mut groups, mut order): (Vec<Group>, _) = (Vec::new(), Vec::new());
        for row in 0..batch.num_rows() {
            let table = of_number(input, row)
                .or_else(|| of_name(row))
                .or_else(|| of_number(output, row))
                .unwrap_or(self.main);
            let group = groups.iter().position(|group| group.table == table);
            let group = group.unwrap_or_else(|| {
                groups.push(Group { table, rows: Vec::new() });
                groups.len() - 1
            });
            order.push((group, groups[group].rows.len()));
            groups[group].rows.push(row as u32);
        }
        (groups, order)
    }
}

/// The columns of all tables, with plain values: those of the sources, then those of the destinations.
pub(crate) fn all_fields(tables: &[Arc<FlowTable>]) -> Result<Vec<FieldRef>, AnnotateError> {
    let mut fields: Vec<FieldRef> = Vec::new();
    for end in ENDS {
        let begin = format!("{end}_");
        for field in tables.iter().flat_map(|table| table.added()) {
            if !field.name().starts_with(&begin) {
                continue;
            }
            let field = plain(field);
            let Some(known) = fields.iter_mut().find(|known| known.name() == field.name()) else {
                fields.push(field);
                continue;
            };
            let [ours, theirs] = [known.data_type(), field.data_type()];
            if ours == theirs {
                continue;
            }
            // Integers are as wide as the largest one of their table.
            if !(ours.is_unsigned_integer() && theirs.is_unsigned_integer()) {
                let name = field.name();
                let what = format!("two tables of flows have {name} as {ours} and as {theirs}");
                return Err(AnnotateError::File { what });
            }
            if theirs.primitive_width() > ours.primitive_width() {
                *known = field;
            }
        }
    }
    Ok(fields)
}

/// A field with plain values instead of a dictionary, which is each table's own.
fn plain(field: &FieldRef) -> FieldRef {
    match field.data_type() {
        DataType::Dictionary(_, values) => {
            Arc::new(field.as_ref().clone().with_data_type(values.as_ref().clone()))
        }
        _ => Arc::clone(field),
    }
}
