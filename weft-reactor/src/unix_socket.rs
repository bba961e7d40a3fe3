//! Unix listeners: what the `unixsocket` and `unixsocketperm` parameters mean.
//!
//! Owns the rules for the socket's file: a stale one is replaced, a live one and anything that is not a socket never is;
//! permissions are in force before the first connection can be made; only the process that made the file removes it.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use crate::listen::Listener;

/// A Unix socket that could not be listened on.
#[derive(Debug)]
#[non_exhaustive]
pub enum UnixListenError {
    /// Another process is listening there.
    Live(PathBuf),
    /// There is a file that is no socket.
    NotASocket(PathBuf),
    /// The system refused one of the steps ("bind", "chmod" ...).
    System {
        /// The socket's path.
        path: PathBuf,
        /// What failed.
        step: &'static str,
        /// Why.
        cause: io::Error,
    },
}

impl fmt::Display for UnixListenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnixListenError::Live(path) => {
                write!(
                    formatter,
                    "Unix socket {}: another process is listening on it",
                    path.display()
                )
            }
            UnixListenError::NotASocket(path) => {
                write!(
                    formatter,
                    "Unix socket {}: a file that is not a socket is in the way",
                    path.display()
                )
            }
            UnixListenError::System { path, step, cause } => {
                write!(formatter, "Unix socket {}: {step}: {cause}", path.display())
            }
        }
    }
}

impl std::error::Error for UnixListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            UnixListenError::System { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// Listens on the Unix socket `path` with file mode `permissions` (as the umask leaves it when absent). The file goes
/// when the listener is dropped.
pub fn bind_unix(
    path: &Path,
    permissions: Option<u32>,
    backlog: i32,
) -> Result<Listener, UnixListenError> {
    let path = std::path::absolute(path).map_err(failed(path, "path"))?;
    let address =
        SocketAddrUnix::new(&path).map_err(|error| failed(&path, "path")(error.into()))?;
    clear_the_way(&path, &address)?;
    let system = |step| {
        let path = &path;
        move |error: Errno| failed(path, step)(error.into())
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(system("socket"))?;
    bind(&socket, &address).map_err(system("bind"))?;
    // From here on the file is ours, and an error removes it.
    let file = SocketFile::made(path.clone()).map_err(failed(&path, "stat"))?;
    if let Some(mode) = permissions {
        // Nobody can connect before `listen`, so nobody gets in under the mode `bind` gave.
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            .map_err(failed(&path, "chmod"))?;
    }
    listen(&socket, backlog).map_err(system("listen"))?;
    Ok(Listener::unix(socket, file))
}

fn failed(path: &Path, step: &'static str) -> impl FnOnce(io::Error) -> UnixListenError {
    let path = path.to_owned();
    move |cause| UnixListenError::System { path, step, cause }
}

/// Removes a socket nobody listens on.
fn clear_the_way(path: &Path, address: &SocketAddrUnix) -> Result<(), UnixListenError> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        // Nothing there, or `bind` will say what is wrong.
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(UnixListenError::NotASocket(path.to_owned()));
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(|error| failed(path, "socket")(error.into()))?;
    match connect(probe.as_fd(), address) {
        Err(Errno::CONNREFUSED) => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(path, "unlink")(error))
            }
            _ => Ok(()),
        },
        Err(Errno::NOENT) => Ok(()),
        // A full backlog, a socket of another type: somebody is there.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => {
            Err(UnixListenError::Live(path.to_owned()))
        }
        Err(error) => Err(failed(path, "connect")(error.into())),
    }
}

/// The file of a Unix socket this process bound; dropping it removes the file.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    process: u32,
}

impl SocketFile {
    fn made(path: PathBuf) -> io::Result<SocketFile> {
        let metadata = fs::symlink_metadata(&path)?;
        Ok(SocketFile {
            path,
            device: metadata.dev(),
            inode: metadata.ino(),
            process: std::process::id(),
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A process that inherited the listener, or one whose file somebody else has replaced, leaves it alone.
        let ours = self.process == std::process::id()
            && fs::symlink_metadata(&self.path)
                .is_ok_and(|found| found.dev() == self.device && found.ino() == self.inode);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}
