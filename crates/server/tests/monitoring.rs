//! The alerts and the dashboard in `packaging/prometheus`: they ask for metrics that the server has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fibula_rpki::LiveVrps;
use serde_json::Value;

use crate::common::Lab;

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
    let vrps = Arc::new(LiveVrps::default());
    let mut lab = Lab::new(|options| options.vrps = Some(vrps));
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 64600));
    lab.live.flush().unwrap();
    let metrics = lab.client().get("/metrics", &[]).unwrap();
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
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
    for (what, text, least) in [("alerts", rules, 9), ("dashboard", expressions.join(" "), 20)] {
        let asked = names(&text);
        assert!(asked.len() >= least, "{what}: {asked:?}");
        for name in asked {
            let base = name.trim_end_matches("_bucket");
            assert!(known.contains(base), "{what}: the server has no {name}: {known:?}");
        }
    }
}
