//! Shared code of the commands that query a server.

use std::path::PathBuf;

use clap::Args;
use fibula_daemon::secret::first_line;
use fibula_server::api::{Attributes, NextHop, Peer};
use fibula_server::client::{Client, ClientError, ClientOptions};

use crate::failure::Failure;

/// The server, and how to connect to it.
#[derive(Args, Debug)]
pub struct ServerArgs {
    /// The server
    #[arg(long, short, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    server: String,
    /// A file whose first line is the token, if the server needs one (else the environment variable FIBULA_TOKEN)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust for the server, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl ServerArgs {
    /// A client of the server; it does not connect yet.
    pub fn client(&self) -> Result<Client, Failure> {
        let mut options = ClientOptions::new(&self.server);
        options.token = match &self.token_file {
            Some(path) => Some(first_line("--token-file", path)?),
            None => std::env::var("FIBULA_TOKEN").ok().map(|token| token.trim().to_owned()),
        };
        options.certificates.clone_from(&self.ca);
        Client::new(options).map_err(Failure::from)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let failure = Self::new(&error);
        match error {
            ClientError::Io { .. } => {
                failure.hint("is the server there? --server names it, `fibula serve` is one")
            }
            ClientError::Refused { status: 401, .. } => {
                failure.hint("give it by --token-file, or in FIBULA_TOKEN")
            }
            ClientError::Token => {
                failure.hint("set it in the first line of --token-file, or in FIBULA_TOKEN")
            }
            ClientError::Tls { .. } => failure.hint("--ca names a file of certificates to trust"),
            ClientError::Authority { .. } => failure.hint(
                "make one that is not: openssl req -x509 ... -addext basicConstraints=critical,CA:FALSE",
            ),
            ClientError::Certificates { .. } => failure.hint("--ca names a file of them"),
            _ => failure,
        }
    }
}

/// Attributes in a line.
pub fn attributes(attributes: &Attributes) -> String {
    let mut parts = Vec::new();
    match attributes {
        Attributes::Bgp(bgp) => {
            parts.extend(bgp.next_hop.map(|hop| format!("next hop {hop}")));
            if !bgp.as_path.is_empty() {
                parts.push(format!("AS path {}", bgp.as_path));
            }
            parts.extend(bgp.origin.as_ref().map(|origin| format!("origin {origin}")));
            parts.extend(bgp.local_pref.map(|number| format!("local preference {number}")));
            parts.extend(bgp.med.map(|number| format!("MED {number}")));
        }
        Attributes::NextHops(next_hops) => {
            if next_hops.route_type != "unicast" || next_hops.next_hops.is_empty() {
                parts.push(next_hops.route_type.clone());
            }
            parts.extend(next_hops.next_hops.iter().map(next_hop));
        }
        Attributes::Values { values } => {
            parts.extend(values.iter().map(|(name, value)| format!("{name} {value}")));
        }
    }
    parts.join(", ")
}

fn next_hop(hop: &NextHop) -> String {
    let mut text = match hop.gateway {
        Some(gateway) => format!("via {gateway}"),
        None => "on the link".to_owned(),
    };
    if let Some(interface) = hop.interface {
        text += &format!(" interface {interface}");
    }
    if hop.weight != 1 {
        text += &format!(" weight {}", hop.weight);
    }
    text
}

/// A peer and the source of its routes.
pub fn peer(peer: &Peer) -> String {
    match &peer.source {
        Some(source) if *source != peer.name => format!("{} of {source}", peer.name),
        _ => peer.name.clone(),
    }
}
