use super::*;

fn error(text: &str) -> String {
    ServeConfig::parse(text, "f.toml").expect_err(text).to_string()
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
    let config = ServeConfig::parse(text, "f.toml").unwrap();
    let sources = config.sources();
    let names: Vec<_> = sources.iter().map(|s| (&*s.name, &*s.table, s.config.kind())).collect();
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
    let moved = ServeConfig::parse(&format!("\n\n{text}"), "f.toml").unwrap();
    assert_eq!(moved.sources(), sources);
    let SourceConfig::Bgp(bgp) = &sources[2].config else { panic!() };
    assert!(bgp.neighbour[0].add_path && bgp.hold_time == time("90s"));
    assert_eq!((config.limits.peer_routes, config.limits.tables), (10, 64));
}

#[test]
fn problems_are_reported_with_their_line() {
    for (text, wanted) in [
        ("[[fpm]]\nlisten = 7", "line 2,"),
        ("[[fpm]]\nlisten = \"localhost:1\"", "line 2, invalid socket address syntax; write an"),
        (
            "[[fpm]]\nlisten = \"[::1]:1\"\nallow = [\"1.2.3.0/24\"]",
            "line 3, invalid IP address syntax; write an address without a prefix length: 192.0.2.1",
        ),
        ("[[fpm]]\n", "missing field `listen`"),
        ("\n[[fmp]]\n", "line 2, unknown field `fmp`"),
        ("[[fpm]]\nlisten = \"[::1]:1\"\nport = 3", "line 3, unknown field `port`"),
        ("[limits]\nroutes = -1", "line 2,"),
        ("[tables]\nbucket = \"fast\"", "line 2, \"fast\" is not a time"),
        ("[[kernel]]\n[[kernel]]\n", "two sources are called kernel"),
        ("[[kernel]]\n[[kernel]]\nname = \"kernel\"\n", "line 3, two sources"),
        ("[[kernel]]\nname = \"a/b\"\n", "line 2, \"a/b\" cannot be a name"),
        ("[[kernel]]\nname = \"edge 1\"\n", "line 2, \"edge 1\" cannot be a name: it has white"),
        (
            "[[fpm]]\nlisten = \"[::1]:1\"\n[http]\nlisten = \"[::1]:1\"",
            "line 4, fpm and http both listen on [::1]:1",
        ),
        ("[[ris]]\n", "either a path or an address"),
        ("[http]\ntls-key = \"k\"", "belong together"),
        ("[tables]\nengine = []", "engine names none"),
        ("[[fpm]]\nlisten = \"[::1]:1\"\n[[bmp]]\nlisten = \"[::1]:1\"", "both listen on [::1]:1"),
    ] {
        let error = error(text);
        assert!(error.starts_with("f.toml:") && error.contains(wanted), "{text}: {error}");
    }
    let bgp = "[[bgp]]\nlisten = \"[::1]:179\"\nlocal-as = 1\nrouter-id = \"1.1.1.1\"\n";
    assert!(error(&format!("{bgp}neighbour = []")).contains("nobody may connect"));
    let one = "[[bgp.neighbour]]\naddress = \"::1\"\n";
    assert!(error(&format!("{bgp}{one}{one}")).contains("neighbour ::1 occurs twice"));
    assert!(error(&format!("{bgp}hold-time = \"2s\"\n{one}")).contains("from 3s"));
    assert!(ServeConfig::parse(&format!("{bgp}{one}"), "f.toml").is_ok());
}
