//! The server's own counters.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hyper::StatusCode;

/// The method and the path of an endpoint.
pub(crate) type Route = (&'static str, &'static str);

/// Answers by class of status.
type ByClass = [AtomicU64; CLASSES.len()];

pub(crate) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

pub(crate) struct Counts {
    /// The answers of each endpoint; the last entry is for unknown paths.
    answers: Vec<(Route, ByClass)>,
    pub(crate) connections: AtomicUsize,
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// Addresses that bulk lookups answered.
    pub(crate) addresses: AtomicU64,
}

impl Counts {
    /// Counters for these endpoints.
    pub(crate) fn new(endpoints: impl Iterator<Item = Route>) -> Self {
        let of_route = |route| (route, ByClass::default());
        Self {
            answers: endpoints.chain([("", "other")]).map(of_route).collect(),
            connections: AtomicUsize::default(),
            accepted: AtomicU64::default(),
            refused: AtomicU64::default(),
            addresses: AtomicU64::default(),
        }
    }

    /// Counts an answer of this endpoint; `None` is an unknown path.
    pub(crate) fn answered(&self, endpoint: Option<usize>, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100 - 1).min(CLASSES.len() - 1);
        let endpoint = endpoint.unwrap_or(self.answers.len() - 1);
        self.answers[endpoint].1[class].fetch_add(1, Ordering::Relaxed);
    }

    /// The answers by endpoint and class of status.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (Route, &ByClass)> {
        self.answers.iter().map(|(route, classes)| (*route, classes))
    }
}
