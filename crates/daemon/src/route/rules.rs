//! Packets are dropped, marked and looked up in other tables by the rules of a file.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fibula_classify::text::{RuleFileProblem, RuleOptions, RuleText, read_file};
use fibula_classify::{Action, Classifier, ClassifierOptions, Rule, RuleId, Rules, Table};
use fibula_core::Vrf;
use fibula_rib::Live;
use fibula_router::forward::{ByRules, RuleCounts, RuleSet, RulesHandle};
use tracing::{info, warn};

use crate::config::{ConfigError, Problem, RouteConfig};

/// A problem of a file of rules, or of a rule in a router.
#[derive(Debug)]
#[non_exhaustive]
pub enum RulesProblem {
    /// The file has no text of rules, or has no rules.
    File(RuleFileProblem),
    /// A table is named by its number.
    Number,
    /// A VRF is named, and the router's only table is one that does not change.
    OnlyTable,
    /// No source feeds the table of this VRF.
    Unfed(String),
    /// The VRF was not named when the router started, so it has no table for it.
    New(String),
}

impl fmt::Display for RulesProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(problem) => problem.fmt(f),
            Self::Number => f.write_str("tables have no numbers here: name one with `vrf`"),
            Self::OnlyTable => f.write_str(
                "--table is the only table: leave `vrf` out, or take a source in its place",
            ),
            Self::Unfed(name) => write!(f, "no source feeds the table of vrf {name:?}"),
            Self::New(name) => write!(
                f,
                "vrf {name:?} was not named when the router started: start it anew to have its table"
            ),
        }
    }
}

/// How long a reload waits for a thread to take the rules.
const SETTLE: Duration = Duration::from_millis(100);

/// The rules of the configuration, if it names a file. The router has the tables that they name.
///
/// # Errors
/// The problem, with its line.
pub fn read(config: &RouteConfig) -> Result<Option<RuleText>, ConfigError> {
    let Some(path) = &config.router.rules else { return Ok(None) };
    let failed = |problem| ConfigError::from(Problem::Rules(problem)).in_file(path);
    let unreadable =
        |error| ConfigError::from(Problem::Unreadable { setting: "--rules", error }).in_file(path);
    let data = open(path).map_err(unreadable)?;
    let read = read_file(data, path.display(), None, &RuleOptions::default());
    let read = read.map_err(|error| match error.into_problem() {
        RuleFileProblem::Unreadable(error) => unreadable(error),
        problem => failed(RulesProblem::File(problem)),
    })?;
    for (_, rule) in read.rules.iter() {
        let checked = check(rule, config);
        checked.map_err(|problem| failed(problem).at_line(rule.line as usize))?;
    }
    info!("{}: {} rules", path.display(), read.rules.len());
    read.notes.iter().for_each(|what| info!("{}: {what}", path.display()));
    Ok(Some(read))
}

/// Opens the file, and undoes its compression.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let raw: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path)?),
    };
    fibula_ingest::open_whole(raw)
}

/// Whether the router has the table that the rule names.
fn check(rule: &Rule, config: &RouteConfig) -> Result<(), RulesProblem> {
    let Action::Allow { table, .. } = &rule.action else { return Ok(()) };
    match table {
        Table::Default => Ok(()),
        Table::Number(_) => Err(RulesProblem::Number),
        Table::Name(_) if !config.router.table.is_empty() => Err(RulesProblem::OnlyTable),
        Table::Name(name) if !config.is_fed(name) => Err(RulesProblem::Unfed(name.to_string())),
        Table::Name(_) => Ok(()),
    }
}

/// The VRFs that rules name, behind those of the ports.
pub(super) fn add_vrfs(rules: &Rules, live: &Live, vrfs: &mut Vec<Vrf>) {
    for (_, rule) in rules.iter() {
        if let Action::Allow { table: Table::Name(name), .. } = &rule.action {
            let vrf = live.vrf(name);
            if !vrfs.contains(&vrf) {
                vrfs.push(vrf);
            }
        }
    }
}

/// The place of a table that a rule names.
type Number = Box<dyn Fn(&str) -> Option<usize> + Send + Sync>;

/// The rules of all threads, with their counts and their replacement.
pub(super) struct Book {
    config: RouteConfig,
    by_port: Vec<u16>,
    number: Number,
    handles: Vec<RulesHandle>,
    /// The former rules and the current ones, with the counts of each thread.
    sets: Mutex<Vec<Used>>,
}

struct Used {
    rules: Rules,
    counts: Vec<Arc<RuleCounts>>,
}

/// The counts of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFigures {
    /// The rule's line in its file, 0 for packets that no rule matched.
    pub line: u32,
    /// The rule as text.
    pub rule: String,
    /// Packets.
    pub packets: u64,
    /// Bytes of frames.
    pub bytes: u64,
}

impl Used {
    fn of(&self, rule: Option<RuleId>) -> (u64, u64) {
        let all = self.counts.iter().map(|counts| counts.of(rule));
        all.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1))
    }
}

impl Book {
    /// The policies of this number of threads, and their book.
    pub(super) fn open(
        config: &RouteConfig,
        rules: Rules,
        by_port: &[u16],
        number: Number,
        threads: usize,
    ) -> Result<(Self, Vec<ByRules>), ConfigError> {
        let book = Self {
            config: config.clone(),
            by_port: by_port.to_vec(),
            number,
            handles: Vec::new(),
            sets: Mutex::default(),
        };
        let policies: Vec<ByRules> =
            book.sets_of(&rules, threads)?.into_iter().map(ByRules::from).collect();
        let handles = policies.iter().map(ByRules::handle).collect();
        let counts = policies.iter().map(ByRules::counts).collect();
        let sets = Mutex::new(vec![Used { rules, counts }]);
        Ok((Self { handles, sets, ..book }, policies))
    }

    /// The rules for each thread.
    fn sets_of(&self, rules: &Rules, threads: usize) -> Result<Vec<RuleSet>, ConfigError> {
        let unknown = |name: &str| Problem::Rules(RulesProblem::New(name.to_owned()));
        for (_, rule) in rules.iter() {
            if let Action::Allow { table: Table::Name(name), .. } = &rule.action
                && (self.number)(name).is_none()
            {
                return Err(ConfigError::from(unknown(name)).at_line(rule.line as usize));
            }
        }
        let classifier = Classifier::new(rules.clone(), &ClassifierOptions::default());
        let table = |table: &Table| match table {
            Table::Name(name) => (self.number)(name)
                .and_then(|number| u16::try_from(number).ok())
                .ok_or_else(|| ConfigError::from(unknown(name))),
            _ => Ok(0),
        };
        let set = |_| RuleSet::new(classifier.clone(), self.by_port.clone(), table);
        (0..threads).map(set).collect()
    }

    /// Reads the file again. If something is wrong with it, the rules stay that there are.
    pub(super) fn reload(&self) {
        let made = read(&self.config).and_then(|text| {
            let rules = text.unwrap_or_default().rules;
            let sets = self.sets_of(&rules, self.handles.len())?;
            Ok((rules, sets))
        });
        let (rules, sets) = match made {
            Ok(made) => made,
            Err(error) => return warn!("the rules are unchanged: {error}"),
        };
        let count = rules.len();
        let counts = sets.iter().map(RuleSet::counts).collect();
        let mut used = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        used.push(Used { rules, counts });
        drop(used);
        for (handle, set) in self.handles.iter().zip(sets) {
            handle.replace(set);
        }
        let settled = self.handles.iter().filter(|handle| handle.settle(SETTLE)).count();
        let threads = self.handles.len();
        let rest = match settled < threads {
            true => "; idle threads update with their next packet",
            false => "",
        };
        info!("loaded {count} rules ({settled} of {threads} threads updated{rest})");
    }

    /// The counts of the rules in the order of the file, and at the end of packets that no rule matched. A rule that
    /// was in the file before it was read again continues its count if its text is the same.
    pub(super) fn counted(&self) -> Vec<RuleFigures> {
        let used = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((now, before)) = used.split_last() else { return Vec::new() };
        let mut old: HashMap<String, (u64, u64)> = HashMap::new();
        let mut unmatched = now.of(None);
        for set in before {
            for (id, rule) in set.rules.iter() {
                let (packets, bytes) = set.of(Some(id));
                if packets > 0 {
                    let sum = old.entry(rule.to_string()).or_default();
                    *sum = (sum.0 + packets, sum.1 + bytes);
                }
            }
            let (packets, bytes) = set.of(None);
            unmatched = (unmatched.0 + packets, unmatched.1 + bytes);
        }
        let mut all: Vec<RuleFigures> = Vec::new();
        for (id, rule) in now.rules.iter() {
            let (line, rule, (packets, bytes)) = (rule.line, rule.to_string(), now.of(Some(id)));
            let (more, more_bytes) = old.remove(&rule).unwrap_or_default();
            all.push(RuleFigures {
                line,
                rule,
                packets: packets + more,
                bytes: bytes + more_bytes,
            });
        }
        let (packets, bytes) = unmatched;
        all.push(RuleFigures { line: 0, rule: String::new(), packets, bytes });
        all
    }
}
