//! Python objects as addresses and prefixes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_annotate::Address;
use fibula_core::{AnyPrefix, PrefixError};
use fibula_ingest::HostBits;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyInt, PyString, PyTuple};

use crate::error::AddressError;

/// One address: text, a number, bytes, an object of `ipaddress`. Text with lone surrogates, which has no UTF-8, is
/// none.
///
/// Numbers below 2^32 are IPv4 addresses, larger ones IPv6, as `ipaddress.ip_address` has it. v4-mapped
/// IPv6 addresses are the IPv4 addresses that they stand for ([`mapped_v4`](fibula_core::mapped_v4)).
pub fn address(object: &Bound<'_, PyAny>) -> PyResult<Address> {
    ip(object).map(Address::from)
}

/// The same, with v4-mapped addresses as they are.
pub fn ip(object: &Bound<'_, PyAny>) -> PyResult<IpAddr> {
    if let Ok(text) = object.cast::<PyString>() {
        return parse(&text.to_string_lossy());
    }
    if let Some(ip) = number(object)? {
        return Ok(ip);
    }
    if let Some(bytes) = bytes(object)? {
        return from_bytes(&bytes).ok_or_else(|| {
            AddressError::new_err(format!("{} bytes are no address: 4 or 16 are", bytes.len()))
        });
    }
    if is_ip(object)? {
        return parse(object.str()?.to_str()?);
    }
    Err(PyTypeError::new_err(format!(
        "an address is a str, an int, 4 or 16 bytes or an ipaddress object, not {}",
        object.get_type().name()?
    )))
}

fn parse(text: &str) -> PyResult<IpAddr> {
    text.trim_ascii().parse().map_err(|_| {
        let shown: String = text.chars().take(60).collect();
        AddressError::new_err(format!("{shown:?} is not an address"))
    })
}

/// Whether text is an address, blanks around it aside.
#[pyfunction]
pub fn is_address(text: &Bound<'_, PyString>) -> bool {
    Address::parse(text.to_string_lossy().trim_ascii().as_bytes()).is_some()
}

/// An integer as an address; `None` for what is no integer.
pub fn number(object: &Bound<'_, PyAny>) -> PyResult<Option<IpAddr>> {
    // Those of NumPy are no `int`, but can stand for one.
    let is_int = object.is_instance_of::<PyInt>() || object.hasattr("__index__")?;
    if !is_int || object.is_instance_of::<PyBool>() {
        return Ok(None);
    }
    let number: u128 = match object.extract() {
        Ok(number) => number,
        // Arrays of NumPy have `__index__`, too.
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => return Ok(None),
        Err(_) => {
            let text = format!("{object} is not an address: the largest is 2**128 - 1");
            return Err(AddressError::new_err(text));
        }
    };
    Ok(Some(match u32::try_from(number) {
        Ok(v4) => Ipv4Addr::from(v4).into(),
        Err(_) => Ipv6Addr::from(number).into(),
    }))
}

/// `bytes` or `bytearray`; `None` for anything else.
pub fn bytes(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes().to_vec()));
    }
    Ok(object.cast::<PyByteArray>().ok().map(|bytes| bytes.to_vec()))
}

/// Four or sixteen bytes in network order.
pub fn from_bytes(bytes: &[u8]) -> Option<IpAddr> {
    match <[u8; 4]>::try_from(bytes) {
        Ok(v4) => Some(v4.into()),
        Err(_) => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}

/// Whether it is an address of `ipaddress`.
pub fn is_ip(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static CLASSES: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();
    object.is_instance(classes(object.py(), &CLASSES, ["IPv4Address", "IPv6Address"])?.as_any())
}

fn is_network(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static CLASSES: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();
    object.is_instance(classes(object.py(), &CLASSES, ["IPv4Network", "IPv6Network"])?.as_any())
}

fn classes<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyTuple>>,
    names: [&str; 2],
) -> PyResult<Bound<'py, PyTuple>> {
    let tuple = cell.get_or_try_init(py, || {
        let module = py.import("ipaddress")?;
        let found = names.map(|name| module.getattr(name));
        let [a, b] = found;
        PyTuple::new(py, [a?, b?]).map(Bound::unbind)
    })?;
    Ok(tuple.bind(py).clone())
}

/// Whether it is a prefix rather than an address, as far as its type or a slash tells.
pub fn is_prefix(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match object.cast::<PyString>() {
        Ok(text) => Ok(text.to_string_lossy().contains('/')),
        Err(_) => is_network(object),
    }
}

/// A prefix: text such as `10.0.0.0/8`, an object of `ipaddress`, or an address, which is the prefix
/// that holds it alone. v4-mapped prefixes are the IPv4 prefixes that they stand for.
pub fn prefix(object: &Bound<'_, PyAny>, host_bits: HostBits) -> PyResult<AnyPrefix> {
    let text = match object.cast::<PyString>() {
        Ok(text) => text.to_string_lossy().trim_ascii().to_owned(),
        Err(_) if is_network(object)? => object.str()?.to_str()?.to_owned(),
        Err(_) => String::new(),
    };
    if text.contains('/') {
        let prefix = match text.parse::<AnyPrefix>() {
            Err(PrefixError::HostBits) if host_bits == HostBits::Mask => masked(&text),
            parsed => parsed,
        };
        let refused = |error| AddressError::new_err(format!("prefix {text:?}: {error}"));
        return Ok(prefix.map_err(refused)?.unmapped());
    }
    Ok(AnyPrefix::host(address(object)?.into()))
}

fn masked(text: &str) -> Result<AnyPrefix, PrefixError> {
    let (ip, len) = text.split_once('/').ok_or(PrefixError::Syntax)?;
    let syntax = |_| PrefixError::Syntax;
    AnyPrefix::masked(ip.parse().map_err(|_| PrefixError::Syntax)?, len.parse().map_err(syntax)?)
}
