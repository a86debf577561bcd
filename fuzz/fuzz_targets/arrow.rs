//! Annotation of Arrow IPC, and streams as tables: the first byte is file or stream, and whether the columns are named.
#![no_main]

use std::io::{Cursor, sink};
use std::sync::LazyLock;

use fibula_annotate::{AnnotateOptions, Column, ColumnAnnotator, ColumnInput};
use fibula_fuzz::{WORLD, leave_out_caught_panics, visit_table};
use libfuzzer_sys::fuzz_target;

static ANNOTATORS: LazyLock<[ColumnAnnotator; 2]> = LazyLock::new(|| {
    leave_out_caught_panics();
    [Vec::new(), vec![Column::Number(1)]].map(|columns| {
        let mut options = AnnotateOptions::default();
        options.columns = columns;
        options.add = ["prefix", "asn", "org"].map(str::to_owned).to_vec();
        ColumnAnnotator::new(&*WORLD, &options).expect("the table has these columns")
    })
});

fuzz_target!(|data: &[u8]| {
    let Some((kind, input)) = data.split_first() else { return };
    let annotator = &ANNOTATORS[usize::from(kind & 1)];
    visit_table(ColumnInput::ArrowStream(Box::new(input)));
    let found = if kind & 2 == 0 {
        annotator.annotate_ipc_stream(input, sink(), &mut |_| {})
    } else {
        annotator.annotate_ipc_file(Cursor::new(input), sink(), &mut |_| {})
    };
    let Ok(summary) = found else { return };
    assert_eq!(summary.matched + summary.unmatched, summary.addresses);
    let cells = summary.addresses + summary.empty + summary.unparsable;
    assert_eq!(cells, summary.rows * summary.columns.len() as u64, "{summary:?}");
});
