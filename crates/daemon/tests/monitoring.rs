//! The alerts and the dashboard in `packaging/prometheus`: they ask for metrics that `fibula serve` has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::alarms::{Source, client};
use crate::until;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus")
}

fn text(name: &str) -> String {
    let path = folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words of a text that are names of our metrics.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("fibula_")).collect()
}

#[test]
fn what_is_asked_for_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (flows, history) = (folder.path().join("flows"), folder.path().join("history"));
    let mut source = Source::new();
    // Nobody answers as a cache; its metrics are there all the same.
    let serve = source.serve(&format!(
        "[rpki]\ncaches = ['127.0.0.1:1']\n[flows]\nlisten = ['127.0.0.1:0']\noutput = '{}'\n\
         [history]\npath = '{}'\n[[alarm]]\nname = 'all'\nkind = 'withdrawn'\nprefixes = ['::/0']\n",
        flows.display(),
        history.display()
    ));
    source.accept();
    source.announce("193.0.6.0/24", "64500, 3333");
    let metrics = until("a route", || {
        let body = client(&serve).get("/metrics", &[]).unwrap().body;
        let text = String::from_utf8(body.to_vec()).unwrap();
        text.contains("fibula_changes_total{").then_some(text)
    });
    // The head of a metric is there before its first sample.
    let known: BTreeSet<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let rules = text("fibula.rules.yml");
    let dashboard: Value = serde_json::from_str(&text("fibula.dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let expressions: Vec<&str> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap())
        .collect();
    for (what, text, least) in [("alerts", rules, 15), ("dashboard", expressions.join(" "), 28)] {
        let asked = names(&text);
        assert!(asked.len() >= least, "{what}: {asked:?}");
        for name in asked {
            let base = name.trim_end_matches("_bucket");
            assert!(known.contains(base), "{what}: the server has no {name}: {known:?}");
        }
    }
}
