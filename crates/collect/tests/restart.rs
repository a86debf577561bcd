//! Templates are kept over a restart, for several decoders.

use std::fs;

use fibula_collect::{Collector, FlowFormat};

use crate::common::{Exporter, ipfix_flow, ipfix_template, options, rows};

#[test]
fn templates_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let templates = folder.path().join("templates");
    // Which socket an exporter's datagrams go to is the system's choice, and may be another one after the restart.
    let started = |run: &str, sockets| {
        let mut options = options(&folder.path().join(run), FlowFormat::JsonLines);
        options.templates = Some(templates.clone());
        options.sockets = sockets;
        Collector::start(options, None)
    };
    let collector = started("first", 3).unwrap();
    let exporters: Vec<_> = (0..12).map(|_| Exporter::to(&collector)).collect();
    exporters.iter().for_each(|exporter| exporter.send(&ipfix_template()));
    let counts = collector.stop().unwrap();
    assert_eq!((counts.exports.templates, counts.rows), (12, 0));

    for (run, sockets) in [("second", 2), ("third", 4), ("fourth", 1)] {
        let collector = started(run, sockets).unwrap();
        // Ports are part of what templates belong to: the same sockets send to the new port.
        let port = collector.addresses()[0];
        // In the second run, only some of the exporters send.
        let heard = if run == "second" { &exporters[..5] } else { &exporters[..] };
        heard.iter().for_each(|exporter| exporter.send_to(&ipfix_flow(0, 9), port));
        let counts = collector.stop().unwrap();
        assert_eq!((counts.exports.held, counts.rows), (0, heard.len() as u64), "{run}");
        assert_eq!(rows(&folder.path().join(run)).len(), heard.len());
    }

    // A file that is cut, or of something else, is refused with its name, and stays.
    let saved = fs::read(&templates).unwrap();
    for bad in [&saved[..saved.len() - 1], &saved[1..], b"something else"] {
        fs::write(&templates, bad).unwrap();
        let error = started("bad", 1).unwrap_err().to_string();
        assert!(error.starts_with(templates.to_str().unwrap()), "{error}");
        assert_eq!(fs::read(&templates).unwrap(), bad);
    }
}
