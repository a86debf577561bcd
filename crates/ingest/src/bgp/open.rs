//! OPEN (RFC 4271, 4.2).

use super::cursor::{AsWidth, Cursor, DecodeFault};
use super::message::{HEADER, LONGEST, MARKER};
use super::{AddPath, AddPathMode, AfiSafi, Capability, PeerEncoding};

const OPEN: u8 = 1;
/// Stands in the two-byte field for an AS number that does not fit there.
const AS_TRANS: u16 = 23456;
/// The optional parameter with capabilities, and the mark of long ones (RFC 9072).
const CAPABILITIES: u8 = 2;
const EXTENDED: u8 = 255;

/// An OPEN message, which describes a speaker before a session.
///
/// ```
/// use fibula_ingest::bgp::{Capability, AfiSafi, Open};
///
/// let ours = Open::new(4_200_000_000, 90, 0xc000_0201, vec![
///     Capability::Multiprotocol(AfiSafi::IPV6),
///     Capability::FourByteAsn(4_200_000_000),
/// ]);
/// let message = ours.encode()?;
/// assert_eq!(Open::decode(&message)?, ours);
/// assert!(!ours.supports(AfiSafi::IPV4));
/// # Ok::<(), fibula_ingest::bgp::DecodeFault>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The version of BGP; only 4 exists.
    pub version: u8,
    /// The AS number, from [`Capability::FourByteAsn`] if it is there.
    pub asn: u32,
    /// The proposed hold time in seconds; 0 for none.
    pub hold_time: u16,
    /// The BGP identifier.
    pub bgp_id: u32,
    /// The capabilities, in the order of the message.
    pub capabilities: Vec<Capability>,
    /// The types of optional parameters other than capabilities. [`Open::encode`] leaves them out.
    pub other_parameters: Vec<u8>,
}

impl Open {
    /// Makes an OPEN of BGP version 4. A speaker whose AS number needs more than two bytes must add
    /// [`Capability::FourByteAsn`].
    pub fn new(asn: u32, hold_time: u16, bgp_id: u32, capabilities: Vec<Capability>) -> Self {
        Self { version: 4, asn, hold_time, bgp_id, capabilities, other_parameters: Vec::new() }
    }

    /// Decodes an OPEN with its header. Version, hold time and identifier are not checked: the session decides
    /// whether they are acceptable.
    ///
    /// # Errors
    /// If the message is not an OPEN, or its fields and parameters do not fill it exactly.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeFault> {
        let mut cursor = Cursor::new(message);
        cursor.bytes(MARKER, "BGP marker")?;
        let len = cursor.u16("BGP message length")?;
        let kind = cursor.u8("BGP message type")?;
        if kind != OPEN {
            return Err(cursor.fault(format!("BGP message of type {kind} in place of an OPEN")));
        }
        let Some(len) = usize::from(len).checked_sub(HEADER) else {
            return Err(cursor.fault(format!("BGP message length {len} is less than its header")));
        };
        let mut body = cursor.part(len, "OPEN")?;
        let mut open = Self {
            version: body.u8("BGP version")?,
            asn: body.asn(AsWidth::Two, "AS number")?,
            hold_time: body.u16("hold time")?,
            bgp_id: body.u32("BGP identifier")?,
            capabilities: Vec::new(),
            other_parameters: Vec::new(),
        };
        let len = body.u8("optional parameters' length")?;
        // RFC 9072: the length is 255, and the next byte is 255, too, as the type of a parameter would be.
        let is_extended = len == EXTENDED && body.rest().first() == Some(&EXTENDED);
        let len = match is_extended {
            true => {
                body.u8("mark of long parameters")?;
                body.u16("optional parameters' length")?.into()
            }
            false => usize::from(len),
        };
        let mut parameters = body.part(len, "optional parameters")?;
        if !body.is_empty() {
            let more = body.rest().len();
            return Err(body.fault(format!("{more} bytes are left behind the optional parameters")));
        }
        while !parameters.is_empty() {
            let kind = parameters.u8("parameter type")?;
            let len = match is_extended {
                true => parameters.u16("parameter length")?.into(),
                false => usize::from(parameters.u8("parameter length")?),
            };
            let value = parameters.part(len, "optional parameter")?;
            match kind {
                CAPABILITIES => open.take(value)?,
                other => open.other_parameters.push(other),
            }
        }
        Ok(open)
    }

    fn take(&mut self, parameter: Cursor<'_>) -> Result<(), DecodeFault> {
        for capability in Capability::read_all(parameter)? {
            if let Capability::FourByteAsn(asn) = capability {
                self.asn = asn;
            }
            self.capabilities.push(capability);
        }
        Ok(())
    }

    /// The message's bytes, with its header. Each capability has its own parameter.
    ///
    /// # Errors
    /// If the value of a capability has more than 255 bytes, or the message more than 4,096.
    pub fn encode(&self) -> Result<Vec<u8>, DecodeFault> {
        let fault = |what: String| DecodeFault { at: 0, what: what.into() };
        let mut parameters = Vec::new();
        for capability in &self.capabilities {
            let (code, value) = capability.encode();
            let Ok(len) = u8::try_from(value.len()) else {
                let len = value.len();
                return Err(fault(format!("capability {code} has {len} bytes, more than 255")));
            };
            parameters.push((code, len, value));
        }
        // The form for few bytes counts a parameter in one byte, the other one in two.
        let len = |overhead: usize| {
            parameters.iter().map(|(_, len, _)| overhead + 2 + usize::from(*len)).sum::<usize>()
        };
        let is_extended = len(2) >= usize::from(EXTENDED) || parameters.iter().any(|p| p.1 > 253);
        let mut body = vec![self.version];
        body.extend(u16::try_from(self.asn).unwrap_or(AS_TRANS).to_be_bytes());
        body.extend(self.hold_time.to_be_bytes());
        body.extend(self.bgp_id.to_be_bytes());
        match is_extended {
            true => {
                body.extend([EXTENDED; 2]);
                // Longer messages are refused below.
                body.extend((len(3) as u16).to_be_bytes());
            }
            false => body.push(len(2) as u8),
        }
        for (code, len, value) in parameters {
            body.push(CAPABILITIES);
            match is_extended {
                true => body.extend((u16::from(len) + 2).to_be_bytes()),
                false => body.push(len + 2),
            }
            body.extend([code, len]);
            body.extend(value);
        }
        let len = HEADER + body.len();
        if len > LONGEST {
            return Err(fault(format!("an OPEN of {len} bytes, more than {LONGEST}")));
        }
        let header = [&[0xff; MARKER][..], &(len as u16).to_be_bytes(), &[OPEN]].concat();
        Ok([header, body].concat())
    }

    /// Whether the speaker accepts routes of this family. A speaker without multiprotocol capabilities accepts IPv4
    /// unicast (RFC 4760, 8).
    pub fn supports(&self, family: AfiSafi) -> bool {
        let mut families = self.capabilities.iter().filter_map(|capability| match capability {
            Capability::Multiprotocol(family) => Some(*family),
            _ => None,
        });
        match families.next() {
            None => family == AfiSafi::IPV4,
            Some(first) => first == family || families.any(|other| other == family),
        }
    }

    /// Whether the speaker has multiprotocol capabilities.
    pub(crate) fn names_families(&self) -> bool {
        self.capabilities.iter().any(|c| matches!(c, Capability::Multiprotocol(_)))
    }

    /// Whether the speaker writes four-byte AS numbers to a receiver that does too.
    pub fn has_four_byte_asns(&self) -> bool {
        self.capabilities.iter().any(|c| matches!(c, Capability::FourByteAsn(_)))
    }

    /// The speaker's announcement about path identifiers of this family.
    pub fn add_path(&self, family: AfiSafi) -> AddPathMode {
        let modes = self.capabilities.iter().filter_map(|capability| match capability {
            Capability::AddPath(modes) => Some(modes),
            _ => None,
        });
        // RFC 7911, 4: of several entries for a family the first one counts.
        let found = modes.flatten().find(|(of, _)| *of == family);
        found.map(|(_, mode)| *mode).unwrap_or_default()
    }

    /// The encoding of this speaker's messages to the sender of `receiver`, as both have agreed. The caller sets the
    /// number of the peer.
    pub fn encoding_to(&self, receiver: &Self) -> PeerEncoding {
        let add_path =
            |family| match self.add_path(family).send && receiver.add_path(family).receive {
                true => AddPath::Present,
                false => AddPath::Absent,
            };
        PeerEncoding {
            four_byte_asns: self.has_four_byte_asns() && receiver.has_four_byte_asns(),
            add_path_v4: add_path(AfiSafi::IPV4),
            add_path_v6: add_path(AfiSafi::IPV6),
            add_path_vpn_v4: add_path(AfiSafi::VPN_IPV4),
            add_path_vpn_v6: add_path(AfiSafi::VPN_IPV6),
            ..PeerEncoding::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: AddPathMode = AddPathMode { receive: true, send: true };
    const SEND: AddPathMode = AddPathMode { receive: false, send: true };

    /// One of each capability, and parameters that a reader must skip.
    #[test]
    fn decodes() {
        let capabilities = [
            &[2, 6, 1, 4, 0, 1, 0, 1][..],
            &[2, 6, 1, 4, 0, 2, 0, 128],
            &[2, 2, 2, 0],
            &[2, 2, 6, 0],
            &[2, 8, 5, 6, 0, 1, 0, 1, 0, 2],
            // Two capabilities in one parameter.
            &[2, 16, 65, 4, 0xfa, 0x56, 0xea, 0, 69, 8, 0, 1, 1, 3, 0, 2, 1, 2],
            &[2, 8, 64, 6, 0xc0, 120, 0, 1, 1, 0x80],
            &[2, 5, 73, 3, 2, b'r', b't'],
            // A multiprotocol capability of another form, a parameter of another kind.
            &[2, 3, 1, 1, 0],
            &[1, 0],
        ]
        .concat();
        let fields = [4, 0x5b, 0xa0, 0, 90, 10, 9, 0, 2, capabilities.len() as u8];
        let len = HEADER + fields.len() + capabilities.len();
        let message = [&[0xff; 16][..], &[0, len as u8, 1], &fields, &capabilities].concat();
        let open = Open::decode(&message).unwrap();
        let asn = 4_200_000_000;
        let wanted = Open {
            other_parameters: vec![1],
            ..Open::new(
                asn,
                90,
                0x0a09_0002,
                vec![
                    Capability::Multiprotocol(AfiSafi::IPV4),
                    Capability::Multiprotocol(AfiSafi::VPN_IPV6),
                    Capability::RouteRefresh,
                    Capability::ExtendedMessage,
                    Capability::ExtendedNextHop(vec![(AfiSafi::IPV4, 2)]),
                    Capability::FourByteAsn(asn),
                    Capability::AddPath(vec![(AfiSafi::IPV4, BOTH), (AfiSafi::IPV6, SEND)]),
                    Capability::GracefulRestart {
                        restarted: true,
                        notification: true,
                        time: 120,
                        families: vec![(AfiSafi::IPV4, true)],
                    },
                    Capability::Other { code: 73, value: vec![2, b'r', b't'] },
                    Capability::Other { code: 1, value: vec![0] },
                ],
            )
        };
        assert_eq!(open, wanted);
        assert!(open.supports(AfiSafi::IPV4) && !open.supports(AfiSafi::IPV6));
        // Cut anywhere it is a fault, never a panic, and never another OPEN.
        for len in 0..message.len() {
            assert!(Open::decode(&message[..len]).is_err(), "{len}");
        }
        assert!(Open::decode(&[&[0xff; 16][..], &[0, 19, 4]].concat()).is_err());
        // Its length is larger than that of its parameters.
        let mut longer = [&message[..], &[0, 0]].concat();
        longer[17] += 2;
        let fault = Open::decode(&longer).unwrap_err();
        assert_eq!(fault.what, "2 bytes are left behind the optional parameters");
    }

    #[test]
    fn sessions_use_what_both_can() {
        let of = |capabilities| Open::new(64500, 90, 1, capabilities);
        let plain = of(vec![]);
        assert!(plain.supports(AfiSafi::IPV4) && !plain.supports(AfiSafi::IPV6));
        let receiver = of(vec![
            Capability::FourByteAsn(64500),
            Capability::AddPath(vec![(AfiSafi::IPV4, BOTH), (AfiSafi::IPV6, SEND)]),
        ]);
        let sender = of(vec![
            Capability::FourByteAsn(64501),
            Capability::AddPath(vec![(AfiSafi::IPV4, SEND), (AfiSafi::IPV6, SEND)]),
        ]);
        let from_sender = sender.encoding_to(&receiver);
        assert_eq!(from_sender.add_path_v4, AddPath::Present);
        assert_eq!(from_sender.add_path_v6, AddPath::Absent);
        assert!(from_sender.four_byte_asns);
        // The sender cannot receive them, so the receiver does not send them.
        assert_eq!(receiver.encoding_to(&sender).add_path_v4, AddPath::Absent);
        assert!(!sender.encoding_to(&plain).four_byte_asns);
        assert!(!plain.encoding_to(&sender).four_byte_asns);
    }

    #[test]
    fn long_capabilities() {
        let other = |code, len| Capability::Other { code, value: vec![7; len] };
        let of = |capabilities| Open::new(64500, 90, 1, capabilities).encode();
        assert!(of(vec![other(200, 256)]).is_err());
        assert!(of(vec![other(200, 255); 15]).is_ok());
        let fault = of(vec![other(200, 255); 16]).unwrap_err();
        assert_eq!(fault.what, "an OPEN of 4192 bytes, more than 4096");
    }

    fn capability() -> impl Strategy<Value = Capability> {
        let family = || (any::<u16>(), any::<u8>()).prop_map(|(afi, safi)| AfiSafi { afi, safi });
        let mode = (any::<bool>(), any::<bool>())
            .prop_map(|(receive, send)| AddPathMode { receive, send });
        prop_oneof![
            family().prop_map(Capability::Multiprotocol),
            Just(Capability::RouteRefresh),
            prop::collection::vec((family(), any::<u16>()), 0..5)
                .prop_map(Capability::ExtendedNextHop),
            Just(Capability::ExtendedMessage),
            (
                any::<(bool, bool)>(),
                0u16..4096,
                prop::collection::vec((family(), any::<bool>()), 0..5)
            )
                .prop_map(|((restarted, notification), time, families)| {
                    Capability::GracefulRestart { restarted, notification, time, families }
                }),
            any::<u32>().prop_map(Capability::FourByteAsn),
            prop::collection::vec((family(), mode), 0..5).prop_map(Capability::AddPath),
            (70u8.., prop::collection::vec(any::<u8>(), 0..256))
                .prop_map(|(code, value)| Capability::Other { code, value }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            asn in any::<u32>(),
            hold_time in any::<u16>(),
            bgp_id in any::<u32>(),
            capabilities in prop::collection::vec(capability(), 0..12),
        ) {
            let mut open = Open::new(asn, hold_time, bgp_id, capabilities);
            let message = open.encode().unwrap();
            let told = open.capabilities.iter().rev().find_map(|capability| match capability {
                Capability::FourByteAsn(asn) => Some(*asn),
                _ => None,
            });
            let short = u16::try_from(asn).unwrap_or(AS_TRANS);
            open.asn = told.unwrap_or(short.into());
            prop_assert_eq!(Open::decode(&message), Ok(open));
        }

        #[test]
        fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..120)) {
            let len = (HEADER + body.len()) as u16;
            let message = [&[0xff; 16][..], &len.to_be_bytes(), &[1], &body].concat();
            if let Ok(open) = Open::decode(&message) {
                let again = Open { other_parameters: Vec::new(), ..open };
                prop_assert_eq!(Open::decode(&again.encode().unwrap()).unwrap().asn, again.asn);
            }
        }
    }
}
