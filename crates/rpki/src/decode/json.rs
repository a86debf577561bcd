//! JSON: `{"metadata": {...}, "roas": [{"asn": "AS64500", "prefix": "192.0.2.0/24", "maxLength": 24, "ta": "ripe"}]}`.
//!
//! rpki-client writes the AS as a number, and has `expires` in seconds since 1970. All other members, of VRPs and of
//! the document (`bgpsec_keys`, `aspas`, `routerKeys`, ...), are ignored; `aspas.rs` reads the ASPAs of the same files.

mod aspas;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Decoded, parse_time, prefix, shortened};
use crate::{BadVrps, Vrp, parse_asn};

pub(super) use aspas::decode as decode_aspas;

pub(super) fn decode(text: &[u8]) -> Result<Decoded, BadVrps> {
    whole(text, Document::default())
}

/// Reads a document to its end.
fn whole<'de, D: DeserializeSeed<'de>>(text: &'de [u8], document: D) -> Result<D::Value, BadVrps> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let decoded = document.deserialize(&mut reader).and_then(|decoded| {
        reader.end()?;
        Ok(decoded)
    });
    decoded.map_err(|error| {
        let (line, column) = (error.line(), error.column());
        // `BadVrps` reports the position itself, so it is removed from the text.
        let what = error.to_string();
        let place = format!(" at line {line} column {column}");
        let what = what.strip_suffix(&place).unwrap_or(&what);
        let what = match error.is_data() {
            true => what.to_owned(),
            false => format!("not JSON: {what}"),
        };
        BadVrps { line: line.max(1), column, what }
    })
}

/// The whole file.
#[derive(Default)]
struct Document {
    decoded: Decoded,
}

impl<'de> DeserializeSeed<'de> for Document {
    type Value = Decoded;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Decoded, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document {
    type Value = Decoded;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a list `roas`")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut members: M) -> Result<Decoded, M::Error> {
        let mut has_roas = false;
        while let Some(Name(name)) = members.next_key()? {
            match name {
                Member::Roas => {
                    has_roas = true;
                    members.next_value_seed(List(&mut self.decoded))?;
                }
                Member::Metadata => {
                    let Metadata(generated) = members.next_value()?;
                    self.decoded.generated = generated;
                }
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        if !has_roas {
            return Err(M::Error::custom("the document has no list `roas`"));
        }
        self.decoded.format = "json";
        Ok(self.decoded)
    }
}

/// The members that are used.
#[derive(Clone, Copy)]
enum Member {
    Roas,
    Aspas,
    Metadata,
    Asn,
    Customer,
    Providers,
    Prefix,
    MaxLength,
    Expires,
    Generated,
    BuildTime,
    Other,
}

/// The name of a member.
struct Name(Member);

impl<'de> serde::Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Known;
        impl Visitor<'_> for Known {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
                Ok(Name(match name {
                    "roas" => Member::Roas,
                    "aspas" => Member::Aspas,
                    "metadata" => Member::Metadata,
                    "asn" => Member::Asn,
                    "customer" | "customer_asid" => Member::Customer,
                    "providers" => Member::Providers,
                    "prefix" => Member::Prefix,
                    "maxLength" => Member::MaxLength,
                    "expires" => Member::Expires,
                    "generated" => Member::Generated,
                    "buildtime" => Member::BuildTime,
                    _ => Member::Other,
                }))
            }
        }
        deserializer.deserialize_str(Known)
    }
}

/// A text or a number. Values of other types are neither.
enum Scalar {
    Text(String),
    Number(u64),
    Other,
}

impl<'de> serde::Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number))
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Scalar, M::Error> {
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<Scalar, S::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// The time when the file was written: `generated` of routinator, `buildtime` of rpki-client.
struct Metadata(Option<u64>);

impl<'de> serde::Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Times;
        impl<'de> Visitor<'de> for Times {
            type Value = Metadata;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Metadata, M::Error> {
                let mut time = None;
                while let Some((Name(name), value)) = members.next_entry()? {
                    time = match (name, value) {
                        (Member::Generated, Scalar::Number(seconds)) => Some(seconds),
                        (Member::BuildTime, Scalar::Text(text)) => parse_time(&text),
                        _ => time,
                    };
                }
                Ok(Metadata(time))
            }
        }
        deserializer.deserialize_map(Times)
    }
}

/// The list of VRPs.
struct List<'a>(&'a mut Decoded);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of VRPs")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<(), S::Error> {
        while let Some((vrp, expires)) = items.next_element_seed(Roa(self.0.vrps.len() + 1))? {
            self.0.vrps.push(vrp);
            self.0.expiries.extend(expires);
        }
        Ok(())
    }
}

/// A VRP, called a ROA in these files, with its number in the list.
struct Roa(usize);

impl<'de> DeserializeSeed<'de> for Roa {
    type Value = (Vrp, Option<u64>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Roa {
    type Value = (Vrp, Option<u64>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with asn, prefix and maxLength")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        let (mut asn, mut of, mut max_len, mut expires) = (None, None, None, None);
        while let Some(Name(name)) = members.next_key()? {
            match name {
                Member::Asn => asn = Some(members.next_value()?),
                Member::Prefix => of = Some(members.next_value()?),
                Member::MaxLength => max_len = Some(members.next_value()?),
                Member::Expires => expires = Some(members.next_value()?),
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        let vrp = vrp(asn, of, max_len);
        let vrp = vrp.map_err(|what| M::Error::custom(format_args!("VRP {}: {what}", self.0)))?;
        match expires {
            None => Ok((vrp, None)),
            Some(Scalar::Number(expires)) => Ok((vrp, Some(expires))),
            Some(_) => Err(M::Error::custom(format_args!("VRP {}: expires is no time", self.0))),
        }
    }
}

fn vrp(asn: Option<Scalar>, of: Option<Scalar>, max_len: Option<Scalar>) -> Result<Vrp, String> {
    let asn = as_number(asn.ok_or("it has no asn")?, "asn")?;
    let Scalar::Text(text) = of.ok_or("it has no prefix")? else {
        return Err("its prefix is no text".to_owned());
    };
    let of = prefix(&text)?;
    let Scalar::Number(max_len) = max_len.ok_or("it has no maxLength")? else {
        return Err("its maxLength is no number".to_owned());
    };
    Vrp::new(of, max_len, asn).map_err(|error| error.to_string())
}

/// The AS that the member of this name has.
fn as_number(value: Scalar, name: &str) -> Result<u32, String> {
    match value {
        Scalar::Number(number) => u32::try_from(number)
            .map_err(|_| format!("{number} is no AS number: those end at 4294967295")),
        Scalar::Text(text) => {
            parse_asn(&text).ok_or_else(|| format!("{:?} is no AS number", shortened(&text)))
        }
        Scalar::Other => Err(format!("its {name} is no AS number")),
    }
}

#[cfg(test)]
mod tests;
