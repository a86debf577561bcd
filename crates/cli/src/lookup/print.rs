//! How answers are printed: JSON lines and tab-separated values, aligned columns on a terminal.

use std::net::IpAddr;

use fibula_core::{AnyPrefix, Value};
use fibula_fib::{Columns, Match, Moment};
use serde_json::{Map, Value as Json};

use super::{Args, Subject};
use crate::failure::Failure;
use crate::output::{Records, cell, json_value};

/// Prints rows: the address or prefix of the question if there is one, then the matched prefix, the kind of match,
/// and the values.
pub struct Printer<'a> {
    records: Records,
    asks: bool,
    shows_match: bool,
    /// Whether each row has the date from which it holds.
    shows_since: bool,
    /// The value columns, if values are printed.
    columns: Option<&'a Columns>,
    /// The names that they are printed with.
    names: Vec<String>,
}

impl<'a> Printer<'a> {
    /// A printer for answers to addresses and prefixes.
    pub fn answers(args: &Args, columns: &'a Columns, shows_match: bool) -> Result<Self, Failure> {
        Self::new(args, true, shows_match, false, Some(columns))
    }

    /// A printer for matches over time.
    pub fn history(args: &Args, columns: &'a Columns) -> Result<Self, Failure> {
        Self::new(args, true, false, true, Some(columns))
    }

    /// A printer for routes without a question.
    pub fn routes(args: &Args, columns: &'a Columns) -> Result<Self, Failure> {
        Self::new(args, false, false, false, Some(columns))
    }

    /// A printer for prefixes without values.
    pub fn prefixes(args: &Args) -> Result<Self, Failure> {
        Self::new(args, false, false, false, None)
    }

    fn new(
        args: &Args,
        asks: bool,
        shows_match: bool,
        shows_since: bool,
        columns: Option<&'a Columns>,
    ) -> Result<Self, Failure> {
        let mut header: Vec<&str> = Vec::new();
        header.extend(asks.then_some("address"));
        header.extend(shows_since.then_some("since"));
        header.push("prefix");
        header.extend(shows_match.then_some("match"));
        // A question that is a prefix has a match in JSON even if the others have none.
        let also = asks.then_some("match");
        let names = columns.map_or_else(Vec::new, |columns| {
            columns.names_beside(&header.iter().copied().chain(also).collect::<Vec<_>>())
        });
        header.extend(names.iter().map(String::as_str));
        let records = Records::new(&header, args.json, !args.no_header)?;
        Ok(Self { records, asks, shows_match, shows_since, columns, names })
    }

    /// Prints the routes found for a question, or a row without values if there are none.
    pub fn answer(&mut self, requested: Subject, found: &[Match<'_>]) -> Result<(), Failure> {
        let text = match requested {
            Subject::Address(ip) => ip.to_string(),
            Subject::Prefix(prefix) => prefix.to_string(),
        };
        let shows_match = self.shows_match || matches!(requested, Subject::Prefix(_));
        if found.is_empty() {
            return self.row(Some(&text), None, shows_match.then_some(None), None, None);
        }
        for route in found {
            let matched = route.prefix().map(|found| matched(found, requested.prefix()));
            let prefix = route.prefix();
            self.row(Some(&text), prefix, shows_match.then_some(matched), Some(route), None)?;
        }
        Ok(())
    }

    /// Prints the match of an address from a date on.
    pub fn change(
        &mut self,
        address: IpAddr,
        since: Moment,
        found: Option<&Match<'_>>,
    ) -> Result<(), Failure> {
        let (address, since) = (address.to_string(), since.to_string());
        let prefix = found.and_then(Match::prefix);
        self.row_since(Some(&address), Some(&since), prefix, None, found, None)
    }

    /// Prints a row without values, for an input line that is no address and no prefix.
    pub fn nothing(&mut self, text: Option<&str>, error: Option<&str>) -> Result<(), Failure> {
        self.row(text, None, self.shows_match.then_some(None), None, error)
    }

    /// Prints a route without a question.
    pub fn route(&mut self, route: &Match<'_>) -> Result<(), Failure> {
        self.row(None, route.prefix(), None, Some(route), None)
    }

    /// Prints a prefix without values.
    pub fn prefix(&mut self, prefix: AnyPrefix) -> Result<(), Failure> {
        self.row(None, Some(prefix), None, None, None)
    }

    fn row(
        &mut self,
        requested: Option<&str>,
        prefix: Option<AnyPrefix>,
        matched: Option<Option<&str>>,
        route: Option<&Match<'_>>,
        error: Option<&str>,
    ) -> Result<(), Failure> {
        self.row_since(requested, None, prefix, matched, route, error)
    }

    fn row_since(
        &mut self,
        requested: Option<&str>,
        since: Option<&str>,
        prefix: Option<AnyPrefix>,
        matched: Option<Option<&str>>,
        route: Option<&Match<'_>>,
        error: Option<&str>,
    ) -> Result<(), Failure> {
        let prefix = prefix.map(|prefix| prefix.to_string());
        if self.records.is_json() {
            let mut object = Map::new();
            if self.asks {
                object.insert("address".to_owned(), requested.into());
            }
            if let Some(since) = since {
                object.insert("since".to_owned(), since.into());
            }
            object.insert("prefix".to_owned(), prefix.into());
            if let Some(matched) = matched {
                object.insert("match".to_owned(), matched.into());
            }
            let mut values = route.into_iter().flat_map(Match::typed);
            for name in &self.names {
                let value = values.next().map_or(Json::Null, |(_, value)| json_value(value));
                object.insert(name.clone(), value);
            }
            if let Some(error) = error {
                object.insert("error".to_owned(), error.into());
            }
            return self.records.object(&object);
        }
        let mut cells = Vec::new();
        if self.asks {
            cells.push(cell(requested));
        }
        if self.shows_since {
            cells.push(cell(since));
        }
        cells.push(cell(prefix.as_deref()));
        if self.shows_match {
            cells.push(cell(matched.flatten()));
        }
        let names = self.columns.into_iter().flat_map(Columns::names);
        let value = |name| route.and_then(|route| route.value(name)).unwrap_or(Value::Null);
        cells.extend(names.map(|name| match value(name) {
            Value::Null => cell(None),
            Value::Int(int) => int.to_string(),
            Value::Str(text) => cell(Some(text)),
        }));
        self.records.row(cells)
    }

    /// Prints the rows that are still buffered.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.records.flush()
    }
}

/// How a route relates to the prefix that it overlaps.
fn matched(found: AnyPrefix, requested: AnyPrefix) -> &'static str {
    let len = |prefix: AnyPrefix| match prefix {
        AnyPrefix::V4(prefix) => prefix.len(),
        AnyPrefix::V6(prefix) => prefix.len(),
    };
    match len(found).cmp(&len(requested.unmapped())) {
        std::cmp::Ordering::Less => "covering",
        std::cmp::Ordering::Equal => "exact",
        std::cmp::Ordering::Greater => "covered",
    }
}
