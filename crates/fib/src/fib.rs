//! The open table.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fibula_core::{Addr, AnyPrefix, Hop, PerFamily, Prefix, Vrf};
use fibula_engines::Isa;
use fibula_rib::{
    Columns, Generation, IndexedRoutes, Live, Pod, Provenance, Snapshot, StoredRoutes, Table,
    TableError, Written, table_choice,
};

use crate::open_family::{Engine, EngineReport, OpenFamilies, OpenFamily};
use crate::policy::{Material, choose};
use crate::{FibError, FibOptions, Match};

/// An open table: routes, values, and an engine for each family. See the [crate's page](crate).
///
/// A clone is another reference to the same table. A `Fib` never changes, so any number of threads may use it at the
/// same time, and the same lookup always gives the same answer.
#[derive(Clone)]
pub struct Fib(Arc<Inner>);

/// An iterator over the routes that were found.
pub type Matches<'a> = Box<dyn Iterator<Item = Match<'a>> + 'a>;

struct Inner {
    families: PerFamily<OpenFamilies>,
    columns: Columns,
    provenance: Provenance,
    snapshot: Option<Arc<Snapshot>>,
}

impl Fib {
    /// Opens a snapshot file with its stored engines. A read-only file, as `fibula build` writes it, is mapped; any
    /// other file is read. See [`Snapshot::open_with`]. Of a checkpoint, `rib.fib#bmp/pre-policy` is the table of that
    /// name.
    ///
    /// # Errors
    /// If the file cannot be read, is not a snapshot or is damaged, or the tables of its engines are inconsistent.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FibError> {
        Self::open_with(path, &FibOptions::default())
    }

    /// Like [`Fib::open`], with options for the engines and for mapping or reading the file.
    ///
    /// # Errors
    /// The errors of [`Fib::open`]. Also if an engine is unknown, or every engine of the list refuses the table.
    pub fn open_with(path: impl AsRef<Path>, options: &FibOptions) -> Result<Self, FibError> {
        if let Some((file, table)) = table_choice(path.as_ref()) {
            return Self::of_table(Snapshot::open_checkpoint_table(&file, &table)?, options);
        }
        Self::of_snapshot(Snapshot::open_with(path, options.loading)?.chosen()?, options)
    }

    /// Makes a table of an open snapshot.
    ///
    /// # Errors
    /// The errors of [`Fib::open_with`].
    pub fn of_snapshot(
        snapshot: impl Into<Arc<Snapshot>>,
        options: &FibOptions,
    ) -> Result<Self, FibError> {
        fn family<A: Addr + Pod>(
            stored: &StoredRoutes<A>,
            options: &FibOptions,
        ) -> Result<OpenFamily<A>, FibError> {
            let material = Material { stored: Some(stored), routes: None };
            let routes = IndexedRoutes::clone(stored); // a reference to the file's
            Ok(OpenFamily::new(routes, choose(material, options)?, options.isa))
        }
        let snapshot = snapshot.into();
        let named = |error| match error {
            FibError::Stored { family, engine, error, .. } => FibError::Stored {
                file: snapshot.path().map(Path::to_owned),
                family,
                engine,
                error,
            },
            error => error,
        };
        options.check()?;
        Ok(Self(Arc::new(Inner {
            families: PerFamily {
                v4: family(snapshot.family(), options).map_err(named)?,
                v6: family(snapshot.family(), options).map_err(named)?,
            },
            columns: snapshot.columns().clone(),
            provenance: snapshot.provenance().clone(),
            snapshot: Some(snapshot),
        })))
    }

    /// Compiles a table in memory, without writing a snapshot first.
    ///
    /// # Errors
    /// If a hop is not a row of the table's columns, an engine is unknown, or every engine of the list refuses the
    /// table.
    pub fn of_table(table: Table, options: &FibOptions) -> Result<Self, FibError> {
        fn family<A: Addr + Pod>(
            table: &Table,
            options: &FibOptions,
        ) -> Result<OpenFamily<A>, FibError> {
            let routes = table.routes::<A>();
            if routes.len() >= u32::MAX as usize {
                return Err(TableError::Limit { what: "routes" }.into());
            }
            let material = Material { stored: None, routes: Some(Cow::Borrowed(routes)) };
            let chosen = choose(material, options)?;
            Ok(OpenFamily::new(IndexedRoutes::new(routes), chosen, options.isa))
        }
        options.check()?;
        table.check()?;
        Ok(Self(Arc::new(Inner {
            families: PerFamily { v4: family(&table, options)?, v6: family(&table, options)? },
            columns: table.columns,
            provenance: table.provenance,
            snapshot: None,
        })))
    }

    /// The newest generations of a changing table; `None` if this VRF is not compiled. A call costs two reference
    /// counts. The result does not follow later changes, so get a new one for each batch. Do not keep one while idle:
    /// the compiler waits while readers hold two older generations.
    pub fn of_live(live: &Live, vrf: Vrf) -> Option<Self> {
        Some(Self::of_generations(live.current(vrf)?, live.current(vrf)?))
    }

    /// Makes a `Fib` of two generations. Each family has its own generation, at its own position in the feed.
    pub fn of_generations(v4: Arc<Generation<u32>>, v6: Arc<Generation<u128>>) -> Self {
        fn family<A: Addr + Pod>(generation: Arc<Generation<A>>) -> OpenFamily<A> {
            let (name, number) = (generation.engine_name(), generation.number());
            let reason = format!("{name}: of generation {number} of a live table");
            let report = EngineReport { name, isa: Isa::detect(), reason, time: Duration::ZERO };
            let engine = (Engine::Live(generation), report);
            OpenFamily::new(IndexedRoutes::default(), engine, Isa::detect())
        }
        Self(Arc::new(Inner {
            families: PerFamily { v4: family(v4), v6: family(v6) },
            columns: Columns::default(),
            provenance: Provenance::default(),
            snapshot: None,
        }))
    }

    /// The longest match, with its prefix and values; see [`Match`].
    ///
    /// An IPv4-mapped IPv6 address is looked up as IPv4. For many addresses, [`Fib::lookup_batch`] is a
    /// hundred times faster.
    pub fn lookup(&self, address: IpAddr) -> Option<Match<'_>> {
        match AnyPrefix::host(address).unmapped() {
            AnyPrefix::V4(host) => self.longest(host.addr()),
            AnyPrefix::V6(host) => self.longest(host.addr()),
        }
    }

    fn longest<A: Addr + Pod>(&self, addr: A) -> Option<Match<'_>> {
        let family = self.family::<A>();
        if let Some(generation) = family.generation() {
            let hop = family.engine().lookup(addr);
            let names = generation.attribute_table().names();
            return Some(Match::set(hop, generation.attributes(hop)?, names));
        }
        family.routes().matched(addr).map(|index| self.route::<A>(index))
    }

    /// Looks up many addresses: the hop of `addrs[i]` is written to `hops[i]`, [`Hop::NONE`] if no route matches.
    /// Good batches have 64 to 1,024 addresses. IPv4-mapped addresses are not converted: the caller separates them
    /// with [`mapped_v4`](fibula_core::mapped_v4).
    ///
    /// # Panics
    /// If the slices differ in length.
    #[inline]
    pub fn lookup_batch<A: Addr + Pod>(&self, addrs: &[A], hops: &mut [Hop]) {
        self.family::<A>().engine().lookup_batch(addrs, hops);
    }

    /// All routes that cover the address, or the whole prefix, longest first.
    ///
    /// # Errors
    /// [`FibError::NoRoutes`] for a generation of a live table.
    pub fn covering(&self, prefix: impl Into<AnyPrefix>) -> Result<Matches<'_>, FibError> {
        fn family<A: Addr + Pod>(fib: &Fib, prefix: Prefix<A>) -> Matches<'_> {
            let routes = fib.family::<A>().routes();
            // Longer prefixes that begin at the same address do not cover the whole prefix.
            let whole = move |&index: &usize| routes.get(index).prefix.covers(prefix);
            Box::new(routes.covering(prefix.addr()).filter(whole).map(move |i| fib.route::<A>(i)))
        }
        self.check_routes()?;
        Ok(match prefix.into().unmapped() {
            AnyPrefix::V4(prefix) => family(self, prefix),
            AnyPrefix::V6(prefix) => family(self, prefix),
        })
    }

    /// All routes that the prefix covers, its own route included, ordered by address and then by length.
    ///
    /// # Errors
    /// [`FibError::NoRoutes`] for a generation of a live table.
    pub fn covered(&self, prefix: impl Into<AnyPrefix>) -> Result<Matches<'_>, FibError> {
        fn family<A: Addr + Pod>(fib: &Fib, prefix: Prefix<A>) -> Matches<'_> {
            Box::new(fib.family::<A>().routes().within(prefix).map(move |i| fib.route::<A>(i)))
        }
        self.check_routes()?;
        Ok(match prefix.into().unmapped() {
            AnyPrefix::V4(prefix) => family(self, prefix),
            AnyPrefix::V6(prefix) => family(self, prefix),
        })
    }

    /// The route of exactly this prefix.
    ///
    /// # Errors
    /// [`FibError::NoRoutes`] for a generation of a live table.
    pub fn exact(&self, prefix: impl Into<AnyPrefix>) -> Result<Option<Match<'_>>, FibError> {
        self.check_routes()?;
        Ok(match prefix.into().unmapped() {
            AnyPrefix::V4(prefix) => self.of_prefix(prefix),
            AnyPrefix::V6(prefix) => self.of_prefix(prefix),
        })
    }

    fn of_prefix<A: Addr + Pod>(&self, prefix: Prefix<A>) -> Option<Match<'_>> {
        self.family::<A>().routes().find(prefix).map(|index| self.route::<A>(index))
    }

    /// The route of a family with this index.
    pub(crate) fn route<A: Addr + Pod>(&self, index: usize) -> Match<'_> {
        let route = self.family::<A>().routes().get(index);
        Match::row(route.prefix.into(), route.hop, self.columns())
    }

    pub(crate) fn check_routes(&self) -> Result<(), FibError> {
        if self.is_live() { Err(FibError::NoRoutes) } else { Ok(()) }
    }

    /// One family: its engine, its routes, and lookups of route numbers and prefix lengths.
    #[inline]
    pub fn family<A: Addr + Pod>(&self) -> &OpenFamily<A> {
        self.0.families.get::<A>()
    }

    /// The columns of values, whose row numbers are the hops. Empty for a generation of a live table, which has
    /// attribute sets.
    pub fn columns(&self) -> &Columns {
        &self.0.columns
    }

    /// The sources of the table.
    pub fn provenance(&self) -> &Provenance {
        &self.0.provenance
    }

    /// The snapshot file, if the table was opened from one.
    pub fn path(&self) -> Option<&Path> {
        self.0.snapshot.as_ref()?.path()
    }

    /// Whether this is a generation of a live table.
    pub fn is_live(&self) -> bool {
        self.0.families.v4.generation().is_some()
    }

    /// Number of routes of both families. 0 for a generation of a live table, whose routes are in the
    /// [`Rib`](fibula_rib::Rib); lookups find them all the same.
    pub fn len(&self) -> usize {
        self.0.families.v4.routes().len() + self.0.families.v6.routes().len()
    }

    /// Whether [`Fib::len`] is 0: the table has no routes, or it is a generation of a live table.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the routes, values and provenance as a table.
    ///
    /// # Errors
    /// [`FibError::NoRoutes`] for a generation of a live table.
    pub fn to_table(&self) -> Result<Table, FibError> {
        self.check_routes()?;
        Ok(Table {
            v4: self.0.families.v4.routes().to_routes(),
            v6: self.0.families.v6.routes().to_routes(),
            columns: self.columns().clone(),
            provenance: self.provenance().clone(),
        })
    }

    /// Writes the table with its engines to a snapshot file, which [`Fib::open`] can open; see [`fibula_rib::write`].
    ///
    /// # Errors
    /// If an I/O operation fails, or the table cannot be stored; [`FibError::NoRoutes`] for a generation of a live
    /// table.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<Written, FibError> {
        let (table, v4, v6) =
            (self.to_table()?, self.0.families.v4.part(), self.0.families.v6.part());
        Ok(fibula_rib::write(path.as_ref(), &table, &v4, &v6)?)
    }

    /// Checks that the mapped file did not change, so that all answers so far came from the opened snapshot; see
    /// [`Snapshot::unchanged`].
    ///
    /// # Errors
    /// If a program wrote into the file while it was mapped.
    pub fn unchanged(&self) -> Result<(), FibError> {
        let snapshot = self.0.snapshot.as_ref();
        Ok(snapshot.map_or(Ok(()), |snapshot| snapshot.unchanged())?)
    }

    /// Digest and sizes of the snapshot: of the opened file, or of the file that [`Fib::write`] would write.
    /// Computing the latter takes about as long as writing it.
    ///
    /// # Errors
    /// The errors of [`Fib::write`].
    pub fn written(&self) -> Result<Written, FibError> {
        if let Some(snapshot) = &self.0.snapshot {
            return Ok(snapshot.written());
        }
        let (table, v4, v6) =
            (self.to_table()?, self.0.families.v4.part(), self.0.families.v6.part());
        Ok(fibula_rib::snapshot::measure(&table, &v4, &v6)?)
    }
}

impl fmt::Debug for Fib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn family<A: Addr + Pod>(family: &OpenFamily<A>) -> String {
            format!("{} routes, {}", family.routes().len(), family.reason())
        }
        f.debug_struct("Fib")
            .field("v4", &family(&self.0.families.v4))
            .field("v6", &family(&self.0.families.v6))
            .field("columns", self.columns())
            .finish()
    }
}
