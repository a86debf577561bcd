//! Options and fragments: RFC 791, sections 3.1 and 3.2, step by step as its example of a fragmentation procedure.

use super::{checksum, u16_at};

/// The options: where each begins, and its length; or where a malformed one begins.
fn options(header: &[u8]) -> Result<Vec<(usize, usize)>, u8> {
    let (mut found, mut at) = (Vec::new(), 20);
    while at < header.len() {
        match header[at] {
            0 => break,
            1 => at += 1,
            _ => {
                let len = header.get(at + 1).map_or(0, |len| usize::from(*len));
                if len < 2 || at + len > header.len() {
                    return Err(at as u8);
                }
                found.push((at, len));
                at += len;
            }
        }
    }
    Ok(found)
}

/// Whether there is a loose or a strict source route.
pub(super) fn source_route(ip: &[u8]) -> Result<bool, u8> {
    let header = &ip[..usize::from(ip[0] & 15) * 4];
    Ok(options(header)?.iter().any(|(at, _)| header[*at] == 131 || header[*at] == 137))
}

/// Cuts off one fragment as long as possible, then the next from the rest.
pub(super) fn cut(ip: &[u8], mtu: usize) -> Vec<Vec<u8>> {
    let header_len = usize::from(ip[0] & 15) * 4;
    if ip.len() <= mtu {
        return vec![ip.to_vec()];
    }
    let blocks = (mtu - header_len) / 8;
    let field = u16_at(ip, 6);
    let finish = |mut header: Vec<u8>, data: &[u8], field: u16| {
        let len = (header.len() + data.len()) as u16;
        header[0] = 0x40 | (header.len() / 4) as u8;
        header[2..4].copy_from_slice(&len.to_be_bytes());
        header[6..8].copy_from_slice(&field.to_be_bytes());
        header[10..12].fill(0);
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        [header, data.to_vec()].concat()
    };
    let data = &ip[header_len..];
    let first = finish(ip[..header_len].to_vec(), &data[..blocks * 8], field | 0x2000);
    let mut header = ip[..20].to_vec();
    for (at, len) in options(&ip[..header_len]).unwrap() {
        if ip[at] & 0x80 != 0 {
            header.extend(&ip[at..at + len]);
        }
    }
    while !header.len().is_multiple_of(4) {
        header.push(0);
    }
    let rest = finish(header, &data[blocks * 8..], field + blocks as u16);
    [vec![first], cut(&rest, mtu)].concat()
}
