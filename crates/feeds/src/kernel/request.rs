//! Requests to the kernel.

/// The parts of a dump, in order: next hops come before the routes that use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    NextHops,
    V4,
    V6,
}

impl Part {
    /// Number of parts.
    pub(super) const COUNT: u32 = 3;

    /// The part after this one.
    pub(super) fn next(self) -> Option<Self> {
        match self {
            Self::NextHops => Some(Self::V4),
            Self::V4 => Some(Self::V6),
            Self::V6 => None,
        }
    }

    /// Appends the request for a dump: a netlink header, and the header of the requested objects, empty except for the
    /// family.
    pub(super) fn ask(self, sequence: u32, out: &mut Vec<u8>) {
        const GETROUTE: u16 = 26;
        const GETNEXTHOP: u16 = 106;
        /// NLM_F_REQUEST and NLM_F_DUMP.
        const DUMP: u16 = 0x301;
        let (kind, family, len) = match self {
            Self::NextHops => (GETNEXTHOP, 0, 8),
            Self::V4 => (GETROUTE, 2, 12),
            Self::V6 => (GETROUTE, 10, 12),
        };
        let begin = out.len();
        out.extend(16u32.wrapping_add(len).to_ne_bytes());
        out.extend(kind.to_ne_bytes());
        out.extend(DUMP.to_ne_bytes());
        out.extend(sequence.to_ne_bytes());
        out.extend([0; 4]);
        out.push(family);
        out.resize(begin + 16 + len as usize, 0);
    }
}
