//! What the engine cannot do itself, done: files, changed parameters, facts about the process.
//!
//! Called from any worker, with the configuration locked: nothing here may look at it.

use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use weft_engine::action::{AllocatorFacts, Fault, Host, ProcessFacts, Waste};
use weft_engine::config::{Change, ParameterId, SetError, Settings};
use weft_reactor::{Mailbox, monotonic_ns};

use crate::appearance::Appearance;
use crate::crash::Crash;
use crate::crew::Crew;
use crate::descriptor_limit;
use crate::listeners::TcpPlan;
use crate::log::{Log, system_text};
use crate::messages::{ToAcceptor, ToMain};
use crate::reaper::Reaper;
use crate::restart::Restart;
use crate::{allocator, fault, files};

/// Ways to the threads that do the work.
pub struct Ways {
    /// To who listens.
    pub acceptor: Mailbox<ToAcceptor>,
    /// To who frees.
    pub reaper: Reaper,
    /// To the workers.
    pub crew: Arc<Crew>,
    /// To who starts and ends threads.
    pub main: Sender<ToMain>,
}

/// The engine's way out.
pub struct ServerHost {
    log: Arc<Log>,
    acceptor: Mailbox<ToAcceptor>,
    reaper: Reaper,
    crew: Arc<Crew>,
    main: Sender<ToMain>,
    restart: Arc<Restart>,
    operating_system: String,
    executable: String,
    allocator: String,
    supervisor: &'static str,
    io_driver: &'static str,
    crash: Arc<Crash>,
    appearance: Appearance,
}

impl ServerHost {
    /// Of a process with this driver, this end after a crash and this appearance.
    pub fn new(
        log: Arc<Log>,
        ways: Ways,
        supervisor: &'static str,
        restart: Arc<Restart>,
        io_driver: &'static str,
        crash: Arc<Crash>,
        appearance: Appearance,
    ) -> Self {
        let Ways {
            acceptor,
            reaper,
            crew,
            main,
        } = ways;
        let executable = weft_os::process::executable().unwrap_or_default();
        Self {
            log,
            acceptor,
            reaper,
            crew,
            main,
            restart,
            operating_system: weft_os::process::operating_system(),
            executable: executable.to_string_lossy().into_owned(),
            allocator: allocator::name(),
            supervisor,
            io_driver,
            crash,
            appearance,
        }
    }

    /// Each step can be taken back, or does no harm if a later one fails.
    fn try_out(&self, changes: &[Change], settings: &Settings) -> Result<(), SetError> {
        let changed = |id| changes.iter().any(|change| change.id == id);
        if changed(ParameterId::Maxclients) {
            let clients = settings.maxclients();
            let possible = descriptor_limit::secure(clients, &self.log);
            if possible < clients {
                return Err(SetError::failed(
                    ParameterId::Maxclients,
                    SetError::too_many_clients(possible),
                ));
            }
        }
        let before = std::env::current_dir();
        if changed(ParameterId::Dir) {
            files::enter_folder(settings.dir())
                .map_err(|error| SetError::failed(ParameterId::Dir, system_text(&error)))?;
        }
        let score_before = weft_os::process::oom_score_adjustment();
        let done = self
            .take_score(changes, settings)
            .and_then(|()| self.move_listeners(changes, settings));
        if done.is_err() {
            if let (true, Ok(before)) = (changed(ParameterId::Dir), before) {
                let _ = std::env::set_current_dir(before);
            }
            if let Ok(before) = score_before {
                let _ = weft_os::process::set_oom_score_adjustment(before);
            }
        }
        done
    }

    fn take_score(&self, changes: &[Change], settings: &Settings) -> Result<(), SetError> {
        let about_it = |change: &&Change| {
            matches!(
                change.id,
                ParameterId::OomScoreAdj | ParameterId::OomScoreAdjValues
            )
        };
        match changes.iter().find(about_it) {
            None => Ok(()),
            Some(change) => self
                .appearance
                .take_score(settings, &self.log)
                .map_err(|_| SetError::failed(change.id, SetError::CANNOT_SCORE)),
        }
    }

    fn move_listeners(&self, changes: &[Change], settings: &Settings) -> Result<(), SetError> {
        // Both parameters make one plan; the error names the one that was changed first.
        let refusal = changes.iter().find_map(|change| match change.id {
            ParameterId::Bind => Some(SetError::failed(change.id, SetError::CANNOT_BIND)),
            ParameterId::Port => Some(SetError::failed(change.id, SetError::CANNOT_LISTEN)),
            _ => None,
        });
        let Some(refusal) = refusal else {
            return Ok(());
        };
        let (reply, result) = channel();
        self.acceptor
            .post(ToAcceptor::Rebind(TcpPlan::of(settings), reply));
        // The acceptor waits for nobody. If it has ended, so will the server.
        match result.recv() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(refusal),
        }
    }
}

impl Host for ServerHost {
    fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn replace_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        files::replace(path, bytes)
    }

    fn apply(&self, changes: &[Change], settings: &Settings) -> Result<(), SetError> {
        self.try_out(changes, settings)?;
        for change in changes {
            match change.id {
                ParameterId::TcpKeepalive => {
                    self.acceptor
                        .post(ToAcceptor::KeepAlive(settings.tcp_keepalive_seconds()));
                }
                ParameterId::IoThreads => {
                    let threads = settings.io_threads();
                    // They serve as soon as they are there.
                    let _ = self.main.send(ToMain::Workers(threads));
                    self.crew.set_cap(threads, monotonic_ns());
                }
                ParameterId::Loglevel => self.log.set_level(settings.loglevel().into()),
                ParameterId::LogFormat | ParameterId::LogTimestampFormat => self
                    .log
                    .set_form(settings.log_format(), settings.log_timestamp_format()),
                ParameterId::Bind | ParameterId::Port | ParameterId::ProcTitleTemplate => {
                    self.appearance.show_title(settings);
                }
                ParameterId::CrashLogEnabled
                | ParameterId::UseExitOnPanic
                | ParameterId::DebugContext => self.crash.obey(settings),
                ParameterId::JemallocBgThread => {
                    allocator::work_in_background(settings.flag(change.id));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn working_folder(&self) -> Option<Vec<u8>> {
        let folder = std::env::current_dir().ok()?;
        Some(folder.into_os_string().into_vec())
    }

    fn force_workers(&self, count: Option<usize>) -> Result<(), usize> {
        let started = self.crew.started();
        if count.is_some_and(|count| count == 0 || count > started) {
            return Err(started);
        }
        self.crew.force(count, monotonic_ns());
        Ok(())
    }

    fn reap(&self, waste: Waste) {
        self.reaper.take(waste);
    }

    fn waste_left(&self) -> usize {
        self.reaper.left()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    fn fail(&self, fault: Fault) -> ! {
        fault::commit(&self.log, fault)
    }

    fn can_restart(&self) -> bool {
        self.restart.is_possible(&self.log)
    }

    fn crash_and_recover(&self, delay: Duration) {
        self.restart.now(delay, &self.log);
    }

    fn allocator(&self) -> AllocatorFacts {
        allocator::facts()
    }

    fn allocator_report(&self) -> String {
        allocator::report()
    }

    fn purge_allocator(&self) {
        allocator::purge();
    }

    fn process(&self) -> ProcessFacts {
        let time = weft_os::cpu::process_time();
        ProcessFacts {
            process_id: weft_os::process::id(),
            operating_system: self.operating_system.clone(),
            resident_bytes: weft_os::memory::resident_bytes().unwrap_or(0),
            total_memory_bytes: weft_os::memory::total_bytes(),
            allocated_bytes: allocator::allocated_bytes(),
            user_cpu_us: time.user_us,
            system_cpu_us: time.system_us,
            executable: self.executable.clone(),
            allocator: self.allocator.clone(),
            supervisor: self.supervisor,
            io_driver: self.io_driver.to_owned(),
        }
    }
}
