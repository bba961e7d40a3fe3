//! Folders of the test runs: the cache under the build's target folder, and temporary ones that vanish on drop.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::KitError;

/// The root of the checkout this program was built from.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The build's target folder, where what is fetched stands too.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => workspace().join(folder),
        None => workspace().join("target"),
    }
}

/// A new, empty folder, removed with all it holds when dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    /// Makes a folder inside `parent`, which is made too when it is not there.
    pub fn inside(parent: &Path) -> Result<Self, KitError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("weft-kit-{}-{number}", std::process::id()));
            std::fs::create_dir_all(parent)
                .map_err(KitError::io(format!("make {}", parent.display())))?;
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(TemporaryFolder { path }),
                // Left by an earlier process with this number.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(KitError::Io(format!("make {}", path.display()), error)),
            }
        }
    }

    /// Makes a folder where the system keeps temporary files.
    pub fn new() -> Result<Self, KitError> {
        Self::inside(&std::env::temp_dir())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and nothing depends on it.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
