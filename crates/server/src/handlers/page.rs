//! The looking glass, whose files are part of the binary.

use std::sync::{Arc, LazyLock};

use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};

use crate::http::answer::{Answer, Refusal, of};
use crate::http::body::Payload;
use crate::http::params::Params;
use crate::site::Site;

/// A file of the page.
struct File {
    name: &'static str,
    kind: &'static str,
    content: &'static [u8],
    tag: LazyLock<HeaderValue>,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! files {
    ($($name:literal $kind:expr,)*) => {
        /// The names of all files.
        pub(crate) const NAMES: &[&str] = &[$($name),*];

        static FILES: [File; NAMES.len()] = [$(File {
            name: $name,
            kind: $kind,
            content: include_bytes!(concat!("../../page/", $name)),
            tag: LazyLock::new(|| tag(include_bytes!(concat!("../../page/", $name)))),
        }),*];
    };
}

files! {
    "index.html" "text/html; charset=utf-8",
    "style.css" "text/css; charset=utf-8",
    "answer.js" SCRIPT,
    "api.js" SCRIPT,
    "app.js" SCRIPT,
    "charts.js" SCRIPT,
    "dom.js" SCRIPT,
    "filter.js" SCRIPT,
    "flows.js" SCRIPT,
    "hilbert.js" SCRIPT,
    "names.js" SCRIPT,
    "overview.js" SCRIPT,
    "past.js" SCRIPT,
    "prefix.js" SCRIPT,
    "pulse.js" SCRIPT,
    "routes.js" SCRIPT,
    "theme.js" SCRIPT,
}

/// The content policy of the page: its own files, and answers of its own server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

pub(crate) fn index(_: &Arc<Site>, params: &Params) -> Answer {
    FILES[0].answer(params)
}

pub(crate) fn file(_: &Arc<Site>, params: &Params) -> Answer {
    let found = FILES.iter().find(|file| file.name == params.rest);
    found.ok_or_else(|| Refusal::not_found("the page has no such file"))?.answer(params)
}

impl File {
    fn answer(&self, params: &Params) -> Answer {
        let known = params.header(header::IF_NONE_MATCH.as_str()).unwrap_or_default();
        let is_known = known.split(',').any(|tag| {
            let tag = tag.trim();
            tag == "*" || tag.trim_start_matches("W/") == self.tag.to_str().unwrap_or_default()
        });
        let body = if is_known { &[][..] } else { self.content };
        let mut response: Response<Payload> = of(self.kind, Payload::Whole(body.into()));
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.tag.clone());
        // The browser revalidates a file each time, and receives it again only if the program has changed.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        Ok(response)
    }
}

/// A digest of a file (FNV-1a, 64 bits): it identifies versions and protects nothing.
fn tag(content: &[u8]) -> HeaderValue {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let digest = content.iter().fold(0xcbf2_9ce4_8422_2325, step);
    HeaderValue::try_from(format!("\"{digest:016x}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("\"0\""))
}
