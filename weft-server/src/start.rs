//! From the command line to a running server, and from there to its end.
//!
//! Owns the order of steps: everything that can fail because of the configuration or the machine comes before the first
//! thread, and the log says why. The main thread then waits for the reason to end.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use weft_engine::action::Shutdown;
use weft_engine::clock::Clock;
use weft_engine::config::{
    CommandLine, Config, Invocation, LogFormat, ParameterId, Program, Settings, usage,
};
use weft_engine::engine::{Engine, Identity, Parts};
use weft_os::cpu_list::CpuList;
use weft_reactor::{Driver, DriverOptions, EpollDriver, Listener, Mailbox, Waker};

use crate::acceptor::Acceptor;
use crate::admission::Admission;
use crate::appearance::Appearance;
use crate::clock::SystemClock;
use crate::configuration::{self, Failure, Loaded};
use crate::crash::Crash;
use crate::crew::{Crew, WorkerHandle};
use crate::host::{ServerHost, Ways};
use crate::io_driver::{IoDriver, Job};
use crate::listeners::{self, TcpPlan};
use crate::log::{Log, system_text};
use crate::messages::{ToAcceptor, ToMain};
use crate::reaper::Reaper;
use crate::restart::Restart;
use crate::service::{self, PidFile, Supervisor};
use crate::shared::Shared;
use crate::worker::Worker;
use crate::{advice, allocator, banner, chance, check_system, descriptor_limit, signals};

/// The acceptor's driver moves no bytes.
const ACCEPTOR_DRIVER: DriverOptions = DriverOptions {
    receive_buffer: 1,
    direct_share: 1,
    events: 64,
    keeps_turning: false,
};

/// A daemon's pidfile where the configuration names none.
const PIDFILE_DEFAULT: &str = "/var/run/weft.pid";

/// How long threads have to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the program.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let options: Vec<Vec<u8>> = arguments
        .iter()
        .skip(1)
        .map(|argument| argument.clone().into_vec())
        .collect();
    let program = Program::of(&weft_os::process::invoked_name(arguments.first()));
    if let Program::Other(reason) = program {
        eprintln!("{reason}");
        return ExitCode::FAILURE;
    }
    match Invocation::parse(&options) {
        Invocation::Version => {
            println!("{}", program.version(&allocator::name()));
            ExitCode::SUCCESS
        }
        Invocation::Help => {
            let program = arguments
                .first()
                .map_or_else(|| "weft-server".into(), |name| name.to_string_lossy());
            print!("{}", usage(&program));
            ExitCode::SUCCESS
        }
        Invocation::CheckSystem => ExitCode::from(u8::from(!check_system::run())),
        Invocation::Refused(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
        Invocation::Serve(command_line) => match serve(&arguments, &command_line) {
            Ok(()) => ExitCode::SUCCESS,
            Err(Stop) => ExitCode::FAILURE,
        },
    }
}

/// The start cannot go on; the reason has been told.
#[derive(Debug)]
struct Stop;

fn serve(arguments: &[OsString], command_line: &CommandLine) -> Result<(), Stop> {
    let started_in = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let in_background = service::in_background();
    let log = Arc::new(Log::to_standard_output());
    let loaded = configuration::load(command_line, &log).map_err(|failure| {
        match failure {
            Failure::Print(text) => eprintln!("{text}"),
            Failure::Log(text) => log.warning(text),
        }
        Stop
    })?;
    let wanted_in_background =
        loaded.config.settings().daemonize() && loaded.supervisor == Supervisor::None;
    if wanted_in_background && !in_background {
        return service::start_in_background(arguments, &started_in, loaded.input.as_deref())
            .map_err(|error| {
                log.warning(format_args!(
                    "Can't go to the background: {}",
                    system_text(&error)
                ));
                Stop
            });
    }
    banner::starting(&log, arguments.len() > 1);
    let crash = Crash::watch(&log, loaded.config.settings());
    log.set_serving();
    let restart = Restart::new(arguments, started_in, loaded.input.is_some());
    let program = arguments
        .first()
        .map_or(OsStr::new("weft-server"), OsString::as_os_str);
    let appearance = Appearance::new(program, loaded.file.as_deref());
    let server = Server::open(loaded, in_background, crash, appearance, restart, &log)?;
    server.run()
}

/// Everything that a running server is made of, before its threads run.
struct Server {
    log: Arc<Log>,
    config: Config,
    config_file: Option<PathBuf>,
    plan: TcpPlan,
    tcp: Vec<Listener>,
    unix: Option<Listener>,
    pid_file: Option<PidFile>,
    supervisor: Supervisor,
    io_driver: IoDriver,
    background_cpus: Option<CpuList>,
    crash: Arc<Crash>,
    appearance: Appearance,
    restart: Restart,
}

impl Server {
    /// Takes what the configuration names: descriptors, sockets, the pidfile.
    fn open(
        loaded: Loaded,
        in_background: bool,
        crash: Arc<Crash>,
        appearance: Appearance,
        restart: Restart,
        log: &Arc<Log>,
    ) -> Result<Self, Stop> {
        let Loaded {
            mut config,
            file,
            supervisor,
            ..
        } = loaded;
        fit_clients(&mut config, log)?;
        tie_to_processors(&mut config, log)?;
        let background_cpus = background_cpus(&config, log)?;
        let io_driver = IoDriver::choose(config.settings().io_driver(), log)
            .map_err(|reason| stop_at(&config, ParameterId::IoDriver, reason, log))?;
        let settings = Arc::clone(config.settings());
        let picture = settings.flag(ParameterId::AlwaysShowLogo)
            || settings.logfile().is_none()
                && !settings.flag(ParameterId::SyslogEnabled)
                && io::stdout().is_terminal();
        banner::running(
            log,
            settings.port(),
            picture && settings.log_format() == LogFormat::Legacy,
        );
        advice::give(&settings, log);
        allocator::work_in_background(settings.flag(ParameterId::JemallocBgThread));
        let plan = TcpPlan::of(&settings);
        let tcp = plan.open(log).map_err(|error| {
            log.warning(listeners::Failure(&error));
            log.warning(format_args!(
                "Failed listening on port {} (tcp), aborting.",
                plan.port
            ));
            Stop
        })?;
        let unix = open_unix(&settings, &plan, log)?;
        if tcp.is_empty() && unix.is_none() {
            log.warning("Configured to not listen anywhere, exiting.");
            return Err(Stop);
        }
        // Only now, so that a second server that finds the port taken leaves the first one's file alone.
        if in_background && settings.pidfile().is_none() {
            config.settle(ParameterId::Pidfile, PIDFILE_DEFAULT.as_bytes());
        }
        let pid_file = write_pid_file(config.settings(), log);
        appearance.show_title(config.settings());
        // The log says why; a server with another score serves all the same.
        let _ = appearance.take_score(config.settings(), log);
        Ok(Self {
            log: Arc::clone(log),
            config,
            config_file: file,
            plan,
            tcp,
            unix,
            pid_file,
            supervisor,
            io_driver,
            background_cpus,
            crash,
            appearance,
            restart,
        })
    }

    /// Starts the threads and waits for the end.
    fn run(self) -> Result<(), Stop> {
        let log = Arc::clone(&self.log);
        match self.start() {
            Ok(running) => running.wait(),
            Err(error) => {
                log.warning(format_args!(
                    "Can't start the server: {}",
                    system_text(&error)
                ));
                Err(Stop)
            }
        }
    }

    fn start(self) -> io::Result<Running> {
        let Self {
            log,
            config,
            config_file,
            plan,
            tcp,
            unix,
            pid_file,
            supervisor,
            io_driver,
            background_cpus,
            crash,
            appearance,
            restart,
        } = self;
        let restart = Arc::new(restart);
        let (has_tcp, has_unix) = (!tcp.is_empty(), unix.is_some());
        let without_effect = config.without_effect();
        let (main, reasons) = channel();
        let accepting = Driven::start("weft-acceptor".into(), ACCEPTOR_DRIVER, &main)?;
        let (acceptor, acceptor_inbox) = Mailbox::new(accepting.waker.clone());
        let reaper = Reaper::start(background_cpus)?;
        let threads = config.settings().io_threads();
        let usable = weft_os::cpu::usable_count();
        let crew = Arc::new(Crew::new(threads, usable));
        let host = ServerHost::new(
            Arc::clone(&log),
            Ways {
                acceptor: acceptor.clone(),
                reaper: reaper.clone(),
                crew: Arc::clone(&crew),
                main: main.clone(),
            },
            supervisor.name(),
            Arc::clone(&restart),
            io_driver.name(),
            crash,
            appearance,
        );
        let hash_seeds = chance::hash_seeds(config.settings().text(ParameterId::HashSeed))?;
        let engine = Arc::new(Engine::new(Parts {
            config,
            host: Box::new(host),
            observer: None,
            workers: threads.min(usable),
            hash_seeds,
            identity: Identity {
                run_id: chance::run_id()?,
                replication_id: chance::run_id()?,
                started_ms: SystemClock::new().unix_ms(),
                config_file,
            },
        }));
        let admission = Admission::default();
        admission.refresh(&engine);
        let shared = Arc::new(Shared {
            log: Arc::clone(&log),
            engine,
            reaper,
            admission,
            crew,
            main: main.clone(),
        });
        signals::watch(Arc::clone(&log), Arc::clone(&shared.engine), main)?;
        log.notice("Server initialized");
        log.notice(format_args!(
            "Serving with {} on up to {} workers",
            io_driver.name(),
            threads.min(usable)
        ));
        log.notice("Data is kept in memory only: there is no saving to disk yet.");
        if !without_effect.is_empty() {
            log.warning(format_args!(
                "These parameters are kept but have no effect yet: {}",
                without_effect.join(" ")
            ));
        }
        let foreman = Foreman {
            shared: Arc::clone(&shared),
            io_driver,
        };
        foreman.start_workers(threads)?;
        let acceptor_shared = Arc::clone(&shared);
        accepting.go(move |mut io| {
            Acceptor::new(acceptor_shared, acceptor_inbox, plan, tcp, unix, &mut io)?.run(io)
        });
        banner::ready(&log, has_tcp, has_unix);
        supervisor.ready();
        Ok(Running {
            foreman,
            shared,
            acceptor,
            reasons,
            pid_file,
            has_unix,
            supervisor,
            restart,
        })
    }
}

type Work = Box<dyn FnOnce(EpollDriver) -> io::Result<()> + Send>;

/// A thread that has a driver and waits for something to do with it: others can be told how to wake it before it works.
struct Driven {
    waker: Waker,
    work: Sender<Work>,
}

impl Driven {
    /// Starts the thread. The main thread will hear of the end of its work.
    fn start(name: String, options: DriverOptions, main: &Sender<ToMain>) -> io::Result<Self> {
        let (main, ended) = (main.clone(), name.clone());
        let (work, queue) = channel::<Work>();
        let (ready, waker) = channel();
        let body = move || {
            // A driver stays in the thread that makes it.
            let io = match EpollDriver::new(options) {
                Ok(io) => io,
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return;
                }
            };
            let _ = ready.send(Ok(io.waker()));
            // No work: the start has failed elsewhere.
            if let Ok(work) = queue.recv() {
                let _ = main.send(ToMain::Ended(ended, work(io).err()));
            }
        };
        thread::Builder::new().name(name).spawn(body)?;
        let waker = waker.recv().map_err(io::Error::other)??;
        Ok(Self { waker, work })
    }

    fn go(self, work: impl FnOnce(EpollDriver) -> io::Result<()> + Send + 'static) {
        let _ = self.work.send(Box::new(work));
    }
}

/// Starts workers.
struct Foreman {
    shared: Arc<Shared>,
    io_driver: IoDriver,
}

impl Foreman {
    /// Starts what is missing to `count` workers.
    fn start_workers(&self, count: usize) -> io::Result<()> {
        while self.shared.crew.started() < count {
            let id = self.shared.crew.started();
            let seed = chance::seed()?;
            let (ready, handle) = channel();
            let duty = Duty {
                shared: Arc::clone(&self.shared),
                id,
                seed,
                ready: ready.clone(),
            };
            let (io_driver, main) = (self.io_driver, self.shared.main.clone());
            let name = format!("weft-worker-{id}");
            let ended = name.clone();
            let body = move || {
                let mut duty = Some(duty);
                let options = DriverOptions {
                    keeps_turning: true,
                    ..DriverOptions::default()
                };
                let result = io_driver.run(options, WhenReady(&mut duty));
                match (duty, result) {
                    // There was no driver to begin with.
                    (Some(_), Err(error)) => {
                        let _ = ready.send(Err(error));
                    }
                    (_, result) => {
                        let _ = main.send(ToMain::Ended(ended, result.err()));
                    }
                }
            };
            thread::Builder::new().name(name).spawn(body)?;
            let handle = handle.recv().map_err(io::Error::other)??;
            self.shared.crew.add(handle);
        }
        Ok(())
    }
}

/// What a new worker's thread has to do once it has a driver.
struct Duty {
    shared: Arc<Shared>,
    id: usize,
    seed: u64,
    ready: Sender<io::Result<WorkerHandle>>,
}

/// Takes the duty up; a driver that could not be made leaves it.
struct WhenReady<'a>(&'a mut Option<Duty>);

impl Job for WhenReady<'_> {
    fn run<D: Driver>(self, io: D) -> io::Result<()> {
        let Some(duty) = self.0.take() else {
            return Ok(());
        };
        let (mailbox, inbox) = Mailbox::new(io.waker());
        let worker = Worker::new(duty.shared, inbox, duty.id, duty.seed);
        let _ = duty.ready.send(Ok(WorkerHandle::new(mailbox)));
        worker.run(io)
    }
}

/// A server whose threads run.
struct Running {
    foreman: Foreman,
    shared: Arc<Shared>,
    acceptor: Mailbox<ToAcceptor>,
    reasons: Receiver<ToMain>,
    pid_file: Option<PidFile>,
    has_unix: bool,
    supervisor: Supervisor,
    restart: Arc<Restart>,
}

impl Running {
    fn wait(self) -> Result<(), Stop> {
        let log = &self.shared.log;
        loop {
            match self.reasons.recv() {
                Ok(ToMain::Shutdown(how)) => return self.end_by(how),
                Ok(ToMain::Workers(count)) => {
                    if let Err(error) = self.foreman.start_workers(count) {
                        log.warning(format_args!(
                            "Can't start more workers than the {} there are: {}",
                            self.shared.crew.started(),
                            system_text(&error)
                        ));
                    }
                }
                Ok(ToMain::Ended(name, error)) => {
                    let reason = error
                        .map_or_else(|| "no reason given".to_owned(), |error| system_text(&error));
                    log.warning(format_args!("Thread {name} has failed: {reason}"));
                    self.end();
                    return Err(Stop);
                }
                Err(_) => unreachable!("this thread holds a sender itself"),
            }
        }
    }

    /// Ends the server, and starts it again if that is asked for.
    fn end_by(self, how: Shutdown) -> Result<(), Stop> {
        let (restart, log) = (Arc::clone(&self.restart), Arc::clone(&self.shared.log));
        self.end();
        let Some(delay) = how.restart else {
            return Ok(());
        };
        restart.now(delay, &log);
        Err(Stop)
    }

    /// The data is left to the system to free, which is faster by far.
    fn end(self) {
        let log = &self.shared.log;
        log.notice("User requested shutdown...");
        self.supervisor.stopping();
        self.acceptor.post(ToAcceptor::Stop);
        self.shared.crew.workers().for_each(WorkerHandle::stop);
        self.wait_for_threads(1 + self.shared.crew.started());
        if let Some(file) = self.pid_file {
            log.notice("Removing the pid file.");
            drop(file);
        }
        if self.has_unix {
            // The acceptor has done it.
            log.notice("Removing the unix socket file.");
        }
        log.warning("Weft is now ready to exit, bye bye...");
    }

    fn wait_for_threads(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        let mut running = count;
        while running > 0 {
            match self
                .reasons
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(ToMain::Ended(..)) => running -= 1,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}

/// Lowers `maxclients` to what the limit of open files allows.
fn fit_clients(config: &mut Config, log: &Log) -> Result<(), Stop> {
    let clients = config.settings().maxclients();
    let possible = descriptor_limit::secure(clients, log);
    if possible == 0 {
        return Err(Stop);
    }
    if possible < clients {
        let lowered = config.set(&[b"maxclients", possible.to_string().as_bytes()], true);
        debug_assert!(lowered.is_ok(), "a number from 1 is a valid maxclients");
    }
    Ok(())
}

/// Says which parameter cannot be honoured, and why.
fn stop_at(config: &Config, id: ParameterId, reason: String, log: &Log) -> Stop {
    let error = config.start_error(id, reason);
    eprintln!("{error}");
    log.warning(&error);
    Stop
}

/// Ties this thread, and with it all that follow, to the processors of `server-cpulist`; `io-threads auto` counts only those.
fn tie_to_processors(config: &mut Config, log: &Log) -> Result<(), Stop> {
    let settings = Arc::clone(config.settings());
    let Some(text) = settings.server_cpulist() else {
        return Ok(());
    };
    let tied = CpuList::parse(&String::from_utf8_lossy(text)).and_then(|list| {
        list.pin_thread()
            .map_err(|error| format!("this machine has none of them: {}", system_text(&error)))
    });
    if let Err(reason) = tied {
        return Err(stop_at(config, ParameterId::ServerCpulist, reason, log));
    }
    let usable = weft_os::cpu::usable_count();
    config.set_usable_cpus(u16::try_from(usable).unwrap_or(u16::MAX));
    Ok(())
}

/// The processors of `bio-cpulist`.
fn background_cpus(config: &Config, log: &Log) -> Result<Option<CpuList>, Stop> {
    let text = config.settings().bio_cpulist();
    let list = text.map(|text| CpuList::parse(&String::from_utf8_lossy(text)));
    list.transpose()
        .map_err(|reason| stop_at(config, ParameterId::BioCpulist, reason, log))
}

fn open_unix(settings: &Settings, plan: &TcpPlan, log: &Log) -> Result<Option<Listener>, Stop> {
    let Some(path) = settings.unixsocket() else {
        return Ok(None);
    };
    let permissions = Some(settings.unixsocketperm()).filter(|&mode| mode != 0);
    match listeners::open_unix(
        Path::new(OsStr::from_bytes(path)),
        permissions,
        settings.unixsocketgroup(),
        plan.options.backlog,
    ) {
        Ok(listener) => Ok(Some(listener)),
        Err(reason) => {
            log.warning(reason);
            Err(Stop)
        }
    }
}

/// A pidfile that cannot be written is no reason not to serve.
fn write_pid_file(settings: &Settings, log: &Log) -> Option<PidFile> {
    let path = Path::new(OsStr::from_bytes(settings.pidfile()?));
    PidFile::write(path)
        .inspect_err(|error| {
            log.warning(format_args!(
                "Failed to write PID file: {}",
                system_text(error)
            ))
        })
        .ok()
}
