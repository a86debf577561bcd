//! The system call bpf(2): maps, programs, and links that attach a program for as long as they are open.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Kinds of maps.
#[derive(Clone, Copy)]
pub(super) enum MapKind {
    Hash = 1,
    XskMap = 17,
}

pub(super) const MAP_CREATE: i32 = 0;
pub(super) const MAP_LOOKUP: i32 = 1;
pub(super) const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const PROG_LOAD: i32 = 5;
pub(super) const MAP_FREEZE: i32 = 22;
const PROG_TEST_RUN: i32 = 10;
const LINK_CREATE: i32 = 28;

const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// Bytes of the verifier's log, and how many lines of its end are shown.
const LOG: usize = 16 << 20;
const LINES: usize = 24;

/// Calls bpf(2) with the arguments of a command.
///
/// # Safety
/// The type is that of the command's arguments, and its pointers point to what the command requires.
pub(super) unsafe fn bpf<T>(command: i32, arguments: &T) -> io::Result<i64> {
    // SAFETY: by the caller's promise.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(arguments), size_of::<T>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i64) }
}

/// As [`bpf`], for a command that writes into its arguments.
///
/// # Safety
/// As [`bpf`].
unsafe fn bpf_mut<T>(command: i32, arguments: &mut T) -> io::Result<i64> {
    let arguments = std::ptr::from_mut(arguments);
    // SAFETY: by the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, arguments, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i64) }
}

/// Calls bpf(2) with a command that opens something.
///
/// # Safety
/// As [`bpf`]; the command returns a new file descriptor.
pub(super) unsafe fn open<T>(command: i32, arguments: &T) -> io::Result<OwnedFd> {
    // SAFETY: by the caller's promise; the descriptor is new, so nobody else closes it.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(command, arguments)? as i32)) }
}

/// Makes a map.
pub(super) fn map(kind: MapKind, key: u32, value: u32, entries: u32) -> io::Result<OwnedFd> {
    let arguments = [kind as u32, key, value, entries, 0];
    // SAFETY: these are the first five fields of the command, the others are zero if they are left out.
    unsafe { open(MAP_CREATE, &arguments) }
}

/// `union bpf_attr` of the commands that read and write an entry of a map.
#[repr(C)]
pub(super) struct Element {
    pub map: u32,
    pub padding: u32,
    pub key: u64,
    pub value: u64,
    pub flags: u64,
}

/// Sets an entry of a map, whose keys and values have these types.
pub(super) fn update<const K: usize>(map: &OwnedFd, key: &[u8; K], value: u32) -> io::Result<()> {
    let value = value.to_ne_bytes();
    let element = Element {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: key.as_ptr().expose_provenance() as u64,
        value: value.as_ptr().expose_provenance() as u64,
        flags: 0,
    };
    // SAFETY: the kernel reads a key and a value of the sizes that the map was made with; all maps here have values of
    // four bytes, and callers give keys as they made the map.
    unsafe { bpf(MAP_UPDATE, &element).map(drop) }
}

/// Removes an entry of a map, if it is there.
pub(super) fn remove<const K: usize>(map: &OwnedFd, key: &[u8; K]) -> io::Result<()> {
    let key = key.as_ptr().expose_provenance() as u64;
    let element = Element { map: map.as_raw_fd() as u32, padding: 0, key, value: 0, flags: 0 };
    // SAFETY: as for `update`; the value is not read.
    match unsafe { bpf(MAP_DELETE, &element) } {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// `union bpf_attr` of the command, as far as it is used.
#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; 16],
}

/// Loads an XDP program. The verifier's words are in the error.
pub(super) fn load(name: &str, instructions: &[u64]) -> io::Result<OwnedFd> {
    const LICENSE: &CStr = c"MIT OR Apache-2.0";
    let mut load = Load {
        kind: PROG_TYPE_XDP,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr().expose_provenance() as u64,
        license: LICENSE.as_ptr().expose_provenance() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel: 0,
        flags: 0,
        name: [0; 16],
    };
    for (to, from) in load.name[..15].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    // SAFETY: the kernel reads so many instructions and the licence's name, which live until the call returns.
    let first = match unsafe { open(PROG_LOAD, &load) } {
        // Run it again for the verifier's messages.
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EINVAL | libc::E2BIG)) =>
        {
            error
        }
        other => return other,
    };
    // Once more, for the log.
    let mut log = vec![0_u8; LOG];
    load.log_level = 1;
    load.log_size = LOG as u32;
    load.log = log.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: as above; the kernel writes at most so many bytes of the log.
    match unsafe { open(PROG_LOAD, &load) } {
        Ok(program) => Ok(program),
        Err(_) => {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(LOG);
            let message = String::from_utf8_lossy(&log[..end]);
            let lines: Vec<&str> = message.lines().collect();
            // The reason is at the end, after the trace of the instructions.
            let message = lines[lines.len().saturating_sub(LINES)..].join("\n");
            let what = format!("the kernel refuses the XDP program: {first}\n{message}");
            Err(io::Error::new(first.kind(), what))
        }
    }
}

/// Flags of an XDP link: the driver runs the program, or the kernel does on any interface.
pub(super) const NATIVE: u32 = 1 << 2;
pub(super) const GENERIC: u32 = 1 << 1;

/// Attaches an XDP program to an interface, until the link is closed, by whatever end of the process.
pub(super) fn attach(program: &OwnedFd, interface: u32, mode: u32) -> io::Result<OwnedFd> {
    let arguments = [program.as_raw_fd() as u32, interface, ATTACH_XDP, mode];
    // SAFETY: these are the command's first four fields, without pointers.
    unsafe { open(LINK_CREATE, &arguments) }
}

/// `union bpf_attr` of the command, as far as it is used.
#[repr(C)]
struct Run {
    program: u32,
    result: u32,
    data_len: u32,
    data_out_len: u32,
    data: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_len: u32,
    context_out_len: u32,
    context: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

/// BPF_F_TEST_XDP_LIVE_FRAMES: the packets are handled as the program returns.
const LIVE_FRAMES: u32 = 1 << 1;

/// Runs an XDP program on so many packets that begin as these bytes, as if they came by the interface.
pub(super) fn run(program: &OwnedFd, packet: &[u8], interface: u32, count: u32) -> io::Result<()> {
    // struct xdp_md: data, data_end, data_meta, the interface, the queue, the interface that it is sent by.
    let context = [0, packet.len() as u32, 0, interface, 0, 0];
    let run = Run {
        program: program.as_raw_fd() as u32,
        result: 0,
        data_len: packet.len() as u32,
        data_out_len: 0,
        data: packet.as_ptr().expose_provenance() as u64,
        data_out: 0,
        repeat: count,
        duration: 0,
        context_len: size_of_val(&context) as u32,
        context_out_len: 0,
        context: context.as_ptr().expose_provenance() as u64,
        context_out: 0,
        flags: LIVE_FRAMES,
        cpu: 0,
        batch: 64,
        padding: 0,
    };
    // SAFETY: the kernel reads so many bytes of the packet and of the context, and writes neither; of the arguments it
    // writes fields that nobody reads.
    unsafe { bpf(PROG_TEST_RUN, &run).map(drop) }
}

/// Runs an XDP program once on a frame, without sending it. Returns the program's action, and the frame as it leaves
/// it.
pub(super) fn try_frame(program: &OwnedFd, frame: &[u8]) -> io::Result<(u32, Vec<u8>)> {
    let mut out = vec![0_u8; frame.len() + 256];
    let mut run = Run {
        program: program.as_raw_fd() as u32,
        result: 0,
        data_len: frame.len() as u32,
        data_out_len: out.len() as u32,
        data: frame.as_ptr().expose_provenance() as u64,
        data_out: out.as_mut_ptr().expose_provenance() as u64,
        repeat: 1,
        duration: 0,
        context_len: 0,
        context_out_len: 0,
        context: 0,
        context_out: 0,
        flags: 0,
        cpu: 0,
        batch: 0,
        padding: 0,
    };
    // SAFETY: the kernel reads so many bytes of the frame, writes at most so many of `out`, and fields of the
    // arguments, which nobody else has.
    unsafe { bpf_mut(PROG_TEST_RUN, &mut run)? };
    out.truncate(run.data_out_len as usize);
    Ok((run.result, out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_has_the_message_of_the_verifier() {
        // exit, without a result
        let error = load("wrong", &[u64::from_ne_bytes([0x95, 0, 0, 0, 0, 0, 0, 0])]).unwrap_err();
        if error.kind() == io::ErrorKind::PermissionDenied && !error.to_string().contains("R0") {
            println!("SKIPPED: this user may not load programs");
            return;
        }
        let message = error.to_string();
        assert!(
            message.contains("refuses the XDP program") && message.contains("R0 !read_ok"),
            "{message}"
        );
    }
}
