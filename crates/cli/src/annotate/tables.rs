//! The tables that rows are looked up in: one table, or the tables of several dates.

use std::sync::Arc;

use fibula_annotate::{AnnotateError, AnnotateOptions, Annotator, ColumnAnnotator, LogFormat};
use fibula_fib::{Columns, DatedFib, EngineChoice, Fib, FibError, FibOptions};
use fibula_offload::OnDevice;

use super::{Args, device};
use crate::config;
use crate::failure::Failure;
use crate::layer;
use crate::rpki::RpkiArgs;
use crate::source::{self, ReadArgs, Source};
use crate::table;

/// One table, or the tables of several dates.
pub enum Tables {
    One(Fib),
    Dated(DatedFib),
    OnDevice(Arc<OnDevice>),
}

/// The tables that a command line names.
pub struct Named<'a> {
    pub table: &'a [String],
    pub layer: &'a [String],
    pub rpki: &'a RpkiArgs,
    pub read: &'a ReadArgs,
    /// Whether the table has several dates, all of which are used.
    pub is_dated: bool,
}

impl Named<'_> {
    /// Opens them, on the CPU.
    pub fn open(&self, options: FibOptions) -> Result<Tables, Failure> {
        if self.is_dated {
            return self.of_dates(options);
        }
        if self.rpki.is_requested() {
            let table = self.rpki.load(&config::tables(self.table)?, self.read)?;
            return Ok(Tables::One(Fib::of_table(table, &options)?));
        }
        if self.layer.is_empty() {
            return Ok(Tables::One(table::open(&self.sources()?, self.read, &options)?));
        }
        let layers = layer::load(&layer::parse(self.layer, self.read)?, self.read)?;
        Ok(Tables::One(Fib::of_table(layers.table, &options)?))
    }

    /// All tables, those of layers one after the other.
    pub fn sources(&self) -> Result<Vec<(String, Source)>, Failure> {
        match self.layer {
            [] => source::tables(self.table, self.read),
            layers => layer::sources(layers, self.read),
        }
    }

    fn of_dates(&self, options: FibOptions) -> Result<Tables, Failure> {
        const WRITES: &str = "fibula build --as-of FILES -o year.fib writes one";
        let sources = source::tables(self.table, self.read)?;
        if let Some(fib) = table::open_dated(&sources, &options.loading(self.read.load))? {
            return Ok(Tables::Dated(fib));
        }
        match &*sources {
            [(name, _)] => Err(Failure::new(format_args!(
                "--time needs a file of several dates, and {name} is one table"
            ))
            .hint(WRITES)),
            _ => Err(Failure::new("--time needs one file of several dates, not several tables")
                .hint(WRITES)),
        }
    }
}

impl Tables {
    /// Opens the tables of the command line, with their stored engines, or with `auto` if they have none.
    pub fn open(args: &Args) -> Result<Self, Failure> {
        let device = args.device.as_deref().map(device::open).transpose()?;
        let choices = match device {
            Some(_) => fibula_offload::choices(),
            None => vec![EngineChoice::Stored, EngineChoice::Auto],
        };
        let reads_input = args.inputs.iter().any(|input| input.as_os_str() == "-");
        args.rpki.check(reads_input, &args.layer)?;
        let named = Named {
            table: &args.table,
            layer: &args.layer,
            rpki: &args.rpki,
            read: &args.read.read(),
            is_dated: args.time.is_some(),
        };
        let tables = named.open(crate::engines::options(choices))?;
        match (tables, device) {
            (Self::One(fib), Some(device)) => {
                let table = OnDevice::new(fib, device)?;
                if !args.quiet && !args.json {
                    device::print(&table);
                }
                Ok(Self::OnDevice(Arc::new(table)))
            }
            (tables, _) => Ok(tables),
        }
    }

    /// The value columns.
    pub fn columns(&self) -> &Columns {
        match self {
            Self::One(fib) => fib.columns(),
            Self::Dated(fib) => fib.columns(),
            Self::OnDevice(table) => table.fib().columns(),
        }
    }

    /// Annotates rows of this format.
    pub fn annotator(
        &self,
        format: LogFormat,
        options: &AnnotateOptions,
    ) -> Result<Annotator, AnnotateError> {
        match self {
            Self::One(fib) => Annotator::new(fib.clone(), format, options),
            Self::Dated(fib) => Annotator::new(fib.clone(), format, options),
            Self::OnDevice(table) => Annotator::new(table.clone(), format, options),
        }
    }

    /// Annotates columns.
    pub fn column_annotator(
        &self,
        options: &AnnotateOptions,
    ) -> Result<ColumnAnnotator, AnnotateError> {
        match self {
            Self::One(fib) => ColumnAnnotator::new(fib.clone(), options),
            Self::Dated(fib) => ColumnAnnotator::new(fib.clone(), options),
            Self::OnDevice(table) => ColumnAnnotator::new(table.clone(), options),
        }
    }

    /// The dates, for a file of several dates.
    pub fn dated(&self) -> Option<&DatedFib> {
        match self {
            Self::Dated(fib) => Some(fib),
            Self::One(_) | Self::OnDevice(_) => None,
        }
    }

    /// The table on a device.
    pub fn on_device(&self) -> Option<&OnDevice> {
        match self {
            Self::OnDevice(table) => Some(table),
            Self::One(_) | Self::Dated(_) => None,
        }
    }

    /// Fails if a program wrote into a mapped file meanwhile.
    pub fn unchanged(&self) -> Result<(), FibError> {
        match self {
            Self::One(fib) => fib.unchanged(),
            Self::Dated(fib) => Ok(fib.snapshot().unchanged()?),
            Self::OnDevice(table) => table.fib().unchanged(),
        }
    }
}
