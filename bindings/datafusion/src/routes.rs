//! `fibula_table('x.fib')`: the routes of a table as rows.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion_catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion_common::arrow::array::{ArrayRef, RecordBatch, StringBuilder, UInt64Builder};
use datafusion_common::arrow::compute::cast;
use datafusion_common::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{Expr, TableType};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::memory::{LazyBatchGenerator, LazyMemoryExec};
use fibula_annotate::PreparedTable;
use fibula_core::{ColumnKind, ScalarType, Value};
use fibula_fib::Fib;
use parking_lot::RwLock;

use crate::answer::plan;
use crate::names::text;
use crate::open;

/// The function.
#[derive(Debug)]
pub struct TableOfRoutes;

impl TableFunctionImpl for TableOfRoutes {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let name = match args.exprs() {
            [Expr::Literal(name, _)] if name.is_null() => {
                return Err(plan("the path of a table is missing"));
            }
            [Expr::Literal(name, _)] => text(name),
            _ => None,
        };
        let name =
            name.ok_or_else(|| plan("fibula_table takes the path of a table, as a constant text"))?;
        Ok(Arc::new(Routes(open(name)?)))
    }
}

/// The routes of a table.
#[derive(Clone, Debug)]
struct Routes(Arc<PreparedTable<Fib>>);

#[async_trait]
impl TableProvider for Routes {
    fn schema(&self) -> SchemaRef {
        let columns = self.0.fib.columns();
        let names = columns.names_beside(&["prefix"]);
        let of_table = names.into_iter().enumerate().map(|(at, name)| {
            let of = match (columns.kind(at), columns.scalar_type(at)) {
                (ColumnKind::Int, _) => DataType::UInt64,
                (_, Some(ScalarType::Double)) => DataType::Float64,
                (_, Some(ScalarType::Bool)) => DataType::Boolean,
                (ColumnKind::Str, _) => DataType::Utf8,
            };
            Field::new(name, of, true)
        });
        let prefix = Field::new("prefix", DataType::Utf8, false);
        Arc::new(Schema::new([prefix].into_iter().chain(of_table).collect::<Vec<_>>()))
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = session.config_options().execution.batch_size.get();
        let batches = Batches { routes: self.clone(), schema: self.schema(), rows, next: 0 };
        let scan = LazyMemoryExec::try_new(self.schema(), vec![Arc::new(RwLock::new(batches))])?;
        Ok(Arc::new(scan.with_projection(projection.cloned())))
    }
}

/// The rows, made when they are asked for.
#[derive(Clone, Debug)]
struct Batches {
    routes: Routes,
    schema: SchemaRef,
    /// Of a batch.
    rows: usize,
    next: usize,
}

impl fmt::Display for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fibula_table: routes={}", self.routes.0.fib.len())
    }
}

impl LazyBatchGenerator for Batches {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn generate_next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let fib = &self.routes.0.fib;
        let (begin, end) = (self.next, fib.len().min(self.next + self.rows));
        if begin == end {
            return Ok(None);
        }
        let routes = fib.routes_between(begin..end);
        let routes =
            routes.map_err(|error| DataFusionError::Execution(format!("fibula: {error}")))?;
        let (mut prefixes, mut hops) = (StringBuilder::new(), Vec::with_capacity(end - begin));
        for route in routes {
            prefixes.append_value(route.prefix().map(|of| of.to_string()).unwrap_or_default());
            hops.push(route.hop().index());
        }
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(prefixes.finish())];
        for (column, field) in self.schema.fields().iter().skip(1).enumerate() {
            arrays.push(cast(&values(fib, column, &hops), field.data_type())?);
        }
        self.next = end;
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?))
    }

    fn reset_state(&self) -> Arc<RwLock<dyn LazyBatchGenerator>> {
        Arc::new(RwLock::new(Self { next: 0, ..self.clone() }))
    }
}

/// The values of a column in these rows of the table's columns, as the table has them: integers or text.
fn values(fib: &Fib, column: usize, rows: &[Option<u32>]) -> ArrayRef {
    let columns = fib.columns();
    let values = rows.iter().map(|row| row.map_or(Value::Null, |row| columns.value(column, row)));
    match columns.kind(column) {
        ColumnKind::Int => {
            let mut numbers = UInt64Builder::with_capacity(rows.len());
            for value in values {
                numbers.append_option(if let Value::Int(number) = value {
                    Some(number)
                } else {
                    None
                });
            }
            Arc::new(numbers.finish())
        }
        ColumnKind::Str => {
            let mut texts = StringBuilder::new();
            for value in values {
                texts.append_option(if let Value::Str(text) = value { Some(text) } else { None });
            }
            Arc::new(texts.finish())
        }
    }
}
