//! `fibula export --paths`: all paths of all peers, as columns.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use clap::Args as ClapArgs;
use fibula::sources::SHOWN;
use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Update, Vrf, grouped};
use fibula_export::{BgpPath, ExportError, PathsFormat, PathsWriter};
use fibula_fib::{Fib, FibOptions};
use fibula_ingest::{Damage, PeerInfo, Sink};
use fibula_rib::PeerChoice;
use fibula_server::{CommunityPattern, PathFilter, PathPattern};

use super::{Args, To};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::progress::{Bar, ms, note};
use crate::same;
use crate::source::{self, ReadArgs, Source};
use crate::table::{self, report_read};

/// The choice of paths.
#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "All paths of BGP")]
pub struct PathArgs {
    /// Write every path of every peer (MRT, BMP, texts of bgpdump and show ip bgp) in place of a route for each prefix:
    /// parquet, arrow or jsonl
    #[arg(long, conflicts_with_all = ["layer", "compress", "columns", "tags", "at", "synthetic_hops", "family"])]
    pub paths: bool,
    /// Only paths to prefixes that this table covers
    #[arg(long, value_name = "TABLE,...", requires = "paths")]
    within: Option<String>,
    /// Only paths that these AS originate
    #[arg(long, value_name = "AS,...", value_delimiter = ',', value_parser = parse_as, requires = "paths")]
    origin_as: Vec<u32>,
    /// Only paths whose text (64500 64501 {64502,64503}) matches this regular expression; _ is the beginning, the end
    /// or what is between two AS
    #[arg(long, value_name = "REGEX", requires = "paths")]
    path_regex: Option<PathPattern>,
    /// Only paths with one of these communities; * is any part (64500:*, rt:64500:*), others are hexadecimal (0x...)
    #[arg(long, value_name = "COMMUNITY,...", value_delimiter = ',', requires = "paths")]
    community: Vec<CommunityPattern>,
}

fn parse_as(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("AS").unwrap_or(text);
    digits.parse().map_err(|_| "an AS is a number, as 64500 or AS64500".to_owned())
}

/// The requested format, or the one of the output's file name.
fn format(args: &Args) -> Result<PathsFormat, Failure> {
    let ending = args.output.extension().and_then(|ending| ending.to_str());
    match (args.to, ending) {
        (Some(To::Intervals), _) | (None, Some("parquet")) => Ok(PathsFormat::Parquet),
        (Some(To::Arrow), _) | (None, Some("arrow" | "arrows")) => Ok(PathsFormat::Arrow),
        (Some(To::JsonLines), _) | (None, Some("jsonl" | "ndjson")) => Ok(PathsFormat::JsonLines),
        (None, None) => Ok(PathsFormat::JsonLines),
        (Some(_), _) => {
            Err(Failure::new("--paths writes parquet, arrow or jsonl, and not that format"))
        }
        (None, Some(_)) => {
            let name = args.output.display();
            Err(Failure::new(format_args!("{name}: unknown file name ending"))
                .hint("name it .parquet, .arrow or .jsonl, or set --to"))
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    use std::io::IsTerminal;
    let format = format(args)?;
    if args.output.as_os_str() == "-"
        && format != PathsFormat::JsonLines
        && std::io::stdout().is_terminal()
    {
        return Err(Failure::new("this format is not for terminals")
            .hint("name a file with -o, or redirect the output"));
    }
    let read = &args.table.read;
    let sources = args.table.all_sources()?;
    same::refuse_tables(&sources, &args.output)?;
    let PathArgs { origin_as, path_regex, community, .. } = &args.paths;
    let filter = PathFilter {
        origins: origin_as.clone(),
        path: path_regex.clone(),
        communities: community.clone(),
    };
    let within = args.paths.within.as_ref().map(covering).transpose()?;
    let started = Instant::now();
    let mut out = Output::create(&args.output)?;
    let mut writer = PathsWriter::new(format, &mut out).map_err(|error| failed(args, error))?;
    let mut seen = 0;
    for (name, source) in &sources {
        let Source::Feed(path) = source else {
            return Err(Failure::new(format_args!("{name} has one route for each prefix"))
                .hint("give the archive that it was made from"));
        };
        let mut sink = Paths {
            writer: &mut writer,
            filter: &filter,
            peer: &read.peer.0,
            within: within.as_ref(),
            peers: Vec::new(),
            vrfs: BTreeMap::new(),
            damage: Vec::new(),
            seen: 0,
            foreign: false,
            error: None,
        };
        sink.read(name, path, read).map_err(|error| error.or_failed(args))?;
        seen += sink.seen;
    }
    let rows = writer.finish().map_err(|error| failed(args, error))?;
    out.finish()?;
    let (rows, seen) = (grouped(rows), grouped(seen));
    let (output, took) = (args.output.display(), ms(started.elapsed()));
    note(format_args!("{output}: {rows} of {seen} paths and withdrawals, in {took}"));
    Ok(Outcome::Done)
}

/// The prefixes that `--within` names.
fn covering(name: &String) -> Result<Fib, Failure> {
    let read = ReadArgs::automatic();
    let sources = source::parse_list(std::slice::from_ref(name), &read)?;
    Ok(Fib::of_table(table::load(&sources, &read)?.table, &FibOptions::default())?)
}

fn failed(args: &Args, error: ExportError) -> Failure {
    match error {
        ExportError::Write(error) => Failure::from(error),
        error => Failure::new(format_args!("{}: {error}", args.output.display())),
    }
}

/// Why a source was not written.
enum Stopped {
    Write(ExportError),
    Read(Failure),
}

impl Stopped {
    fn or_failed(self, args: &Args) -> Failure {
        match self {
            Self::Write(error) => failed(args, error),
            Self::Read(failure) => failure,
        }
    }
}

/// The paths of one source.
struct Paths<'a, 'o> {
    writer: &'a mut PathsWriter<&'o mut Output>,
    filter: &'a PathFilter,
    peer: &'a PeerChoice,
    within: Option<&'a Fib>,
    peers: Vec<Option<PeerInfo>>,
    vrfs: BTreeMap<Vrf, String>,
    damage: Vec<Damage>,
    seen: u64,
    /// The source has routes that are not of BGP.
    foreign: bool,
    error: Option<ExportError>,
}

impl Paths<'_, '_> {
    fn read(&mut self, name: &str, path: &Path, read: &ReadArgs) -> Result<(), Stopped> {
        let mut spec = read.spec(path);
        spec.name = Some(name.to_owned());
        let mut bar = None;
        let mut show = |progress| bar.get_or_insert_with(|| Bar::new(name)).show(progress);
        let mut options = read.decoder().map_err(Stopped::Read)?;
        (options.as_path, options.communities) = (true, true);
        (options.extended_communities, options.all_paths) = (true, true);
        options.progress = Some(&mut show);
        let report = fibula_ingest::read(&spec, &mut options, self);
        drop(bar);
        if let Some(error) = self.error.take() {
            return Err(Stopped::Write(error));
        }
        let report = report.map_err(|error| Stopped::Read(error.into()))?;
        if self.foreign {
            let what = format_args!("{name}: {} has no paths of BGP", report.format);
            let what = Failure::new(what)
                .hint("--paths reads MRT, BMP, RIS Live, the text of bgpdump and of show ip bgp");
            return Err(Stopped::Read(what));
        }
        report_read(name, &report, &self.damage);
        Ok(())
    }

    fn peer(&self, index: u32) -> Option<&PeerInfo> {
        self.peers.get(usize::try_from(index).ok()?)?.as_ref()
    }

    fn wants_peer(&self, index: u32) -> bool {
        match *self.peer {
            PeerChoice::Index(wanted) => wanted == index,
            PeerChoice::Address(wanted) => {
                self.peer(index).is_some_and(|peer| peer.address == Some(wanted))
            }
            PeerChoice::As(wanted) => self.peer(index).is_some_and(|peer| peer.asn == wanted),
            _ => true,
        }
    }

    fn wants(&self, prefix: AnyPrefix, bgp: Option<&BgpAttributes<'_>>) -> bool {
        let attributes = match bgp {
            None => self.filter.is_empty(),
            Some(bgp) => self.filter.matches(bgp),
        };
        let covers = |fib: &Fib| fib.covering(prefix).is_ok_and(|mut found| found.next().is_some());
        attributes && self.within.is_none_or(covers)
    }
}

impl Sink for Paths<'_, '_> {
    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        let Ok(index) = usize::try_from(index) else { return };
        if self.peers.len() <= index {
            self.peers.resize(index + 1, None);
        }
        self.peers[index] = Some(peer.clone());
    }

    fn vrf(&mut self, index: Vrf, name: &str) {
        self.vrfs.insert(index, name.to_owned());
    }

    fn update(&mut self, update: &Update<'_>) {
        let attributes = match update.change {
            Change::Announce(Attributes::Bgp(bgp)) => Some(bgp),
            Change::Withdraw => None,
            Change::Announce(_) => {
                self.foreign = true;
                return;
            }
        };
        self.seen += 1;
        if self.error.is_some()
            || !self.wants_peer(update.peer)
            || !self.wants(update.prefix, attributes)
        {
            return;
        }
        let peer = self.peers.get(update.peer as usize).and_then(Option::as_ref);
        let written = self.writer.write(&BgpPath {
            time: update.time,
            peer_address: peer.and_then(|peer| peer.address),
            peer_as: peer.map_or(0, |peer| peer.asn),
            view: peer.map_or("", |peer| &peer.view),
            vrf: self.vrfs.get(&update.vrf).map_or("", |name| name),
            prefix: update.prefix,
            path_id: update.path_id,
            attributes,
        });
        self.error = written.err();
    }

    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        if self.damage.len() < SHOWN {
            self.damage.push(damage.clone());
        }
        match self.error {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}
