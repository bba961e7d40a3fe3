//! `cargo xtask deb` and `cargo xtask links`: the Debian package, and the links under which the programs stand in for others.
//!
//! Owns which file goes where. The package is put together by dpkg-deb alone, so that building it needs nothing from the
//! network; what its scripts do stands in `packaging/debian`.

use std::fmt::Write;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names under which the programs are what those names say: link, program.
const LINKS: &[(&str, &str)] = &[
    ("redis-server", "weft-server"),
    ("redis-benchmark", "weft-bench"),
    ("memtier_benchmark", "weft-bench"),
];
/// Where the package has its links.
const LINK_FOLDER: &str = "usr/lib/weft/redis";
/// Files of the checkout: from, to, mode.
const FILES: &[(&str, &str, u32)] = &[
    ("weft.conf", "etc/weft/weft.conf", 0o644),
    (
        "packaging/weft-server.service",
        "lib/systemd/system/weft-server.service",
        0o644,
    ),
    (
        "packaging/weft.sysusers",
        "usr/lib/sysusers.d/weft.conf",
        0o644,
    ),
    (
        "packaging/weft.tmpfiles",
        "usr/lib/tmpfiles.d/weft.conf",
        0o644,
    ),
    ("README.md", "usr/share/doc/weft/README.md", 0o644),
    ("DEVIATIONS.md", "usr/share/doc/weft/DEVIATIONS.md", 0o644),
    (
        "docs/configuration.md",
        "usr/share/doc/weft/configuration.md",
        0o644,
    ),
    (
        "packaging/debian/copyright",
        "usr/share/doc/weft/copyright",
        0o644,
    ),
    ("CHANGELOG.md", "usr/share/doc/weft/changelog", 0o644),
    ("packaging/debian/postinst", "DEBIAN/postinst", 0o755),
    ("packaging/debian/prerm", "DEBIAN/prerm", 0o755),
    ("packaging/debian/postrm", "DEBIAN/postrm", 0o755),
];
/// Files that an administrator's changes are kept of.
const CONFIGURATION: &[&str] = &["/etc/weft/weft.conf"];

/// Makes links in `folder` to the programs in `programs`; links that are there are replaced.
pub(crate) fn links(folder: &Path, programs: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (link, program) in LINKS {
        let place = folder.join(link);
        if place.is_symlink() {
            fs::remove_file(&place)?;
        }
        symlink(programs.join(program), &place)?;
    }
    Ok(())
}

/// Puts the package together from the checkout at `root` and programs that have been built; returns its path.
pub(crate) fn package(root: &Path, programs: &Path, output: &Path) -> io::Result<PathBuf> {
    let version = version(&fs::read_to_string(root.join("Cargo.toml"))?)
        .ok_or_else(|| io::Error::other("Cargo.toml names no version"))?;
    let architecture = said_by("dpkg", &["--print-architecture"])?;
    // Built against this version, the programs ask for no later one.
    let libc = said_by("getconf", &["GNU_LIBC_VERSION"])?.replace("glibc ", "");
    let tree = output.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let place = |to: &str| -> io::Result<PathBuf> {
        let place = tree.join(to);
        fs::create_dir_all(place.parent().unwrap_or(&tree))?;
        Ok(place)
    };
    let install = |from: &Path, to: &str, mode: u32| -> io::Result<()> {
        let place = place(to)?;
        fs::copy(from, &place).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", from.display()))
        })?;
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))
    };
    for program in ["weft-server", "weft-bench"] {
        install(
            &programs.join(program),
            &format!("usr/bin/{program}"),
            0o755,
        )?;
    }
    for (from, to, mode) in FILES {
        install(&root.join(from), to, *mode)?;
    }
    links(&tree.join(LINK_FOLDER), Path::new("../../../bin"))?;
    compress(&tree.join("usr/share/doc/weft/changelog"))?;
    let control = fs::read_to_string(root.join("packaging/debian/control"))?
        .replace("{version}", &version)
        .replace("{architecture}", &architecture)
        .replace("{libc}", &libc)
        .replace("{size}", &kibibytes(&tree)?.to_string());
    fs::write(place("DEBIAN/control")?, control)?;
    fs::write(place("DEBIAN/conffiles")?, CONFIGURATION.join("\n") + "\n")?;
    fs::write(place("DEBIAN/md5sums")?, sums(&tree)?)?;
    // What the umask of whoever builds has to do with the package: nothing.
    each(&tree, &mut |path| {
        if path.is_dir() && !path.is_symlink() {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    })?;
    let package = output.join(format!("weft_{version}_{architecture}.deb"));
    let built = Command::new("dpkg-deb")
        .args(["--root-owner-group", "--build"])
        .arg(&tree)
        .arg(&package)
        .status()?;
    if !built.success() {
        return Err(io::Error::other("dpkg-deb has failed"));
    }
    Ok(package)
}

/// `version = "..."` of the workspace.
fn version(manifest: &str) -> Option<String> {
    let line = manifest
        .lines()
        .find(|line| line.trim_start().starts_with("version = "))?;
    Some(line.split('"').nth(1)?.to_owned())
}

fn said_by(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{program} has failed")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// With the highest effort and no name and time in it, as Debian wants its changelogs.
fn compress(path: &Path) -> io::Result<()> {
    let done = Command::new("gzip").args(["-9nf"]).arg(path).status()?;
    done.success()
        .then_some(())
        .ok_or_else(|| io::Error::other("gzip has failed"))
}

/// Every entry below a folder, folders before what is in them, in the order of their names.
fn each(folder: &Path, visit: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    visit(folder)?;
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() && !path.is_symlink() {
            each(&path, visit)?;
        } else {
            visit(&path)?;
        }
    }
    Ok(())
}

/// What the files of the package take, rounded up one by one.
fn kibibytes(tree: &Path) -> io::Result<u64> {
    let mut sum = 0;
    each(tree, &mut |path| {
        if !path.starts_with(tree.join("DEBIAN")) {
            sum += fs::symlink_metadata(path)?.len().div_ceil(1024).max(1);
        }
        Ok(())
    })?;
    Ok(sum)
}

/// The checksums by which `dpkg --verify` finds changed files.
fn sums(tree: &Path) -> io::Result<String> {
    let mut text = String::new();
    each(tree, &mut |path| {
        let name = path.strip_prefix(tree).unwrap_or(path);
        let shown = name.to_string_lossy();
        let counts = path.is_file()
            && !path.is_symlink()
            && !name.starts_with("DEBIAN")
            && !CONFIGURATION.contains(&format!("/{shown}").as_str());
        if counts {
            let said = said_by("md5sum", &["-b", &path.to_string_lossy()])?;
            let sum = said.split(' ').next().unwrap_or_default();
            let _ = writeln!(text, "{sum}  {shown}");
        }
        Ok(())
    })?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_workspace_s() {
        assert_eq!(
            version("[workspace]\nresolver = \"3\"\n[workspace.package]\nversion = \"1.2.3\"\n"),
            Some("1.2.3".to_owned())
        );
        assert_eq!(version("[workspace]\n"), None);
    }

    #[test]
    fn a_package_holds_programs_links_and_what_dpkg_needs() {
        if Command::new("dpkg-deb").arg("--version").output().is_err() {
            println!("dpkg-deb is not installed");
            return;
        }
        let folder = std::env::temp_dir().join(format!("weft-deb-{}", std::process::id()));
        let programs = folder.join("programs");
        fs::create_dir_all(&programs).unwrap();
        for program in ["weft-server", "weft-bench"] {
            fs::write(programs.join(program), "a program").unwrap();
        }
        let package = package(&crate::tasks::root(), &programs, &folder).unwrap();
        let package = package.to_string_lossy();
        let contents = said_by("dpkg-deb", &["--contents", &package]).unwrap();
        for line in [
            "-rwxr-xr-x root/root",
            " ./usr/bin/weft-server",
            " ./usr/bin/weft-bench",
            " ./usr/lib/weft/redis/redis-server -> ../../../bin/weft-server",
            " ./usr/lib/weft/redis/redis-benchmark -> ../../../bin/weft-bench",
            " ./usr/lib/weft/redis/memtier_benchmark -> ../../../bin/weft-bench",
            " ./etc/weft/weft.conf",
            " ./lib/systemd/system/weft-server.service",
            " ./usr/lib/sysusers.d/weft.conf",
            " ./usr/lib/tmpfiles.d/weft.conf",
            " ./usr/share/doc/weft/changelog.gz",
            " ./usr/share/doc/weft/copyright",
        ] {
            assert!(contents.contains(line), "{line} is not in\n{contents}");
        }
        let field = |name| said_by("dpkg-deb", &["--field", &package, name]).unwrap();
        assert_eq!(field("Package"), "weft");
        assert!(!field("Version").is_empty() && !field("Depends").contains('{'));
        let conffiles = said_by("dpkg-deb", &["--info", &package, "conffiles"]).unwrap();
        assert_eq!(conffiles, "/etc/weft/weft.conf");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn links_lead_to_the_programs_and_can_be_made_again() {
        let folder = std::env::temp_dir().join(format!("weft-links-{}", std::process::id()));
        for programs in ["/opt/a", "/opt/b"] {
            links(&folder, Path::new(programs)).unwrap();
            for (link, program) in LINKS {
                assert_eq!(
                    fs::read_link(folder.join(link)).unwrap(),
                    Path::new(programs).join(program)
                );
            }
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
