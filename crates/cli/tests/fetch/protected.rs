//! Fetches over TLS.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::server::Server;
use super::{FOUND, User, finished};
use crate::common::TABLE;

/// Makes a certificate of this machine, and its key.
fn certificate(folder: &Path) {
    let status = Process::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30".split(' '))
        .args("-subj /CN=localhost -keyout key.pem -out certificate.pem".split(' '))
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("the command openssl is there").success());
}

/// Answers `/plain` with a redirect to this address, and other paths with the table.
fn serve(folder: &Path, plain: String) -> String {
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let chain =
        CertificateDer::pem_slice_iter(&read("certificate.pem")).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(&read("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, socket);
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                request.push(byte[0]);
            }
            let (status, header, body) = match request.starts_with(b"GET /plain ") {
                true => ("302 Found", format!("Location: {plain}\r\n"), ""),
                false => ("200 OK", String::new(), TABLE),
            };
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nConnection: close\r\n{header}Content-Length: {length}\r\n\r\n{body}"
            );
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    address
}

#[test]
fn https_needs_a_trusted_certificate_and_does_not_lead_back() {
    let user = User::new("");
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path());
    let plain = Server::of(TABLE);
    let address = serve(folder.path(), plain.url("/table.csv"));
    let trusted = folder.path().join("certificate.pem");
    let run = |path: &str, trusted: &Path| {
        let url = format!("{address}{path}");
        finished(
            user.command(&["lookup", "--table", &url, "10.1.2.3"]).env("SSL_CERT_FILE", trusted),
        )
    };
    let found = run("/table.csv", &trusted);
    assert_eq!((found.code, &*found.out), (0, FOUND), "{}", found.err);

    let down = run("/plain", &trusted);
    assert_eq!(down.code, 2);
    assert!(down.err.contains("a redirect leads from https://"), "{}", down.err);
    assert_eq!(plain.requests().len(), 0);

    // Without the certificate: Mozilla's list does not have it.
    let unknown = run("/other.csv", &folder.path().join("nothing.pem"));
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.err.contains("certificate") && unknown.err.contains("SSL_CERT_FILE"),
        "{}",
        unknown.err
    );
}
