//! One open connection: a socket, a pipe, a file or a device.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::fs::OFlags;
use rustix::net::sockopt;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// This number of bytes.
    Bytes(usize),
    /// The other end has closed.
    End,
    /// More data arrived than the buffer could hold, so some are lost (`ENOBUFS` of the kernel's routing socket). The
    /// device is opened again, and sends everything again.
    Lost,
}

/// Something other than a socket or a pipe that gives bytes, such as the kernel's routing socket.
///
/// Its descriptor does not block, and is readable while [`StreamDevice::read`] has something to give. Opened
/// anew, it sends everything again.
pub trait StreamDevice: AsFd + Send {
    /// Reads the available data, complete records if the device has records.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if there is nothing; after any other error the device is opened again.
    fn read(&mut self, into: &mut [u8]) -> io::Result<Got>;

    /// Sends output of the protocol, and returns the number of bytes sent.
    ///
    /// # Errors
    /// As [`StreamDevice::read`].
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
}

/// One open connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    /// A named pipe, which stays open while its writers change.
    Fifo(File),
    /// A pipe, a terminal, a socket given as standard input: ends when the other end closes it.
    Pipe(File),
    /// A file, which is always readable and cannot be polled.
    File(File),
    Device(Box<dyn StreamDevice>),
}

/// A silent connection is probed after this time, and closed a minute after its last data.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_COUNT: u32 = 3;

impl Stream {
    /// A connection that was accepted, or is being opened.
    pub(super) fn tcp(stream: TcpStream) -> Self {
        // The options are not essential, so a system without one of them is supported.
        let _ = sockopt::set_tcp_nodelay(&stream, true);
        let _ = sockopt::set_socket_keepalive(&stream, true);
        let _ = sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE);
        let _ = sockopt::set_tcp_keepintvl(&stream, KEEPALIVE_INTERVAL);
        let _ = sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_COUNT);
        Self::Tcp(stream)
    }

    /// Opens a pipe or file; `-` is standard input.
    pub(super) fn path(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Self::stdin();
        }
        // Without O_NONBLOCK, a named pipe opens when there is a writer, and not before.
        let file = open(path)?;
        let kind = file.metadata()?.file_type();
        Ok(if kind.is_fifo() {
            Self::Fifo(file)
        } else if kind.is_file() {
            Self::File(file)
        } else if kind.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        } else {
            Self::Pipe(file)
        })
    }

    /// Opened anew, since O_NONBLOCK of the descriptor that we were given would be that of the terminal's
    /// other users, too. Sockets cannot be opened so.
    fn stdin() -> io::Result<Self> {
        let file = match open(Path::new("/dev/stdin")) {
            Ok(file) => file,
            Err(_) => {
                let own = rustix::stdio::stdin().try_clone_to_owned()?;
                let flags = rustix::fs::fcntl_getfl(&own)?;
                rustix::fs::fcntl_setfl(&own, flags | OFlags::NONBLOCK)?;
                File::from(own)
            }
        };
        Ok(match file.metadata()?.is_file() {
            true => Self::File(file),
            false => Self::Pipe(file),
        })
    }

    /// Whether its writers may change. Then a connection begins with its first bytes.
    pub(super) fn stays_open(&self) -> bool {
        matches!(self, Self::Fifo(_))
    }

    /// Begins to poll. A descriptor that cannot be polled is always readable: files, `/dev/null`.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);
        match self {
            Self::Tcp(stream) => registry.register(stream, token, BOTH),
            Self::Fifo(file) => {
                registry.register(&mut SourceFd(&file.as_raw_fd()), token, Interest::READABLE)
            }
            Self::Pipe(file) => {
                let fd = file.as_raw_fd();
                match registry.register(&mut SourceFd(&fd), token, Interest::READABLE) {
                    Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                        *self = Self::File(file.try_clone()?);
                        Ok(())
                    }
                    registered => registered,
                }
            }
            Self::File(_) => Ok(()),
            Self::Device(device) => {
                registry.register(&mut SourceFd(&device.as_fd().as_raw_fd()), token, BOTH)
            }
        }
    }

    /// Ends polling. If that fails, it ends with the descriptor.
    pub(super) fn deregister(&mut self, registry: &Registry) {
        let _ = match self {
            Self::Tcp(stream) => registry.deregister(stream),
            Self::Fifo(file) | Self::Pipe(file) => {
                registry.deregister(&mut SourceFd(&file.as_raw_fd()))
            }
            Self::File(_) => Ok(()),
            Self::Device(device) => registry.deregister(&mut SourceFd(&device.as_fd().as_raw_fd())),
        };
    }

    /// Reads the available data.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<Got> {
        let read = match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Fifo(file) | Self::Pipe(file) | Self::File(file) => file.read(into),
            Self::Device(device) => return device.read(into),
        };
        Ok(match read? {
            0 => Got::End,
            bytes => Got::Bytes(bytes),
        })
    }

    /// Writes as much as there is room for.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            // These streams are only read.
            Self::Fifo(_) | Self::Pipe(_) | Self::File(_) => Ok(bytes.len()),
            Self::Device(device) => device.write(bytes),
        }
    }

    /// The address of this end, if it has one.
    pub(super) fn local(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(stream) => stream.local_addr().ok().map(remote),
            _ => None,
        }
    }

    /// The result of a connection that is being opened; `None` while it is undecided.
    pub(super) fn opened(&self) -> io::Result<Option<()>> {
        let Self::Tcp(stream) = self else { return Ok(Some(())) };
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Ok(_) => Ok(Some(())),
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Nothing more will be written; the other end may still be read.
    pub(super) fn end_writing(&self) {
        if let Self::Tcp(stream) = self {
            // The connection may be closed already.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.union(OFlags::NOCTTY).bits().cast_signed())
        .open(path)
}

/// The address of an end, IPv4 where a dual-stack socket writes IPv4 as IPv6.
pub(super) fn remote(address: SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

/// Whether a call on a stream is to be made again when it is ready.
pub(super) fn is_pause(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// Whether a call on a stream is to be made again at once.
pub(super) fn is_interrupted(error: &io::Error) -> bool {
    error.kind() == ErrorKind::Interrupted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half-dead connections are closed after a minute, which is too long for a test, so it only checks the options.
    #[test]
    fn silent_connections_are_probed() {
        let listener = mio::net::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let Stream::Tcp(stream) = Stream::tcp(stream) else { panic!() };
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert!(sockopt::tcp_nodelay(&stream).unwrap());
        let idle = sockopt::tcp_keepidle(&stream).unwrap();
        let interval = sockopt::tcp_keepintvl(&stream).unwrap();
        let count = sockopt::tcp_keepcnt(&stream).unwrap();
        assert_eq!(idle + interval * count, Duration::from_secs(60));
    }
}
