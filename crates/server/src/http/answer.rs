//! Answers, and refusals with an explanation.

use std::fmt::Display;

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::body::Payload;
use crate::api::Problem;

/// The result of a handler.
pub(crate) type Answer = Result<Response<Payload>, Refusal>;

pub(crate) const JSON: &str = "application/json";

/// The reason why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) sentence: String,
    /// A header with details.
    pub(crate) header: Option<(header::HeaderName, String)>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, sentence: impl Display) -> Self {
        Self { status, sentence: sentence.to_string(), header: None }
    }

    pub(crate) fn bad(sentence: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, sentence)
    }

    pub(crate) fn not_found(sentence: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, sentence)
    }

    /// Too many at once; the client may try again after this number of seconds.
    pub(crate) fn busy(sentence: impl Display, seconds: u32) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, sentence)
            .with(header::RETRY_AFTER, seconds.to_string())
    }

    #[must_use]
    pub(crate) fn with(mut self, name: header::HeaderName, value: impl Into<String>) -> Self {
        self.header = Some((name, value.into()));
        self
    }

    pub(crate) fn into_response(self) -> Response<Payload> {
        let problem = Problem { error: self.sentence };
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = whole(JSON, body);
        *response.status_mut() = self.status;
        if let Some((name, value)) = self.header
            && let Ok(value) = HeaderValue::try_from(value)
        {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// A complete body.
pub(crate) fn whole(kind: &'static str, body: impl Into<Bytes>) -> Response<Payload> {
    of(kind, Payload::Whole(body.into()))
}

/// Number of bytes up to which an answer in parts is sent whole.
const SHORT: usize = 64 << 10;

/// A body that is made in parts while the client takes it, by a maker that holds this number of bytes. A short one is
/// made at once, so that its length is known.
pub(crate) fn in_parts(
    kind: &'static str,
    held: usize,
    mut parts: impl Iterator<Item = Vec<u8>> + Send + 'static,
) -> Response<Payload> {
    let mut begin = Vec::new();
    for mut part in parts.by_ref() {
        begin.append(&mut part);
        if begin.len() > SHORT {
            let parts = std::iter::once(begin).chain(parts);
            return of(kind, Payload::Parts(Box::new(parts), held));
        }
    }
    whole(kind, begin)
}

/// Any body. Answers are not cached, because tables change.
pub(crate) fn of(kind: &'static str, body: Payload) -> Response<Payload> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A JSON document.
pub(crate) fn json(shape: &impl Serialize) -> Answer {
    let mut body = Vec::with_capacity(1024);
    serde_json::to_writer(&mut body, shape)
        .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    Ok(whole(JSON, body))
}
