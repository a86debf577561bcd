//! `--rules`: packets are dropped, marked and looked up in other tables by the rules of a file.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fibula_classify::text::{self, RuleFormat, RuleOptions, RuleText};
use fibula_classify::{Action, Classifier, ClassifierOptions, RuleId, Rules, Table};
use fibula_core::Vrf;
use fibula_rib::Live;
use fibula_router::forward::{ByRules, RuleCounts, RuleSet, RulesHandle};
use tracing::{info, warn};

use super::config::Config;
use crate::classify::NO_RULES;
use crate::failure::Failure;
use crate::input;

/// How long a reload waits for a thread to take the rules.
const SETTLE: Duration = Duration::from_millis(100);

/// The rules of the configuration, if it names a file. Tables that they name are there.
pub(super) fn read(config: &Config) -> Result<Option<RuleText>, Failure> {
    let Some(path) = &config.router.rules else { return Ok(None) };
    let failed = |what: &dyn std::fmt::Display| {
        Failure::new(format_args!("--rules {}: {what}", path.display()))
    };
    let bytes = input::read_all(input::open(path)?, path)?;
    let format = RuleFormat::guess(&String::from_utf8_lossy(&bytes));
    let read =
        text::read(&bytes, format, &RuleOptions::default()).map_err(|error| failed(&error))?;
    // An editor or a script that writes the file anew has it empty for a moment.
    if read.rules.is_empty() {
        return Err(failed(&NO_RULES));
    }
    for (_, rule) in read.rules.iter() {
        let Action::Allow { table, .. } = &rule.action else { continue };
        let wrong = match table {
            Table::Default => continue,
            Table::Number(_) => "tables have no numbers here: name one with `vrf`".to_owned(),
            Table::Name(_) if !config.router.table.is_empty() => {
                "--table is the only table: leave `vrf` out, or take a source in its place"
                    .to_owned()
            }
            Table::Name(name) if !config.is_fed(name) => {
                format!("no source feeds the table of vrf {name:?}")
            }
            Table::Name(_) => continue,
        };
        return Err(failed(&format_args!("line {}: {wrong}", rule.line)));
    }
    info!("{}: {} rules", path.display(), read.rules.len());
    read.notes.iter().for_each(|what| info!("{}: {what}", Path::display(path)));
    Ok(Some(read))
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

/// The rules of all threads: what they counted, and how they are replaced.
pub(super) struct Book {
    config: Config,
    by_port: Vec<u16>,
    number: Number,
    handles: Vec<RulesHandle>,
    /// The rules that were used and those that are, with what each thread counted.
    sets: Mutex<Vec<Used>>,
}

struct Used {
    rules: Rules,
    counts: Vec<Arc<RuleCounts>>,
}

/// What a rule counted.
pub(super) struct Counted {
    /// The rule's line in its file, 0 for what no rule matched.
    pub line: u32,
    pub rule: String,
    pub packets: u64,
    pub bytes: u64,
}

impl Used {
    fn of(&self, rule: Option<RuleId>) -> (u64, u64) {
        let all = self.counts.iter().map(|counts| counts.of(rule));
        all.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1))
    }
}

impl Book {
    /// The policies of so many threads, and the book of them.
    pub(super) fn open(
        config: &Config,
        rules: Rules,
        by_port: &[u16],
        number: Number,
        threads: usize,
    ) -> Result<(Self, Vec<ByRules>), Failure> {
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
    fn sets_of(&self, rules: &Rules, threads: usize) -> Result<Vec<RuleSet>, Failure> {
        for (_, rule) in rules.iter() {
            if let Action::Allow { table: Table::Name(name), .. } = &rule.action
                && (self.number)(name).is_none()
            {
                return Err(Failure::new(format_args!(
                    "line {}: vrf {name:?} was not named when the router started: start it anew to have its table",
                    rule.line
                )));
            }
        }
        let classifier = Classifier::new(rules.clone(), &ClassifierOptions::default());
        let table = |table: &Table| match table {
            Table::Name(name) => (self.number)(name)
                .and_then(|number| u16::try_from(number).ok())
                .ok_or_else(|| Failure::new(format_args!("no table for vrf {name:?}"))),
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
            Err(failure) => {
                warn!("the rules stay as they were: {failure}");
                return;
            }
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
            true => "; idle ones take them before their next packets",
            false => "",
        };
        info!("packets are judged by {count} rules now ({settled} of {threads} threads{rest})");
    }

    /// What rules counted, those first that are in the file first, and at last what no rule matched. A rule that was in the file before
    /// it was read again goes on with its count, if its text is the same.
    pub(super) fn counted(&self) -> Vec<Counted> {
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
        let mut all: Vec<Counted> = Vec::new();
        for (id, rule) in now.rules.iter() {
            let (line, rule, (packets, bytes)) = (rule.line, rule.to_string(), now.of(Some(id)));
            let (more, more_bytes) = old.remove(&rule).unwrap_or_default();
            all.push(Counted { line, rule, packets: packets + more, bytes: bytes + more_bytes });
        }
        let (packets, bytes) = unmatched;
        all.push(Counted { line: 0, rule: String::new(), packets, bytes });
        all
    }
}
