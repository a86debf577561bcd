//! The parameters of a request: the path's last part and the query, checked against the endpoint's description.

use std::net::IpAddr;

use fibula_core::AnyPrefix;
use hyper::{HeaderMap, Uri};

use super::answer::Refusal;
use super::endpoint::{Endpoint, Parameter, Takes};

/// A request's parameters, checked against the endpoint's documentation.
pub(crate) struct Params {
    /// The last part of the path.
    pub(crate) rest: String,
    query: Vec<(&'static str, String)>,
    pub(crate) headers: HeaderMap,
}

/// Maximum number of bytes of a text that errors quote.
const SHOWN: usize = 60;

/// A text for an error, shortened.
pub(crate) fn shown(text: &str) -> String {
    let short: String = text.chars().take(SHOWN).collect();
    let more = if short.len() < text.len() { "..." } else { "" };
    format!("{short:?}{more}")
}

impl Params {
    pub(crate) fn new<H>(
        endpoint: &Endpoint<H>,
        rest: &str,
        uri: &Uri,
        headers: HeaderMap,
    ) -> Result<Self, Refusal> {
        let rest = decode(rest, false)
            .ok_or_else(|| Refusal::bad("the path has an escape that is not UTF-8 text"))?;
        let mut query = Vec::new();
        if endpoint.is_lenient {
            return Ok(Self { rest, query, headers });
        }
        for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(name), Some(value)) = (decode(name, true), decode(value, true)) else {
                return Err(Refusal::bad("the query has an escape that is not UTF-8 text"));
            };
            let Some(parameter) = endpoint.query.iter().find(|known| known.name == name) else {
                return Err(unknown(&name, endpoint));
            };
            if query.iter().any(|(known, _)| *known == parameter.name) {
                return Err(Refusal::bad(format_args!("the parameter {name} occurs twice")));
            }
            parameter.check(&value)?;
            query.push((parameter.name, value));
        }
        let missing = |known: &&Parameter| {
            known.is_required && !query.iter().any(|(name, _)| *name == known.name)
        };
        if let Some(missing) = endpoint.query.iter().find(missing) {
            return Err(Refusal::bad(format_args!("the parameter {} is missing", missing.name)));
        }
        Ok(Self { rest, query, headers })
    }

    /// The value of a parameter, if it was given.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value)
    }

    /// The value of a parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// The value of a parameter that is a prefix, or an address for its host route.
    pub(crate) fn prefix(&self, name: &str) -> Result<Option<AnyPrefix>, Refusal> {
        self.text(name).map(prefix).transpose()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

fn unknown<H>(name: &str, endpoint: &Endpoint<H>) -> Refusal {
    let known: Vec<_> = endpoint.query.iter().map(|known| known.name).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Refusal::bad(format_args!("no parameter {}; there are: {known}", shown(name)))
}

impl Parameter {
    fn check(&self, value: &str) -> Result<(), Refusal> {
        let name = self.name;
        match self.takes {
            Takes::Text if value.is_empty() => {
                Err(Refusal::bad(format_args!("the parameter {name} is empty")))
            }
            Takes::Number(least, most)
                if !value.parse().is_ok_and(|number| (least..=most).contains(&number)) =>
            {
                Err(Refusal::bad(format_args!(
                    "the parameter {name} is {}, not a number from {least} to {most}",
                    shown(value)
                )))
            }
            Takes::Word(words) if !words.contains(&value) => Err(Refusal::bad(format_args!(
                "the parameter {name} is {}, not one of: {}",
                shown(value),
                words.join(", ")
            ))),
            _ => Ok(()),
        }
    }
}

/// Parses an address.
pub(crate) fn address(text: &str) -> Result<IpAddr, Refusal> {
    text.parse().map_err(|_| {
        Refusal::bad(format_args!(
            "{} is not an address; addresses look like 192.0.2.1 or 2001:db8::1",
            shown(text)
        ))
    })
}

/// Parses a prefix. An address gives its host route, and an IPv4-mapped address or prefix the IPv4 prefix.
pub(crate) fn prefix(text: &str) -> Result<AnyPrefix, Refusal> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(AnyPrefix::host(address).unmapped());
    }
    match text.parse::<AnyPrefix>() {
        Ok(prefix) => Ok(prefix.unmapped()),
        Err(error) => Err(Refusal::bad(format_args!(
            "{} is not a prefix: {error}; prefixes look like 192.0.2.0/24 or 2001:db8::/32",
            shown(text)
        ))),
    }
}

/// Decodes the escapes of a URL; `None` if the result is not valid text.
fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        out.push(match byte {
            b'%' => (digit(bytes.next())? * 16 + digit(bytes.next())?) as u8,
            b'+' if plus_is_space => b' ',
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone() {
        assert_eq!(decode("a%2Fb+c", true).as_deref(), Some("a/b c"));
        assert_eq!(decode("a%2fb+c", false).as_deref(), Some("a/b+c"));
        assert_eq!(decode("Z%C3%BCrich", true).as_deref(), Some("Zürich"));
        for bad in ["%", "%2", "%zz", "%ff", "%+1"] {
            assert_eq!(decode(bad, true), None, "{bad}");
        }
    }

    #[test]
    fn prefixes_are_prefixes_or_addresses() {
        let text = |text| prefix(text).map(|prefix| prefix.to_string());
        assert_eq!(text("192.0.2.0/24").as_deref(), Ok("192.0.2.0/24"));
        assert_eq!(text("192.0.2.1").as_deref(), Ok("192.0.2.1/32"));
        assert_eq!(text("::ffff:192.0.2.1").as_deref(), Ok("192.0.2.1/32"));
        assert!(text("192.0.2.0/33").unwrap_err().sentence.contains("\"192.0.2.0/33\" is not"));
    }
}
