//! A table and the annotators that are kept ready for it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use fibula_fib::TimeFormat;

use crate::{AnnotateError, AnnotateOptions, ColumnAnnotator, LookupTable, PrefixForm, TextForm};

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

/// A table with the annotators that were asked for, for hosts that call with a few thousand rows at a time: making a
/// [`ColumnAnnotator`] prepares the values of every row of the table.
pub struct PreparedTable<T> {
    /// The table.
    pub fib: T,
    annotators: Mutex<Vec<(AnnotatorKey, Arc<ColumnAnnotator>)>>,
}

impl<T> fmt::Debug for PreparedTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedTable").finish_non_exhaustive()
    }
}

impl<T: LookupTable + Clone + 'static> PreparedTable<T> {
    /// Without an annotator yet.
    pub fn new(fib: T) -> Self {
        Self { fib, annotators: Mutex::default() }
    }

    /// The annotator for these options, made or kept. Of the options only these count: `add`, `text`, `prefix`,
    /// `defaults`, `strict` and `time_format`.
    ///
    /// # Errors
    /// Those of [`ColumnAnnotator::new`].
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
        // What is in the list is whole even if a thread died beside it.
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
