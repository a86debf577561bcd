//! Reads tables from sources by name: files in any format of `fibula_ingest`, snapshots, generated tables and the
//! embedded one. Several sources are merged into one table.
//!
//! The command line and the bindings share this code.
//!
//! ```
//! use fibula::sources::{Merge, Settings, Silent, Source};
//!
//! let mut merge = Merge::new(Settings::default());
//! merge.add("gen:v4:2014:1000:1", &Source::parse("gen:v4:2014:1000:1")?, &mut Silent)?;
//! let table = merge.finish()?;
//! assert_eq!((table.v4.len(), table.columns.names().next()), (1000, Some("hop")));
//! # Ok::<(), fibula::sources::SourceError>(())
//! ```

mod build;
mod columnar;
mod dates;
mod dates_error;
mod embedded;
mod error;
mod load;
mod merge;
mod source;
mod watched;

pub use build::{BuildReport, SourceSummary, TableSources, build, open};
pub use columnar::reader as columnar_reader;
pub use dates::{DatedSource, DatedSources, ReadDates, WatchDates};
pub use dates_error::DatesError;
pub use embedded::{NAME as EMBEDDED, embedded};
pub use error::SourceError;
pub use load::{Loaded, load};
pub use merge::{
    DEFAULT_HOPS, Merge, SHOWN, Settings, Silent, Watch, generated, nested_tags, open_snapshot,
    row, snapshot_table,
};
pub use source::{Source, parse_peer};
pub use watched::WatchedSources;
