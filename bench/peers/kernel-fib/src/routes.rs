//! Routes into the kernel, and questions for them.

use std::io;

use crate::netlink::{
    ACK, CREATE, DST, EXCL, GET_ROUTE, HEADER, NEW_ROUTE, OIF, PRIORITY, REQUEST, Socket,
    route_message, word32,
};

/// Routes in one system call.
const AT_ONCE: usize = 512;
/// RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_LINK, RTN_UNICAST.
const MAIN: u8 = 254;
const STATIC: u8 = 4;
const LINK: u8 = 253;
const UNICAST: u8 = 1;
/// RTM_F_FIB_MATCH: the route is wanted, not what the kernel would make of it for a packet.
const FIB_MATCH: u32 = 0x2000;
const INET: u8 = 2;
const INET6: u8 = 10;

fn family(bytes: usize) -> u8 {
    if bytes == 4 { INET } else { INET6 }
}

/// Adds routes to the main table.
pub fn add<const N: usize>(
    socket: &Socket,
    routes: impl Iterator<Item = ([u8; N], u8, u32)>,
    device: u32,
) -> io::Result<()> {
    let mut routes = routes.peekable();
    let mut messages = Vec::new();
    while routes.peek().is_some() {
        messages.clear();
        let mut count = 0;
        for (addr, len, hop) in routes.by_ref().take(AT_ONCE) {
            count += 1;
            let message = [family(N), len, 0, 0, MAIN, STATIC, LINK, UNICAST, 0, 0, 0, 0];
            let (metric, device) = ((hop + 1).to_ne_bytes(), device.to_ne_bytes());
            let attributes = [(DST, &addr[..]), (OIF, &device[..]), (PRIORITY, &metric[..])];
            let flags = REQUEST | ACK | EXCL | CREATE;
            route_message(&mut messages, NEW_ROUTE, flags, message, &attributes);
        }
        socket.send(&messages)?;
        (0..count).try_for_each(|_| socket.acknowledged())?;
    }
    Ok(())
}

/// Asks for the routes of IPv6 addresses.
pub fn ask(socket: &Socket, keys: &[u128]) -> io::Result<()> {
    let mut messages = Vec::with_capacity(keys.len() * 48);
    for key in keys {
        let mut message = [INET6, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        message[8..].copy_from_slice(&FIB_MATCH.to_ne_bytes());
        let addr = key.to_be_bytes();
        route_message(&mut messages, GET_ROUTE, REQUEST, message, &[(DST, &addr)]);
    }
    socket.send(&messages)
}

/// The length of the longest prefix that covers an IPv4 address, by `struct fib_result_nl`.
pub fn matching_length(socket: &Socket, key: u32) -> io::Result<Option<u8>> {
    const LEN: usize = HEADER + 20;
    let mut message = [0_u8; LEN];
    message[..4].copy_from_slice(&(LEN as u32).to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    // fl_addr, fl_mark, fl_tos, fl_scope, tb_id_in; the answer: tb_id, prefixlen, nh_sel, type, scope, err.
    message[HEADER..HEADER + 4].copy_from_slice(&key.to_be_bytes());
    message[HEADER + 10] = MAIN;
    socket.send(&message)?;
    let mut room = [0; 256];
    let answer = socket.receive(&mut room)?;
    let failed = word32(answer, HEADER + 16)? != 0;
    Ok((!failed).then(|| answer[HEADER + 12]))
}

/// The first address of the prefix that has this key.
pub fn masked(key: u32, len: u8) -> u32 {
    key & u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::ROUTE_MESSAGE;

    #[test]
    fn all_lengths_have_a_mask() {
        let masked = [0, 1, 24, 32].map(|len| masked(u32::MAX, len));
        assert_eq!(masked, [0, 1 << 31, 0xffff_ff00, u32::MAX]);
        let mut out = Vec::new();
        route_message(&mut out, NEW_ROUTE, REQUEST, [0; ROUTE_MESSAGE], &[(DST, &[1, 2, 3, 4])]);
        assert_eq!((out.len(), out[0]), (HEADER + ROUTE_MESSAGE + 8, 36));
    }
}
