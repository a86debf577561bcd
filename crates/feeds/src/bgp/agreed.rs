//! The agreement of two OPEN messages.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use fibula_ingest::bgp::{AfiSafi, Capability, Open, PeerEncoding};

use super::neighbour::{ENHANCED_REFRESH, Neighbour};
use super::notification::{HEADER, Notification};

/// Bytes of the longest message, and of the longest one of RFC 8654.
const LONGEST: usize = 4096;
const LONGEST_EXTENDED: usize = 65535;
/// AS_TRANS, in place of an AS number that does not fit in two bytes.
const AS_TRANS: u32 = 23456;

/// The reason why we end a session: the NOTIFICATION for the neighbour, and a sentence for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fatal {
    pub(super) notification: Notification,
    pub(super) why: String,
}

impl Fatal {
    pub(super) fn new(notification: Notification, why: impl Into<String>) -> Self {
        Self { notification, why: why.into() }
    }
}

/// The parameters of a session with a neighbour, from the OPEN messages of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The neighbour's AS.
    pub asn: u32,
    /// Its BGP identifier.
    pub router_id: Ipv4Addr,
    /// The hold time; `None` for no supervision of the connection.
    pub hold_time: Option<Duration>,
    /// The families of the routes that it sends.
    pub families: Vec<AfiSafi>,
    /// The encoding of its messages.
    pub speaker: PeerEncoding,
    /// Whether it sends its routes again on request.
    pub refresh: Refresh,
    /// The maximum length of its messages, in bytes.
    pub longest_message: usize,
    /// Its announcement of graceful restart. Without one it need not send an End-of-RIB.
    pub graceful: Option<Graceful>,
}

/// Whether a neighbour sends its routes again on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// It does not support this.
    None,
    /// It supports route refresh (RFC 2918).
    Plain,
    /// It supports route refresh, and marks the beginning and the end (RFC 7313).
    Demarcated,
}

/// A neighbour's announcement of graceful restart (RFC 4724).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graceful {
    /// It has just restarted.
    pub restarted: bool,
    /// How long its routes stay after the connection was lost; `None` if it keeps forwarding state of no family, and
    /// only supports End-of-RIB.
    pub time: Option<Duration>,
}

impl Agreed {
    /// The common settings of our OPEN and the neighbour's, a complete message.
    pub(super) fn of(with: &Neighbour, message: &[u8]) -> Result<Self, Fatal> {
        let refuse = |subcode, data: &[u8], why: String| {
            Err(Fatal::new(Notification::with_data(2, subcode, data), why))
        };
        // Behind another version everything may look different.
        if let Some(&version) = message.get(HEADER).filter(|&&version| version != 4) {
            return refuse(1, &[0, 4], format!("its BGP version is {version}, ours is 4"));
        }
        let theirs = match Open::decode(message) {
            Ok(open) => open,
            Err(fault) => return refuse(0, &[], format!("its OPEN is malformed: {fault}")),
        };
        if let Some(&kind) = theirs.other_parameters.first() {
            return refuse(4, &[], format!("its OPEN has an optional parameter of type {kind}"));
        }
        let asn = theirs.asn;
        if asn == 0 || asn == AS_TRANS {
            return refuse(2, &[], format!("its OPEN names AS{asn}, which is reserved"));
        }
        if let Some(wanted) = with.asn.filter(|&wanted| wanted != asn) {
            return refuse(2, &[], format!("it is AS{asn}, but AS{wanted} is configured"));
        }
        if matches!(theirs.hold_time, 1 | 2) {
            let seconds = theirs.hold_time;
            return refuse(6, &[], format!("it proposes a hold time of {seconds} s, less than 3"));
        }
        let router_id = Ipv4Addr::from(theirs.bgp_id);
        if router_id.is_unspecified() || (asn == with.local_asn && router_id == with.router_id) {
            let what = if router_id.is_unspecified() { "not valid" } else { "ours, too" };
            return refuse(3, &[], format!("its BGP identifier {router_id} is {what}"));
        }
        let ours = with.open();
        let both = |f: &AfiSafi| ours.supports(*f) && theirs.supports(*f);
        let wanted = with.families();
        let families: Vec<AfiSafi> = wanted.iter().copied().filter(both).collect();
        if families.is_empty() {
            // RFC 5492: the capabilities that we miss.
            let missing = wanted.iter().flat_map(|f| {
                let [high, low] = f.afi.to_be_bytes();
                [1, 4, high, low, 0, f.safi]
            });
            let why = "it takes part in none of the address families that we take";
            return refuse(7, &missing.collect::<Vec<u8>>(), why.to_owned());
        }
        let has = |capability: Capability| theirs.capabilities.contains(&capability);
        let seconds = theirs.hold_time.min(ours.hold_time);
        let refresh = match (has(Capability::RouteRefresh), has(ENHANCED_REFRESH)) {
            (_, true) => Refresh::Demarcated,
            (true, false) => Refresh::Plain,
            (false, false) => Refresh::None,
        };
        let is_extended = has(Capability::ExtendedMessage);
        Ok(Self {
            asn,
            router_id,
            hold_time: (seconds > 0).then(|| Duration::from_secs(seconds.into())),
            families,
            speaker: theirs.encoding_to(&ours),
            refresh,
            longest_message: if is_extended { LONGEST_EXTENDED } else { LONGEST },
            graceful: theirs.capabilities.iter().find_map(|capability| match capability {
                Capability::GracefulRestart { restarted, time, families, .. } => {
                    let time = Duration::from_secs((*time).into());
                    let time = (!families.is_empty()).then_some(time);
                    Some(Graceful { restarted: *restarted, time })
                }
                _ => None,
            }),
        })
    }
}

impl fmt::Display for Agreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AS{}, identifier {}", self.asn, self.router_id)?;
        for family in &self.families {
            f.write_str(if *family == AfiSafi::IPV4 { ", IPv4" } else { ", IPv6" })?;
        }
        match self.hold_time {
            Some(time) => write!(f, ", hold time {} s", time.as_secs())?,
            None => f.write_str(", no hold time")?,
        }
        if let Some(Graceful { time: Some(time), .. }) = self.graceful {
            write!(f, ", graceful restart {} s", time.as_secs())?;
        }
        Ok(())
    }
}
