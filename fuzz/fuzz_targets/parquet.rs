//! Annotation of Parquet, and Parquet as a table.
#![no_main]

use std::fs::{self, File};
use std::io::sink;
use std::path::PathBuf;
use std::sync::LazyLock;

use fibula_annotate::{AnnotateOptions, Column, ColumnAnnotator, ColumnInput};
use fibula_fuzz::{WORLD, leave_out_caught_panics, visit_table};
use libfuzzer_sys::fuzz_target;

static ANNOTATOR: LazyLock<ColumnAnnotator> = LazyLock::new(|| {
    leave_out_caught_panics();
    let mut options = AnnotateOptions::default();
    options.columns = vec![Column::Number(1)];
    options.threads = 1;
    ColumnAnnotator::new(&*WORLD, &options).expect("it has columns")
});

/// Parquet is read by position, from a file.
static INPUT: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("fibula-fuzz-{}.parquet", std::process::id()))
});

fuzz_target!(|data: &[u8]| {
    fs::write(&*INPUT, data).expect("a temporary file");
    let input = File::open(&*INPUT).expect("it was just written");
    LazyLock::force(&ANNOTATOR);
    visit_table(ColumnInput::Parquet(input.try_clone().expect("a descriptor")));
    let Ok(summary) = ANNOTATOR.annotate_parquet(input, sink(), &mut |_| {}) else { return };
    assert_eq!(summary.matched + summary.unmatched, summary.addresses);
    let cells = summary.addresses + summary.empty + summary.unparsable;
    assert_eq!(cells, summary.rows, "{summary:?}");
});
