//! Access control.

use std::net::IpAddr;

use hyper::header::{self, HeaderMap};
use hyper::{StatusCode, Uri};
use subtle::ConstantTimeEq;

use crate::ServerOptions;
use crate::http::answer::Refusal;
use crate::http::params::shown;

/// Whether the request has the server's token.
pub(crate) fn check_token(options: &ServerOptions, headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(token) = &options.token else { return Ok(()) };
    let refuse = |sentence| {
        Err(Refusal::new(StatusCode::UNAUTHORIZED, sentence)
            .with(header::WWW_AUTHENTICATE, "Bearer"))
    };
    let Some(given) = headers.get(header::AUTHORIZATION) else {
        return refuse("this server requires a token: send the header Authorization: Bearer TOKEN");
    };
    let given = given.as_bytes();
    let (scheme, given) = given.split_at_checked(7).unwrap_or((given, b""));
    // The comparison takes equally long wherever the first difference is.
    if scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(given.ct_eq(token.as_bytes())) {
        return Ok(());
    }
    refuse("the token is wrong")
}

/// Whether the request names this server. Another site can make its name resolve to a loopback address, and a browser
/// then treats our answers as the site's own. Such a request contains the site's name.
pub(crate) fn check_host(
    options: &ServerOptions,
    is_loopback: bool,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    if !is_loopback {
        return Ok(());
    }
    let named = headers.get(header::HOST).map(|host| host.to_str().unwrap_or("?"));
    // In HTTP/2 the host is a part of the address.
    let Some(host) = named.or_else(|| uri.authority().map(|authority| authority.as_str())) else {
        return Ok(());
    };
    let host = without_port(host);
    let is_ours = host.eq_ignore_ascii_case("localhost")
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
        || options.hosts.iter().any(|name| name.eq_ignore_ascii_case(host));
    if is_ours {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::FORBIDDEN,
        format_args!(
            "this server listens on loopback and is not called {}; name it among the server's hosts",
            shown(host)
        ),
    ))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_server_are_taken_on_loopback() {
        let options = ServerOptions { hosts: vec!["lg.example".into()], ..Default::default() };
        let check = |host: &str, is_loopback| {
            let headers = [(header::HOST, host.parse().unwrap())].into_iter().collect();
            check_host(&options, is_loopback, &Uri::from_static("/"), &headers).is_ok()
        };
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:8080", "[::1]", "lg.example"]
        {
            assert!(check(host, true), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example:80", "lg.example.org", "", "127.0.0.1.nip.io"]
        {
            assert!(!check(host, true), "{host}");
            assert!(check(host, false), "{host}");
        }
        let of_h2 = Uri::from_static("http://evil.example/");
        assert!(check_host(&options, true, &of_h2, &HeaderMap::new()).is_err());
    }
}
