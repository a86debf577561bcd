//! The looking glass: files that the binary has in it.

use std::sync::{Arc, LazyLock};

use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};

use crate::http::answer::{Answer, of};
use crate::http::asked::Asked;
use crate::http::body::Payload;
use crate::site::Site;

/// A file of the page.
struct File {
    kind: &'static str,
    content: &'static [u8],
    tag: LazyLock<HeaderValue>,
}

macro_rules! file {
    ($name:ident, $path:literal, $kind:literal) => {
        static $name: File = File {
            kind: $kind,
            content: include_bytes!(concat!("../../page/", $path)),
            tag: LazyLock::new(|| tag(include_bytes!(concat!("../../page/", $path)))),
        };
    };
}

file!(INDEX, "index.html", "text/html; charset=utf-8");
file!(SCRIPT, "app.js", "text/javascript; charset=utf-8");
file!(STYLE, "style.css", "text/css; charset=utf-8");

/// What the page may load: its own files, and its own server's answers.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

pub(crate) fn index(_: &Arc<Site>, asked: &Asked) -> Answer {
    INDEX.answer(asked)
}

pub(crate) fn script(_: &Arc<Site>, asked: &Asked) -> Answer {
    SCRIPT.answer(asked)
}

pub(crate) fn style(_: &Arc<Site>, asked: &Asked) -> Answer {
    STYLE.answer(asked)
}

impl File {
    fn answer(&self, asked: &Asked) -> Answer {
        let known = asked.header(header::IF_NONE_MATCH.as_str()).unwrap_or_default();
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
        // Asked for each time, and sent again only when the program is another one.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        Ok(response)
    }
}

/// A digest of a file (FNV-1a, 64 bits): it tells versions apart, and guards nothing.
fn tag(content: &[u8]) -> HeaderValue {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let digest = content.iter().fold(0xcbf2_9ce4_8422_2325, step);
    HeaderValue::try_from(format!("\"{digest:016x}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("\"0\""))
}
