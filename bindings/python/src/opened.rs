//! An open table, and the annotators that are kept ready for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use fibula_annotate::{AnnotateError, AnnotateOptions, ColumnAnnotator, PrefixForm, TextForm};
use fibula_fib::Fib;

/// The options by which prepared annotators are kept.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Asked {
    add: Vec<String>,
    plain: bool,
    binary: bool,
    defaults: Vec<(String, String)>,
    strict: bool,
}

/// Annotators kept ready; each may hold some megabytes.
const KEPT: usize = 16;

/// An open table.
pub struct Opened {
    pub fib: Fib,
    annotators: Mutex<HashMap<Asked, Arc<ColumnAnnotator>>>,
}

impl Opened {
    pub fn new(fib: Fib) -> Self {
        Self { fib, annotators: Mutex::default() }
    }

    /// The annotator for these options, made or kept.
    pub fn annotator(
        &self,
        options: &AnnotateOptions,
    ) -> Result<Arc<ColumnAnnotator>, AnnotateError> {
        let asked = Asked {
            add: options.add.clone(),
            plain: options.text == TextForm::Plain,
            binary: options.prefix == PrefixForm::Binary,
            defaults: options.defaults.clone(),
            strict: options.strict,
        };
        // What is in the map is whole even if a thread died beside it.
        let kept = || self.annotators.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept().get(&asked) {
            return Ok(Arc::clone(found));
        }
        let made = Arc::new(ColumnAnnotator::new(self.fib.clone(), options)?);
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        Ok(Arc::clone(kept.entry(asked).or_insert(made)))
    }
}
