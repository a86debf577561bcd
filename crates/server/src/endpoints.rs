//! All endpoints in one list, which is used to find and check requests and to generate the OpenAPI document.

use std::sync::{Arc, LazyLock};

use crate::handlers::{
    alarms, bulk, changes, filter, flows, health, lookup, metrics, names, page, past, peers,
    routes, rpki, search, tables,
};
use crate::http::answer::{Answer, JSON, whole};
use crate::http::endpoint::{Endpoint, Parameter, Returns, Takes, Verb};
use crate::http::params::Params;
use crate::openapi;
use crate::site::Site;

const fn text(name: &'static str, summary: &'static str) -> Parameter {
    Parameter { name, takes: Takes::Text, is_required: false, summary }
}

const fn number(name: &'static str, least: u64, most: u64, summary: &'static str) -> Parameter {
    Parameter { name, takes: Takes::Number(least, most), is_required: false, summary }
}

const TABLE: Parameter = text("table", "A table; by default, all tables that have routes.");
const ONE_TABLE: Parameter = text("table", "A table; required if several have routes.");
const PREFIX: Parameter =
    text("prefix", "Changes of this prefix and of longer ones; an address means its host route.");
const CHANGES_VIEW: Parameter = Parameter {
    name: "view",
    takes: Takes::Word(changes::VIEWS),
    is_required: false,
    summary: "Changes of the prefix and of longer ones (covered, the default), or of the prefix alone (exact).",
};

/// The function that answers.
pub(crate) enum Handler {
    /// A function that takes microseconds.
    Now(fn(&Arc<Site>, &Params) -> Answer),
    /// A function that may copy a table and runs on a thread of its own.
    Slow(fn(&Arc<Site>, &Params) -> Answer),
    /// The bulk lookup, which has a body.
    Bulk,
}

const GET: Endpoint<Handler> = Endpoint {
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

/// Number of endpoints.
const COUNT: usize = 22;

/// The endpoints; the most frequent ones come first.
pub(crate) static ENDPOINTS: [Endpoint<Handler>; COUNT] = [
    Endpoint {
        path: "/v1/lookup/{address}",
        summary: "The longest match of an address, and all routes that cover it.",
        rest: Some(text("address", "An IPv4 or IPv6 address.")),
        query: &[TABLE],
        returns: Returns::Json("Lookup"),
        refusals: &[404],
        handler: Handler::Now(lookup::lookup),
        ..GET
    },
    Endpoint {
        path: "/v1/routes/{prefix}",
        summary: "The routes of a prefix with every peer's path, and the reason for the best path.",
        rest: Some(text(
            "prefix",
            "A prefix, such as 192.0.2.0/24; an address means its host route.",
        )),
        query: &[
            TABLE,
            Parameter {
                name: "view",
                takes: Takes::Word(routes::VIEWS),
                is_required: false,
                summary: "The route of the prefix itself (exact, the default), the routes that cover it, or the \
                          routes inside it.",
            },
            number(
                "limit",
                1,
                routes::MOST,
                "Maximum number of prefixes of each table (default 100).",
            ),
            text(
                "after",
                "Continues after this prefix, the last one of the previous answer. For the view covered.",
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
        summary: "Annotates the rows of the body with a table's values and returns them in the same format. All \
                  answers belong to one generation of the table, which the headers name.",
        query: &[
            ONE_TABLE,
            text(
                "column",
                "Columns with addresses, by name or number, separated by commas. Default: `address` for \
                            JSON, otherwise detected.",
            ),
            text(
                "add",
                "Values to add, separated by commas: prefix, columns of the table and, for Arrow, covering. \
                         Default: the prefix and all columns.",
            ),
            Parameter {
                name: "strict",
                takes: Takes::Word(&["false", "true"]),
                is_required: false,
                summary: "Whether text that is not an address stops with an error. By default its values are empty.",
            },
            Parameter {
                name: "text",
                takes: Takes::Word(&["dictionary", "plain"]),
                is_required: false,
                summary: "How text values are stored in Arrow (default dictionary).",
            },
        ],
        returns: Returns::Media(bulk::MEDIA),
        refusals: &[404, 408, 413, 415],
        handler: Handler::Bulk,
        ..GET
    },
    Endpoint {
        path: "/v1/peers",
        summary: "All peers, and the sources of their routes.",
        returns: Returns::Json("Peers"),
        handler: Handler::Now(peers::peers),
        ..GET
    },
    Endpoint {
        path: "/v1/search",
        summary: "Interprets a text as an address, a prefix, an AS with its prefixes, or a peer.",
        query: &[
            Parameter {
                name: "q",
                takes: Takes::Text,
                is_required: true,
                summary: "An address, a prefix, AS64500, or a part of a peer's name.",
            },
            text(
                "table",
                "The table whose prefixes of an AS are searched; by default, all tables.",
            ),
            number(
                "limit",
                1,
                search::MOST,
                "Maximum number of prefixes of all tables, and of peers (default 100).",
            ),
            text(
                "after",
                "Continues after the prefixes of the previous answer: its value of `next`. For an AS.",
            ),
        ],
        returns: Returns::Json("Search"),
        refusals: &[404],
        handler: Handler::Slow(search::search),
        ..GET
    },
    Endpoint {
        path: "/v1/filter",
        summary: "The best routes of BGP that fit all parameters, or those of a peer, in pages.",
        query: &[
            number(
                "peer",
                0,
                u32::MAX as u64,
                "All routes of the peer with this number, best ones or not.",
            ),
            number("origin_as", 0, u32::MAX as u64, "Routes that this AS originates."),
            text(
                "community",
                "Routes with one of these communities, separated by commas: 64500:1, 64500:1:2, rt:64500:1; * is any \
                 part.",
            ),
            text(
                "path_regex",
                "Routes whose AS path, such as `64500 64501 {64502,64503}`, matches this regular expression; _ is the \
                 beginning, the end, or what is between two AS.",
            ),
            text("table", "The table; by default, all tables."),
            number("limit", 1, filter::MOST, "Maximum number of routes (default 100)."),
            text("after", "Continues after the previous answer: its value of `next`."),
        ],
        returns: Returns::Json("Filtered"),
        refusals: &[404],
        handler: Handler::Slow(filter::filter),
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
                "Changes of routes that this AS originates or originated.",
            ),
            number("peer", 0, u32::MAX as u64, "Changes of routes of the peer with this number."),
            number("limit", 1, changes::MOST, "Maximum number of changes (default 100)."),
        ],
        returns: Returns::Json("History"),
        refusals: &[404],
        handler: Handler::Now(changes::history),
        ..GET
    },
    Endpoint {
        path: "/v1/history/{prefix}",
        summary: "From the history in files: the route of a prefix at a time, or the longest match of an address and \
                  all routes that covered it. Without `at`, and with parameters of lists, the changes of the prefix, \
                  newest first.",
        rest: Some(text(
            "prefix",
            "A prefix, such as 192.0.2.0/24, or an address; in a list of changes it means its host route.",
        )),
        query: &[
            text(
                "table",
                "A table; by default, all tables of the history, of which there may be 8.",
            ),
            text("at", "The time, such as 2026-11-01T12:00:00Z or 2026-11-01."),
            text("from", "Changes from this time on."),
            text("to", "Changes until this time."),
            number("limit", 1, past::MOST, "Maximum number of changes (default 100)."),
            text("after", "Continues after the previous answer of changes: its value of `next`."),
        ],
        returns: Returns::Json("RouteHistory"),
        refusals: &[404, 500],
        handler: Handler::Slow(past::history),
        ..GET
    },
    Endpoint {
        path: "/v1/changes",
        summary: "Changes of best routes as they occur, as server-sent events. With `Last-Event-ID`, the \
                  stream continues after the change with this id.",
        query: &[
            PREFIX,
            CHANGES_VIEW,
            TABLE,
            number(
                "origin_as",
                0,
                u32::MAX as u64,
                "Changes of routes that this AS originates or originated.",
            ),
            number("peer", 0, u32::MAX as u64, "Changes of routes of the peer with this number."),
            number(
                "since",
                0,
                u64::MAX,
                "Starts after the change with this id (default: with the next change).",
            ),
        ],
        returns: Returns::Events(&[("change", "Change"), ("lost", "Lost")]),
        refusals: &[404],
        handler: Handler::Now(changes::events),
        ..GET
    },
    Endpoint {
        path: "/v1/table",
        summary: "All tables with their sizes, engines, newest change and audit.",
        returns: Returns::Json("Tables"),
        handler: Handler::Now(tables::tables),
        ..GET
    },
    Endpoint {
        path: "/v1/histogram",
        summary: "The number of prefixes of each length in a table.",
        query: &[ONE_TABLE],
        returns: Returns::Json("Histogram"),
        refusals: &[404],
        handler: Handler::Slow(tables::histogram),
        ..GET
    },
    Endpoint {
        path: "/v1/hilbert",
        summary: "65,536 bytes, one for each IPv4 /16 in order: the share of the block (0 to 255) that routes \
                  other than the default route cover.",
        query: &[ONE_TABLE],
        returns: Returns::Media(&["application/octet-stream"]),
        refusals: &[404],
        handler: Handler::Slow(tables::hilbert),
        ..GET
    },
    Endpoint {
        path: "/v1/rpki",
        summary: "The validator's caches, their VRPs, and the last routes whose validity changed with them.",
        query: &[number("limit", 0, rpki::MOST, "Maximum number of changed routes (default 100).")],
        returns: Returns::Json("RpkiStatus"),
        refusals: &[404],
        handler: Handler::Now(rpki::status),
        ..GET
    },
    Endpoint {
        path: "/v1/alarms",
        summary: "The alarms on route changes that have not ended.",
        query: &[number("limit", 0, alarms::MOST, "Maximum number of alarms (default 100).")],
        returns: Returns::Json("Alarms"),
        refusals: &[404],
        handler: Handler::Now(alarms::alarms),
        ..GET
    },
    Endpoint {
        path: "/v1/names",
        summary: "The names of ASes, of those that have one.",
        query: &[Parameter {
            is_required: true,
            ..text("as", "The numbers of ASes, separated by commas.")
        }],
        returns: Returns::Json("Names"),
        refusals: &[404],
        handler: Handler::Now(names::names),
        ..GET
    },
    Endpoint {
        path: "/v1/flows/top",
        summary: "The values with most bytes among the flows of the last minutes.",
        query: &[
            text(
                "by",
                "The column of the values, such as dst_origin_as; by default, the first that flows have.",
            ),
            number(
                "minutes",
                1,
                flows::MOST_MINUTES,
                "How many minutes, the one that runs included (default 5).",
            ),
            number("limit", 0, flows::MOST, "Maximum number of values (default 20)."),
        ],
        returns: Returns::Json("TopFlows"),
        refusals: &[404],
        handler: Handler::Slow(flows::top),
        ..GET
    },
    Endpoint {
        path: "/metrics",
        summary: "Metrics for Prometheus.",
        returns: Returns::Media(&["text/plain"]),
        handler: Handler::Now(metrics::metrics),
        ..GET
    },
    Endpoint {
        path: "/healthz",
        summary: "Whether the server works: the audit found no wrong answer, and changes become visible in time.",
        returns: Returns::Json("Health"),
        refusals: &[503],
        is_open: true,
        handler: Handler::Now(health::healthz),
        ..GET
    },
    Endpoint {
        path: "/readyz",
        summary: "Whether a table has been complete since the server was started.",
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
        handler: Handler::Now(document),
        ..GET
    },
    Endpoint {
        path: "/",
        summary: "The looking glass, a web page; `/?q=TEXT` opens it with a query.",
        query: &[
            text("q", "The query of the page: an address, a prefix, an AS or a peer."),
            TABLE,
            text("prefix", "The prefix in the answer to show with all paths."),
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

/// The OpenAPI document.
fn document(_: &Arc<Site>, _: &Params) -> Answer {
    static DOCUMENT: LazyLock<Vec<u8>> =
        LazyLock::new(|| serde_json::to_vec(&openapi::document(&ENDPOINTS)).unwrap_or_default());
    Ok(whole(JSON, &DOCUMENT[..]))
}
