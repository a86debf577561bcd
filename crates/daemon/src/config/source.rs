//! The sources of a configuration: each with its name, its table and its kind.

use std::fmt;
use std::net::SocketAddr;

use super::{Bgp, Kernel, Mrt, Ris, Stream};

/// A source of routes.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredSource {
    /// Its name in answers and logs.
    pub name: String,
    /// The table that it feeds.
    pub table: String,
    /// Its settings.
    pub config: SourceConfig,
}

/// The settings of a source, by its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceConfig {
    /// FPM connections of FRR's zebra.
    Fpm(Stream),
    /// BMP connections of routers.
    Bmp(Stream),
    /// BGP sessions of neighbours.
    Bgp(Bgp),
    /// The kernel's forwarding tables.
    Kernel(Kernel),
    /// RIS Live's lines.
    Ris(Ris),
    /// MRT files of a folder.
    Mrt(Mrt),
}

impl SourceConfig {
    /// Its name in answers, logs and the file.
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

    /// The address that it listens on.
    pub(super) fn listens(&self) -> Option<SocketAddr> {
        match self {
            Self::Fpm(stream) | Self::Bmp(stream) => Some(stream.listen),
            Self::Bgp(bgp) => Some(bgp.listen),
            Self::Kernel(_) | Self::Ris(_) | Self::Mrt(_) => None,
        }
    }
}

impl fmt::Display for SourceConfig {
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
