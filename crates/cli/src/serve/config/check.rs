//! From the text of a file to sources that can be run.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Spanned;

use super::{Bgp, Config, Kernel, Mrt, Ris, Stream};
use crate::failure::Failure;

/// A source with its name and what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub name: String,
    pub table: String,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Fpm(Stream),
    Bmp(Stream),
    Bgp(Bgp),
    Kernel(Kernel),
    Ris(Ris),
    Mrt(Mrt),
}

impl What {
    /// What answers and logs call it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Fpm(_) => "fpm",
            Self::Bmp(_) => "bmp",
            Self::Bgp(_) => "bgp",
            Self::Kernel(_) => "kernel",
            Self::Ris(_) => "ris",
            Self::Mrt(_) => "mrt",
        }
    }

    /// The socket that it listens on.
    fn listens(&self) -> Option<SocketAddr> {
        match self {
            Self::Fpm(stream) | Self::Bmp(stream) => Some(stream.listen),
            Self::Bgp(bgp) => Some(bgp.listen),
            Self::Kernel(_) | Self::Ris(_) | Self::Mrt(_) => None,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fpm(stream) => write!(f, "FPM on {}", stream.listen),
            Self::Bmp(stream) => write!(f, "BMP on {}", stream.listen),
            Self::Bgp(bgp) => {
                let neighbours = bgp.neighbour.len();
                write!(
                    f,
                    "BGP on {} for {neighbours} neighbours, as AS{}",
                    bgp.listen, bgp.local_as
                )
            }
            Self::Kernel(_) => f.write_str("the kernel's forwarding tables"),
            Self::Ris(Ris { path: Some(path), .. }) => write!(f, "RIS lines of {}", path.display()),
            Self::Ris(Ris { connect: Some(connect), .. }) => write!(f, "RIS lines of {connect}"),
            Self::Ris(_) => f.write_str("RIS lines"),
            Self::Mrt(mrt) => write!(f, "MRT files of {}", mrt.folder.display()),
        }
    }
}

/// What is wrong with a configuration, and where in the file, if it stands there.
struct Fault {
    at: Option<Range<usize>>,
    what: String,
}

impl Fault {
    fn new(what: impl fmt::Display) -> Self {
        Self { at: None, what: what.to_string() }
    }
}

/// Reads a file of configuration.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::io(format_args!("--config {}", path.display()), &error))
}

/// What a type is to somebody who writes a file, by its name in messages of the parser.
const TYPES: [(&str, &str); 8] = [
    ("a sequence", "a list: [\"...\"], or tables with a head in [[ ]] each"),
    ("a string", "text in quotes"),
    ("path string", "a path in quotes"),
    ("usize", "a number from 0"),
    ("u64", "a number from 0"),
    ("u32", "a number from 0 to 4294967295"),
    ("u16", "a number from 0 to 65535"),
    ("a boolean", "true or false"),
];

/// What the parsers of addresses say, and what to write.
const ADDRESSES: [(&str, &str); 3] = [
    ("invalid socket address syntax", "an address with a port: 127.0.0.1:2620 or [::1]:2620"),
    ("invalid IP address syntax", "an address without a prefix length: 192.0.2.1 or 2001:db8::1"),
    ("invalid IPv4 address syntax", "an address such as 192.0.2.9"),
];

/// The text of a file of configuration.
pub struct Text<'a> {
    pub text: &'a str,
    /// The file's name.
    pub name: &'a str,
    /// The page that has all keys.
    pub page: &'a str,
}

impl Text<'_> {
    /// What it says, of the types that are wanted.
    ///
    /// # Errors
    /// With the line and what is wrong there.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        toml::from_str(self.text).map_err(|error| self.failure(error.span(), error.message()))
    }

    /// Something that is wrong there.
    pub fn failure(&self, at: Option<Range<usize>>, what: &str) -> Failure {
        let Self { text, name, page } = self;
        let line = |at: Range<usize>| text[..at.start.min(text.len())].matches('\n').count() + 1;
        let place = at.map_or(String::new(), |at| format!(" line {},", line(at)));
        let mut what = what.trim_end().replace("invalid type: map", "invalid type: a table");
        for (from, to) in TYPES {
            what = what.replace(&format!("expected {from}"), &format!("expected {to}"));
        }
        for (said, to_write) in ADDRESSES {
            what = what.replace(said, &format!("{said}; write {to_write}"));
        }
        Failure::new(format_args!("{name}:{place} {what}"))
            .hint(format_args!("{page} has every key of the file"))
    }
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// With the line and what is wrong there.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = read(path)?;
        Self::parse(&text, &path.display().to_string())
    }

    /// The configuration in a file's text.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str, name: &str) -> Result<Self, Failure> {
        let text = Text { text, name, page: "docs/serve.md" };
        let config: Self = text.parse()?;
        config.check().map_err(|fault| text.failure(fault.at, &fault.what))?;
        Ok(config)
    }

    /// What the whole has to satisfy, with the line of the file that it was read from.
    ///
    /// # Errors
    /// With the line and what is wrong there.
    pub fn checked_in(self, text: &Text<'_>) -> Result<Self, Failure> {
        self.check().map_err(|fault| text.failure(fault.at, &fault.what))?;
        Ok(self)
    }

    /// What the whole has to satisfy, flags included.
    ///
    /// # Errors
    /// With what is wrong.
    pub fn checked(self) -> Result<Self, Failure> {
        match self.check() {
            Ok(()) => Ok(self),
            Err(fault) => Err(Failure::new(fault.what)),
        }
    }

    /// The sources, in the order of the kinds and of the file.
    pub fn sources(&self) -> Vec<Source> {
        self.spanned().into_iter().map(|(source, _)| source).collect()
    }

    fn spanned(&self) -> Vec<(Source, Option<Range<usize>>)> {
        let mut all = Vec::new();
        macro_rules! add {
            ($($list:ident $what:ident),*) => {$(
                for one in &self.$list {
                    let mut one = one.clone();
                    let span = one.name.as_ref().map(Spanned::span);
                    let name = one.name.take().map(Spanned::into_inner);
                    let name = name.unwrap_or_else(|| stringify!($list).to_owned());
                    let table = one.table.take().unwrap_or_else(|| name.clone());
                    all.push((Source { name, table, what: What::$what(one) }, span));
                }
            )*};
        }
        add!(fpm Fpm, bmp Bmp, bgp Bgp, kernel Kernel, ris Ris, mrt Mrt);
        all
    }

    /// The keys that differ from those of a server that runs, and that it does not read again.
    pub fn restarts(&self, running: &Self) -> Vec<&'static str> {
        let http = |config: &Self| config.http.clone().unwrap_or_default();
        let (new, old) = (&self.tables, &running.tables);
        let (limits, before) = (&self.limits, &running.limits);
        let differ = [
            ("http", http(self) != http(running)),
            ("checkpoint", self.checkpoint != running.checkpoint),
            ("tables.engine", new.engine != old.engine),
            ("tables.bucket", new.bucket != old.bucket),
            ("tables.history", new.history != old.history),
            ("limits.peer-routes", limits.peer_routes != before.peer_routes),
            ("limits.routes", limits.routes != before.routes),
            ("limits.tables", limits.tables != before.tables),
        ];
        differ.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
    }

    fn check(&self) -> Result<(), Fault> {
        let (mut names, mut sockets) = (HashMap::new(), HashMap::new());
        for (source, at) in self.spanned() {
            let fault = |what: String| Fault { at: at.clone(), what };
            let Source { name, table, what } = &source;
            for text in [name, table] {
                if text.is_empty() || text.contains(|c: char| c.is_control() || c == '/') {
                    return Err(fault(format!(
                        "{text:?} cannot be a name: it is empty, or has / or \
                                              control characters"
                    )));
                }
            }
            if name.contains(char::is_whitespace) {
                return Err(fault(format!("{name:?} cannot be a name: it has white space in it")));
            }
            if names.insert(name.clone(), ()).is_some() {
                return Err(fault(format!(
                    "two sources are called {name}: give one a name of its own"
                )));
            }
            if let Some(socket) = what.listens().filter(|socket| socket.port() != 0)
                && let Some(other) = sockets.insert(socket, name.clone())
            {
                return Err(fault(format!("{name} and {other} both listen on {socket}")));
            }
            check_source(name, what).map_err(fault)?;
        }
        if let Some(http) = &self.http
            && let Some(name) = sockets.get(http.listen.get_ref())
        {
            // It does not stand in the file if it is the default, or a flag's.
            let at = Some(http.listen.span()).filter(|at| !at.is_empty());
            let socket = http.listen.get_ref();
            return Err(Fault { at, what: format!("{name} and http both listen on {socket}") });
        }
        if let Some(http) = &self.http
            && http.tls_certificate.is_some() != http.tls_key.is_some()
        {
            return Err(Fault::new("http: tls-certificate and tls-key belong together"));
        }
        if self.tables.engine.is_empty() {
            return Err(Fault::new("tables: engine names none; auto takes the one that suits"));
        }
        Ok(())
    }
}

/// What a single source has to satisfy.
fn check_source(name: &str, what: &What) -> Result<(), String> {
    match what {
        What::Ris(Ris { path, connect, .. }) if path.is_some() == connect.is_some() => {
            Err(format!("{name}: a ris source has either a path or an address to connect to"))
        }
        What::Bgp(bgp) => {
            if (1..3000).contains(&bgp.hold_time.0.as_millis())
                || bgp.hold_time.0.as_secs() > 65_535
            {
                return Err(format!("{name}: hold-time is 0, or from 3s to 65535s (RFC 4271)"));
            }
            if bgp.local_as == 0 || bgp.router_id.is_unspecified() {
                return Err(format!(
                    "{name}: local-as and router-id are not 0 (RFC 7607, RFC 6286)"
                ));
            }
            if bgp.neighbour.is_empty() {
                return Err(format!("{name}: it has no neighbour, so nobody may connect"));
            }
            let mut known = HashMap::new();
            match bgp.neighbour.iter().find(|n| known.insert(n.address, ()).is_some()) {
                Some(twice) => Err(format!("{name}: neighbour {} occurs twice", twice.address)),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}
