//! The OpenAPI document, generated from the list of endpoints and the types of their answers.

use hyper::StatusCode;
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use crate::api;
use crate::http::answer::JSON;
use crate::http::endpoint::{Endpoint, Parameter, Returns, Takes, Verb};

/// The schemas of all answers, with the types that they contain.
#[derive(OpenApi)]
#[openapi(components(schemas(
    api::Problem,
    api::Lookup,
    api::Routes,
    api::Peers,
    api::Search,
    api::Filtered,
    api::History,
    api::RouteHistory,
    api::Change,
    api::Lost,
    api::Tables,
    api::Histogram,
    api::Health,
    api::RpkiStatus,
    api::Alarms,
    api::TopFlows,
    api::Names,
)))]
struct Schemas;

/// The statuses with which every request may be refused.
const ALWAYS: [u16; 5] = [400, 403, 405, 429, 503];

/// The OpenAPI document of these endpoints.
pub(crate) fn document<H>(endpoints: &[Endpoint<H>]) -> Value {
    let schemas = serde_json::to_value(Schemas::openapi().components).unwrap_or_default();
    let mut paths = Map::new();
    for endpoint in endpoints {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method.name().to_lowercase()] = operation(endpoint);
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "fibula",
            "summary": "Answers about live routing tables.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": schemas,
    });
    document["components"]["securitySchemes"] =
        json!({ "token": { "type": "http", "scheme": "bearer" } });
    document
}

fn operation<H>(endpoint: &Endpoint<H>) -> Value {
    let mut responses = Map::new();
    responses.insert("200".to_owned(), returned(&endpoint.returns));
    let with_token: &[u16] = if endpoint.is_open { &[] } else { &[401] };
    for &status in ALWAYS.iter().chain(with_token).chain(endpoint.refusals) {
        let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let problem = json!({
            "description": reason.unwrap_or_default(),
            "content": { JSON: { "schema": reference("Problem") } },
        });
        responses.insert(status.to_string(), problem);
    }
    let rest = endpoint.rest.iter().map(|known| parameter(known, "path"));
    let query = endpoint.query.iter().map(|known| parameter(known, "query"));
    // Clients need no token if the server has none.
    let security = if endpoint.is_open { json!([]) } else { json!([{}, { "token": [] }]) };
    let mut operation = json!({
        "summary": endpoint.summary,
        "parameters": rest.chain(query).collect::<Vec<_>>(),
        "responses": responses,
        "security": security,
    });
    if let (Verb::Post, Returns::Media(media)) = (endpoint.method, &endpoint.returns) {
        let body = json!({ "required": true, "content": contents(media) });
        operation["requestBody"] = body;
    }
    operation
}

fn contents(media: &[&str]) -> Value {
    media.iter().map(|kind| ((*kind).to_owned(), json!({}))).collect::<Map<_, _>>().into()
}

fn returned(returns: &Returns) -> Value {
    let content = match returns {
        Returns::Json(name) => json!({ JSON: { "schema": reference(name) } }),
        Returns::Media(media) => contents(media),
        Returns::Events(events) => {
            let data: Vec<_> = events.iter().map(|(_, name)| reference(name)).collect();
            let names: Vec<_> = events.iter().map(|(event, _)| event).collect();
            let description = "Server-sent events; `data` is JSON of the schema that stands at the \
                               event's place.";
            json!({ "text/event-stream": { "schema": {
                "description": description,
                "type": "object",
                "properties": {
                    "event": { "enum": names },
                    "id": { "type": "string" },
                    "data": { "oneOf": data },
                },
            } } })
        }
    };
    json!({ "description": "The answer.", "content": content })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn parameter(known: &Parameter, place: &str) -> Value {
    let schema = match known.takes {
        Takes::Text => json!({ "type": "string" }),
        Takes::Number(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Takes::Word(words) => json!({ "type": "string", "enum": words }),
    };
    json!({
        "name": known.name,
        "in": place,
        "required": known.is_required || place == "path",
        "description": known.summary,
        "schema": schema,
    })
}
