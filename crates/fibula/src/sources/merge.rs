//! Merges sources, one after the other, into a table.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use fibula_core::{Addr, Family, Hop, Prefix, Routes, Update, Value, Vrf, grouped};
use fibula_ingest::{
    Damage, Format, PeerInfo, PeerState, ReadError, ReadOptions, ReadProgress, ReadReport, Sink,
    SourceInfo, SourceSpec, text::TextOptions,
};
use fibula_rib::{
    AnySnapshot, BuilderOptions, Columns, Loading, Moment, PeerChoice, Snapshot, Table,
    TableBuilder, TableDate, TableError,
};
use fibula_testkit::fib::{GenSpec, HopModel};

use crate::sources::{Source, SourceError, columnar, embedded};

/// Options for reading files and for keeping parts of them.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The format of the files.
    pub format: Format,
    /// Makes errors of the first damage, and of a prefix that a source has twice.
    pub strict: bool,
    /// Use the data of an archive before the place where it is damaged or cut short.
    pub salvage: bool,
    /// Accepts a file without routes, or one most of which is damaged.
    pub allow_empty: bool,
    /// Peer, columns, and the BGP attributes to keep as text.
    pub builder: BuilderOptions,
    /// Options for reading text.
    pub text: TextOptions,
    /// Names of all columns of single sources of text, by the sources' names. [`TextOptions::names`] counts before
    /// them.
    pub names: BTreeMap<String, Vec<String>>,
    /// How snapshots are loaded.
    pub loading: Loading,
    /// For a file of several dates: use the newest table that is not later than this time. `None`: the newest table.
    pub at: Option<Moment>,
}

impl Settings {
    /// Whether a snapshot or a generated table is used unchanged.
    pub fn takes_all(&self) -> bool {
        self.builder.columns.is_none() && self.builder.tags.is_none()
    }
}

/// Receives reports while files are read.
pub trait Watch {
    /// Progress in a file.
    fn progress(&mut self, name: &str, progress: ReadProgress);
    /// The end of a file. `damage` has the first [`SHOWN`] damaged places.
    fn done(&mut self, name: &str, report: &ReadReport, damage: &[Damage]);
    /// The chosen table of a file of several dates, and the number of its tables.
    fn taken(&mut self, name: &str, table: &TableDate, of: usize) {
        let _ = (name, table, of);
    }
    /// The sources are merged into this table, whose provenance names what was replaced.
    fn merged(&mut self, table: &Table) {
        let _ = table;
    }
    /// A source does not have the column that lists values ([`BuilderOptions::tags`]), so `value`, made of its name,
    /// is used.
    fn stands_in(&mut self, name: &str, column: &str, value: &str) {
        let _ = (name, column, value);
    }
}

/// Discards all reports.
#[derive(Debug)]
pub struct Silent;

impl Watch for Silent {
    fn progress(&mut self, _: &str, _: ReadProgress) {}
    fn done(&mut self, _: &str, _: &ReadReport, _: &[Damage]) {}
}

/// Maximum number of damaged places kept for each file.
pub const SHOWN: usize = 5;

/// The hops of generated tables, unless others are chosen.
pub const DEFAULT_HOPS: HopModel = HopModel::Hash(256);

/// Merges sources in order: for the same prefix, a later source replaces an earlier one.
pub struct Merge {
    settings: Settings,
    builder: TableBuilder,
    damaged: u64,
}

impl Merge {
    /// Makes an empty merge.
    pub fn new(settings: Settings) -> Self {
        let builder = TableBuilder::new(settings.builder.clone());
        Self { settings, builder, damaged: 0 }
    }

    /// Adds a source. `name` is its name in reports and in the table's provenance; of a file, an empty one stands for
    /// its path.
    ///
    /// # Errors
    /// If it cannot be read. With [`Settings::strict`], also if it is damaged or has a prefix twice.
    pub fn add(
        &mut self,
        name: &str,
        source: &Source,
        watch: &mut dyn Watch,
    ) -> Result<(), SourceError> {
        if self.settings.builder.peer == PeerChoice::All && self.settings.builder.tags.is_none() {
            return Err(TableError::AllPeers.into());
        }
        match source {
            Source::Embedded => embedded::feed(&mut self.builder),
            Source::Generated(spec) => {
                self.builder.add_table(name, "generated", &generated(*spec));
            }
            Source::Snapshot(path) => {
                let Settings { loading, at, .. } = self.settings;
                let table = open_snapshot(path, loading, at, watch)?;
                self.builder.add_table(name, "snapshot", &table);
            }
            Source::Checkpoint { path, table } => {
                let table = Snapshot::open_checkpoint_table(path, table)?;
                self.builder.add_table(name, "checkpoint", &table);
            }
            Source::Feed(path) => self.file(name, path, watch)?,
        }
        if let (Some(stand_in), Some(column)) = (self.builder.stand_in(), self.tags()) {
            watch.stands_in(name, column, stand_in);
        }
        Ok(())
    }

    /// The column that lists the values of all routes.
    fn tags(&self) -> Option<&str> {
        self.settings.builder.tags.as_deref()
    }

    /// The table builder, for updates from other code.
    pub fn builder(&mut self) -> &mut TableBuilder {
        &mut self.builder
    }

    /// Number of damaged records, which were skipped.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Finishes the table.
    ///
    /// # Errors
    /// The errors of [`TableBuilder::finish`].
    pub fn finish(self) -> Result<Table, SourceError> {
        Ok(self.builder.finish()?)
    }

    fn file(&mut self, name: &str, path: &Path, watch: &mut dyn Watch) -> Result<(), SourceError> {
        let mut spec = SourceSpec::new(path);
        spec.format = self.settings.format;
        spec.name = (!name.is_empty()).then(|| name.to_owned());
        self.feed(spec.name(), watch, |options, sink| fibula_ingest::read(&spec, options, sink))
    }

    /// Adds a table that is not a file of its own, such as one in memory. `spec` has its name, by which the format may
    /// be found, and its format.
    ///
    /// ```
    /// use fibula::sources::{Merge, Settings, Silent};
    /// use fibula::ingest::SourceSpec;
    ///
    /// let mut merge = Merge::new(Settings::default());
    /// merge.read(&SourceSpec::new("t.csv"), &b"prefix,asn\n192.0.2.0/24,64500\n"[..], &mut Silent)?;
    /// assert_eq!(merge.finish()?.v4.len(), 1);
    /// # Ok::<(), fibula::sources::SourceError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Merge::add`].
    pub fn read(
        &mut self,
        spec: &SourceSpec,
        input: impl Read + 'static,
        watch: &mut dyn Watch,
    ) -> Result<(), SourceError> {
        self.feed(spec.name(), watch, |options, sink| {
            fibula_ingest::read_from(spec, input, options, sink)
        })
    }

    /// Adds what `read` gives, with the settings.
    fn feed(
        &mut self,
        name: String,
        watch: &mut dyn Watch,
        read: impl FnOnce(&mut ReadOptions<'_>, &mut dyn Sink) -> Result<ReadReport, ReadError>,
    ) -> Result<(), SourceError> {
        let mut feeder =
            Feeder { builder: &mut self.builder, damage: Vec::new(), main: Some(0), elsewhere: 0 };
        let mut show = |progress| watch.progress(&name, progress);
        let mut options = ReadOptions {
            strict: self.settings.strict,
            salvage: self.settings.salvage,
            allow_empty: self.settings.allow_empty,
            as_path: self.settings.builder.as_path,
            communities: self.settings.builder.communities,
            extended_communities: false,
            all_paths: self.settings.builder.peer != PeerChoice::Best,
            only_updates: false,
            text: self.settings.text.clone(),
            columnar: columnar::reader(),
            progress: Some(&mut show),
        };
        if let (true, Some(names)) = (options.text.names.is_empty(), self.settings.names.get(&name))
        {
            options.text.names.clone_from(names);
        }
        let mut report = read(&mut options, &mut feeder)?;
        let Feeder { damage, elsewhere, .. } = feeder;
        if elsewhere > 0 {
            report.ignored.push(("routes of other tables than the main one", elsewhere));
        }
        self.damaged += report.damaged;
        watch.done(&name, &report, &damage);
        self.check_repeated()
    }

    /// Refuses a prefix that a source has twice if [`Settings::strict`] is set, unless all its values are listed.
    ///
    /// # Errors
    /// [`SourceError::Repeated`].
    pub fn check_repeated(&self) -> Result<(), SourceError> {
        let is_refused = self.settings.strict && self.settings.builder.tags.is_none();
        match self.builder.first_repeated() {
            Some(found) if is_refused => Err(SourceError::Repeated(found.clone())),
            _ => Ok(()),
        }
    }
}

/// The note about a table with lists of values ([`BuilderOptions::tags`]) some of whose prefixes lie inside of others:
/// a lookup gives the list of the longest prefix alone.
pub fn nested_tags(table: &Table) -> Option<String> {
    let column = table.provenance.tags.as_ref()?;
    let nested = inside(&table.v4) + inside(&table.v6);
    (nested > 0).then(|| {
        format!(
            "{} prefixes lie inside of others: a lookup has the {column} of the longest one alone; `fibula lookup --all`, \
             `fibula annotate --covering` and Table.covering in Python show all",
            grouped(nested as u64)
        )
    })
}

/// How many prefixes lie inside of another one.
fn inside<A: Addr>(routes: &Routes<A>) -> usize {
    let mut end: Option<A> = None;
    let is_inside = |prefix: Prefix<A>| {
        let is_inside = end.is_some_and(|end| prefix.first() <= end);
        end = Some(end.map_or(prefix.last(), |end| end.max(prefix.last())));
        is_inside
    };
    routes
        .as_slice()
        .iter()
        .map(|route| route.prefix)
        .map(is_inside)
        .filter(|&inside| inside)
        .count()
}

/// A generated table, with the hops of [`DEFAULT_HOPS`].
pub fn generated(spec: GenSpec) -> Table {
    let hops = spec.with_hops(DEFAULT_HOPS);
    match spec.family {
        Family::V4 => Table::from_routes(hops.generate(), Default::default()),
        Family::V6 => Table::from_routes(Default::default(), hops.generate()),
    }
}

/// A copy of the table in a snapshot.
pub fn snapshot_table(snapshot: &Snapshot) -> Table {
    Table {
        v4: snapshot.family::<u32>().to_routes(),
        v6: snapshot.family::<u128>().to_routes(),
        columns: snapshot.columns().clone(),
        provenance: snapshot.provenance().clone(),
    }
}

/// A copy of the table in a snapshot file. For a file of several dates: the newest table that is not later than `at`,
/// whose date [`Watch::taken`] receives.
///
/// # Errors
/// If the file cannot be opened; [`SourceError::Date`] if it has no table of that time, or if `at` is given and the
/// file has no dates.
pub fn open_snapshot(
    path: &Path,
    loading: Loading,
    at: Option<Moment>,
    watch: &mut dyn Watch,
) -> Result<Table, SourceError> {
    table_of(&AnySnapshot::open_with(path, loading)?, path, at, watch)
}

/// As [`open_snapshot`], of an open file.
pub(super) fn table_of(
    file: &AnySnapshot,
    path: &Path,
    at: Option<Moment>,
    watch: &mut dyn Watch,
) -> Result<Table, SourceError> {
    let name = path.display().to_string();
    let wrong = |name, what| Err(SourceError::Date { name, what });
    match file {
        AnySnapshot::Table(snapshot) => match at {
            None => Ok(snapshot_table(snapshot)),
            Some(at) => {
                wrong(name, format!("it holds one table without a date, but {at} was requested"))
            }
        },
        AnySnapshot::Dated(dated) => {
            let dates = dated.dates();
            let number = at.map_or(dates.newest(), |at| dates.number(at));
            let Some(date) = dates.tables().get(usize::from(number)) else {
                let first =
                    dates.tables().first().map_or(String::new(), |date| date.at.to_string());
                let at = at.map_or(String::new(), |at| at.to_string());
                let what = format!("its first table is that of {first}, {at} is before it");
                return wrong(name, what);
            };
            watch.taken(&name, date, dates.len());
            Ok(dated.table(number))
        }
    }
}

/// The values of a hop, column by column.
pub fn row(columns: &Columns, hop: Hop) -> impl Iterator<Item = Value<'_>> {
    (0..columns.width())
        .map(move |column| hop.index().map_or(Value::Null, |row| columns.value(column, row)))
}

/// Passes decoded updates to the table builder.
struct Feeder<'a> {
    builder: &'a mut TableBuilder,
    damage: Vec<Damage>,
    /// The routing instance that becomes the table: the global one, or of BMP, where each view of the peers has
    /// a name, the first one.
    main: Option<Vrf>,
    /// Updates of other routing instances: a table has one.
    elsewhere: u64,
}

impl Sink for Feeder<'_> {
    fn begin(&mut self, info: &SourceInfo) {
        let columns: Vec<_> = info.columns.iter().map(|c| (c.name.clone(), c.kind)).collect();
        self.builder.types_of_next(&info.types);
        self.builder.begin_source(&info.name, info.format, &columns, info.bgp, info.date);
        self.main = (info.format != "bmp").then_some(0);
    }

    fn vrf(&mut self, index: Vrf, _: &str) {
        self.main.get_or_insert(index);
    }

    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        self.builder.add_peer(index, peer.address, peer.asn);
    }

    fn record(&mut self, record: u64, takes: bool) {
        self.builder.at_record(record, takes);
    }

    fn peer_state(&mut self, state: &PeerState) {
        if state.is_down() {
            self.builder.peer_down(state.peer);
        }
    }

    fn update(&mut self, update: &Update<'_>) {
        match Some(update.vrf) == self.main {
            true => self.builder.apply(update),
            false => self.elsewhere += 1,
        }
    }

    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        if self.damage.len() < SHOWN {
            self.damage.push(damage.clone());
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the report.
    struct Kept(Option<ReadReport>);

    impl Watch for Kept {
        fn progress(&mut self, _: &str, _: ReadProgress) {}
        fn done(&mut self, _: &str, report: &ReadReport, _: &[Damage]) {
            self.0 = Some(report.clone());
        }
    }

    /// The routes that FRR sent become the main table, with next hops; of other tables only the count is reported.
    #[test]
    fn recorded_fpm_is_a_table() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/small-nhg.c1.fpm.xz");
        let (mut merge, mut kept) = (Merge::new(Settings::default()), Kept(None));
        merge.add("", &Source::Feed(file), &mut kept).unwrap();
        let table = merge.finish().unwrap();
        let names: Vec<&str> = table.columns.names().collect();
        assert_eq!(names, ["next_hop", "interface", "weight", "kind"]);
        // 984 lines of the kernel's table at the end, one in table 100, and the links' own network.
        assert_eq!(table.v4.len() + table.v6.len(), 984 - 1 + 1);
        let report = kept.0.unwrap();
        assert_eq!((report.format, report.damaged), ("fpm", 0));
        assert_eq!(report.ignored, [("routes of other tables than the main one", 1)]);
    }

    /// Of BMP the view that comes first is the table.
    #[test]
    fn recorded_bmp_is_a_table() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/netgauze-upa-2.bmp.xz");
        let (mut merge, mut kept) = (Merge::new(Settings::default()), Kept(None));
        merge.add("", &Source::Feed(file), &mut kept).unwrap();
        let table = merge.finish().unwrap();
        // Two peers have one route each, of one prefix; the router's own table has eight updates.
        assert_eq!((table.v4.len(), table.v6.len()), (1, 0));
        let report = kept.0.unwrap();
        assert_eq!((report.format, report.updates), ("bmp", 10));
        assert_eq!(report.ignored, [("routes of other tables than the main one", 8)]);
    }
}
