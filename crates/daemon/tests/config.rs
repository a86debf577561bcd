//! Configurations that are wrong: the file, the line, the problem, and what to do.

use fibula_daemon::config::{ConfigError, Problem, ServeConfig, SourceProblem};

/// A text, the line of the error, and parts of its message and its hint.
type Case = (&'static str, Option<usize>, &'static str, &'static str);

fn check(cases: &[Case], parse: impl Fn(&str) -> Result<(), ConfigError>) {
    for (text, line, message, hint) in cases {
        let error = parse(text).expect_err(text);
        assert_eq!(error.line(), *line, "{text}: {error}");
        assert!(error.to_string().contains(message), "{text}: {error}");
        let hints = error.hint().unwrap_or_default();
        assert!(hints.contains(hint), "{text}: {hints}");
        if line.is_some() {
            assert_eq!(error.file().and_then(|file| file.to_str()), Some("f.toml"), "{text}");
        }
    }
}

const SERVE: &[Case] = &[
    ("[[fmp]]", Some(1), "unknown field `fmp`", "docs/serve.md"),
    ("\n[[fpm]]\nlisten = 'x'", Some(3), "write an address with a port", "docs/serve.md"),
    ("[[kernel]]\n[tables]\nbucket = 10", Some(3), "expected text in quotes", "docs/serve.md"),
    ("[[kernel]]\n[[kernel]]\nname = 'kernel'", Some(3), "two sources are called kernel", ""),
    ("[[kernel]]\nname = ''", Some(2), "cannot be a name: it is empty", ""),
    ("[[kernel]]\nname = 'k'\ntable = 'a/b'", Some(2), "\"a/b\" cannot be a name", ""),
    ("[[ris]]\nname = 'r'", Some(2), "r: a ris source has either a path or an address", ""),
    (
        "[[fpm]]\nlisten = '[::1]:1'\n[http]\nlisten = '[::1]:1'",
        Some(4),
        "fpm and http both listen on [::1]:1",
        "",
    ),
    ("[[kernel]]\n[http]\ntls-key = 'k'", None, "tls-certificate and tls-key belong together", ""),
    ("[[kernel]]\n[tables]\nengine = []", None, "auto takes the one that suits", ""),
    (
        "[[fpm]]\nlisten = '[::1]:1'\nignore-peers = ['10.0.0.1']",
        None,
        "FPM has no peers: ignore-peers is for BMP",
        "",
    ),
    ("[[bmp]]\nlisten = '[::1]:1'\nignore-peers = ['10.0.0.1/33']", Some(3), "33", ""),
    ("[http]\nthreads = 0", None, "http.threads is 0", "leave the key out"),
    ("[http]\nconnections = 0", None, "http.connections is 0", ""),
    ("[http]\nbody-bytes = 0", None, "http.body-bytes is 0", ""),
    ("[http]\nlag = '0'", None, "http.lag is 0", ""),
    ("[limits]\nconnections = 0", None, "limits.connections is 0", ""),
    ("[limits]\nroutes = 0", None, "limits.routes is 0", ""),
    ("[limits]\npeer-routes = 0", None, "limits.peer-routes is 0", ""),
    ("[limits]\npeers = 0", None, "limits.peers is 0", ""),
    ("[[kernel]]\nbuffer = 0", None, "kernel.buffer is 0", ""),
    ("[history]\npath = 'f'\nkeep = '0'", None, "history.keep is 0", "leave the key out"),
    ("[history]\npath = 'f'\nbytes = 0", None, "history.bytes is 0", ""),
    ("history = { path = 'f' }\n[tables]\nhistory = 0", None, "tables.history is 0", ""),
    ("[history]\nkeep = '1d'", Some(1), "missing field `path`", ""),
    ("checkpoint = { file = 'f', every = '0' }", None, "checkpoint.every is 0", ""),
    (
        "[[bgp]]\nlisten = '[::1]:179'\nlocal-as = 1\nrouter-id = '1.1.1.1'\n\
         neighbour = [{ address = '::1', max-routes = 0 }]",
        None,
        "bgp.neighbour.max-routes is 0",
        "",
    ),
    (
        "[[bgp]]\nlisten = '[::1]:179'\nlocal-as = 1\nrouter-id = '1.1.1.1'\n\
         neighbour = [{ address = '::1', remote-as = 0 }]",
        None,
        "bgp.neighbour.remote-as is 0",
        "",
    ),
];

#[test]
fn a_server_s_mistakes_have_their_place() {
    check(SERVE, |text| ServeConfig::parse(text, "f.toml").map(drop));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = ServeConfig::read("/no/such/file".as_ref()).unwrap_err();
    assert!(matches!(error.problem(), Problem::Unreadable { setting: "--config", .. }));
    assert_eq!((error.file(), error.line()), (Some("/no/such/file".as_ref()), None));
    assert!(error.to_string().starts_with("--config /no/such/file: "), "{error}");
}

/// A program can distinguish problems without reading messages.
#[test]
fn problems_have_types() {
    let bgp = "[[bgp]]\nlisten = '[::1]:179'\nlocal-as = 1\nrouter-id = '1.1.1.1'\nneighbour = []";
    let error = ServeConfig::parse(bgp, "f.toml").unwrap_err();
    let Problem::Source { name, problem } = error.problem() else { panic!("{error:?}") };
    assert_eq!((&**name, problem), ("bgp", &SourceProblem::NoNeighbour));
}

#[cfg(target_os = "linux")]
mod route {
    use fibula_daemon::config::{PortProblem, RouteConfig, RouteProblem};

    use super::*;

    const ROUTE: &[Case] = &[
        ("[[port]]\nport = 'x'", Some(2), "\"x\" is not a kind of port", "docs/router.md"),
        ("[[port]]\nport = 'memory'\ntimes = true", Some(1), "times is for a capture", ""),
        ("[pipeline]\nshape = '2'", Some(2), "\"2\" is not a shape", ""),
        ("[[kernel]]", None, "there is no port", "name one or more: --port"),
        ("[[port]]\nport = 'memory'", None, "nothing to forward packets by", "--fpm, --kernel"),
        (
            "router = { table = ['a'] }\n[[kernel]]\n[[port]]\nport = 'memory'",
            None,
            "a table that does not change, beside sources",
            "take either",
        ),
        (
            "router = { vrf = 'fpm/100' }\n[[kernel]]\n[[port]]\nport = 'memory'",
            None,
            "no source feeds the table of vrf \"fpm/100\"",
            "(kernel), with a routing instance behind: kernel/100",
        ),
        (
            "[[kernel]]\n[[bmp]]\nlisten = '[::1]:1'\n[[port]]\nport = 'memory'",
            None,
            "the sources feed several tables (bmp, kernel), and none is named to forward by",
            "router = { vrf = \"bmp\" }",
        ),
        (
            "[[bmp]]\nlisten = '[::1]:1'\n[[port]]\nport = 'memory'",
            None,
            "BMP feeds a table for each view, such as bmp/pre-policy, and none is named",
            "router = { vrf = \"bmp/post-policy\" }",
        ),
        (
            "router = { rules = 'r' }\n[[kernel]]\n[[port]]\nport = 'xdp:eth1'",
            None,
            "does not know rules",
            "use afxdp: in place of xdp:",
        ),
        (
            "pipeline = { burst = 0 }\n[[kernel]]\n[[port]]\nport = 'memory'",
            None,
            "a burst has 1 to 256 packets",
            "",
        ),
        (
            "pipeline = { eal = '-m 64' }\n[[kernel]]\n[[port]]\nport = 'memory'",
            None,
            "ports of DPDK",
            "",
        ),
        (
            "[[kernel]]\n[[port]]\nport = 'tap:t'\n[[port]]\nport = 'tap:t'",
            None,
            "tap:t occurs twice",
            "",
        ),
    ];

    #[test]
    fn a_router_s_mistakes_have_their_place() {
        let parse = |text: &str| RouteConfig::parse(text, "f.toml").and_then(RouteConfig::checked);
        check(ROUTE, |text| parse(text).map(drop));
    }

    /// Which table forwards does not depend on the kinds of the sources, nor on their order.
    #[test]
    fn the_table_of_each_port_is_certain() {
        let tables = |text: &str| {
            let config = RouteConfig::parse(text, "f.toml").unwrap().checked().unwrap();
            config.ports.iter().map(|port| config.table_of(port)).collect::<Vec<_>>()
        };
        let table = |name: &str| Some(name.to_owned());
        assert_eq!(tables("[[kernel]]\n[[port]]\nport = 'memory'"), [table("kernel")]);
        let shared = "[[kernel]]\ntable = 'a'\n[[fpm]]\ntable = 'a'\nlisten = '[::1]:1'";
        assert_eq!(tables(&format!("{shared}\n[[port]]\nport = 'memory'")), [table("a")]);
        let two = "[[kernel]]\n[[bmp]]\nlisten = '[::1]:1'\n[[port]]\nport = 'memory'";
        let ports = format!(
            "router = {{ vrf = 'kernel' }}\n{two}\n[[port]]\nport = 'tap:t'\nvrf = 'bmp/x'"
        );
        assert_eq!(tables(&ports), [table("kernel"), table("bmp/x")]);
    }

    #[test]
    fn problems_of_ports_have_types() {
        let error = "afxdp".parse::<fibula_daemon::config::PortConfig>().unwrap_err();
        assert_eq!(error, PortProblem::NoInterface("afxdp".to_owned()));
        let error = RouteConfig::default().checked().unwrap_err();
        assert!(matches!(error.problem(), Problem::Route(RouteProblem::NoPort)), "{error:?}");
    }
}

#[test]
fn files_of_names_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names.csv");
    let text = format!("[[kernel]]\n[http]\nas-names = '{}'\n", file.display());
    let config = ServeConfig::parse(&text, "f.toml").unwrap();
    let check = || fibula_daemon::Serve::check(&config).map_err(|error| error.to_string());
    assert!(check().unwrap_err().contains("No such file"));
    std::fs::write(&file, "64500,One\nnone,Two\n").unwrap();
    let error = check().unwrap_err();
    assert!(error.contains("names.csv") && error.contains("line 2: it does not begin"), "{error}");
    std::fs::write(&file, "64500,One\n").unwrap();
    check().unwrap();
}
