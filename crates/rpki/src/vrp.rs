use std::fmt;

use fibula_core::AnyPrefix;

/// A validated ROA payload: an AS may announce a prefix, and longer prefixes inside it up to a maximum length.
///
/// ```
/// use fibula_rpki::Vrp;
/// let vrp = Vrp::new("192.0.2.0/24".parse()?, 26, 64500)?;
/// assert_eq!(vrp.to_string(), "192.0.2.0/24-26 AS64500");
/// assert!(Vrp::new("192.0.2.0/24".parse()?, 23, 64500).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vrp {
    prefix: AnyPrefix,
    max_len: u8,
    asn: u32,
}

impl Vrp {
    /// Makes a VRP.
    ///
    /// # Errors
    /// [`VrpError`] if the maximum length is below the prefix's length, or above 32 or 128.
    pub fn new(prefix: AnyPrefix, max_len: u64, asn: u32) -> Result<Self, VrpError> {
        let (len, bits) = match prefix {
            AnyPrefix::V4(prefix) => (prefix.len(), 32),
            AnyPrefix::V6(prefix) => (prefix.len(), 128),
        };
        match u8::try_from(max_len) {
            Ok(max_len) if (len..=bits).contains(&max_len) => Ok(Self { prefix, max_len, asn }),
            Ok(max_len) if max_len < len => Err(VrpError::Short { prefix, max_len }),
            _ => Err(VrpError::Long { prefix, max_len, bits }),
        }
    }

    /// The prefix.
    pub fn prefix(self) -> AnyPrefix {
        self.prefix
    }

    /// The greatest length that an announced prefix may have.
    pub fn max_len(self) -> u8 {
        self.max_len
    }

    /// The AS that may announce the prefix; 0 if no AS may.
    pub fn asn(self) -> u32 {
        self.asn
    }
}

impl fmt::Display for Vrp {
    /// `192.0.2.0/24-26 AS64500`: prefix, maximum length, AS.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} AS{}", self.prefix, self.max_len, self.asn)
    }
}

/// The error of a prefix with a maximum length that does not suit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VrpError {
    /// The maximum length is below the length of the prefix.
    Short {
        /// The prefix.
        prefix: AnyPrefix,
        /// The maximum length.
        max_len: u8,
    },
    /// The maximum length is above the number of bits of an address.
    Long {
        /// The prefix.
        prefix: AnyPrefix,
        /// The maximum length.
        max_len: u64,
        /// The number of bits of an address of its family.
        bits: u8,
    },
}

impl fmt::Display for VrpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { prefix, max_len } => {
                write!(f, "the maximum length {max_len} is below the length of {prefix}")
            }
            Self::Long { prefix, max_len, bits } => {
                write!(f, "the maximum length {max_len} of {prefix} is above {bits}")
            }
        }
    }
}

impl std::error::Error for VrpError {}

/// Parses an AS number, `64500` or `AS64500`.
///
/// ```
/// use fibula_rpki::parse_asn;
/// assert_eq!((parse_asn("AS64500"), parse_asn("64500")), (Some(64500), Some(64500)));
/// assert_eq!((parse_asn("AS4294967296"), parse_asn("+1"), parse_asn("AS")), (None, None, None));
/// ```
pub fn parse_asn(text: &str) -> Option<u32> {
    let is_named = text.get(..2).is_some_and(|word| word.eq_ignore_ascii_case("as"));
    let digits = if is_named { &text[2..] } else { text };
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}
