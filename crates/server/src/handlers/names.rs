//! The names of ASes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api;
use crate::http::answer::{Answer, Refusal, json};
use crate::http::params::{Params, shown};
use crate::site::Site;

/// Maximum number of ASes of a request.
const MOST: usize = 500;

pub(crate) fn names(site: &Arc<Site>, params: &Params) -> Answer {
    let Some(names) = &site.options.as_names else {
        let what = "no names of ASes are known: http.as-names of the configuration is not set";
        return Err(Refusal::not_found(what));
    };
    let mut found = BTreeMap::new();
    for (at, text) in params.text("as").unwrap_or_default().split(',').enumerate() {
        let asn: u32 = match text.parse() {
            Ok(asn) if at < MOST => asn,
            Ok(_) => return Err(Refusal::bad(format_args!("as has more than {MOST} numbers"))),
            Err(_) => {
                let text = shown(text);
                return Err(Refusal::bad(format_args!("as has {text}, not the number of an AS")));
            }
        };
        if let Some(name) = names.get(asn) {
            found.insert(asn.to_string(), name.to_owned());
        }
    }
    json(&api::Names { names: found })
}
