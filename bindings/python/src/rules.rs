//! Rules of a packet filter.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fibula_classify::text::{self, RuleFileProblem, RuleOptions, RuleText, read_file};
use fibula_classify::{
    Batch, Classifier, ClassifierOptions, FiveTuple, FiveTupleError, Flow, RuleId, Rules,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::address::address;
use crate::error::{AddressError, FibulaError, SourceError, io_error};

/// Rules: which of them does a packet hit?
#[pyclass(name = "Rules", module = "fibula", frozen)]
pub struct PyRules {
    rules: Rules,
    /// What the text has that its rules do not say.
    #[pyo3(get)]
    notes: Vec<String>,
    /// Its cache changes with each packet.
    classifier: Mutex<Classifier>,
}

/// One packet as Python says it.
type Packet<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
);

fn flow((src, dst, protocol, from, to): &Packet<'_>) -> PyResult<Flow> {
    let protocol = match protocol.extract::<u8>() {
        Ok(number) => number,
        Err(_) => {
            let name: String = protocol.extract().map_err(|_| {
                PyTypeError::new_err("a protocol is a name or a number from 0 to 255")
            })?;
            let unknown =
                || SourceError::new_err(format!("{name:?} is no protocol: give its number"));
            text::protocol(&name).ok_or_else(unknown)?
        }
    };
    let ports = match (from, to) {
        (None, None) => None,
        (Some(from), Some(to)) => Some((port(from)?, port(to)?)),
        _ => return Err(PyTypeError::new_err("a packet has both ports or none")),
    };
    let (src, dst) = (address(src)?.into(), address(dst)?.into());
    Flow::try_from(&FiveTuple { src, dst, protocol, ports }).map_err(|error| match error {
        FiveTupleError::Families => AddressError::new_err(error.to_string()),
        FiveTupleError::Icmp(..) => FibulaError::new_err(error.to_string()),
    })
}

/// The fields of a packet of many: a tuple, a list, or a row as pandas gives it.
fn five<'py>(row: usize, packet: &Bound<'py, PyAny>) -> PyResult<Packet<'py>> {
    let fields = match packet.cast::<PyString>() {
        Ok(_) => None,
        Err(_) => packet.extract::<Vec<Bound<'py, PyAny>>>().ok(),
    };
    let Some(Ok([src, dst, protocol, from, to])) = fields.map(<[_; 5]>::try_from) else {
        let shown = packet.repr().map_or_else(|_| String::new(), |text| text.to_string());
        return Err(PyTypeError::new_err(format!(
            "packet {row} is (src, dst, protocol, src_port, dst_port), not {shown}; of a frame, \
             frame[[...]].itertuples(index=False) gives such rows"
        )));
    };
    let some = |port: Bound<'py, PyAny>| (!port.is_none()).then_some(port);
    Ok((src, dst, protocol, some(from), some(to)))
}

fn port(object: &Bound<'_, PyAny>) -> PyResult<u16> {
    object.extract().map_err(|error: PyErr| {
        let is_number = !error.is_instance_of::<PyTypeError>(object.py());
        let shown = object.repr().map_or_else(|_| String::new(), |text| text.to_string());
        let text = format!("a port is a number from 0 to 65535, not {shown}");
        if is_number { FibulaError::new_err(text) } else { PyTypeError::new_err(text) }
    })
}

impl PyRules {
    fn of(
        data: impl Read,
        path: &Path,
        format: Option<&str>,
        chain: &str,
        source: bool,
    ) -> PyResult<Self> {
        let name = path.display();
        let format = format
            .map(str::parse)
            .transpose()
            .map_err(|what: String| SourceError::new_err(format!("{name}: {what}")))?;
        let mut options = RuleOptions::default();
        (options.chain, options.source) = (chain.to_owned(), source);
        let read = read_file(data, name, format, &options);
        let RuleText { rules, notes } = read.map_err(|error| match error.problem() {
            RuleFileProblem::Unreadable(problem) => io_error(path, problem),
            _ => match error.hint() {
                Some(hint) => SourceError::new_err(format!("{error}; {hint}")),
                None => SourceError::new_err(error.to_string()),
            },
        })?;
        let classifier = Classifier::new(rules.clone(), &ClassifierOptions::default());
        Ok(Self { rules, notes, classifier: Mutex::new(classifier) })
    }

    fn found(&self, flows: &[Flow]) -> Vec<Option<RuleId>> {
        // A panic within left nothing behind that is wrong for the next.
        let mut classifier =
            self.classifier.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (mut batch, mut found) = (Batch::new(), vec![None; flows.len()]);
        for (flows, found) in flows.chunks(Batch::MAX).zip(found.chunks_mut(Batch::MAX)) {
            batch.clear();
            flows.iter().for_each(|flow| batch.push(flow));
            classifier.classify(0, &batch, found);
        }
        found
    }
}

#[pymethods]
impl PyRules {
    /// Reads the rules of a file, compressed or not.
    #[staticmethod]
    #[pyo3(signature = (path, *, format=None, chain="FORWARD", source=false))]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        chain: &str,
        source: bool,
    ) -> PyResult<Self> {
        py.detach(|| {
            let failed = |error| io_error(&path, &error);
            let file = File::open(&path).map_err(failed)?;
            let data = fibula_ingest::open_whole(file).map_err(failed)?;
            Self::of(data, &path, format, chain, source)
        })
    }

    /// Reads rules from text.
    #[staticmethod]
    #[pyo3(signature = (text, *, format=None, chain="FORWARD", source=false))]
    fn parse(
        py: Python<'_>,
        text: &str,
        format: Option<&str>,
        chain: &str,
        source: bool,
    ) -> PyResult<Self> {
        py.detach(|| Self::of(text.as_bytes(), Path::new("rules"), format, chain, source))
    }

    /// How many rules there are.
    fn __len__(&self) -> usize {
        self.rules.len()
    }

    fn __repr__(&self) -> String {
        format!("<fibula.Rules: {} rules>", self.rules.len())
    }

    /// The rule that a packet hits, as a dict of line, rule, action and label; None if no rule matches.
    #[pyo3(signature = (src, dst, protocol, src_port=None, dst_port=None))]
    #[allow(clippy::too_many_arguments, reason = "the five fields")]
    fn lookup<'py>(
        &self,
        py: Python<'py>,
        src: Bound<'py, PyAny>,
        dst: Bound<'py, PyAny>,
        protocol: Bound<'py, PyAny>,
        src_port: Option<Bound<'py, PyAny>>,
        dst_port: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let flow = flow(&(src, dst, protocol, src_port, dst_port))?;
        let found = py.detach(|| self.found(&[flow]))[0];
        let Some(rule) = found.and_then(|id| self.rules.get(id)) else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("line", rule.line)?;
        dict.set_item("rule", rule.to_string())?;
        dict.set_item("action", rule.action.to_string())?;
        dict.set_item("label", rule.label.as_deref())?;
        Ok(Some(dict))
    }

    /// For each packet (src, dst, protocol, src_port, dst_port) the line of the rule that it hits.
    fn classify(&self, py: Python<'_>, packets: &Bound<'_, PyAny>) -> PyResult<Vec<Option<u32>>> {
        let flow = |(row, packet)| flow(&five(row, &packet?)?);
        let flows: Vec<Flow> =
            packets.try_iter()?.enumerate().map(flow).collect::<PyResult<_>>()?;
        let line = |id: RuleId| self.rules.get(id).map(|rule| rule.line);
        Ok(py.detach(|| self.found(&flows).into_iter().map(|id| id.and_then(line)).collect()))
    }
}
