//! `--rules`: packets are dropped, marked and looked up in other tables by the rules of a file.

use std::path::Path;

use fibula_classify::text::{self, RuleFormat, RuleOptions};
use fibula_classify::{Action, Classifier, ClassifierOptions, Rules, Table};
use fibula_core::Vrf;
use fibula_rib::Live;
use fibula_router::forward::ByRules;
use tracing::info;

use super::config::Config;
use crate::failure::Failure;
use crate::input;

/// The rules of the configuration, if it names a file. Tables that they name are there.
pub(super) fn read(config: &Config) -> Result<Option<Rules>, Failure> {
    let Some(path) = &config.router.rules else { return Ok(None) };
    let failed = |what: &dyn std::fmt::Display| {
        Failure::new(format_args!("--rules {}: {what}", path.display()))
    };
    let bytes = input::read_all(input::open(path)?, path)?;
    let format = RuleFormat::guess(&String::from_utf8_lossy(&bytes));
    let read =
        text::read(&bytes, format, &RuleOptions::default()).map_err(|error| failed(&error))?;
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
    Ok(Some(read.rules))
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

/// The policy of one thread.
pub(super) fn policy(
    rules: &Rules,
    by_port: &[u16],
    number: impl Fn(&str) -> Option<usize>,
) -> Result<ByRules, Failure> {
    let classifier = Classifier::new(rules.clone(), &ClassifierOptions::default());
    ByRules::new(classifier, by_port, |table| match table {
        Table::Name(name) => number(name)
            .and_then(|number| u16::try_from(number).ok())
            .ok_or_else(|| Failure::new(format_args!("no table for vrf {name:?}"))),
        _ => Ok(0),
    })
}
