//! HTTPS, and HTTP/2 with and without it.

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use fibula_server::client::{Client, ClientOptions};
use fibula_server::{Server, ServerOptions, TlsFiles};
use hyper::body::{Body, Frame};
use hyper::{Request, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::common::{Lab, raw};

/// A file with a certificate for this machine, or its key, which are made once.
fn data(file: &str) -> PathBuf {
    static MADE: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, authority) in [("", "FALSE"), ("authority-", "TRUE")] {
            let status = Command::new("openssl")
                .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes".split(' '))
                .args("-days 30 -subj /CN=localhost".split(' '))
                .args(["-keyout", &format!("{name}key.pem")])
                .args(["-out", &format!("{name}certificate.pem")])
                .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"])
                .args(["-addext", &format!("basicConstraints=critical,CA:{authority}")])
                .current_dir(folder.path())
                .stderr(Stdio::null())
                .status();
            assert!(status.expect("the command openssl is there").success());
        }
        folder
    });
    MADE.path().join(file)
}

fn with_tls(options: &mut ServerOptions) {
    options.tls = Some(TlsFiles { certificates: data("certificate.pem"), key: data("key.pem") });
}

#[test]
fn https_is_spoken_with_those_who_trust_the_certificate() {
    let mut lab = Lab::new(with_tls);
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 64600));
    let mut options = ClientOptions::new(format!("https://{}", lab.address()));
    options.certificates = Some(data("certificate.pem"));
    let mut client = Client::new(options.clone()).unwrap();
    let found = client.lookup("10.0.0.1".parse().unwrap(), None).unwrap();
    assert_eq!(found.tables[0].found.as_ref().unwrap().prefix, "10.0.0.0/8");
    assert_eq!(client.get("/healthz", &[]).unwrap().status, 200, "over the same connection");

    options.certificates = Some(data("key.pem"));
    assert!(Client::new(options.clone()).is_err(), "a key is no certificate");
    options.certificates = Some(data("nothing.pem"));
    let missing = Client::new(options.clone()).err().unwrap().to_string();
    assert!(missing.contains("nothing.pem"), "{missing}");
    options.url = format!("http://{}", lab.address());
    let mut plain = Client::new(options).unwrap();
    assert!(plain.get("/healthz", &[]).is_err(), "clear text is not answered");
    assert!(!raw(lab.address(), b"GET / HTTP/1.0\r\n\r\n").contains("HTTP/1.1 200"));
    assert_eq!(client.get("/healthz", &[]).unwrap().status, 200, "others are served");
}

/// By default, `openssl req -x509` makes a certificate of an authority.
#[test]
fn certificates_that_are_not_trusted_are_named() {
    let authority = TlsFiles {
        certificates: data("authority-certificate.pem"),
        key: data("authority-key.pem"),
    };
    let own = authority.certificates.clone();
    let labs = [Lab::new(with_tls), Lab::new(|options| options.tls = Some(authority))];
    for (lab, what) in
        labs.iter().zip(["invalid peer certificate: ", "its certificate is that of an authority"])
    {
        let mut options = ClientOptions::new(format!("https://{}", lab.address()));
        options.certificates = Some(own.clone());
        let result = Client::new(options).unwrap().get("/healthz", &[]);
        let why = result.unwrap_err().to_string();
        let server = format!("TLS with {}: ", lab.address());
        assert!(why.starts_with(&server) && why.contains(what), "{why}");
    }
}

#[test]
fn certificates_that_cannot_be_used_are_named() {
    let lab = Lab::new(|_| {});
    for (certificates, key, part) in [
        ("nothing.pem", "key.pem", "nothing.pem: "),
        ("certificate.pem", "nothing.pem", "nothing.pem: "),
        ("key.pem", "key.pem", "key.pem: there is no certificate in it"),
        ("certificate.pem", "certificate.pem", "certificate.pem: "),
    ] {
        let mut options = ServerOptions::default();
        options.listen = vec!["127.0.0.1:0".parse().unwrap()];
        options.tls = Some(TlsFiles { certificates: data(certificates), key: data(key) });
        let started = Server::start(Arc::clone(&lab.live), Arc::clone(&lab.board), options);
        let error = started.err().unwrap().to_string();
        assert!(error.contains(part), "{error}");
    }
    let mut options = ServerOptions::default();
    options.listen = vec![lab.address()];
    let started = Server::start(Arc::clone(&lab.live), Arc::clone(&lab.board), options);
    let error = started.err().unwrap().to_string();
    assert!(error.starts_with(&format!("cannot listen on {}: ", lab.address())), "{error}");
}

struct Nothing;

impl Body for Nothing {
    type Data = Bytes;
    type Error = std::convert::Infallible;
    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Ready(None)
    }
}

/// Sends the same request several times at once over one connection.
async fn over_http2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, path: &str) {
    let shaken =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (sender, connection) = shaken.unwrap();
    tokio::spawn(connection);
    let one = || {
        let mut sender = sender.clone();
        let uri = format!("http://localhost{path}");
        async move {
            let request = Request::get(uri).body(Nothing).unwrap();
            let mut response = sender.send_request(request).await.unwrap();
            assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_2));
            let mut body = Vec::new();
            while let Some(frame) = poll_fn(|cx| Pin::new(response.body_mut()).poll_frame(cx)).await
            {
                body.extend(frame.unwrap().into_data().unwrap());
            }
            String::from_utf8(body).unwrap()
        }
    };
    let (first, second, third) = tokio::join!(one(), one(), one());
    assert!(first.contains("\"prefix\":\"10.0.0.0/8\""), "{first}");
    assert_eq!((&first, &first), (&second, &third));
}

fn run(step: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(step);
}

#[test]
fn http2_is_spoken_with_those_who_begin_with_it() {
    let mut lab = Lab::new(|_| {});
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 64600));
    run(async {
        over_http2(TcpStream::connect(lab.address()).await.unwrap(), "/v1/lookup/10.0.0.1").await;
    });
}

#[test]
fn http2_is_agreed_on_over_tls() {
    let mut lab = Lab::new(with_tls);
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 64600));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(data("certificate.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = versions.unwrap().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    run(async {
        let stream = TcpStream::connect(lab.address()).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        over_http2(stream, "/v1/lookup/10.0.0.1").await;
    });
}

/// An unused connection is closed; one with a long answer is not.
#[test]
fn idle_http2_connections_end() {
    let lab = Lab::new(|options| options.limits.idle_time = 100 * crate::common::MS);
    run(async {
        let stream = TcpStream::connect(lab.address()).await.unwrap();
        let shaken =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.unwrap();
        let connection = tokio::spawn(connection);
        let request = Request::get("http://localhost/v1/changes").body(Nothing).unwrap();
        let response = sender.send_request(request).await.unwrap();
        tokio::time::sleep(500 * crate::common::MS).await;
        assert!(!connection.is_finished(), "changes are read");
        drop(response);
        connection.await.unwrap().unwrap();
    });
}
