//! Where the clients come from: found on the system, or fetched into the target folder without touching the system.
//!
//! A folder that is complete holds a note of what is in it, and is not looked at again.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::said;
use crate::error::KitError;
use crate::folder::{target, workspace};
use crate::oracle::{find_file, on_path, unpack_debian};

/// Node packages, pinned, under the names that the scripts are told.
const NODE_PACKAGES: &[&str] = &[
    "ioredis-6@npm:ioredis@6.0.0",
    "ioredis-5@npm:ioredis@5.11.1",
    "redis-6@npm:redis@6.3.1",
    "redis-5@npm:redis@5.12.1",
];
/// Debian's package of hiredis's headers and library.
const HIREDIS_PACKAGE: &str = "libhiredis-dev";

/// A script of `weft-testkit/clients/`.
pub(super) fn script(name: &str) -> PathBuf {
    workspace().join("weft-testkit/clients").join(name)
}

fn folder(name: &str) -> PathBuf {
    target().join("clients").join(name)
}

/// The folders that hold these Python packages, as `PYTHONPATH` names them.
pub(super) fn python_path(packages: &[&str]) -> Result<OsString, KitError> {
    let mut folders = Vec::new();
    for package in packages {
        let folder = folder("python").join(package.replace("==", "-"));
        if !is_installed(&folder, package) {
            // What is half installed is in the way.
            let _ = std::fs::remove_dir_all(&folder);
            run(python_environment()?
                .args(["-m", "pip", "install", "--quiet", "--target"])
                .arg(&folder)
                .arg(package))?;
            mark_installed(&folder, package)?;
        }
        folders.push(folder);
    }
    std::env::join_paths(folders).map_err(|error| KitError::Missing(error.to_string()))
}

/// The interpreter of a virtual environment, for a pip that does not depend on the system's.
fn python_environment() -> Result<Command, KitError> {
    let folder = folder("python/environment");
    let note = "venv";
    if !is_installed(&folder, note) {
        run(Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder))?;
        mark_installed(&folder, note)?;
    }
    Ok(Command::new(folder.join("bin/python")))
}

/// Node, and the folder that has the packages.
pub(super) fn node() -> Result<(PathBuf, PathBuf), KitError> {
    let node =
        on_path("node").ok_or_else(|| KitError::Missing("node is not installed".to_owned()))?;
    let folder = folder("node");
    let note = NODE_PACKAGES.join("\n");
    if !is_installed(&folder, &note) {
        std::fs::create_dir_all(&folder)
            .map_err(KitError::io(format!("make {}", folder.display())))?;
        run(Command::new("npm")
            .args([
                "install",
                "--silent",
                "--no-fund",
                "--no-audit",
                "--no-save",
                "--prefix",
            ])
            .arg(&folder)
            .args(NODE_PACKAGES))?;
        mark_installed(&folder, &note)?;
    }
    Ok((node, folder.join("node_modules")))
}

/// PHP with the extension.
pub(super) fn php() -> Result<PathBuf, KitError> {
    system_program("php", &["-r", "new Redis();"], "php-cli and php-redis")
}

/// Ruby with the library.
pub(super) fn ruby() -> Result<PathBuf, KitError> {
    system_program("ruby", &["-r", "redis", "-e", "0"], "ruby and ruby-redis")
}

/// A program of the system, if it does what is tried.
fn system_program(name: &str, trial: &[&str], packages: &str) -> Result<PathBuf, KitError> {
    let missing = || KitError::Missing(format!("the system lacks {packages}"));
    // A link may decide what a program is.
    on_path(name).ok_or_else(missing)?;
    run(Command::new(name).args(trial)).map_err(|_| missing())?;
    Ok(PathBuf::from(name))
}

/// The program made of `hiredis.c` and Debian's library, which is linked into it and not installed.
pub(super) fn hiredis() -> Result<PathBuf, KitError> {
    let source = script("hiredis.c");
    let text = std::fs::read_to_string(&source)
        .map_err(KitError::io(format!("read {}", source.display())))?;
    let folder = folder("hiredis");
    let program = folder.join("hiredis");
    if !is_installed(&folder, &text) {
        let package = unpack_debian(&folder, HIREDIS_PACKAGE)?;
        let library = find_file(package.path(), "libhiredis.a")?;
        run(Command::new("cc")
            .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(package.path().join("usr/include"))
            .arg(&source)
            .arg(library)
            .arg("-o")
            .arg(&program))?;
        mark_installed(&folder, &text)?;
    }
    Ok(program)
}

/// The program of the crate `redis_rs`, brought up to date.
pub(super) fn redis_rs() -> Result<PathBuf, KitError> {
    let folder = folder("redis_rs");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--manifest-path"])
        .arg(script("redis_rs/Cargo.toml"))
        .arg("--target-dir")
        .arg(&folder))?;
    Ok(folder.join("debug/weft-clients-redis-rs"))
}

fn note(folder: &Path) -> PathBuf {
    folder.join("installed.txt")
}

fn is_installed(folder: &Path, what: &str) -> bool {
    std::fs::read_to_string(note(folder)).is_ok_and(|text| text == what)
}

fn mark_installed(folder: &Path, what: &str) -> Result<(), KitError> {
    let note = note(folder);
    std::fs::write(&note, what).map_err(KitError::io(format!("write {}", note.display())))
}

fn run(command: &mut Command) -> Result<(), KitError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| KitError::Missing(format!("cannot run {name}: {error}")))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(KitError::Missing(format!(
            "{name} failed ({}): {}",
            output.status,
            said(&output)
        )))
    }
}
