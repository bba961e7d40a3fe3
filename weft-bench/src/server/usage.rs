//! What threads use, as the kernel counts it.
//!
//! Owns where the figures stand in `/proc`: `task/T/schedstat` (nanoseconds on a processor and waiting for one),
//! `task/T/status` (context switches), `stat` (user and kernel time of the whole process, threads that ended included) and
//! `/proc/stat` (the machine). Does not know whose process it is.

use std::fs;
use std::io;
use std::time::Instant;

/// A clock tick of the figures in `stat`: Linux shows them in hundredths of a second on every architecture.
const TICK_NS: u64 = 10_000_000;

/// What a process has used until one moment.
#[derive(Clone, Debug)]
pub struct Usage {
    at: Instant,
    threads: Vec<ThreadUsage>,
    user_ns: u64,
    kernel_ns: u64,
    resident_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ThreadUsage {
    id: u32,
    name: String,
    run_ns: u64,
    wait_ns: u64,
    voluntary: u64,
    involuntary: u64,
}

/// What a process has used between two moments.
#[derive(Clone, Debug)]
pub struct Spent {
    /// Seconds between them.
    pub seconds: f64,
    /// By thread; those that did nothing are left out.
    pub threads: Vec<ThreadSpent>,
    /// Nanoseconds on processors, of all threads, also those that have ended.
    pub run_ns: u64,
    /// What part of that was in the kernel, 0 to 1, as far as ticks of 10 ms tell.
    pub kernel_share: f64,
    /// Resident memory at the end.
    pub resident_bytes: u64,
}

/// One thread's part.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSpent {
    /// Its name.
    pub name: String,
    /// The part of the time it was on a processor, 0 to 1.
    pub run: f64,
    /// The part of the time it waited for one.
    pub wait: f64,
    /// Context switches by its own will: it waited for something.
    pub voluntary: u64,
    /// Against it: another thread got its processor.
    pub involuntary: u64,
}

impl Usage {
    /// Of a process so far.
    ///
    /// # Errors
    /// As the operating system says; `NotFound` if there is no such process.
    pub fn of(process: u32) -> io::Result<Usage> {
        let folder = format!("/proc/{process}");
        let stat = fs::read_to_string(format!("{folder}/stat"))?;
        let (user, kernel) = process_ticks(&stat)
            .ok_or_else(|| io::Error::other("/proc/PID/stat is not as it should be"))?;
        let status = fs::read_to_string(format!("{folder}/status"))?;
        let mut threads = Vec::new();
        for entry in fs::read_dir(format!("{folder}/task"))? {
            let path = entry?.path();
            let id = path
                .file_name()
                .and_then(|name| name.to_str()?.parse().ok());
            // A thread may end while it is looked at.
            let (Some(id), Ok(schedule), Ok(status)) = (
                id,
                fs::read_to_string(path.join("schedstat")),
                fs::read_to_string(path.join("status")),
            ) else {
                continue;
            };
            threads.extend(thread(id, &schedule, &status));
        }
        threads.sort_by_key(|thread| thread.id);
        Ok(Usage {
            at: Instant::now(),
            threads,
            user_ns: user * TICK_NS,
            kernel_ns: kernel * TICK_NS,
            resident_bytes: status_number(&status, "VmRSS").unwrap_or(0) * 1024,
        })
    }

    /// What was used since `before`.
    pub fn since(&self, before: &Usage) -> Spent {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        let nothing = ThreadUsage {
            id: 0,
            name: String::new(),
            run_ns: 0,
            wait_ns: 0,
            voluntary: 0,
            involuntary: 0,
        };
        let mut run_ns = 0;
        let mut threads = Vec::new();
        for thread in &self.threads {
            let known = before.threads.iter().find(|known| known.id == thread.id);
            let start = known.unwrap_or(&nothing);
            let ran_ns = thread.run_ns.saturating_sub(start.run_ns);
            run_ns += ran_ns;
            let spent = ThreadSpent {
                name: thread.name.clone(),
                run: ran_ns as f64 / 1e9 / seconds,
                wait: thread.wait_ns.saturating_sub(start.wait_ns) as f64 / 1e9 / seconds,
                voluntary: thread.voluntary.saturating_sub(start.voluntary),
                involuntary: thread.involuntary.saturating_sub(start.involuntary),
            };
            if ran_ns > 0 {
                threads.push(spent);
            }
        }
        let user_ns = self.user_ns.saturating_sub(before.user_ns);
        let kernel_ns = self.kernel_ns.saturating_sub(before.kernel_ns);
        // What threads used that have ended is in the process's figures only, which are coarse.
        let ticked_ns = user_ns + kernel_ns;
        if ticked_ns > run_ns + run_ns / 10 + 4 * TICK_NS {
            run_ns = ticked_ns;
        }
        Spent {
            seconds,
            threads,
            run_ns,
            kernel_share: match ticked_ns {
                0 => 0.0,
                ticked_ns => kernel_ns as f64 / ticked_ns as f64,
            },
            resident_bytes: self.resident_bytes,
        }
    }
}

impl Spent {
    /// Processors kept busy.
    pub fn cores(&self) -> f64 {
        self.run_ns as f64 / 1e9 / self.seconds
    }
}

/// Time of all processors of the machine so far, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    idle: u64,
    all: u64,
}

impl Machine {
    /// Until now; `None` where the system does not tell.
    pub fn now() -> Option<Machine> {
        machine(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The part of the time since `before` in which processors had nothing to do, 0 to 1.
    pub fn idle_since(&self, before: &Machine) -> Option<f64> {
        let all = self
            .all
            .checked_sub(before.all)
            .filter(|ticks| *ticks > 0)?;
        Some(self.idle.saturating_sub(before.idle) as f64 / all as f64)
    }
}

/// The line of the sums: `cpu`, then ticks in user mode, nice, system, idle, waiting for input and output, interrupts,
/// soft interrupts, stolen; what follows is in the first two already.
fn machine(text: &str) -> Option<Machine> {
    let words = text
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace();
    let ticks: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
    Some(Machine {
        idle: ticks.get(3)? + ticks.get(4)?,
        all: ticks.iter().sum(),
    })
}

fn thread(id: u32, schedule: &str, status: &str) -> Option<ThreadUsage> {
    let mut numbers = schedule
        .split_ascii_whitespace()
        .map_while(|word| word.parse().ok());
    Some(ThreadUsage {
        id,
        name: status_field(status, "Name")?.to_owned(),
        run_ns: numbers.next()?,
        wait_ns: numbers.next()?,
        voluntary: status_number(status, "voluntary_ctxt_switches")?,
        involuntary: status_number(status, "nonvoluntary_ctxt_switches")?,
    })
}

fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(str::trim)
}

fn status_number(status: &str, name: &str) -> Option<u64> {
    let field = status_field(status, name)?;
    field.split_ascii_whitespace().next()?.parse().ok()
}

/// The fields of `/proc/PID/stat` behind the name, which stands in parentheses and may hold anything. The first of them is
/// field 3 of proc(5).
fn stat_fields(stat: &str) -> impl Iterator<Item = &str> {
    let (_, behind) = stat.rsplit_once(')').unwrap_or_default();
    behind.split_ascii_whitespace()
}

fn process_ticks(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat_fields(stat).skip(14 - 3);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// When a process started, in ticks since the machine did.
pub(super) fn start_time(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat_fields(&stat).nth(22 - 3)?.parse().ok()
}

/// Whether `process` was started by `ancestor`, or by a process that was.
pub(super) fn descends_from(process: u32, ancestor: u32) -> bool {
    let mut process = process;
    while process > 1 {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        match stat_fields(&stat).nth(4 - 3).and_then(|id| id.parse().ok()) {
            Some(parent) if parent == ancestor => return true,
            Some(parent) if parent != process => process = parent,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tio_thd_1\nUmask:\t0022\nVmRSS:\t    7404 kB\n\
        voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";

    #[test]
    fn a_threads_figures_are_read() {
        assert_eq!(
            thread(7, "5000 700 9\n", STATUS),
            Some(ThreadUsage {
                id: 7,
                name: "io_thd_1".to_owned(),
                run_ns: 5000,
                wait_ns: 700,
                voluntary: 12,
                involuntary: 3,
            })
        );
        assert_eq!(status_number(STATUS, "VmRSS"), Some(7404));
        assert_eq!(thread(7, "", STATUS), None);
        assert_eq!(thread(7, "1 2 3", "Name:\tx\n"), None);
    }

    #[test]
    fn a_process_may_be_called_anything() {
        let stat = "7 (a) b (c) S 5 7 7 0 -1 4194560 1 2 3 4 250 120 0 0 20 0 3 0 4242 1000";
        assert_eq!(process_ticks(stat), Some((250, 120)));
        assert_eq!(stat_fields(stat).nth(22 - 3), Some("4242"));
        assert_eq!(process_ticks("7 (x) S"), None);
    }

    #[test]
    fn the_machines_idle_share() {
        let before = machine("cpu  10 0 10 100 10 0 0 0 0 0\ncpu0 1\n").unwrap();
        let after = machine("cpu  40 0 20 150 20 0 0 0 7 7\n").unwrap();
        assert_eq!(
            before,
            Machine {
                idle: 110,
                all: 130
            }
        );
        assert_eq!(after.idle_since(&before), Some(0.6));
        assert_eq!(before.idle_since(&before), None);
        assert_eq!(machine("intr 5"), None);
    }

    fn usage(at: Instant, ran_ms: &[(u32, u64)], user_ms: u64, kernel_ms: u64) -> Usage {
        let thread = |&(id, ms): &(u32, u64)| ThreadUsage {
            id,
            name: format!("t{id}"),
            run_ns: ms * 1_000_000,
            wait_ns: ms * 100_000,
            voluntary: ms,
            involuntary: ms / 10,
        };
        Usage {
            at,
            threads: ran_ms.iter().map(thread).collect(),
            user_ns: user_ms * 1_000_000,
            kernel_ns: kernel_ms * 1_000_000,
            resident_bytes: 1,
        }
    }

    #[test]
    fn shares_are_of_the_time_between() {
        let start = Instant::now();
        let end = start + std::time::Duration::from_secs(2);
        let before = usage(start, &[(1, 100), (2, 50)], 100, 50);
        let after = usage(end, &[(1, 1100), (2, 50), (3, 200)], 400, 950);
        let spent = after.since(&before);
        assert_eq!((spent.seconds, spent.run_ns), (2.0, 1_200_000_000));
        assert_eq!((spent.cores(), spent.kernel_share), (0.6, 0.75));
        let [first, third] = &spent.threads[..] else {
            panic!("{:?}", spent.threads);
        };
        assert_eq!((first.run, first.wait), (0.5, 0.05));
        assert_eq!((first.voluntary, first.involuntary), (1000, 100));
        assert_eq!((&third.name[..], third.run), ("t3", 0.1));
        // A thread that came and went is in the process's figures only.
        let with_ended = usage(end, &[(1, 1100)], 1400, 950).since(&before);
        assert_eq!(with_ended.run_ns, 2_200_000_000);
    }

    #[test]
    fn this_process_is_read() {
        let id = std::process::id();
        let before = Usage::of(id).unwrap();
        while Usage::of(id).unwrap().since(&before).run_ns < 20_000_000 {}
        let spent = Usage::of(id).unwrap().since(&before);
        assert!(spent.threads.iter().any(|it| it.run > 0.0) && spent.resident_bytes > 0);
        let parent = std::os::unix::process::parent_id();
        assert!(descends_from(id, parent) && !descends_from(parent, id));
        assert!(start_time(id).unwrap() >= start_time(parent).unwrap());
        assert!(Usage::of(u32::MAX).is_err());
    }
}
