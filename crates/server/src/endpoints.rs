//! All endpoints in one list, which is used to find and check requests and to generate the OpenAPI document.

use crate::handlers::{
    bulk, changes, health, lookup, metrics, page, peers, routes, search, tables,
};
use crate::http::endpoint::{Endpoint, Handler, Parameter, Returns, Takes, Verb};
use crate::openapi;

const fn text(name: &'static str, summary: &'static str) -> Parameter {
    Parameter { name, takes: Takes::Text, is_required: false, summary }
}

const fn number(name: &'static str, least: u64, most: u64, summary: &'static str) -> Parameter {
    Parameter { name, takes: Takes::Number(least, most), is_required: false, summary }
}

const TABLE: Parameter = text("table", "The table; all that have routes, if none is named.");
const ONE_TABLE: Parameter = text("table", "The table; may be left out if only one has routes.");
const PREFIX: Parameter =
    text("prefix", "Changes of this prefix and of longer ones; an address is its host route.");
const CHANGES_VIEW: Parameter = Parameter {
    name: "view",
    takes: Takes::Word(changes::VIEWS),
    is_required: false,
    summary: "Changes of that prefix and of longer ones (covered, if it is left out), or of it alone.",
};

const GET: Endpoint = Endpoint {
    method: Verb::Get,
    path: "",
    summary: "",
    rest: None,
    query: &[],
    returns: Returns::Media(&[]),
    refusals: &[],
    is_open: false,
    is_lenient: false,
    handler: Handler::Now(page::index),
};

/// How many there are.
pub(crate) const COUNT: usize = 16;

/// The endpoints; those that are asked most often come first.
pub(crate) static ENDPOINTS: [Endpoint; COUNT] = [
    Endpoint {
        path: "/v1/lookup/{address}",
        summary: "What is known about an address: the longest match and all routes that cover it.",
        rest: Some(text("address", "An IPv4 or IPv6 address.")),
        query: &[TABLE],
        returns: Returns::Json("Lookup"),
        refusals: &[404],
        handler: Handler::Now(lookup::lookup),
        ..GET
    },
    Endpoint {
        path: "/v1/routes/{prefix}",
        summary: "The routes of a prefix, with every peer's path, and why the best one is.",
        rest: Some(text("prefix", "A prefix, such as 192.0.2.0/24; an address is its host route.")),
        query: &[
            TABLE,
            Parameter {
                name: "view",
                takes: Takes::Word(routes::VIEWS),
                is_required: false,
                summary: "The route of this prefix, those that cover it, or those that it covers.",
            },
            number("limit", 1, routes::MOST, "Prefixes of each table; 100 if it is left out."),
            text(
                "after",
                "Of covered ones, those behind this prefix: the last of the answer before.",
            ),
        ],
        returns: Returns::Json("Routes"),
        refusals: &[404],
        handler: Handler::Now(routes::routes),
        ..GET
    },
    Endpoint {
        method: Verb::Post,
        path: "/v1/lookup",
        summary: "Rows with addresses in, the same rows with what a table says about them out, in the format \
                  of the body. All answers are of one moment of the table, which headers name.",
        query: &[
            ONE_TABLE,
            text(
                "column",
                "Columns with addresses, by name or number, separated by commas; of JSON \
                            `address`, elsewhere found out if it is left out.",
            ),
            text(
                "add",
                "What to add, separated by commas: prefix, columns of the table, and of Arrow \
                         covering; the prefix and all columns if it is left out.",
            ),
            Parameter {
                name: "strict",
                takes: Takes::Word(&["false", "true"]),
                is_required: false,
                summary: "Whether text that is not an address is an error, in place of an empty answer.",
            },
            Parameter {
                name: "text",
                takes: Takes::Word(&["dictionary", "plain"]),
                is_required: false,
                summary: "How text is added to Arrow.",
            },
        ],
        returns: Returns::Media(bulk::MEDIA),
        refusals: &[404, 408, 413, 415, 429],
        handler: Handler::Bulk,
        ..GET
    },
    Endpoint {
        path: "/v1/peers",
        summary: "All peers and the sources that they speak in.",
        returns: Returns::Json("Peers"),
        handler: Handler::Now(peers::peers),
        ..GET
    },
    Endpoint {
        path: "/v1/search",
        summary: "What a text means: an address, a prefix, an AS with its prefixes, or a peer.",
        query: &[
            Parameter {
                name: "q",
                takes: Takes::Text,
                is_required: true,
                summary: "An address, a prefix, AS64500, or a part of a peer's name.",
            },
            number(
                "limit",
                1,
                search::MOST,
                "Prefixes of each table, and peers; 100 if it is left out.",
            ),
        ],
        returns: Returns::Json("Search"),
        refusals: &[429],
        handler: Handler::Slow(search::search),
        ..GET
    },
    Endpoint {
        path: "/v1/history",
        summary: "The last changes of best routes, newest first.",
        query: &[
            PREFIX,
            CHANGES_VIEW,
            TABLE,
            number(
                "origin_as",
                0,
                u32::MAX as u64,
                "Routes that this AS originates, and those of its routes that are gone.",
            ),
            number("peer", 0, u32::MAX as u64, "Routes of the peer of this number."),
            number("limit", 1, changes::MOST, "Changes; 100 if it is left out."),
        ],
        returns: Returns::Json("History"),
        refusals: &[404],
        handler: Handler::Now(changes::history),
        ..GET
    },
    Endpoint {
        path: "/v1/changes",
        summary: "Changes of best routes as they come, as server-sent events. `Last-Event-ID` goes on behind \
                  the change of this id.",
        query: &[
            PREFIX,
            CHANGES_VIEW,
            TABLE,
            number(
                "origin_as",
                0,
                u32::MAX as u64,
                "Routes that this AS originates, and those of its routes that are gone.",
            ),
            number("peer", 0, u32::MAX as u64, "Routes of the peer of this number."),
            number(
                "since",
                0,
                u64::MAX,
                "Begins after the change with this id; without it, with the next change.",
            ),
        ],
        returns: Returns::Events(&[("change", "Change"), ("lost", "Lost")]),
        refusals: &[404, 429],
        handler: Handler::Now(changes::events),
        ..GET
    },
    Endpoint {
        path: "/v1/table",
        summary: "All tables: sizes, engines, the newest change, the findings of the audit.",
        returns: Returns::Json("Tables"),
        handler: Handler::Now(tables::tables),
        ..GET
    },
    Endpoint {
        path: "/v1/histogram",
        summary: "How many prefixes of each length a table has.",
        query: &[ONE_TABLE],
        returns: Returns::Json("Histogram"),
        refusals: &[404, 429],
        handler: Handler::Slow(tables::histogram),
        ..GET
    },
    Endpoint {
        path: "/v1/hilbert",
        summary: "65,536 bytes: for each IPv4 block of 16 bits, in order, the share of it (0 to 255) that a \
                  route other than the default one covers.",
        query: &[ONE_TABLE],
        returns: Returns::Media(&["application/octet-stream"]),
        refusals: &[404, 429],
        handler: Handler::Slow(tables::hilbert),
        ..GET
    },
    Endpoint {
        path: "/metrics",
        summary: "Numbers for Prometheus.",
        returns: Returns::Media(&["text/plain"]),
        handler: Handler::Now(metrics::metrics),
        ..GET
    },
    Endpoint {
        path: "/healthz",
        summary: "Whether the server is well: no answer was wrong, and changes become visible in time.",
        returns: Returns::Json("Health"),
        refusals: &[503],
        is_open: true,
        handler: Handler::Now(health::healthz),
        ..GET
    },
    Endpoint {
        path: "/readyz",
        summary: "Whether a table has been complete since the server began.",
        returns: Returns::Json("Health"),
        refusals: &[503],
        is_open: true,
        handler: Handler::Now(health::readyz),
        ..GET
    },
    Endpoint {
        path: "/openapi.json",
        summary: "This document.",
        returns: Returns::Media(&["application/json"]),
        is_open: true,
        handler: Handler::Now(openapi::answer),
        ..GET
    },
    Endpoint {
        path: "/",
        summary: "The looking glass, a page for people; `/?q=TEXT` asks it.",
        query: &[
            text("q", "What the page asks: an address, a prefix, an AS, a peer."),
            TABLE,
            text("prefix", "The prefix of the answer that is shown with all paths."),
        ],
        returns: Returns::Media(&["text/html"]),
        is_open: true,
        is_lenient: true,
        handler: Handler::Now(page::index),
        ..GET
    },
    Endpoint {
        path: "/{file}",
        summary: "The files of the page.",
        rest: Some(Parameter {
            name: "file",
            takes: Takes::Word(page::NAMES),
            is_required: true,
            summary: "The file.",
        }),
        returns: Returns::Media(&["text/html", "text/javascript", "text/css"]),
        is_open: true,
        handler: Handler::Now(page::file),
        ..GET
    },
];
