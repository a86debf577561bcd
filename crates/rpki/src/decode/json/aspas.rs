//! The ASPAs of a document.
//!
//! ```text
//! "aspas": [{"customer_asid": 64500, "expires": 1790200000, "providers": [64501, 64502]}]    rpki-client
//! "aspas": [{"customer": "AS64500", "providers": ["AS64501", "AS64502"], "ta": "ripe"}]      routinator
//! ```
//!
//! rpki-client of 2022 wrote `provider_authorizations` in their place, with a list for each family, as the draft of its
//! time had them. These are not read.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Member, Metadata, Name, Scalar, as_number, whole};
use crate::decode::DecodedAspas;
use crate::{Aspa, BadVrps};

/// The most providers of an ASPA: more do not fit into a PDU of RTR.
const MOST: usize = 16_380;

pub(in crate::decode) fn decode(text: &[u8]) -> Result<DecodedAspas, BadVrps> {
    whole(text, Document::default())
}

/// The whole file.
#[derive(Default)]
struct Document(DecodedAspas);

impl<'de> DeserializeSeed<'de> for Document {
    type Value = DecodedAspas;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<DecodedAspas, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document {
    type Value = DecodedAspas;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a list `aspas`")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut members: M) -> Result<DecodedAspas, M::Error> {
        let mut has_aspas = false;
        while let Some(Name(name)) = members.next_key()? {
            match name {
                Member::Aspas => {
                    has_aspas = true;
                    members.next_value_seed(List(&mut self.0))?;
                }
                Member::Metadata => {
                    let Metadata(generated) = members.next_value()?;
                    self.0.generated = generated;
                }
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        match has_aspas {
            true => Ok(self.0),
            false => Err(M::Error::custom("the document has no list `aspas`")),
        }
    }
}

/// The list of ASPAs.
struct List<'a>(&'a mut DecodedAspas);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of ASPAs")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<(), S::Error> {
        while let Some((aspa, expires)) = items.next_element_seed(Item(self.0.aspas.len() + 1))? {
            self.0.aspas.push(aspa);
            self.0.expiries.extend(expires);
        }
        Ok(())
    }
}

/// An ASPA, with its number in the list.
struct Item(usize);

impl<'de> DeserializeSeed<'de> for Item {
    type Value = (Aspa, Option<u64>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Item {
    type Value = (Aspa, Option<u64>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a customer and its providers")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        let (mut customer, mut providers, mut expires) = (None, None, None);
        while let Some(Name(name)) = members.next_key()? {
            match name {
                Member::Customer => customer = Some(members.next_value()?),
                Member::Providers => providers = Some(members.next_value_seed(Providers(self.0))?),
                Member::Expires => expires = Some(members.next_value()?),
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        let fail = |what: String| M::Error::custom(format_args!("ASPA {}: {what}", self.0));
        let customer = customer.ok_or_else(|| fail("it has no customer".to_owned()))?;
        let customer = as_number(customer, "customer").map_err(fail)?;
        let providers: Vec<u32> =
            providers.ok_or_else(|| fail("it has no providers".to_owned()))?;
        // It would say that nobody is a provider of this AS. An ASPA says so by AS 0.
        if providers.is_empty() {
            return Err(fail("its list of providers is empty".to_owned()));
        }
        match expires {
            None => Ok((Aspa { customer, providers }, None)),
            Some(Scalar::Number(expires)) => Ok((Aspa { customer, providers }, Some(expires))),
            Some(_) => Err(fail("expires is no time".to_owned())),
        }
    }
}

/// The providers of the ASPA with this number.
struct Providers(usize);

impl<'de> DeserializeSeed<'de> for Providers {
    type Value = Vec<u32>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<u32>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Providers {
    type Value = Vec<u32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of AS numbers")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<Vec<u32>, S::Error> {
        let fail = |what: String| S::Error::custom(format_args!("ASPA {}: {what}", self.0));
        let mut providers = Vec::new();
        while let Some(provider) = items.next_element::<Scalar>()? {
            if providers.len() == MOST {
                return Err(fail(format!("it has more than {MOST} providers")));
            }
            providers.push(as_number(provider, "provider").map_err(fail)?);
        }
        Ok(providers)
    }
}

#[cfg(test)]
mod tests {
    use crate::decode_aspas;

    const GOOD: &str = r#"{"customer":"AS1","providers":["AS2"]}"#;

    #[test]
    fn aspas_that_are_none() {
        let many = format!(r#""customer":1,"providers":[{}7]"#, "7,".repeat(16_380));
        for (members, what) in [
            (r#""providers":[2]"#, "it has no customer"),
            (r#""customer":1"#, "it has no providers"),
            (r#""customer":1,"providers":[]"#, "its list of providers is empty"),
            (r#""customer":null,"providers":[2]"#, "its customer is no AS number"),
            (r#""customer_asid":"ASX","providers":[2]"#, "\"ASX\" is no AS number"),
            (
                r#""customer":4294967296,"providers":[2]"#,
                "4294967296 is no AS number: those end at 4294967295",
            ),
            (r#""customer":1,"providers":[2],"expires":"soon""#, "expires is no time"),
        ] {
            let text = format!("{{\"aspas\": [\n{GOOD},\n{{{members}}}\n]}}");
            let expected = format!("line 3, byte {}: ASPA 2: {what}", members.len() + 2);
            assert_eq!(decode_aspas(text.as_bytes()).unwrap_err().to_string(), expected);
        }
        // These end at the provider.
        for (members, what) in [
            (r#""customer":1,"providers":[2,-3]"#, "ASPA 2: its provider is no AS number"),
            (r#""customer":1,"providers":["2","x"]"#, "ASPA 2: \"x\" is no AS number"),
            (r#""customer":1,"providers":2"#, "expected a list of AS numbers"),
            (&many, "ASPA 2: it has more than 16380 providers"),
        ] {
            let text = format!("{{\"aspas\": [\n{GOOD},\n{{{members}}}\n]}}");
            let error = decode_aspas(text.as_bytes()).unwrap_err();
            assert!(error.line == 3 && error.what.ends_with(what), "{error}");
        }
    }

    #[test]
    fn documents_that_are_none() {
        for (text, what) in [
            ("{}", "line 1, byte 2: the document has no list `aspas`"),
            ("{\"roas\": []}", "line 1, byte 12: the document has no list `aspas`"),
            ("{\"aspas\": [\n7]}", "expected an object with a customer and its providers"),
            ("{\"aspas\": {}}", "expected a list of ASPAs"),
            ("[]", "expected an object with a list `aspas`"),
            ("{\"aspas\": [", "line 1, byte 11: not JSON: EOF while parsing a list"),
            ("ASN,IP Prefix,Max Length", "line 1: not JSON: only JSON has ASPAs"),
        ] {
            let error = decode_aspas(text.as_bytes()).unwrap_err().to_string();
            assert!(error.ends_with(what), "{text}: {error}");
        }
    }

    #[test]
    fn other_members_do_no_harm() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let text = format!(
            "\u{feff}{{\"roas\":[{{\"asn\":null}}],\"x\":{deep},\"aspas\":[{GOOD}],\"aspas\":[{GOOD}]}}"
        );
        assert_eq!(decode_aspas(text.as_bytes()).unwrap().aspas.len(), 2);
    }
}
