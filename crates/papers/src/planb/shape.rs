//! Forms of the router, as the command line has them.

use std::fmt;
use std::str::FromStr;

use fibula_router::pipeline::ThreadLayout;

/// Which threads there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form(pub ThreadLayout);

impl Form {
    /// Queues that each port needs, so that no thread is without packets.
    pub fn queues(self) -> usize {
        match self.0 {
            ThreadLayout::Fused { threads } => threads,
            ThreadLayout::Staged { receive, lookup, transmit } => receive.max(lookup).max(transmit),
        }
    }

    /// Its threads in all.
    pub fn threads(self) -> usize {
        match self.0 {
            ThreadLayout::Fused { threads } => threads,
            ThreadLayout::Staged { receive, lookup, transmit } => receive + lookup + transmit,
        }
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = |text: &str| match text.parse::<usize>() {
            Ok(count) if (1..=64).contains(&count) => Ok(count),
            _ => Err(format!("{text}: 1 to 64 threads are possible")),
        };
        if let Some(threads) = text.strip_prefix("fused:") {
            return Ok(Self(ThreadLayout::Fused { threads: count(threads)? }));
        }
        let parts: Vec<&str> = text.split('-').collect();
        let (receive, lookup, transmit) = match parts[..] {
            [receive, lookup] => (count(receive)?, count(lookup)?, 0),
            [receive, lookup, transmit] => (count(receive)?, count(lookup)?, count(transmit)?),
            _ => return Err("fused:N, R-L or R-L-T, as fused:1 or 1-2-1".to_owned()),
        };
        Ok(Self(ThreadLayout::Staged { receive, lookup, transmit }))
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ThreadLayout::Fused { threads } => write!(f, "fused:{threads}"),
            ThreadLayout::Staged { receive, lookup, transmit: 0 } => {
                write!(f, "{receive}-{lookup}")
            }
            ThreadLayout::Staged { receive, lookup, transmit } => {
                write!(f, "{receive}-{lookup}-{transmit}")
            }
        }
    }
}
