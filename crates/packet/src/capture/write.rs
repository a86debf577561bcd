//! Writes pcap: little-endian, in microseconds, the form that every tool reads.

/// The first 24 bytes of a file with packets of this LINKTYPE.
pub fn header(link: u16) -> [u8; 24] {
    let mut header = [0; 24];
    header[..4].copy_from_slice(&0xa1b2_c3d4u32.to_le_bytes());
    header[4..6].copy_from_slice(&2u16.to_le_bytes());
    header[6..8].copy_from_slice(&4u16.to_le_bytes());
    header[16..20].copy_from_slice(&0x4_0000u32.to_le_bytes());
    header[20..22].copy_from_slice(&link.to_le_bytes());
    header
}

/// The 16 bytes before a completely captured packet of `len` bytes. Seconds and microseconds since 1970 (UTC).
pub fn record(seconds: u32, micros: u32, len: u32) -> [u8; 16] {
    let mut record = [0; 16];
    for (bytes, number) in record.as_chunks_mut().0.iter_mut().zip([seconds, micros, len, len]) {
        *bytes = number.to_le_bytes();
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Container, Packet, Step, Time};

    #[test]
    fn what_is_written_is_read() {
        let bytes = [&header(1)[..], &record(1_700_000_000, 999_999, 3), b"abc"].concat();
        let mut container = Container::recognise(&bytes).unwrap();
        assert_eq!(container.next(&bytes, true), Step::Skip(24));
        let time = Time { seconds: 1_700_000_000, nanos: 999_999_000, micros_only: true };
        let packet = Packet { time: Some(time), link: 1, data: b"abc", length: 3 };
        assert_eq!(container.next(&bytes[24..], false), Step::Packet(19, packet));
    }
}
