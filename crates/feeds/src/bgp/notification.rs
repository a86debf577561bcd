use std::fmt;

/// Bytes of a message's header: marker, length, type.
pub(super) const HEADER: usize = 19;

/// Types of messages.
pub(super) mod kind {
    pub(crate) const OPEN: u8 = 1;
    pub(crate) const UPDATE: u8 = 2;
    pub(crate) const NOTIFICATION: u8 = 3;
    pub(crate) const KEEPALIVE: u8 = 4;
    pub(crate) const ROUTE_REFRESH: u8 = 5;
}

/// Appends a message: its header, then the body.
pub(super) fn write(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    // Bodies are our own and short.
    let len = u16::try_from(HEADER + body.len()).unwrap_or(u16::MAX);
    out.extend([0xff; 16]);
    out.extend(len.to_be_bytes());
    out.push(kind);
    out.extend(body);
}

/// A NOTIFICATION (RFC 4271, 4.5): why a BGP session ends. Its text has the names of the codes in the
/// registry of IANA.
///
/// ```
/// use fibula_feeds::bgp::Notification;
///
/// let why = Notification::shutdown(2, "maintenance until 06:00");
/// assert_eq!(why.to_string(), "Cease/Administrative Shutdown: \"maintenance until 06:00\"");
/// assert_eq!(Notification::new(2, 2).to_string(), "OPEN Message Error/Bad Peer AS");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The error code.
    pub code: u8,
    /// The subcode; 0 where the code has none.
    pub subcode: u8,
    /// The data that the codes define.
    pub data: Vec<u8>,
}

pub(super) const CEASE: u8 = 6;
pub(super) const SHUTDOWN: u8 = 2;
const RESET: u8 = 4;
/// Bytes of the text that a shutdown may carry (RFC 9003).
const LONGEST_TEXT: usize = 255;

impl Notification {
    /// A notification without data.
    pub const fn new(code: u8, subcode: u8) -> Self {
        Self { code, subcode, data: Vec::new() }
    }

    pub(super) fn with_data(code: u8, subcode: u8, data: impl Into<Vec<u8>>) -> Self {
        Self { code, subcode, data: data.into() }
    }

    /// Cease with this subcode (2: administrative shutdown, 4: administrative reset) and a text for the
    /// operator at the other end (RFC 9003), cut after 255 bytes.
    pub fn shutdown(subcode: u8, text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(LONGEST_TEXT)];
        let data = [&[text.len() as u8], text.as_bytes()].concat();
        Self { code: CEASE, subcode, data: if text.is_empty() { Vec::new() } else { data } }
    }

    /// The body of a message; `None` if it is too short to be one.
    pub(super) fn decode(body: &[u8]) -> Option<Self> {
        let &[code, subcode, ref data @ ..] = body else { return None };
        Some(Self::with_data(code, subcode, data))
    }

    /// The bytes of the message, with its header.
    pub fn encode(&self) -> Vec<u8> {
        let mut message = Vec::new();
        // Data may quote a message of the peer; the longest one that everybody takes has 4,096 bytes.
        let data = &self.data[..self.data.len().min(4096 - HEADER - 2)];
        write(&mut message, kind::NOTIFICATION, &[&[self.code, self.subcode], data].concat());
        message
    }

    /// The text of a shutdown or reset (RFC 9003).
    fn text(&self) -> Option<&str> {
        let (&len, text) = self.data.split_first()?;
        let has_text = self.code == CEASE && matches!(self.subcode, SHUTDOWN | RESET);
        let text = text.get(..len.into()).filter(|text| has_text && !text.is_empty())?;
        std::str::from_utf8(text).ok()
    }

    /// The names of the code and the subcode.
    fn names(&self) -> (&'static str, &'static str) {
        let code = match self.code {
            1 => "Message Header Error",
            2 => "OPEN Message Error",
            3 => "UPDATE Message Error",
            4 => "Hold Timer Expired",
            5 => "Finite State Machine Error",
            CEASE => "Cease",
            7 => "ROUTE-REFRESH Message Error",
            8 => "Send Hold Timer Expired",
            _ => "",
        };
        let subcode = match (self.code, self.subcode) {
            (1, 1) => "Connection Not Synchronized",
            (1, 2) => "Bad Message Length",
            (1, 3) => "Bad Message Type",
            (2, 1) => "Unsupported Version Number",
            (2, 2) => "Bad Peer AS",
            (2, 3) => "Bad BGP Identifier",
            (2, 4) => "Unsupported Optional Parameter",
            (2, 6) => "Unacceptable Hold Time",
            (2, 7) => "Unsupported Capability",
            (2, 11) => "Role Mismatch",
            (3, 1) => "Malformed Attribute List",
            (3, 2) => "Unrecognized Well-known Attribute",
            (3, 3) => "Missing Well-known Attribute",
            (3, 4) => "Attribute Flags Error",
            (3, 5) => "Attribute Length Error",
            (3, 6) => "Invalid ORIGIN Attribute",
            (3, 8) => "Invalid NEXT_HOP Attribute",
            (3, 9) => "Optional Attribute Error",
            (3, 10) => "Invalid Network Field",
            (3, 11) => "Malformed AS_PATH",
            (5, 1) => "Receive Unexpected Message in OpenSent State",
            (5, 2) => "Receive Unexpected Message in OpenConfirm State",
            (5, 3) => "Receive Unexpected Message in Established State",
            (CEASE, 1) => "Maximum Number of Prefixes Reached",
            (CEASE, SHUTDOWN) => "Administrative Shutdown",
            (CEASE, 3) => "Peer De-configured",
            (CEASE, RESET) => "Administrative Reset",
            (CEASE, 5) => "Connection Rejected",
            (CEASE, 6) => "Other Configuration Change",
            (CEASE, 7) => "Connection Collision Resolution",
            (CEASE, 8) => "Out of Resources",
            (CEASE, 9) => "Hard Reset",
            (CEASE, 10) => "BFD Down",
            (7, 1) => "Invalid Message Length",
            _ => "",
        };
        (code, subcode)
    }
}

impl fmt::Display for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.names(), self.subcode) {
            (("", _), _) => write!(f, "code {} subcode {}", self.code, self.subcode)?,
            ((code, ""), 0) => f.write_str(code)?,
            ((code, ""), subcode) => write!(f, "{code}/subcode {subcode}")?,
            ((code, subcode), _) => write!(f, "{code}/{subcode}")?,
        }
        // The peer's text goes to a log: quotes and control characters are escaped.
        self.text().map_or(Ok(()), |text| write!(f, ": {text:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let text =
            |code, subcode, data: &[u8]| Notification::with_data(code, subcode, data).to_string();
        assert_eq!(text(4, 0, &[]), "Hold Timer Expired");
        assert_eq!(text(4, 9, &[]), "Hold Timer Expired/subcode 9");
        assert_eq!(text(6, 99, &[]), "Cease/subcode 99");
        assert_eq!(text(77, 1, &[]), "code 77 subcode 1");
        assert_eq!(text(6, 2, b"\x03a\"\nrest"), "Cease/Administrative Shutdown: \"a\\\"\\n\"");
        // Lengths that do not fit, other subcodes and bytes that are no text: no text.
        assert_eq!(text(6, 2, b"\x09short"), "Cease/Administrative Shutdown");
        assert_eq!(text(6, 2, b"\x01\xff"), "Cease/Administrative Shutdown");
        assert_eq!(text(6, 3, b"\x01a"), "Cease/Peer De-configured");
    }

    #[test]
    fn long_texts_and_data_are_cut() {
        // 254 bytes and a character of two: it would end at 256.
        let text = format!("{}\u{e9}", "x".repeat(254));
        let message = Notification::shutdown(2, &text).encode();
        assert_eq!((message.len(), message[21]), (19 + 2 + 1 + 254, 254));
        let quoting = Notification::with_data(7, 1, vec![1; 70_000]).encode();
        assert_eq!((quoting.len(), &quoting[16..21]), (4096, &[0x10, 0, 3, 7, 1][..]));
    }

    #[test]
    fn bytes() {
        let wanted = [&[0xff; 16][..], &[0, 21, 3, 4, 0]].concat();
        assert_eq!(Notification::new(4, 0).encode(), wanted);
        assert_eq!(Notification::decode(&wanted[19..]), Some(Notification::new(4, 0)));
        assert_eq!(Notification::decode(&[6]), None);
    }
}
