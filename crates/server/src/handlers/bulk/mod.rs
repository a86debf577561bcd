//! Bulk lookups: adds a table's values to rows with addresses. All rows are looked up in the same generation.
//!
//! ```text
//!   body ── pump ──► channel ──► Input ─┐                       (a thread)
//!                                       ├─ annotate: rows, of one generation
//!   answer ◄──────── channel ◄── Output ┘
//! ```
//!
//! Memory does not grow with the body: while a client does not read its answer, its body is not read either.

mod pipe;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use fibula_annotate::{
    AnnotateError, AnnotateOptions, Annotator, Column, ColumnAnnotator, LogFormat, Summary,
    TextForm,
};
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode, header};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::frozen::Frozen;
use crate::http::answer::{Answer, Refusal, of};
use crate::http::body::Payload;
use crate::http::params::{Params, shown};
use crate::site::Site;
use pipe::{Input, Output, Pipe, Shared, pump};

/// Media types and their formats.
pub(crate) const MEDIA: &[&str] = &[
    "application/x-ndjson",
    "text/csv",
    "text/tab-separated-values",
    "text/plain",
    "application/vnd.apache.arrow.stream",
];
const FORMATS: [LogFormat; 5] =
    [LogFormat::JsonLines, LogFormat::Csv, LogFormat::Tsv, LogFormat::List, LogFormat::Arrow];

/// Maximum number of waiting pieces between a client and its thread, in each direction.
const WAITING: usize = 4;

/// Maximum number of rows of a batch in an answer in Arrow.
const BATCH_ROWS: usize = 1 << 18;

/// The status and headers of an answer.
struct Head {
    table: String,
    sequence: u64,
    age_ms: u128,
}

/// The input of the thread.
struct Work {
    site: Arc<Site>,
    format: LogFormat,
    options: AnnotateOptions,
    /// Whether the parameter `add` is absent.
    add_all: bool,
    table: Option<String>,
}

pub(crate) async fn bulk(site: Arc<Site>, params: Params, body: Incoming) -> Answer {
    let at = media(&params)?;
    let limits = &site.options.limits;
    let length = params.header("content-length").and_then(|text| text.parse::<u64>().ok());
    if length.is_some_and(|length| length > limits.body_bytes) {
        return Err(pipe::too_long(limits.body_bytes));
    }
    let place = Arc::clone(&site.bulk)
        .try_acquire_owned()
        .map_err(|_| Refusal::busy("too many bulk lookups at once; try again later", 1))?;
    let until = Instant::now() + limits.bulk_time;
    let (to_thread, from_client) = mpsc::channel(WAITING);
    let (to_client, from_thread) = mpsc::channel(WAITING);
    let (say_head, head) = oneshot::channel();
    let work = Work::new(&site, FORMATS[at], &params);
    let pipe = Pipe {
        site: Arc::clone(&site),
        from_client,
        to_client,
        say_head: Some(say_head),
        head: None,
        until,
        stall: limits.stall_time,
        rows: (0, limits.body_rows),
        is_text: !FORMATS[at].is_columnar(),
        runtime: Handle::current(),
        stop: site.stop.subscribe(),
        input: Bytes::new(),
        output: Vec::new(),
        refused: None,
    };
    tokio::spawn(pump(body, to_thread, limits.body_bytes, limits.stall_time));
    tokio::task::spawn_blocking(move || {
        work.run(pipe);
        drop(place);
    });
    let head: Head = match timeout_at(until, head).await {
        Ok(Ok(head)) => head?,
        Ok(Err(_)) => {
            let sentence = "the lookup ended early; see the server's log";
            return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, sentence));
        }
        Err(_) => return Err(pipe::too_slow("the lookup")),
    };
    let mut response: Response<Payload> = of(MEDIA[at], Payload::Pieces(from_thread));
    let headers = response.headers_mut();
    headers.insert("fibula-generation", head.sequence.into());
    if let Ok(age) = HeaderValue::try_from(head.age_ms.to_string()) {
        headers.insert("fibula-age-ms", age);
    }
    if let Ok(table) = HeaderValue::try_from(head.table) {
        headers.insert("fibula-table", table);
    }
    Ok(response)
}

/// The number of the body's media type.
fn media(params: &Params) -> Result<usize, Refusal> {
    let kind = params.header(header::CONTENT_TYPE.as_str()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    MEDIA.iter().position(|known| known.eq_ignore_ascii_case(essence)).ok_or_else(|| {
        let sentence =
            format!("a body of type {}; there are: {}", shown(essence), MEDIA.join(", "));
        Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence)
            .with(header::ACCEPT, MEDIA.join(", "))
    })
}

impl Work {
    fn new(site: &Arc<Site>, format: LogFormat, params: &Params) -> Self {
        let names = |name| params.text(name).into_iter().flat_map(|names| names.split(','));
        let mut options = AnnotateOptions::default();
        // A column's name is any text: the conversion cannot fail.
        options.columns = names("column").filter_map(|name| name.parse().ok()).collect();
        if options.columns.is_empty() && format == LogFormat::JsonLines {
            options.columns = vec![Column::Name("address".to_owned())];
        }
        options.add = names("add").map(str::to_owned).collect();
        options.strict = params.text("strict") == Some("true");
        options.top = 0;
        options.batch_bytes = Some(site.options.limits.batch_bytes);
        options.batch_rows = Some(BATCH_ROWS);
        if params.text("text") == Some("plain") {
            options.text = TextForm::Plain;
        }
        let add_all = options.add.is_empty();
        let table = params.text("table").map(str::to_owned);
        Self { site: Arc::clone(site), format, options, add_all, table }
    }

    /// Writes the answer, or returns the refusal.
    fn run(mut self, pipe: Pipe) {
        let pipe = Rc::new(RefCell::new(pipe));
        let done = self.site.frozen_table(self.table.as_deref()).and_then(|frozen| {
            let head = Head {
                table: frozen.table.clone(),
                sequence: frozen.sequence,
                age_ms: frozen.age().as_millis(),
            };
            pipe.borrow_mut().head = Some(head);
            self.annotate(&frozen, &pipe).map_err(Refusal::bad)
        });
        match done {
            Ok(summary) => {
                self.site.counts.addresses.fetch_add(summary.addresses, Ordering::Relaxed);
                pipe.borrow_mut().finish();
            }
            Err(refusal) => pipe.borrow_mut().fail(Some(refusal)),
        }
    }

    fn annotate(&mut self, frozen: &Frozen, pipe: &Shared) -> Result<Summary, AnnotateError> {
        if self.add_all {
            let columns = frozen.fib.columns().names().map(str::to_owned);
            self.options.add = ["prefix".to_owned()].into_iter().chain(columns).collect();
        }
        let (input, output) = (Input(Rc::clone(pipe)), Output(Rc::clone(pipe)));
        let fib = frozen.fib.clone();
        if self.format == LogFormat::Arrow {
            let annotator = ColumnAnnotator::new(fib, &self.options)?;
            return annotator.annotate_ipc_stream(input, output, &mut |progress| {
                pipe.borrow_mut().rows.0 = progress.rows;
            });
        }
        Annotator::new(fib, self.format, &self.options)?.annotate(input, output)
    }
}
