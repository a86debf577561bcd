//! An open table, or the tables of several dates, and the annotators that are kept ready for it.

use std::sync::{Arc, Mutex, PoisonError};

use fibula_annotate::{
    AnnotateError, AnnotateOptions, ColumnAnnotator, LookupTable, PrefixForm, TextForm,
};
use fibula_fib::TimeFormat;

/// The options by which prepared annotators are kept.
#[derive(PartialEq)]
struct AnnotatorKey {
    add: Vec<String>,
    plain: bool,
    binary: bool,
    defaults: Vec<(String, String)>,
    strict: bool,
    times: TimeFormat,
}

/// Annotators kept ready; each may hold some megabytes.
const KEPT: usize = 16;

/// An open table.
pub struct Opened<T> {
    pub fib: T,
    annotators: Mutex<Vec<(AnnotatorKey, Arc<ColumnAnnotator>)>>,
}

impl<T: LookupTable + Clone + 'static> Opened<T> {
    pub fn new(fib: T) -> Self {
        Self { fib, annotators: Mutex::default() }
    }

    /// The annotator for these options, made or kept.
    pub fn annotator(
        &self,
        options: &AnnotateOptions,
    ) -> Result<Arc<ColumnAnnotator>, AnnotateError> {
        let requested = AnnotatorKey {
            add: options.add.clone(),
            plain: options.text == TextForm::Plain,
            binary: options.prefix == PrefixForm::Binary,
            defaults: options.defaults.clone(),
            strict: options.strict,
            times: options.time_format,
        };
        // What is in the map is whole even if a thread died beside it.
        let kept = || self.annotators.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = kept().iter().find(|(of, _)| *of == requested) {
            return Ok(Arc::clone(found));
        }
        let made = Arc::new(ColumnAnnotator::new(self.fib.clone(), options)?);
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.push((requested, Arc::clone(&made)));
        Ok(made)
    }
}
