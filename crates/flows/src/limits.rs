//! Bounds of what exporters can make the decoder keep.

/// Bounds of a decoder's state. The least recently used of what exceeds a bound is forgotten and counted.
///
/// A bound that one exporter exceeds costs only that exporter's state. Only `exporters` and `bytes` make the decoder
/// forget another exporter as a whole, which then sends its templates again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowLimits {
    /// Exporters, by address. Default: 4,096.
    pub exporters: usize,
    /// Pairs of source port and observation domain of an exporter. Default: 256.
    pub domains: usize,
    /// Templates of a domain. Default: 1,024.
    pub templates: usize,
    /// Fields of a template; one with more is refused. Default: 512.
    pub fields: u16,
    /// Names of interfaces and VRFs, and sampling rates, of a domain; further ones are ignored. Default: 16,384.
    pub names: usize,
    /// Bytes of sets of a domain that wait for their template; 0 to drop such sets. Default: 256 KiB.
    pub held: usize,
    /// Bytes of an exporter's state. Default: 8 MiB.
    pub exporter_bytes: usize,
    /// Bytes of the whole state. The state exceeds them by at most what one datagram adds. Default: 256 MiB.
    pub bytes: usize,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self {
            exporters: 4096,
            domains: 256,
            templates: 1024,
            fields: 512,
            names: 16_384,
            held: 256 << 10,
            exporter_bytes: 8 << 20,
            bytes: 256 << 20,
        }
    }
}
