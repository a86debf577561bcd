//! A server that follows a validator: stayrtr of Debian, whose file of VRPs changes, and a cache of ASPAs.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fibula_daemon::config::ServeConfig;
use fibula_daemon::{Serve, ServeOptions};
use fibula_server::client::{Client, ClientOptions};

use crate::alarms::{client, metric};
use crate::until;

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn write(file: &Path, roas: &str) {
    // ASPAs as rpki-client of 2022 wrote them: stayrtr before 0.6 sends them in the form of its time.
    let aspas = "{\"ipv4\": [{\"customer_asid\": 3333, \"expires\": 4000000000, \"providers\": [64500]}], \"ipv6\": []}";
    let whole = format!(
        "{{\"metadata\": {{\"buildtime\": \"2026-01-01T00:00:00Z\"}}, \"roas\": [{roas}], \
         \"provider_authorizations\": {aspas}}}"
    );
    let next = file.with_extension("next");
    fs::write(&next, whole).unwrap();
    fs::rename(&next, file).unwrap();
}

/// A cache of these files, at a free port.
fn stayrtr(file: &Path) -> Option<(Program, String)> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("127.0.0.1:{port}");
    let mut command = Command::new("stayrtr");
    command.args(["-bind", &endpoint, "-metrics.addr", "127.0.0.1:0", "-checktime=false"]);
    command.args(["-refresh", "1", "-cache", file.to_str().unwrap()]);
    let mut program = Program(command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().ok()?);
    // Its log must be read, or it waits.
    let log = BufReader::new(program.0.stderr.take().unwrap());
    std::thread::spawn(move || {
        log.lines().map_while(Result::ok).for_each(|line| eprintln!("{line}"))
    });
    Some((program, endpoint))
}

#[test]
fn stayrtr_serves_vrps_that_change() {
    let folder = tempfile::tempdir().unwrap();
    let (vrps, lines) = (folder.path().join("vrps.json"), folder.path().join("lines"));
    let roa = |prefix: &str, asn: u32| {
        format!("{{\"prefix\": \"{prefix}\", \"maxLength\": 24, \"asn\": {asn}, \"ta\": \"test\"}}")
    };
    write(&vrps, &roa("193.0.0.0/21", 3333));
    let Some((cache, endpoint)) = stayrtr(&vrps) else {
        return println!("SKIPPED: stayrtr is not installed");
    };
    fs::write(&lines, crate::serve::announced("193.0.6.0/24")).unwrap();
    let text = format!(
        "http = {{ listen = '127.0.0.1:0' }}\nrpki = {{ caches = ['{endpoint}'], expire = '1h' }}\n[[ris]]\npath = '{}'\nhold = '1d'\n\
         [[alarm]]\nname = 'invalid'\nkind = 'newly-invalid'\n",
        lines.display()
    );
    let config = ServeConfig::parse(&text, "test.toml").unwrap();
    let serve = Serve::start(ServeOptions::new(config)).unwrap();
    let url = format!("http://{}", serve.addresses()[0]);
    let mut client = Client::new(ClientOptions::new(url)).unwrap();
    let mut validity = || {
        let lookup = client.lookup("193.0.6.139".parse().unwrap(), Some("ris")).ok()?;
        Some(lookup.tables[0].found.as_ref()?.rpki.as_ref()?.validity.clone())
    };
    until("valid", || validity().filter(|validity| validity == "valid"));
    write(&vrps, &roa("193.0.0.0/21", 64500));
    until("invalid", || validity().filter(|validity| validity == "invalid-origin"));
    // The route is as it was: the alarm is of the VRPs. That it became valid at first was none.
    let alarms = || {
        let of = |name| metric(&serve, name, Some("invalid"));
        (of("alarms_raised_total"), of("alarms_active"))
    };
    until("an alarm", || (alarms() == (1, 1)).then_some(()));
    write(&vrps, &roa("193.0.0.0/24", 64500));
    until("not found", || validity().filter(|validity| validity == "not-found"));
    until("its end", || (alarms() == (1, 0)).then_some(()));
    // The validator ends: what it sent is used until it expires.
    drop(cache);
    assert_eq!(validity().as_deref(), Some("not-found"));
    serve.stop().unwrap();
}

/// Answers the queries of one client, by version 2 of RTR: AS3333 has one provider, and the client asks again each
/// second.
fn serve_provider(mut client: TcpStream, provider: &AtomicU32) -> std::io::Result<()> {
    for serial in 1_u32.. {
        let mut query = [0; 8];
        client.read_exact(&mut query)?;
        if query[1] == 1 {
            // The serial number that it has.
            client.read_exact(&mut [0; 4])?;
        }
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let pdu = |kind, second, body: Vec<u8>| {
            let length = (8 + body.len() as u32).to_be_bytes();
            [&[2, kind, second, 0][..], &length, &body].concat()
        };
        let aspa = words(&[3333, provider.load(Ordering::Relaxed)]);
        let end = words(&[serial, 1, 600, 7200]);
        client.write_all(&[pdu(3, 0, vec![]), pdu(11, 1, aspa), pdu(7, 0, end)].concat())?;
    }
    Ok(())
}

#[test]
fn a_route_leaks_when_its_path_or_the_aspas_change() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("lines");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = listener.local_addr().unwrap();
    let provider = Arc::new(AtomicU32::new(64500));
    let shared = Arc::clone(&provider);
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        // It ends with the connection.
        let _ = serve_provider(client, &shared);
    });
    // Its path is 64500 3333.
    fs::write(&lines, crate::serve::announced("193.0.6.0/24")).unwrap();
    let text = format!(
        "http = {{ listen = '127.0.0.1:0' }}\n\
         rpki = {{ caches = ['{endpoint}'], expire = '1h', received-from = 'peer' }}\n\
         [[ris]]\npath = '{}'\nhold = '1d'\n\
         [[alarm]]\nname = 'leak'\nkind = 'leak'\nprefixes = ['193.0.0.0/16']\norigins = [3333]\n",
        lines.display()
    );
    let config = ServeConfig::parse(&text, "test.toml").unwrap();
    let serve = Serve::start(ServeOptions::new(config)).unwrap();
    let alarms = || {
        let of = |name| metric(&serve, name, Some("leak"));
        (of("alarms_raised_total"), of("alarms_active"))
    };
    let mut client = client(&serve);
    let mut change = || {
        let body = client.get("/v1/history?prefix=193.0.6.0/24", &[]).unwrap().body;
        let history: serde_json::Value = serde_json::from_slice(&body).unwrap();
        history["changes"][0]["aspa"].as_str().map(str::to_owned)
    };
    until("a valid path", || change().filter(|aspa| aspa == "valid"));
    assert_eq!(alarms(), (0, 0));
    provider.store(64999, Ordering::Relaxed);
    until("an alarm", || (alarms() == (1, 1)).then_some(()));
    assert_eq!(change().as_deref(), Some("invalid"));
    provider.store(64500, Ordering::Relaxed);
    until("its end", || (alarms() == (1, 0)).then_some(()));
    serve.stop().unwrap();
}

#[test]
fn caches_that_cannot_be() {
    for (value, what) in [
        ("[]", "caches names none"),
        ("['validator.example']", "\"validator.example\" is no host and port"),
        ("['2001:db8::1:323']", "is no host and port"),
        ("['127.0.0.1:0']", "is no host and port"),
        ("['a b:323']", "is no host and port"),
    ] {
        let text = format!("[rpki]\ncaches = {value}\n[[fpm]]\nlisten = '127.0.0.1:0'\n");
        let error = ServeConfig::parse(&text, "test.toml").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains(what), "{value}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("relations");
    fs::write(&file, "64500,provider\n64501,sibling\n").unwrap();
    let with = |more: &str| {
        let text = format!(
            "[rpki]\ncaches = ['a.example:323']\n{more}\n[[fpm]]\nlisten = '127.0.0.1:0'\n"
        );
        ServeConfig::parse(&text, "test.toml")
    };
    let error = with("received-from = 'me'").unwrap_err().to_string();
    assert!(error.contains("line 3") && error.contains("route-server"), "{error}");
    let named = with(&format!("received-from = 'peer'\nrelations = '{}'", file.display())).unwrap();
    let error = Serve::check(&named).unwrap_err().to_string();
    assert!(error.contains("relations: line 2: \"sibling\" is no relation"), "{error}");
    fs::write(&file, "64500,provider\n").unwrap();
    Serve::check(&named).unwrap();
    fs::remove_file(&file).unwrap();
    let error = Serve::check(&named).unwrap_err().to_string();
    assert!(error.starts_with("relations ") && error.contains("No such file"), "{error}");
    for cache in ["validator.example:323", "127.0.0.1:323", "[2001:db8::1]:323"] {
        let text = format!("[rpki]\ncaches = ['{cache}']\n[[fpm]]\nlisten = '127.0.0.1:0'\n");
        assert!(ServeConfig::parse(&text, "test.toml").is_ok(), "{cache}");
    }
}
