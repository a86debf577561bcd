//! What C programs see: the headers, programs that use all of them, and DPDK's tables beside ours.

#[cfg(target_os = "linux")]
mod dpdk;
mod header;
mod program;
