//! Passes each request to its handler.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::access::{check_host, check_token};
use crate::endpoints::{ENDPOINTS, Handler};
use crate::handlers::bulk::bulk;
use crate::http::answer::{Answer, Refusal};
use crate::http::body::Payload;
use crate::http::endpoint::{Endpoint, Verb};
use crate::http::params::{Params, shown};
use crate::http::sending::{ConnectionAnswers, SentBody};
use crate::site::Site;

/// Answers a request, or refuses it with a sentence. The answer counts among those of its connection.
pub(crate) async fn answer(
    site: Arc<Site>,
    is_loopback: bool,
    answers: Arc<ConnectionAnswers>,
    request: Request<Incoming>,
) -> Response<SentBody> {
    let is_head = request.method() == Method::HEAD;
    let found = find(&request);
    let number = found.as_ref().map(|(number, _)| *number).ok();
    let answer = match found {
        Ok((number, rest)) => {
            let (endpoint, rest) = (&ENDPOINTS[number], rest.to_owned());
            ask(&site, is_loopback, endpoint, &rest, request).await
        }
        Err(refusal) => Err(refusal),
    };
    let mut response = answer.unwrap_or_else(Refusal::into_response);
    if is_head {
        if let Some(length) = hyper::body::Body::size_hint(response.body()).exact() {
            response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        }
        *response.body_mut() = Payload::Whole(bytes::Bytes::new());
    }
    let mut response = answers.send(response);
    site.counts.answered(number, response.status());
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The number of the endpoint, and the rest of the path.
fn find(request: &Request<Incoming>) -> Result<(usize, &str), Refusal> {
    let path = request.uri().path();
    let verb = match *request.method() {
        Method::GET | Method::HEAD => Some(Verb::Get),
        Method::POST => Some(Verb::Post),
        _ => None,
    };
    let all = || ENDPOINTS.iter().enumerate().filter_map(|(i, e)| Some((i, e, e.rest(path)?)));
    if let Some((number, _, rest)) = all().find(|(_, endpoint, _)| Some(endpoint.method) == verb) {
        return Ok((number, rest));
    }
    let allowed: Vec<_> = all().map(|(_, endpoint, _)| endpoint.method.name()).collect();
    if allowed.is_empty() {
        let path = shown(path);
        return Err(Refusal::not_found(format_args!("no path {path}; /openapi.json lists all")));
    }
    let (allowed, method) = (allowed.join(", "), request.method().as_str());
    let sentence = format!("this path takes {allowed}, not {}", shown(method));
    Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, sentence).with(header::ALLOW, allowed))
}

async fn ask(
    site: &Arc<Site>,
    is_loopback: bool,
    endpoint: &'static Endpoint<Handler>,
    rest: &str,
    request: Request<Incoming>,
) -> Answer {
    check_host(&site.options, is_loopback, request.uri(), request.headers())?;
    if !endpoint.is_open {
        check_token(&site.options, request.headers())?;
    }
    let (parts, body) = request.into_parts();
    let params = Params::new(endpoint, rest, &parts.uri, parts.headers)?;
    match endpoint.handler {
        Handler::Now(handler) => handler(site, &params),
        Handler::Slow(handler) => {
            let site = Arc::clone(site);
            let place = Arc::clone(&site.slow).try_acquire_owned().map_err(|_| {
                Refusal::busy("too many questions about whole tables at once; try again later", 1)
            })?;
            let done = tokio::task::spawn_blocking(move || {
                let _place = place;
                handler(&site, &params)
            });
            done.await
                .unwrap_or_else(|error| Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)))
        }
        Handler::Bulk => bulk(Arc::clone(site), params, body).await,
    }
}
