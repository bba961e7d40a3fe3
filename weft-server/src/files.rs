//! Files replaced at once or not at all, and the directory relative paths start from.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Puts `bytes` in the place of the file's content. A reader sees the old or the new content, also after a power cut;
/// mode and place (behind symbolic links) stay; a new file is readable by all.
///
/// # Errors
/// As the operating system says; the old file is then untouched.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = match fs::canonicalize(path) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(path)?,
        Err(error) => return Err(error),
    };
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let permissions = fs::metadata(&path)
        .ok()
        .map(|metadata| metadata.permissions());
    let temporary = Temporary::beside(&path)?;
    let mut file = &temporary.file;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.sync_all()?;
    fs::rename(&temporary.path, &path)?;
    temporary.keep();
    // The name is durable once its folder is.
    File::open(folder)?.sync_all()
}

/// Makes `folder` the working directory.
///
/// # Errors
/// As the operating system says.
pub fn enter_folder(folder: &[u8]) -> io::Result<()> {
    std::env::set_current_dir(OsStr::from_bytes(folder))
}

/// A file that goes unless it is kept.
struct Temporary {
    path: PathBuf,
    file: File,
    kept: bool,
}

impl Temporary {
    fn beside(path: &Path) -> io::Result<Self> {
        let name = path
            .file_name()
            .ok_or(io::ErrorKind::InvalidInput)?
            .to_string_lossy();
        for attempt in 0..100 {
            let path = path.with_file_name(format!("{name}.{}-{attempt}.tmp", std::process::id()));
            match OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o644)
                .open(&path)
            {
                Ok(file) => {
                    return Ok(Self {
                        path,
                        file,
                        kept: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn content_is_replaced_and_mode_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weft.conf");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_symbolic_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_new_file_is_made_and_a_missing_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        replace(&path, b"content").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"content");
        let error = replace(&folder.path().join("missing/file"), b"content").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
