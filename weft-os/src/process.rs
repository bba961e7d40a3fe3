//! This process: what it is, what others see of it, and the system it runs on.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The process id.
#[must_use]
pub fn id() -> u32 {
    std::process::id()
}

/// The system's name, release and machine: "Linux 6.1.0 x86_64".
#[must_use]
pub fn operating_system() -> String {
    let uname = rustix::system::uname();
    let [name, release, machine] =
        [uname.sysname(), uname.release(), uname.machine()].map(|part| part.to_string_lossy());
    format!("{name} {release} {machine}")
}

/// Bytes per page of memory.
#[must_use]
pub fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// The path of the program that runs.
#[must_use]
pub fn executable() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

/// Replaces the command line that `ps` shows for this process by `title`, if there is room for it where the command line was.
/// Whoever needs the arguments has read them before: afterwards they are gone.
///
/// # Errors
/// `StorageFull` if the title is longer than the command line; otherwise as the operating system says.
pub fn set_title(title: &[u8]) -> io::Result<()> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let room = arguments_place(&stat)
        .ok_or_else(|| io::Error::other("/proc/self/stat does not tell where the arguments are"))?;
    let mut text = vec![0; usize::try_from(room.end - room.start).unwrap_or(0)];
    // The last byte stays zero: the kernel takes another one for a title that goes on in the environment. Half a title,
    // with half a port in it, would mislead.
    if title.len() >= text.len() {
        return Err(io::ErrorKind::StorageFull.into());
    }
    text[..title.len()].copy_from_slice(title);
    // Through the file of the process's memory, the one way that a program without `unsafe` has to its own arguments.
    let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
    memory.write_all_at(&text, room.start)
}

/// Where the arguments are in memory: fields 48 and 49 of `/proc/PID/stat`, counted from 1 (proc(5)). None if the kernel does
/// not tell.
fn arguments_place(stat: &str) -> Option<std::ops::Range<u64>> {
    // The second field is the program's name in parentheses, and may hold anything.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(48 - 3);
    let mut next = || fields.next()?.parse::<u64>().ok();
    let (start, end) = (next()?, next()?);
    (0 < start && start < end).then_some(start..end)
}

/// Where the kernel keeps how gladly it would end this process when memory runs out, from -1000 to 1000.
const OOM_SCORE: &str = "/proc/self/oom_score_adj";

/// That number.
///
/// # Errors
/// As the operating system says.
pub fn oom_score_adjustment() -> io::Result<i32> {
    let text = fs::read_to_string(OOM_SCORE)?;
    text.trim().parse().map_err(io::Error::other)
}

/// Sets it.
///
/// # Errors
/// As the operating system says; only the privileged may lower it.
pub fn set_oom_score_adjustment(score: i32) -> io::Result<()> {
    fs::write(OOM_SCORE, score.to_string())
}

/// The number of a group of this machine, given by its name or already as a number.
#[must_use]
pub fn group_id(name: &str) -> Option<u32> {
    let named = nix::unistd::Group::from_name(name).ok().flatten();
    named
        .map(|group| group.gid.as_raw())
        .or_else(|| name.parse().ok())
}

/// The last part of the name that this program was started under, such as that of a link to it.
#[must_use]
pub fn invoked_name(first_argument: Option<&OsString>) -> String {
    let name = first_argument.map(PathBuf::from).unwrap_or_default();
    name.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_arguments_is_found_behind_any_name() {
        let stat = |name: &str, start: u64| {
            let fields: Vec<String> = (3..53)
                .map(|field| match field {
                    48 => start.to_string(),
                    49 => "120".to_owned(),
                    field => field.to_string(),
                })
                .collect();
            format!("7 ({name}) {}\n", fields.join(" "))
        };
        assert_eq!(arguments_place(&stat("weft", 100)), Some(100..120));
        assert_eq!(arguments_place(&stat("a) (b 1 2", 100)), Some(100..120));
        // What the kernel says to those who may not know.
        assert_eq!(arguments_place(&stat("weft", 0)), None);
        assert_eq!(arguments_place("7 (weft) S 1"), None);
    }

    #[test]
    fn groups_have_names_and_numbers() {
        assert_eq!(group_id("root"), Some(0));
        assert_eq!(group_id("4711"), Some(4711));
        assert_eq!(group_id("no such group"), None);
    }

    #[test]
    fn the_score_is_read_and_set_to_what_it_is() {
        let score = oom_score_adjustment().unwrap();
        set_oom_score_adjustment(score).unwrap();
        assert_eq!(oom_score_adjustment().unwrap(), score);
    }

    #[test]
    fn programs_know_the_link_they_were_started_by() {
        let name = |text: &str| invoked_name(Some(&OsString::from(text)));
        assert_eq!(name("/usr/lib/weft/redis-server"), "redis-server");
        assert_eq!(name("redis-server"), "redis-server");
        assert_eq!(invoked_name(None), "");
    }

    #[test]
    fn facts_are_plausible() {
        assert!(operating_system().starts_with("Linux "));
        assert_eq!(operating_system().split(' ').count(), 3);
        assert!(page_bytes().is_power_of_two() && page_bytes() >= 4096);
        assert!(executable().unwrap().is_absolute());
        assert_eq!(id(), std::process::id());
    }
}
