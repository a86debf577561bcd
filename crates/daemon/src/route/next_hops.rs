//! The next hops of a table file: from its columns, or from a file with a next hop for each value.
//!
//! The columns are those of a recorded FPM stream (`next_hop`, `interface`, `weight`, `kind`), or one column of gateway
//! addresses. A file has a line for each value:
//!
//! ```text
//! # value   next hops, separated by commas
//! 64500     via 192.0.2.1
//! 64501     via 192.0.2.1 weight 2, via 2001:db8::1 port 1
//! CH        port 0
//! drop      blackhole
//! *         via 192.0.2.254
//! ```
//!
//! The value is that of the table's first column, or of `column` on a line of its own (`column origin_as`). `*` is for
//! all values that have no line.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

use fibula_core::{NextHop, NextHops, RouteKind, Value};
use fibula_fib::Columns;
use fibula_ingest::LONGEST_WHOLE;

use super::NextHopsProblem;
use crate::config::{ConfigError, Problem, text_of};

/// The next hops of every hop of the table, by its number.
///
/// `interface` gives the index of the interface of a port, by the port's number.
pub(super) fn of_table(
    columns: &Columns,
    file: Option<&Path>,
    interface: impl Fn(usize) -> Option<u32>,
) -> Result<Vec<NextHops>, ConfigError> {
    match file {
        Some(path) => read(path, &interface)?
            .of_all(columns)
            .map_err(|problem| ConfigError::from(Problem::NextHops(problem)).in_file(path)),
        None => of_columns(columns).map_err(|problem| Problem::NextHops(problem).into()),
    }
}

/// Checks the file for a router with this number of ports, without the table.
///
/// # Errors
/// The problem, with its line.
pub fn check(path: &Path, ports: usize) -> Result<(), ConfigError> {
    read(path, &|number| (number < ports).then_some(0)).map(drop)
}

fn read(path: &Path, interface: &dyn Fn(usize) -> Option<u32>) -> Result<Meanings, ConfigError> {
    let text = text_of(path, LONGEST_WHOLE).map_err(|error| {
        ConfigError::from(Problem::Unreadable { setting: "--next-hops", error }).in_file(path)
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Meanings::parse(text, interface).map_err(|error| error.in_file(path))
}

/// By the columns that a feed with next hops has.
fn of_columns(columns: &Columns) -> Result<Vec<NextHops>, NextHopsProblem> {
    let find = |name: &str| columns.find(name);
    let Some(gateway) = find("next_hop") else {
        return Err(NextHopsProblem::NoGatewayColumn { columns: names(columns) });
    };
    let others = [find("interface"), find("weight"), find("kind")];
    (0..columns.len()).map(|row| of_row(columns, row, gateway, others)).collect()
}

fn names(columns: &Columns) -> Vec<String> {
    columns.names().map(str::to_owned).collect()
}

fn of_row(
    columns: &Columns,
    row: u32,
    gateway: usize,
    [interface, weight, kind]: [Option<usize>; 3],
) -> Result<NextHops, NextHopsProblem> {
    let text = |column: Option<usize>| match column.map(|column| columns.value(column, row)) {
        None | Some(Value::Null) => String::new(),
        Some(Value::Int(number)) => number.to_string(),
        Some(Value::Str(text)) => text.to_owned(),
    };
    let bad = |column, text: &str| NextHopsProblem::Row { row, column, text: text.to_owned() };
    let kind = match &*text(kind) {
        "" => RouteKind::Unicast,
        name => {
            let known = RouteKind::ALL.into_iter().find(|kind| kind.name() == name);
            known.ok_or_else(|| bad("kind", name))?
        }
    };
    let (gateways, interfaces, weights) = (text(Some(gateway)), text(interface), text(weight));
    let items = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (gateways, interfaces, weights) = (items(&gateways), items(&interfaces), items(&weights));
    let count = gateways.len().max(interfaces.len());
    let item = |items: &[String], at: usize| {
        items.get(at).filter(|item| !matches!(&***item, "" | "-")).cloned()
    };
    let mut hops = Vec::new();
    for at in 0..count {
        let gateway = item(&gateways, at)
            .map(|text| text.parse::<IpAddr>().map_err(|_| bad("next_hop", &text)))
            .transpose()?;
        let interface = item(&interfaces, at)
            .map(|text| text.parse().map_err(|_| bad("interface", &text)))
            .transpose()?;
        let weight = item(&weights, at)
            .map(|text| text.parse().map_err(|_| bad("weight", &text)))
            .transpose()?;
        if gateway.is_some() || interface.is_some() {
            hops.push(NextHop { gateway, interface, weight: weight.unwrap_or(1) });
        }
    }
    Ok(NextHops { kind, hops })
}

/// The content of a file.
#[derive(Debug, Default)]
struct Meanings {
    column: Option<String>,
    by_value: HashMap<String, NextHops>,
    others: Option<NextHops>,
}

impl Meanings {
    fn parse(text: &str, interface: &dyn Fn(usize) -> Option<u32>) -> Result<Self, ConfigError> {
        let mut meanings = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            let taken = if line.is_empty() { Ok(()) } else { meanings.take(line, interface) };
            taken
                .map_err(|problem| ConfigError::from(Problem::NextHops(problem)).at_line(number))?;
        }
        match meanings.by_value.is_empty() && meanings.others.is_none() {
            true => Err(Problem::NextHops(NextHopsProblem::NoLine).into()),
            false => Ok(meanings),
        }
    }

    /// Takes a line without its comment.
    fn take(
        &mut self,
        line: &str,
        interface: &dyn Fn(usize) -> Option<u32>,
    ) -> Result<(), NextHopsProblem> {
        let Some((value, rest)) = line.split_once(char::is_whitespace) else {
            return Err(NextHopsProblem::ValueAlone(line.to_owned()));
        };
        if value == "column" {
            self.column = Some(rest.trim().to_owned());
            return Ok(());
        }
        let next_hops = line_of(rest, interface)?;
        let before = match value {
            "*" => self.others.replace(next_hops),
            value => self.by_value.insert(value.to_owned(), next_hops),
        };
        match before {
            Some(_) => Err(NextHopsProblem::SameValue(value.to_owned())),
            None => Ok(()),
        }
    }

    fn of_all(&self, columns: &Columns) -> Result<Vec<NextHops>, NextHopsProblem> {
        let column = match &self.column {
            Some(wanted) => columns.find(wanted).ok_or_else(|| NextHopsProblem::NoColumn {
                column: wanted.clone(),
                columns: names(columns),
            })?,
            None => 0,
        };
        let has_values = column < columns.width();
        let value = |row: u32| match has_values.then(|| columns.value(column, row)) {
            None | Some(Value::Null) => String::new(),
            Some(Value::Int(number)) => number.to_string(),
            Some(Value::Str(text)) => text.to_owned(),
        };
        // A table without values has routes of one kind.
        let rows = columns.len().max(1);
        let of = |row| self.by_value.get(&value(row)).or(self.others.as_ref());
        if !(0..rows).any(|row| of(row).is_some()) {
            return Err(NextHopsProblem::NoValue { first: value(0), columns: names(columns) });
        }
        Ok((0..rows).map(|row| of(row).cloned().unwrap_or_default()).collect())
    }
}

/// `via 192.0.2.1 port 1 weight 2, port 0`, or a kind.
fn line_of(
    text: &str,
    interface: &dyn Fn(usize) -> Option<u32>,
) -> Result<NextHops, NextHopsProblem> {
    let kind = RouteKind::ALL.into_iter().find(|kind| kind.name() == text.trim());
    if let Some(kind) = kind.filter(|kind| *kind != RouteKind::Unicast) {
        return Ok(NextHops { kind, hops: Vec::new() });
    }
    let hops = text.split(',').map(|text| next_hop(text, interface));
    Ok(NextHops { kind: RouteKind::Unicast, hops: hops.collect::<Result<_, _>>()? })
}

/// `via 192.0.2.1 port 1 weight 2`.
fn next_hop(
    text: &str,
    interface: &dyn Fn(usize) -> Option<u32>,
) -> Result<NextHop, NextHopsProblem> {
    use NextHopsProblem as P;
    let mut hop = NextHop { gateway: None, interface: None, weight: 1 };
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let owned = || word.to_owned();
        if RouteKind::ALL.iter().any(|kind| kind.name() == word) {
            return Err(P::KindWithMore(owned()));
        }
        let value = words.next().ok_or_else(|| P::WordAlone(owned()))?;
        let bad = |what| P::Value { word: owned(), value: value.to_owned(), what };
        match word {
            "via" if hop.gateway.is_some() => return Err(P::SameWord(owned())),
            "via" => {
                hop.gateway = Some(value.parse().map_err(|_| bad("address of a gateway"))?);
            }
            "weight" => {
                hop.weight = value.parse().map_err(|_| bad("number from 1 to 4294967295"))?;
            }
            "port" if hop.interface.is_some() => return Err(P::SameWord(owned())),
            "port" => {
                let index = value.parse().ok().and_then(interface);
                hop.interface = Some(index.ok_or_else(|| P::NoPort(value.to_owned()))?);
            }
            _ => return Err(P::UnknownWord(owned())),
        }
    }
    match hop {
        NextHop { gateway: None, interface: None, .. } => Err(P::Nowhere),
        NextHop { weight: 0, .. } => Err(P::ZeroWeight),
        hop => Ok(hop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Meanings, String> {
        let interface = |port| (port < 2).then_some(port as u32 + 7);
        Meanings::parse(text, &interface).map_err(|error| error.in_file("hops").to_string())
    }

    #[test]
    fn values_mean_next_hops() {
        let text = "# comment\n64500 via 192.0.2.1 # one\n\nCH port 1 weight 3, via 2001:db8::1\n* blackhole\ncolumn asn\n";
        let meanings = parse(text).unwrap();
        assert_eq!(meanings.column.as_deref(), Some("asn"));
        assert_eq!(meanings.by_value["64500"].to_string(), "via 192.0.2.1");
        let several = "on the link interface 8 weight 3, via 2001:db8::1 weight 1";
        assert_eq!(meanings.by_value["CH"].to_string(), several);
        assert_eq!(meanings.others.unwrap().to_string(), "blackhole");
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for (text, what) in [
            ("\n64500", "line 2: \"64500\" has no next hops"),
            ("a via", "line 1: via has nothing"),
            ("a via x", "line 1: via \"x\" is no address"),
            (
                "a via 1.2.3.4 via 1.2.3.5",
                "line 1: via occurs twice: next hops are separated by commas",
            ),
            ("a via 1.2.3.4 weight x", "line 1: weight \"x\" is no number"),
            ("a port x", "line 1: there is no port x"),
            ("a port 0,", "line 1: a next hop has neither"),
            ("a blackhole 3", "line 1: blackhole takes nothing after it"),
            ("# nothing\n", "hops: it has no line with a value"),
            ("a port 2", "line 1: there is no port 2"),
            ("a weight 2", "line 1: a next hop has neither"),
            ("a port 0 weight 0", "line 1: a weight is at least 1"),
            ("a blackhole\na local", "line 2: a occurs twice"),
            ("a over 1", "line 1: \"over\" is not"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn columns_of_a_feed_are_read() {
        use fibula_core::ColumnKind::{Int, Str};
        let mut builder = fibula_rib::ColumnsBuilder::new(&[
            ("next_hop", Str),
            ("interface", Str),
            ("weight", Str),
            ("kind", Str),
        ]);
        for row in [
            ["192.0.2.1 -", "3 4", "1 2", "unicast"],
            ["", "", "", "blackhole"],
            ["192.0.2.1", "", "", ""],
        ] {
            builder.push(&row.map(Value::Str)).unwrap();
        }
        let columns = builder.finish().unwrap();
        let all = of_table(&columns, None, |_| None).unwrap();
        let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
        let expected = [
            "via 192.0.2.1 interface 3 weight 1, on the link interface 4 weight 2",
            "blackhole",
            "via 192.0.2.1",
        ];
        assert_eq!(texts, expected);
        let mut asn = fibula_rib::ColumnsBuilder::new(&[("asn", Int)]);
        asn.push(&[Value::Int(64500)]).unwrap();
        let asn = asn.finish().unwrap();
        let of_all =
            |text| parse(text).unwrap().of_all(&asn).map_err(|problem| problem.to_string());
        assert_eq!(of_all("64500 port 0").unwrap()[0].to_string(), "on the link interface 7");
        let error = of_all("64501 port 0").unwrap_err();
        assert!(error.contains("its first value is \"64500\" (its columns: asn)"), "{error}");
        let error = of_all("column country\n64500 port 0").unwrap_err();
        assert!(error.contains("no column country (its columns: asn)"), "{error}");
        let other = fibula_rib::ColumnsBuilder::new(&[("asn", Int)]).finish().unwrap();
        let error = of_table(&other, None, |_| None).unwrap_err().to_string();
        assert!(error.contains("no column next_hop (its columns: asn)"), "{error}");
    }
}
