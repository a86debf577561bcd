//! What `fibula serve` is to do: the file, in TOML, and what the flags add to it.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::time::Time;
use crate::failure::Failure;

/// The configuration, whole and checked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Answers over HTTP.
    pub http: Option<Http>,
    /// Where the table is kept over restarts.
    pub checkpoint: Option<Checkpoint>,
    #[serde(default)]
    pub tables: Tables,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub fpm: Vec<Stream>,
    #[serde(default)]
    pub bmp: Vec<Stream>,
    #[serde(default)]
    pub bgp: Vec<Bgp>,
    #[serde(default)]
    pub kernel: Vec<Kernel>,
    #[serde(default)]
    pub ris: Vec<Ris>,
    #[serde(default)]
    pub mrt: Vec<Mrt>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Http {
    #[serde(default = "http_address")]
    pub listen: SocketAddr,
    /// A file whose first line is the token that every request has to bring.
    pub token_file: Option<PathBuf>,
    /// The server's certificates and key, PEM files.
    pub tls_certificate: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    #[serde(default = "connections")]
    pub connections: usize,
    #[serde(default = "body_bytes")]
    pub body_bytes: u64,
    /// Readiness and health: how long a change may take to the readers.
    #[serde(default = "lag")]
    pub lag: Time,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Checkpoint {
    pub file: PathBuf,
    #[serde(default = "checkpoint_every")]
    pub every: Time,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Tables {
    /// Engines in order of preference, as `--engine` names them.
    pub engine: Vec<String>,
    /// How long the first change of a burst waits for others.
    pub bucket: Time,
    /// Keep communities as text.
    pub communities: bool,
    /// Changes of best routes that are kept to be shown.
    pub history: usize,
}

impl Default for Tables {
    fn default() -> Self {
        let bucket = "10ms".parse().expect("a time");
        Self { engine: vec!["auto".to_owned()], bucket, communities: true, history: 100_000 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Limits {
    /// Routes of one peer in one family of one table.
    pub peer_routes: u32,
    /// Routes of all peers and tables.
    pub routes: usize,
    /// Tables that have engines.
    pub tables: usize,
    /// Connections of one listener.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { peer_routes: 4_000_000, routes: 50_000_000, tables: 64, connections: 256 }
    }
}

/// A listener for a protocol in which the other end only speaks.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stream {
    /// Its name in answers and logs; by default that of its kind.
    pub name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    pub listen: SocketAddr,
    /// Who may connect; everybody who can, if empty.
    #[serde(default)]
    pub allow: Vec<IpAddr>,
    /// How long the routes of a lost connection serve.
    #[serde(default = "hold")]
    pub hold: Time,
    /// After so long without a word, a new connection has said everything.
    #[serde(default = "quiet")]
    pub quiet: Time,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bgp {
    /// Its name in answers and logs; by default that of its kind.
    pub name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    pub listen: SocketAddr,
    pub local_as: u32,
    /// Our BGP identifier.
    pub router_id: std::net::Ipv4Addr,
    #[serde(default = "hold_time")]
    pub hold_time: Time,
    pub neighbour: Vec<Neighbour>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Neighbour {
    pub address: IpAddr,
    /// Its AS; any, if it is not given.
    pub remote_as: Option<u32>,
    /// A file whose first line is the password of TCP MD5 signatures.
    pub password_file: Option<PathBuf>,
    /// Take several paths of a prefix (ADD-PATH).
    #[serde(default)]
    pub add_path: bool,
    /// End the session at so many routes of a family.
    pub max_routes: Option<u32>,
    /// How long its routes serve when the session is lost, unless graceful restart says how long.
    #[serde(default = "hold")]
    pub hold: Time,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Kernel {
    /// Its name in answers and logs; by default that of its kind.
    pub name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    /// Bytes of the socket's receive buffer.
    pub buffer: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ris {
    /// Its name in answers and logs; by default that of its kind.
    pub name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    /// A pipe, a file, or - for standard input.
    pub path: Option<PathBuf>,
    /// Or: connect to this server and read.
    pub connect: Option<SocketAddr>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mrt {
    /// Its name in answers and logs; by default that of its kind.
    pub name: Option<Spanned<String>>,
    /// The table that it feeds; by default called as the source.
    pub table: Option<String>,
    /// The folder in which files appear.
    pub folder: PathBuf,
}

fn time(text: &str) -> Time {
    text.parse().expect("a time")
}
fn http_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8080))
}
fn connections() -> usize {
    1024
}
fn body_bytes() -> u64 {
    1 << 30
}
fn lag() -> Time {
    time("5s")
}
fn checkpoint_every() -> Time {
    time("60s")
}
fn hold() -> Time {
    time("120s")
}
fn quiet() -> Time {
    time("5s")
}
fn hold_time() -> Time {
    time("90s")
}

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

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// With the line and what is wrong there.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::io(format_args!("{}", path.display()), &error))?;
        Self::parse(&text, &path.display().to_string())
    }

    /// The configuration in a file's text.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str, name: &str) -> Result<Self, Failure> {
        let failure = |at: Option<Range<usize>>, what: &str| {
            let line =
                |at: Range<usize>| text[..at.start.min(text.len())].matches('\n').count() + 1;
            let place = at.map_or(String::new(), |at| format!(" line {},", line(at)));
            Failure::new(format_args!("{name}:{place} {}", what.trim_end()))
                .hint("docs/serve.md has every key of the file")
        };
        let config: Self =
            toml::from_str(text).map_err(|error| failure(error.span(), error.message()))?;
        config.check().map_err(|fault| failure(fault.at, &fault.what))?;
        Ok(config)
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
                Some(twice) => Err(format!("{name}: neighbour {} is there twice", twice.address)),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Config::parse(text, "f.toml").expect_err(text).to_string()
    }

    #[test]
    fn a_whole_file_is_read() {
        let text = r#"
            http = { listen = "127.0.0.1:8081", lag = "1s" }
            checkpoint = { file = "/var/lib/fibula/rib.fib", every = "30s" }
            [tables]
            engine = ["runmap", "auto"]
            [limits]
            peer-routes = 10
            [[fpm]]
            listen = "127.0.0.1:2620"
            [[bmp]]
            name = "edge"
            listen = "[::1]:11019"
            allow = ["192.0.2.1"]
            [[bgp]]
            listen = "127.0.0.1:1790"
            local-as = 64512
            router-id = "192.0.2.9"
            [[bgp.neighbour]]
            address = "192.0.2.1"
            add-path = true
            [[kernel]]
            [[ris]]
            path = "-"
            [[mrt]]
            table = "views"
            folder = "/srv/mrt"
        "#;
        let config = Config::parse(text, "f.toml").unwrap();
        let sources = config.sources();
        let names: Vec<_> = sources.iter().map(|s| (&*s.name, &*s.table, s.what.kind())).collect();
        let wanted = [
            ("fpm", "fpm", "fpm"),
            ("edge", "edge", "bmp"),
            ("bgp", "bgp", "bgp"),
            ("kernel", "kernel", "kernel"),
            ("ris", "ris", "ris"),
            ("mrt", "views", "mrt"),
        ];
        assert_eq!(names, wanted);
        // Where something stands makes no difference to what it is.
        let moved = Config::parse(&format!("\n\n{text}"), "f.toml").unwrap();
        assert_eq!(moved.sources(), sources);
        let What::Bgp(bgp) = &sources[2].what else { panic!() };
        assert!(bgp.neighbour[0].add_path && bgp.hold_time == time("90s"));
        assert_eq!((config.limits.peer_routes, config.limits.tables), (10, 64));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, wanted) in [
            ("[[fpm]]\nlisten = 7", "line 2,"),
            ("[[fpm]]\nlisten = \"localhost\"", "line 2,"),
            ("[[fpm]]\n", "missing field `listen`"),
            ("\n[[fmp]]\n", "line 2, unknown field `fmp`"),
            ("[[fpm]]\nlisten = \"[::1]:1\"\nport = 3", "line 3, unknown field `port`"),
            ("[limits]\nroutes = -1", "line 2,"),
            ("[tables]\nbucket = \"fast\"", "line 2, \"fast\" is no time"),
            ("[[kernel]]\n[[kernel]]\n", "two sources are called kernel"),
            ("[[kernel]]\n[[kernel]]\nname = \"kernel\"\n", "line 3, two sources"),
            ("[[kernel]]\nname = \"a/b\"\n", "line 2, \"a/b\" cannot be a name"),
            ("[[ris]]\n", "either a path or an address"),
            ("[http]\ntls-key = \"k\"", "belong together"),
            ("[tables]\nengine = []", "engine names none"),
            (
                "[[fpm]]\nlisten = \"[::1]:1\"\n[[bmp]]\nlisten = \"[::1]:1\"",
                "both listen on [::1]:1",
            ),
        ] {
            let error = error(text);
            assert!(error.starts_with("f.toml:") && error.contains(wanted), "{text}: {error}");
        }
        let bgp = "[[bgp]]\nlisten = \"[::1]:179\"\nlocal-as = 1\nrouter-id = \"1.1.1.1\"\n";
        assert!(error(&format!("{bgp}neighbour = []")).contains("nobody may connect"));
        let one = "[[bgp.neighbour]]\naddress = \"::1\"\n";
        assert!(error(&format!("{bgp}{one}{one}")).contains("neighbour ::1 is there twice"));
        assert!(error(&format!("{bgp}hold-time = \"2s\"\n{one}")).contains("from 3s"));
        assert!(Config::parse(&format!("{bgp}{one}"), "f.toml").is_ok());
    }
}
