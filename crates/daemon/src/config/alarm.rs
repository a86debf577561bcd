//! Rules on route changes, and where alarms are sent.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use fibula_alarms::{AlarmKind, AlarmRule};
use fibula_core::AnyPrefix;
use serde::Deserialize;
use toml::Spanned;

use super::check::Fault;
use super::{AlarmProblem, ConfigError, Problem, ServeConfig, Time};

/// A rule on route changes. Which keys it has depends on its kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AlarmConfig {
    name: Spanned<String>,
    kind: Spanned<String>,
    /// The tables whose routes it judges, with those below them; if empty, all.
    #[serde(default)]
    tables: Vec<String>,
    prefixes: Option<Spanned<Vec<Spanned<String>>>>,
    origins: Option<Spanned<Vec<u32>>>,
    max_length: Option<Spanned<u8>>,
    ases: Option<Spanned<Vec<u32>>>,
    after: Option<Spanned<Time>>,
    changes: Option<Spanned<usize>>,
    within: Option<Spanned<Time>>,
}

/// Where alarms are sent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WebhookConfig {
    /// The address, `http://` or `https://`.
    pub url: Spanned<String>,
    /// A file whose first line is the secret of the signatures; without one, there are none.
    pub secret_file: Option<PathBuf>,
    /// The longest time for a request.
    #[serde(default = "timeout")]
    pub timeout: Time,
    /// Attempts for an alarm.
    #[serde(default = "attempts")]
    pub attempts: u32,
    /// Alarms that wait to be sent; further ones are dropped.
    #[serde(default = "queue")]
    pub queue: usize,
}

fn timeout() -> Time {
    super::time("10s")
}
fn attempts() -> u32 {
    6
}
fn queue() -> usize {
    1000
}

/// Longest time of a rule.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);
/// Most changes of a rule on flapping.
const MOST_CHANGES: usize = 1000;

/// The keys that each kind has: those that it needs, and those that it may have.
const KINDS: [(&str, &[&str], &[&str]); 8] = [
    ("unexpected-origin", &["prefixes", "origins"], &[]),
    ("more-specific", &["prefixes"], &["max-length", "origins"]),
    ("newly-invalid", &[], &["prefixes"]),
    ("withdrawn", &["prefixes"], &["after"]),
    ("flapping", &[], &["prefixes", "changes", "within"]),
    ("leak", &[], &["prefixes", "origins"]),
    ("path-through", &["ases"], &["prefixes", "origins"]),
    ("path-without", &["ases"], &["prefixes", "origins"]),
];

impl AlarmConfig {
    /// The rule.
    fn rule(&self) -> Result<AlarmRule, Fault> {
        let (name, kind) = (self.name.get_ref(), &**self.kind.get_ref());
        let fault = |at, problem| self.fault(at, problem);
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(fault(self.name.span(), AlarmProblem::Name));
        }
        let Some((_, needs, may)) = KINDS.iter().find(|(known, ..)| *known == kind) else {
            let known = KINDS.map(|(known, ..)| known).join(", ");
            let kind = kind.to_owned();
            return Err(fault(self.kind.span(), AlarmProblem::Kind { kind, known }));
        };
        for (key, at) in self.keys() {
            match at {
                None if needs.contains(&key) => {
                    return Err(fault(self.kind.span(), AlarmProblem::Missing { key }));
                }
                Some(at) if !needs.contains(&key) && !may.contains(&key) => {
                    let keys = needs.iter().chain(*may).copied().collect::<Vec<_>>().join(", ");
                    return Err(fault(at, AlarmProblem::Foreign { key, keys }));
                }
                _ => {}
            }
        }
        let prefixes = self.prefixes.as_ref().map(|list| self.prefixes(list)).transpose()?;
        self.check_max_length(prefixes.as_deref().unwrap_or_default())?;
        let kind = self.kind(kind)?;
        let rule = AlarmRule::new(&**name, kind).of_tables(self.tables.iter().cloned());
        Ok(match prefixes {
            Some(prefixes) => rule.on(prefixes),
            None => rule,
        })
    }

    /// The kind, with its keys.
    fn kind(&self, kind: &str) -> Result<AlarmKind, Fault> {
        let origins = self.ases(&self.origins, "origins")?;
        Ok(match kind {
            "unexpected-origin" => AlarmKind::UnexpectedOrigin { origins },
            "more-specific" => {
                let max_len = self.max_length.as_ref().map(|max| *max.get_ref());
                if let (None, Some(origins)) = (max_len, &self.origins) {
                    return Err(self.fault(origins.span(), AlarmProblem::OriginsOfNone));
                }
                AlarmKind::MoreSpecific { max_len, origins }
            }
            "newly-invalid" => AlarmKind::NewlyInvalid,
            "withdrawn" => {
                let after = self.time(&self.after, "after", Duration::from_secs(300))?;
                AlarmKind::Withdrawn { after }
            }
            "flapping" => {
                let within = self.time(&self.within, "within", Duration::from_secs(600))?;
                let changes = match &self.changes {
                    Some(changes) if !(2..=MOST_CHANGES).contains(changes.get_ref()) => {
                        let problem = AlarmProblem::Changes { most: MOST_CHANGES };
                        return Err(self.fault(changes.span(), problem));
                    }
                    changes => changes.as_ref().map_or(10, |changes| *changes.get_ref()),
                };
                AlarmKind::Flapping { changes, within }
            }
            "leak" => AlarmKind::Leak { origins },
            "path-through" => {
                AlarmKind::PathThrough { ases: self.ases(&self.ases, "ases")?, origins }
            }
            _ => AlarmKind::PathWithout { ases: self.ases(&self.ases, "ases")?, origins },
        })
    }

    fn ases(&self, list: &Option<Spanned<Vec<u32>>>, key: &'static str) -> Result<Vec<u32>, Fault> {
        match list {
            Some(list) if list.get_ref().is_empty() => {
                Err(self.fault(list.span(), AlarmProblem::Empty { key }))
            }
            list => Ok(list.as_ref().map(|list| list.get_ref().clone()).unwrap_or_default()),
        }
    }

    fn time(
        &self,
        time: &Option<Spanned<Time>>,
        key: &'static str,
        default: Duration,
    ) -> Result<Duration, Fault> {
        match time {
            Some(time) if time.get_ref().0.is_zero() || time.get_ref().0 > LONGEST => {
                Err(self.fault(time.span(), AlarmProblem::Time { key }))
            }
            time => Ok(time.as_ref().map_or(default, |time| time.get_ref().0)),
        }
    }

    /// Checks that longer routes of each prefix could be allowed.
    fn check_max_length(&self, prefixes: &[AnyPrefix]) -> Result<(), Fault> {
        let Some(length) = &self.max_length else { return Ok(()) };
        let max = *length.get_ref();
        let is_useless = |prefix: &&AnyPrefix| match prefix {
            AnyPrefix::V4(prefix) => max <= prefix.len() || max > 32,
            AnyPrefix::V6(prefix) => max <= prefix.len() || max > 128,
        };
        match prefixes.iter().find(is_useless) {
            Some(&prefix) => {
                Err(self.fault(length.span(), AlarmProblem::MaxLength { max, prefix }))
            }
            None => Ok(()),
        }
    }

    fn prefixes(&self, list: &Spanned<Vec<Spanned<String>>>) -> Result<Vec<AnyPrefix>, Fault> {
        if list.get_ref().is_empty() {
            return Err(self.fault(list.span(), AlarmProblem::Empty { key: "prefixes" }));
        }
        let parsed = list.get_ref().iter().map(|text| {
            text.get_ref().parse().map_err(|error: fibula_core::PrefixError| {
                let (prefix, why) = (text.get_ref().clone(), error.to_string());
                self.fault(text.span(), AlarmProblem::Prefix { prefix, why })
            })
        });
        parsed.collect()
    }

    /// The keys that depend on the kind, and where they are.
    fn keys(&self) -> [(&'static str, Option<std::ops::Range<usize>>); 7] {
        fn span<T>(value: &Option<Spanned<T>>) -> Option<std::ops::Range<usize>> {
            value.as_ref().map(Spanned::span)
        }
        [
            ("prefixes", span(&self.prefixes)),
            ("origins", span(&self.origins)),
            ("max-length", span(&self.max_length)),
            ("ases", span(&self.ases)),
            ("after", span(&self.after)),
            ("changes", span(&self.changes)),
            ("within", span(&self.within)),
        ]
    }

    fn fault(&self, at: std::ops::Range<usize>, problem: AlarmProblem) -> Fault {
        let rule = self.name.get_ref().clone();
        Fault::at(at, Problem::Alarm { rule, problem })
    }
}

impl ServeConfig {
    /// The rules on route changes, in the order of the file.
    ///
    /// # Errors
    /// The first problem of a rule; none, if the configuration was [checked](ServeConfig::checked).
    pub fn alarm_rules(&self) -> Result<Vec<AlarmRule>, ConfigError> {
        self.compiled_alarms().map_err(|fault| fault.problem().into())
    }

    fn compiled_alarms(&self) -> Result<Vec<AlarmRule>, Fault> {
        self.alarm.iter().map(AlarmConfig::rule).collect()
    }

    pub(super) fn check_alarms(&self) -> Result<(), Fault> {
        self.compiled_alarms()?;
        let mut names = HashSet::new();
        for alarm in &self.alarm {
            if !names.insert(alarm.name.get_ref()) {
                return Err(alarm.fault(alarm.name.span(), AlarmProblem::SameName));
            }
        }
        if let (Some(first), 0) = (self.alarm.first(), self.tables.history) {
            return Err(first.fault(first.name.span(), AlarmProblem::NoHistory));
        }
        let Some(webhook) = &self.webhook else { return Ok(()) };
        let url = webhook.url.get_ref();
        let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        let is_url =
            host.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', ':', '?']));
        if !is_url || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(Fault::at(webhook.url.span(), Problem::Webhook(url.clone())));
        }
        if self.alarm.is_empty() {
            return Err(Fault::at(webhook.url.span(), Problem::WebhookWithoutRules));
        }
        Ok(())
    }
}
