//! The tables in which flows are looked up.

use std::sync::Arc;

use fibula_annotate::AnnotateOptions;
use fibula_collect::{CollectError, FlowFormat, FlowTable};
use fibula_fib::{EngineChoice, Fib};

use super::Args;
use crate::annotate::tables::Tables;
use crate::failure::Failure;
use crate::{source, table};

/// The table that is used, and what it is made from.
pub struct Opened {
    pub prepared: Arc<FlowTable>,
    /// The main table, those of VRFs, the own ones.
    tables: Vec<Tables>,
}

impl Opened {
    pub fn new(args: &Args) -> Result<Self, Failure> {
        let engines = || crate::engines::options([EngineChoice::Stored, EngineChoice::Auto]);
        let read = args.read.read();
        let mut tables = vec![args.tables(&read).open(engines())?];
        let (vrfs, own) = (args.vrfs()?, args.own());
        for names in vrfs.iter().map(|(_, names)| names).chain(&own) {
            let sources = source::tables(names, &read)?;
            tables.push(Tables::One(table::open(&sources, &read, &engines())?));
        }
        let options = args.annotate();
        if let [main] = &tables[..] {
            let prepared = prepare(main, &options, args.format())?;
            return Ok(Self { prepared: Arc::new(prepared), tables });
        }
        let is_known = |name: &&String| tables.iter().any(|table| has(table, name));
        if let Some(name) = options.add.iter().find(|name| !is_known(name)) {
            return Err(Failure::new(format_args!("no table has the value column {name:?}"))
                .hint("--add takes prefix and the value columns of the tables"));
        }
        let first_own = 1 + vrfs.len();
        // An own table's default would win over the values of the tables after it.
        let has_later = |at: usize, name: &str| {
            let later = tables.iter().skip(at + 1).chain(&tables[..first_own]);
            at >= first_own && later.into_iter().any(|table| has(table, name))
        };
        // Each table adds what it has.
        let prepared = tables.iter().enumerate().map(|(at, table)| {
            let mut its = options.clone();
            its.add.retain(|name| has(table, name));
            its.defaults.retain(|(name, _)| has(table, name) && !has_later(at, name));
            match its.add.is_empty() && !options.add.is_empty() {
                true => Ok(None),
                false => Ok(Some(Arc::new(prepare(table, &its, args.format())?))),
            }
        });
        let mut prepared = prepared.collect::<Result<Vec<_>, Failure>>()?.into_iter();
        let mut table = prepared.next().flatten();
        let vrfs: Vec<_> = vrfs
            .into_iter()
            .map(|(name, _)| name)
            .zip(prepared.by_ref().take(first_own - 1))
            .collect();
        if !vrfs.is_empty() {
            table = Some(Arc::new(FlowTable::by_vrf(table, &vrfs).map_err(CollectError::from)?));
        }
        let own: Vec<_> = prepared.flatten().collect();
        let prepared = match table {
            Some(table) if own.is_empty() => table,
            table => Arc::new(FlowTable::with_own(&own, table).map_err(CollectError::from)?),
        };
        Ok(Self { prepared, tables })
    }

    /// Fails if a program wrote into a mapped file meanwhile.
    pub fn unchanged(&self) -> Result<(), Failure> {
        Ok(self.tables.iter().try_for_each(Tables::unchanged)?)
    }
}

/// Whether a table has a value of this name.
fn has(table: &Tables, name: &str) -> bool {
    matches!(name, "prefix" | "covering") || table.columns().names().any(|own| own == name)
}

/// Prepares the values of a table.
fn prepare(
    table: &Tables,
    options: &AnnotateOptions,
    format: FlowFormat,
) -> Result<FlowTable, Failure> {
    let prepared = match table {
        Tables::One(fib) => FlowTable::new(Fib::clone(fib), options, format),
        Tables::Dated(fib) => FlowTable::new(fib.clone(), options, format),
        Tables::OnDevice(_) => return Err(Failure::new("flows are looked up on the CPU")),
    };
    Ok(prepared.map_err(CollectError::from)?)
}
