//! The table of commands that name none: the environment, the configuration, the embedded one.

use super::server::Server;
use super::{FOUND, User, finished};
use crate::common::TABLE;

#[test]
fn the_environment_comes_before_the_configuration() {
    let server = Server::of(TABLE);
    let user = User::new(&format!("table = '{}'\n", server.url("/table.csv")));
    let other = user.0.with("other.csv", "prefix,site\n10.0.0.0/8,hq\n");
    let by_config = user.done(&["lookup", "10.1.2.3"]);
    assert_eq!(by_config.out, FOUND);
    assert!(by_config.err.contains("/table.csv (by the configuration)"), "{}", by_config.err);
    let by_variable = finished(user.command(&["lookup", "10.1.2.3"]).env("FIBULA_TABLE", &other));
    assert_eq!(by_variable.out, "address\tprefix\tsite\n10.1.2.3\t10.0.0.0/8\thq\n");
    let said = format!("table {other} (by FIBULA_TABLE), data of 20");
    assert!(by_variable.err.contains(&said), "{}", by_variable.err);
    let named = user.done(&["lookup", "--table", "embedded", "8.8.8.8"]);
    assert_eq!((named.out.contains("US"), &*named.err), (true, ""));
    let embedded = finished(user.command(&["lookup", "8.8.8.8"]).env("FIBULA_CONFIG", ""));
    assert_eq!((embedded.out.contains("US"), &*embedded.err), (true, ""));
    // Not where there are layers, nor for the tables of `build`.
    let layers = user.done(&["lookup", "--layer", &format!("x={other}"), "10.1.2.3"]);
    assert_eq!(layers.err, "");
    assert_eq!(user.run(&["build", "-o", &user.0.path("t.fib")]).code, 2);
    let rows = user.0.with("rows.csv", "src\n10.1.2.3\n");
    let annotated = user.done(&["annotate", "-q", "--only", "matched", &rows]);
    assert!(annotated.out.contains("64503"), "{}", annotated.out);
    assert!(annotated.err.contains("(by the configuration)"), "{}", annotated.err);
    for args in [&["stats"][..], &["gen", "traffic", "--count", "5"]] {
        assert!(user.done(args).err.contains("(by the configuration)"), "{args:?}");
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_wrong_configuration_is_named_by_its_line() {
    for (text, sentence) in [
        ("table = 'a'\ntabel = 'b'\n", "config.toml, line 2: unknown field `tabel`"),
        ("max-age = 'soon'\n", "config.toml, line 1: a duration is"),
        ("max-size = '1kb'\n", "config.toml, line 1: a size is"),
        ("table = \n", "config.toml, line 1: "),
        (
            "\ntable = 3\n",
            "config.toml, line 2: invalid type: integer `3`, expected a text or a list of texts",
        ),
        ("table = ['a', 3]\n", "config.toml, line 1: invalid type: integer `3`, expected a string"),
        ("[sources.x]\nurl = 'file:///etc/passwd'\n", "the source x: "),
        ("[sources.x]\nurl = 'https://h/'\nkey = 1\n", "config.toml, line 3: unknown field `key`"),
    ] {
        let user = User::new(text);
        let failed = user.run(&["fetch", "--list"]);
        assert_eq!(failed.code, 2, "{text}: {}", failed.out);
        assert!(failed.err.contains(sentence), "{text}: {}", failed.err);
    }
    let absent = User::new("table = 'absent.csv'\n").run(&["lookup", "8.8.8.8"]);
    assert_eq!(absent.code, 2);
    assert!(
        absent.err.starts_with("table absent.csv (by the configuration)\nfibula: absent.csv: "),
        "{}",
        absent.err
    );
    let user = User::new("");
    let missing = finished(user.command(&["lookup", "8.8.8.8"]).env("FIBULA_CONFIG", "/no/file"));
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("/no/file"), "{}", missing.err);
}
