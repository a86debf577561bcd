//! The report of `fibula rpki`.

use std::io::Write;

use fibula_core::grouped;
use fibula_rib::SourceRecord;
use fibula_rpki::{
    FamilyCounts, OriginCounts, PathReport, PathStates, PathValidity, Validity, ValidityReport,
    Vrps,
};
use serde_json::{Map, Value as Json, json};

use crate::failure::Failure;
use crate::output::{Grid, json_addresses, text_addresses, utc};
use crate::progress::note;

/// The contents of the report.
pub struct Printed<'a> {
    pub report: &'a ValidityReport,
    pub vrps: &'a Vrps,
    pub files: &'a [SourceRecord],
    /// Number of origins to list.
    pub top: usize,
    /// The paths, if they were verified.
    pub paths: Option<Paths>,
}

/// The part about paths.
pub struct Paths {
    pub report: PathReport,
    /// The files with ASPAs.
    pub files: Vec<SourceRecord>,
    /// Number of customers with ASPAs.
    pub customers: usize,
}

impl Paths {
    fn families(&self) -> [(&'static str, &PathStates); 2] {
        [("IPv4", &self.report.v4), ("IPv6", &self.report.v6)]
    }

    fn write(&self, out: &mut impl Write) -> Result<(), Failure> {
        let mut grid = Grid::new(&["", "aspa", ">routes", ">share"]);
        for (name, states) in self.families() {
            let all = states.routes.iter().sum::<u64>() + states.without;
            let mut row = |what: &str, routes: u64| {
                let share = format!("{:.1} %", routes as f64 * 100.0 / all as f64);
                grid.row([name.to_owned(), what.to_owned(), grouped(routes), share]);
            };
            for validity in PathValidity::ALL.into_iter().filter(|_| all > 0) {
                row(validity.name(), states.routes[validity as usize]);
            }
            if states.without > 0 {
                row("no path", states.without);
            }
        }
        writeln!(out)?;
        grid.write_aligned(out)?;
        Ok(())
    }

    fn json(&self) -> Json {
        let family = |states: &PathStates| {
            let of = |validity: PathValidity| states.routes[validity as usize];
            json!({
                "valid": of(PathValidity::Valid),
                "invalid": of(PathValidity::Invalid),
                "unknown": of(PathValidity::Unknown),
                "without": states.without,
            })
        };
        let file = |record: &SourceRecord| {
            json!({
                "name": record.name, "format": record.format, "generated": record.date,
                "aspas": record.announced,
            })
        };
        json!({
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
            "customers": self.customers,
            "ipv4": family(&self.report.v4),
            "ipv6": family(&self.report.v6),
        })
    }
}

impl Printed<'_> {
    fn families(&self) -> [(&'static str, &FamilyCounts); 2] {
        [("IPv4", &self.report.v4), ("IPv6", &self.report.v6)]
    }

    fn origins(&self) -> &[OriginCounts] {
        &self.report.origins[..self.report.origins.len().min(self.top)]
    }

    /// The report as text.
    pub fn write(&self, out: &mut impl Write) -> Result<(), Failure> {
        for SourceRecord { name, format, date, announced, .. } in self.files {
            let date = date.map_or(String::new(), |date| format!(", {}", utc(date)));
            writeln!(out, "{name} ({format}{date}): {} VRPs", grouped(*announced))?;
        }
        let [v4, v6] = self.vrps.by_family().map(|count| grouped(count as u64));
        writeln!(out, "{v4} different VRPs of IPv4, {v6} of IPv6")?;
        if let Some(paths) = &self.paths {
            for SourceRecord { name, format, date, announced, .. } in &paths.files {
                let date = date.map_or(String::new(), |date| format!(", {}", utc(date)));
                writeln!(out, "{name} ({format}{date}): {} ASPAs", grouped(*announced))?;
            }
            writeln!(out, "{} customers with ASPAs", grouped(paths.customers as u64))?;
        }
        writeln!(out)?;
        let mut grid = Grid::new(&["", "rpki", ">routes", ">share", ">addresses"]);
        for (name, counts) in self.families() {
            let all: u64 = counts.routes.iter().sum();
            for validity in Validity::ALL.into_iter().filter(|_| all > 0) {
                let routes = counts.routes[validity as usize];
                let share = routes as f64 * 100.0 / all as f64;
                grid.row([
                    name.to_owned(),
                    validity.to_string(),
                    grouped(routes),
                    format!("{share:.1} %"),
                    text_addresses(counts.addresses[validity as usize]),
                ]);
            }
        }
        grid.write_aligned(out)?;
        if let Some(paths) = &self.paths {
            paths.write(out)?;
        }
        if self.origins().is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let heads = ["origin", ">invalid", ">by origin", ">by length", ">routes"];
        let mut grid = Grid::new(&heads);
        for counts in self.origins() {
            let name = counts.origin.map_or("none".to_owned(), |asn| format!("AS{asn}"));
            let of = |validity: Validity| grouped(counts.routes[validity as usize]);
            grid.row([
                name,
                grouped(counts.invalid()),
                of(Validity::InvalidOrigin),
                of(Validity::InvalidLength),
                grouped(counts.routes.iter().sum()),
            ]);
        }
        grid.write_aligned(out)?;
        let more = self.report.origins.len() - self.origins().len();
        if more > 0 {
            writeln!(out, "and {} more origins with invalid routes", grouped(more as u64))?;
        }
        Ok(())
    }

    /// The report on standard error.
    pub fn note(&self) -> Result<(), Failure> {
        let mut text = Vec::new();
        self.write(&mut text)?;
        note(String::from_utf8_lossy(&text).trim_end());
        Ok(())
    }

    /// The report as a JSON object.
    pub fn json(&self) -> Json {
        let family = |counts: &FamilyCounts, as_text: bool| {
            let of = |count: &dyn Fn(usize) -> Json| -> Map<String, Json> {
                let member =
                    |validity: Validity| (validity.name().to_owned(), count(validity as usize));
                Validity::ALL.into_iter().map(member).collect()
            };
            json!({
                "routes": of(&|at| counts.routes[at].into()),
                "addresses": of(&|at| json_addresses(counts.addresses[at], as_text)),
            })
        };
        let file = |record: &SourceRecord| {
            json!({
                "name": record.name, "format": record.format, "generated": record.date,
                "vrps": record.announced,
            })
        };
        let origin = |counts: &OriginCounts| {
            json!({
                "origin": counts.origin,
                "invalid": counts.invalid(),
                "invalid-origin": counts.routes[Validity::InvalidOrigin as usize],
                "invalid-length": counts.routes[Validity::InvalidLength as usize],
                "routes": counts.routes.iter().sum::<u64>(),
            })
        };
        let [v4, v6] = self.vrps.by_family();
        let mut object = json!({
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
            "vrps": { "ipv4": v4, "ipv6": v6 },
            "ipv4": family(&self.report.v4, false),
            "ipv6": family(&self.report.v6, true),
            "origins": self.origins().iter().map(origin).collect::<Vec<_>>(),
        });
        if let Some(paths) = &self.paths {
            object["aspa"] = paths.json();
        }
        object
    }
}
