//! `fibula rpki`: validates the origins of routes against the VRPs of the RPKI, and their paths against its ASPAs.

mod add;
mod aspa;
mod list;
mod report;

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as ClapArgs;
use fibula_core::AnyPrefix;
use fibula_rpki::{ORIGIN, PathReport, PathValidity, Validity, ValidityReport, Vrps};

pub use self::add::RpkiArgs;
use self::aspa::AspaArgs;
use self::list::Listed;
use self::report::Paths;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Records};
use crate::same;
use crate::source::{self, ReadArgs};
use crate::table;
use crate::written::To;

const EXAMPLES: &str = "\
Examples:
  routinator vrps --format json > vrps.json
  fibula rpki vrps.json rib.20260101.0000.bz2
  fibula rpki vrps.json rib.gz --list invalid > invalid.tsv
  fibula rpki vrps.json rib.gz --list invalid-origin --json
  fibula rpki vrps.csv announced.csv --origin asn -o checked.csv
  fibula rpki vrps.json --prefix 192.0.2.0/24 --origin 64500
  fibula rpki vrps.json rib.gz --aspa vrps.json --received-from provider --list aspa-invalid
  fibula build rib.gz --rpki vrps.json -o table.fib

VRPs (validated ROA payloads) are the output of an RPKI validator: routinator's formats json,
jsonext, csv, csvcompat and csvext, and rpki-client's json and csv. They may be compressed (gz, bz2,
xz, zst); - is standard input.

By RFC 6811, a route is valid if a VRP covers its prefix, allows the prefix's length and has the
route's origin AS. It is not-found if no VRP covers it. Otherwise it is invalid: invalid-length if a
covering VRP has its origin AS but too short a maximum length, else invalid-origin. A route without an
origin (no AS path, or one that ends in a set) or with AS 0 is never valid.

--aspa verifies AS paths, too, by the draft draft-ietf-sidrops-aspa-verification: a path is invalid if
an AS passed the route on that must not have it, valid if ASPAs attest all that matters, and else
unknown. This depends on from whom the route was received (--received-from, --relations).

The report counts routes, addresses by the validity of their longest match, and invalid routes by
origin. --list prints routes. -o writes them with all their columns, rpki and rpki_vrps (all routes
without --list).

Exit code: 1 if a route is invalid, by origin or path, 2 for an error.";

/// Validate the origins of routes with the RPKI
#[derive(ClapArgs, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The VRPs: JSON or CSV of routinator or rpki-client
    #[arg(value_name = "VRPS,...")]
    vrps: String,
    /// The routes: a snapshot or table files, which are merged in order
    #[arg(value_name = "TABLE,...", required_unless_present = "prefix")]
    tables: Vec<String>,
    /// The column with the AS that originates each route (default: origin_as). With --prefix, the AS itself
    #[arg(long, value_name = "COLUMN|AS")]
    origin: Option<String>,
    /// Validate this prefix, announced by the AS of --origin
    #[arg(long, requires = "origin", conflicts_with_all = ["tables", "list", "output", "aspa"])]
    prefix: Option<AnyPrefix>,
    /// Print the routes with this validity: valid, invalid, invalid-origin, invalid-length, not-found, or all; or whose
    /// paths are aspa-valid, aspa-invalid, aspa-unknown
    #[arg(long, value_name = "VALIDITY,...", value_delimiter = ',')]
    list: Vec<Listed>,
    /// Write the routes to a file as a table with all columns
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of that file (default: by the file's ending)
    #[arg(long, value_name = "csv|tsv|parquet", requires = "output")]
    to: Option<To>,
    /// Number of origins in the report
    #[arg(long, value_name = "N", default_value = "10")]
    top: usize,
    /// Print the report as a JSON object. With --list, print one object a line for each route
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    aspa: AspaArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let to = args.output.as_ref().map(|path| To::of(args.to, path)).transpose()?;
    let names = [args.vrps.clone()];
    let is_input = |table: &String| table.split(',').any(|name| name == "-");
    let reads_table = usize::from(args.tables.iter().any(is_input));
    if reads_table + add::inputs(&names) + args.aspa.inputs() > 1 {
        return Err(Failure::new("standard input cannot be both the VRPs and something else")
            .hint("give one of them as a file"));
    }
    let wanted = Listed::all(&args.list);
    if !wanted.paths.is_empty() && !args.aspa.is_requested() {
        return Err(Failure::new("without ASPAs, paths have no validity to be listed by")
            .hint("--aspa names the file with ASPAs, which may be that of the VRPs"));
    }
    let (vrps, files) = add::read(&names, args.read.allow_empty)?;
    if let Some(prefix) = args.prefix {
        return question(args, &vrps, prefix);
    }
    let verifier = match args.aspa.is_requested() {
        true => Some(args.aspa.read(args.read.allow_empty)?),
        false => None,
    };
    let origin = args.origin.as_deref().unwrap_or(ORIGIN);
    let mut read = args.read.clone();
    read.as_path |= verifier.is_some();
    let sources = source::parse_list(&args.tables, &read)?;
    if let Some(path) = &args.output {
        same::refuse_tables(&sources, path)?;
        add::refuse(&names, path)?;
        args.aspa.refuse(path)?;
    }
    let loaded = table::load_aloud(&sources, &read)?.table;
    add::report_renamed(&loaded);
    let mut table = fibula_rpki::add_columns(&loaded, &vrps, origin)?;
    drop(loaded);
    let report = ValidityReport::new(&table, origin)?;
    let mut paths = None;
    if let Some(verifier) = verifier {
        table = verifier.add(table)?;
        let (report, customers) = (PathReport::new(&table)?, verifier.aspas.len());
        paths = Some(Paths { report, files: verifier.files, customers });
    }
    if let (Some(path), Some(to)) = (&args.output, to) {
        to.write(&list::only(&table, &wanted), path)?;
    }
    let invalid = report.invalid() + paths.as_ref().map_or(0, |paths| paths.report.invalid());
    let has_paths = paths.is_some();
    let report =
        report::Printed { report: &report, vrps: &vrps, files: &files, top: args.top, paths };
    if !args.list.is_empty() && args.output.is_none() {
        let columns = if has_paths { &list::WITH_PATHS[..] } else { &list::COLUMNS };
        let mut records = Records::new(columns, args.json, true)?;
        list::print(&table, origin, &vrps, &wanted, has_paths, &mut records)?;
        records.flush()?;
        report.note()?;
    } else if args.json {
        output::json(&report.json())?;
    } else {
        let mut out = output::stdout();
        report.write(&mut out)?;
        out.flush()?;
    }
    Ok(if invalid > 0 { Outcome::Negative } else { Outcome::Done })
}

/// Validates one prefix.
fn question(args: &Args, vrps: &Vrps, prefix: AnyPrefix) -> Result<Outcome, Failure> {
    let text = args.origin.as_deref().unwrap_or_default();
    let Some(asn) = fibula_rpki::parse_asn(text) else {
        return Err(Failure::new(format_args!("--origin {text:?} is no AS number"))
            .hint("with --prefix, it is the AS that announces the prefix: 64500 or AS64500"));
    };
    let mut records = Records::new(&list::COLUMNS, args.json, true)?;
    let validity = vrps.validity(prefix, Some(asn));
    list::route(&mut records, prefix, Some(&asn.to_string()), validity, vrps, None)?;
    records.flush()?;
    Ok(if validity.is_invalid() { Outcome::Negative } else { Outcome::Done })
}

impl FromStr for Listed {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let of = |validities: Vec<Validity>| Self { validities, paths: Vec::new() };
        if let Some(state) = text.strip_prefix("aspa-") {
            let path: PathValidity =
                state.parse().map_err(|_| "aspa-valid, aspa-invalid or aspa-unknown")?;
            return Ok(Self { validities: Vec::new(), paths: vec![path] });
        }
        Ok(match text {
            "all" => of(Validity::ALL.to_vec()),
            "invalid" => of(Validity::ALL.into_iter().filter(|v| v.is_invalid()).collect()),
            one => of(vec![one.parse().map_err(
                |_| "valid, invalid, invalid-origin, invalid-length, not-found, all, or aspa-invalid",
            )?]),
        })
    }
}
