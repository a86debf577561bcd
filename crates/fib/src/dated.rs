//! The open tables of several dates.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use fibula_core::{Addr, AnyPrefix, Hop, PerFamily};
use fibula_rib::dated::prefix_of;
use fibula_rib::{Columns, DatedSnapshot, Dates, IndexedRoutes, Pod, Table, Timelines};

use crate::open_family::{OpenFamilies, OpenFamily};
use crate::policy::{Material, choose};
use crate::{FibError, FibOptions, Match};

/// The open tables of several dates, which `fibula build --as-of` writes into one file.
///
/// An engine over the prefixes of all dates finds the [`Timelines`] of an address. They give the row at a date, with
/// the values of the longest prefix that covered the address then. A clone is another reference to the same tables.
///
/// ```
/// use fibula_core::{Hop, Prefix, Routes};
/// use fibula_fib::{DatedFib, FibOptions};
/// use fibula_rib::{DatedBuilder, DatedSnapshot, EnginePart, Moment, Table};
/// # let table = |hop| {
/// #     let v4: Routes<u32> = [(Prefix::ALL, Hop::new(hop))].into_iter().collect();
/// #     Table::from_routes(v4, Routes::default())
/// # };
/// # let mut builder = DatedBuilder::default();
/// # builder.add("2024-05-01".parse()?, "may", &table(0))?;
/// # builder.add("2024-06-01".parse()?, "june", &table(7))?;
/// # let bytes = builder.finish()?.to_bytes(&EnginePart::none(), &EnginePart::none())?;
/// let fib = DatedFib::of_snapshot(DatedSnapshot::from_bytes(bytes)?, &FibOptions::default())?;
/// let found = fib.lookup("192.0.2.1".parse()?, "2024-05-20".parse()?).ok_or("no route")?;
/// assert_eq!(found.to_string(), "0.0.0.0/0 hop=0");
/// assert!(fib.lookup("192.0.2.1".parse()?, "2024-04-30T23:59:59Z".parse()?).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct DatedFib(Arc<Inner>);

struct Inner {
    families: PerFamily<OpenFamilies>,
    snapshot: DatedSnapshot,
}

impl DatedFib {
    /// Opens a file of several dates with its stored engines, or with the engines of the options.
    ///
    /// # Errors
    /// If the file cannot be read, is not a file of several dates or is damaged, the tables of its engines are
    /// inconsistent, or an engine is unknown or refuses the tables.
    pub fn open_with(path: impl AsRef<Path>, options: &FibOptions) -> Result<Self, FibError> {
        Self::of_snapshot(DatedSnapshot::open_with(path, options.loading)?, options)
    }

    /// Makes a table of an open file.
    ///
    /// # Errors
    /// The errors of [`DatedFib::open_with`].
    pub fn of_snapshot(snapshot: DatedSnapshot, options: &FibOptions) -> Result<Self, FibError> {
        fn family<A: Addr + Pod>(
            snapshot: &DatedSnapshot,
            options: &FibOptions,
        ) -> Result<OpenFamily<A>, FibError> {
            let stored = snapshot.routes::<A>();
            let material = Material { stored: Some(stored), routes: None };
            let chosen = choose(material, options).map_err(|error| match error {
                FibError::Stored { family, engine, error, .. } => {
                    let file = snapshot.path().map(Path::to_owned);
                    FibError::Stored { file, family, engine, error }
                }
                error => error,
            })?;
            Ok(OpenFamily::new(IndexedRoutes::clone(stored), chosen, options.isa))
        }
        options.check()?;
        let families =
            PerFamily { v4: family(&snapshot, options)?, v6: family(&snapshot, options)? };
        Ok(Self(Arc::new(Inner { families, snapshot })))
    }

    /// The dates, with the source of each table.
    pub fn dates(&self) -> &Dates {
        self.0.snapshot.dates()
    }

    /// The columns of values of all dates.
    pub fn columns(&self) -> &Columns {
        self.0.snapshot.columns()
    }

    /// The opened file.
    pub fn snapshot(&self) -> &DatedSnapshot {
        &self.0.snapshot
    }

    /// The prefixes of all dates with their engine, whose hops are numbers of [`DatedFib::timelines`].
    #[inline]
    pub fn family<A: Addr + Pod>(&self) -> &OpenFamily<A> {
        self.0.families.get::<A>()
    }

    /// The timelines of a family.
    pub fn timelines<A: Addr + Pod>(&self) -> &Timelines {
        self.0.snapshot.timelines::<A>()
    }

    /// The longest match in the newest table that is not later than `time`; also `None` for a time before the first
    /// table.
    ///
    /// An IPv4-mapped IPv6 address is looked up as IPv4.
    pub fn lookup(&self, address: IpAddr, time: fibula_rib::Moment) -> Option<Match<'_>> {
        self.at(address, self.dates().number(time))
    }

    /// The longest match in the table with this number.
    pub fn at(&self, address: IpAddr, date: u16) -> Option<Match<'_>> {
        match AnyPrefix::host(address).unmapped() {
            AnyPrefix::V4(host) => self.longest(host.addr(), date),
            AnyPrefix::V6(host) => self.longest(host.addr(), date),
        }
    }

    fn longest<A: Addr + Pod>(&self, addr: A, date: u16) -> Option<Match<'_>> {
        let timeline = self.family::<A>().engine().lookup(addr);
        let (hop, len) = self.timelines::<A>().ask().find(timeline, date)?;
        Some(Match::row(prefix_of(addr, len).into(), hop, self.columns()))
    }

    /// The matches of an address over time: for each change, the number of the date and the match from then on;
    /// `None` if nothing matches. The first entry is the first date.
    pub fn history(&self, address: IpAddr) -> impl Iterator<Item = (u16, Option<Match<'_>>)> {
        let dates = (0..).take(self.dates().len());
        let mut before: Option<Option<(AnyPrefix, Hop)>> = None;
        dates.filter_map(move |date: u16| {
            let found = self.at(address, date);
            let now = found.as_ref().and_then(|found| Some((found.prefix()?, found.hop())));
            let is_new = before != Some(now);
            before = Some(now);
            is_new.then_some((date, found))
        })
    }

    /// A copy of the table with this number.
    pub fn table(&self, date: u16) -> Table {
        self.0.snapshot.table(date)
    }
}

impl fmt::Debug for DatedFib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.snapshot.fmt(f)
    }
}
