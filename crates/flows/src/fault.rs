//! What is wrong with a datagram, and where.

use std::fmt;

/// A fault of a datagram. Records before it were delivered; a datagram whose sets or samples do not fit it gives none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportFault {
    at: usize,
    kind: ExportFaultKind,
}

impl ExportFault {
    pub(crate) fn new(at: usize, kind: ExportFaultKind) -> Self {
        Self { at, kind }
    }

    /// The offset of the faulty header, set, template or record in the datagram.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The error.
    #[must_use]
    pub fn kind(&self) -> ExportFaultKind {
        self.kind
    }
}

impl fmt::Display for ExportFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at, self.kind)
    }
}

impl std::error::Error for ExportFault {}

/// The error in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFaultKind {
    /// The datagram ends within its header.
    Header,
    /// The version is none of NetFlow v5, NetFlow v9, IPFIX and sFlow v5.
    Version(u16),
    /// The header's length or count claims more bytes than the datagram has.
    Length,
    /// Bytes follow the end of the message. Its records were taken.
    Trailing,
    /// A set is shorter than its header or longer than the rest of the message.
    Set,
    /// A set has one of the reserved numbers 4 to 255 (NetFlow v9: 2 to 255), and was skipped.
    SetNumber(u16),
    /// A template ends after its set.
    TemplateCut,
    /// A template has one of the numbers below 256, which belong to sets of templates.
    TemplateNumber(u16),
    /// A template has more fields than the limit allows.
    TemplateFields(u16),
    /// The records of a template have no bytes, or more than a datagram.
    TemplateLength,
    /// An options template has no scope, or more scope fields than fields.
    Scope,
    /// A field of variable length ends after its set.
    Record,
    /// A sample of sFlow, or a record in it, is longer than the rest of the datagram.
    Sample,
    /// An address of sFlow is neither IPv4 nor IPv6.
    Address(u32),
}

impl fmt::Display for ExportFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the datagram ends within its header"),
            Self::Version(version) => {
                write!(f, "version {version} is none of NetFlow v5 and v9, IPFIX and sFlow v5")
            }
            Self::Length => f.write_str("the message claims more bytes than the datagram has"),
            Self::Trailing => f.write_str("bytes follow the end of the message"),
            Self::Set => f.write_str("a set does not fit the message"),
            Self::SetNumber(number) => write!(f, "set {number} has a reserved number"),
            Self::TemplateCut => f.write_str("a template does not fit its set"),
            Self::TemplateNumber(number) => write!(f, "template {number} has a reserved number"),
            Self::TemplateFields(fields) => write!(f, "a template of {fields} fields is too large"),
            Self::TemplateLength => {
                f.write_str("the records of a template have no bytes, or more than a datagram")
            }
            Self::Scope => f.write_str("an options template has an invalid number of scope fields"),
            Self::Record => f.write_str("a field of variable length does not fit its set"),
            Self::Sample => f.write_str("a sample does not fit the datagram"),
            Self::Address(kind) => write!(f, "address type {kind} is neither IPv4 nor IPv6"),
        }
    }
}
