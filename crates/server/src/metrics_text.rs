//! The text format of metrics, which a program around the server also writes.

use std::fmt::{self, Display, Write as _};
use std::sync::Arc;

/// Writes metrics in Prometheus's text format: a head for each name, then its samples. The prefix `fibula_` is added
/// to names.
#[derive(Default)]
pub struct MetricsText(pub(crate) String);

impl MetricsText {
    /// Begins a metric with its name, its type (`counter`, `gauge` or `histogram`), and a description.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP fibula_{name} {help}\n# TYPE fibula_{name} {kind}\n");
    }

    /// Writes a sample of the metric, with labels and their values.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.0, "fibula_{name}");
        for (at, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            let open = if at == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{text}\"");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    /// The text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }

    /// Writes a metric with a single sample.
    pub fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.sample(name, &[], value);
    }
}

/// Additional metrics of the program around the server, written after the server's own at each request. The function
/// must not block.
#[derive(Clone)]
pub struct MoreMetrics(pub Arc<dyn Fn(&mut MetricsText) + Send + Sync>);

impl fmt::Debug for MoreMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MoreMetrics")
    }
}
