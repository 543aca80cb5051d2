//! Watch: the loop. Waits for events, hands each to its part, and does once a second what time brings.
//!
//! One thread. An event takes 20 to 100 us, and marks come as often as windows are read: 64 readers of a disk make some
//! dozen a second. Everything is put back when it ends: limits of file systems at once, those of open files as far as
//! they are being read.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use forerun_core::{Nanos, Profile, Settings};
use forerun_io::source::file::raise_descriptor_limit;
use forerun_steering::Steering;
use forerun_surface::daemon::control::Control;
use forerun_surface::daemon::metrics::Metrics;
use forerun_surface::failure::Failure;
use forerun_surface::undo::guardian::Guardian;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::asked::{self, Asked, Asks, Wish};
use crate::bios::{Bios, Seen};
use crate::causes::{Cause, Causes};
use crate::descriptors::{self, Descriptors};
use crate::disks::{Disks, REQUESTS_MAX};
use crate::exclude::{Exclude, Excludes};
use crate::kernel::note_once;
use crate::limit::{self, Limit};
use crate::memory::Domain;
use crate::mounts::{self, Below, FileSystem};
use crate::rings::Rings;
use crate::sample::{Record, Request, Seeing};
use crate::scheduler::{self, Scheduler};
use crate::signals::Signals;
use crate::small::{self, Small};
use crate::told;
use crate::tracepoint::{Tracepoint, tracefs};
use crate::whereabouts;
use crate::windows::{self, PAGE_BYTES};

/// The priority of the watch and its guardian, before all ordinary programs: it takes 1 % of a processor.
const FIRST: i32 = -20;
/// Work that comes with time is done that often.
const TICK: u64 = 1_000_000_000;
/// Busy disks are not looked at for so many ticks of ten.
const BLIND_TICKS: u32 = 9;
/// Readers of block events that are looked for in a second: 25 us each at most, in all a hundredth of a processor.
const FINDS_MAX: u32 = 400;
/// A run of sectors that was not seen for so long is forgotten.
const FORGET: u64 = 60 * TICK;

/// The paths to watch, and how.
#[derive(Debug)]
pub struct Wanted {
    /// File systems, folders or devices.
    pub paths: Vec<PathBuf>,
    /// Reads to leave alone.
    pub excludes: Vec<Exclude>,
    /// Decide and count, and set nothing.
    pub is_dry: bool,
    /// Give a crowd of readers a fair scheduler, where disks turn.
    pub schedules: bool,
    /// The events that tell of reads; the best that the kernel has if none is named.
    pub seeing: Option<Seeing>,
    /// Methods, and the most memory to reckon with.
    pub settings: Settings,
    /// Where the decisions are recorded; those of a second engine get `.1` behind the name, and so on.
    pub journal: Option<PathBuf>,
    /// Where the records of raised limits stand.
    pub folder: PathBuf,
    /// The words that start a guardian, but for the records.
    pub guardian: Vec<String>,
    /// The control socket, and its place if none was asked for; the watch works without that one.
    pub control: Option<PathBuf>,
    /// See there.
    pub usual_control: Option<PathBuf>,
    /// The address of the metrics.
    pub metrics: Option<SocketAddr>,
}

/// A file system.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) at: FileSystem,
    /// The paths below which files are watched; empty for all.
    pub(crate) below: Vec<Below>,
    /// The place of its limit among those of all bdis: partitions of one disk have one.
    pub(crate) limit: usize,
    /// Those of its disks; none where they are left alone.
    pub(crate) schedulers: Vec<Scheduler>,
}

impl Watched {
    /// Lets its disks serve fairly, or as before; whether they do then.
    pub(crate) fn schedule(&mut self, is_fair: bool) -> bool {
        let mut all = !self.schedulers.is_empty();
        for scheduler in &mut self.schedulers {
            all &= scheduler.set(is_fair);
        }
        all
    }
}

/// As before, also where a start fails.
impl Drop for Watched {
    fn drop(&mut self) {
        self.schedulers.iter_mut().for_each(Scheduler::end);
    }
}

/// Those of disks that all turn and can all be fair; else none.
fn schedulers(folder: &Path, disks: &[(u32, bool)]) -> Vec<Scheduler> {
    let of = |(number, turns): &(u32, bool)| match turns {
        true => Scheduler::of_disk(folder, *number),
        false => None,
    };
    let all: Option<Vec<_>> = disks.iter().map(of).collect();
    all.unwrap_or_default()
}

/// Counters of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Events of the page cache, and events that were lost.
    pub events: u64,
    /// Lost.
    pub lost: u64,
    /// Limits that were set, and the time it took.
    pub set: u64,
    /// See there.
    pub setting: Duration,
    /// Limits that would have been set, but for a dry run or a pause.
    pub spared: u64,
    /// Bytes of windows whose reader was not found.
    pub unknown_bytes: u64,
    /// Longest time a descriptor was held.
    pub held_most: Duration,
}

/// The account of a file system at the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    /// The file system.
    pub file_system: FileSystem,
    /// Its limit.
    pub limit_kib: Option<u32>,
    /// Costs of its disks, and the requests that they rest on.
    pub profile: Profile,
    /// See there.
    pub samples: u64,
}

/// The account of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Its counters.
    pub counts: Counts,
    /// Those of streams.
    pub streams: forerun_steering::Counts,
    /// Those of small files.
    pub small: small::Counts,
    /// Bytes that were not steered.
    pub causes: Causes,
    /// Its file systems.
    pub accounts: Vec<Account>,
    /// How long it ran, and its processor time.
    pub ran: Duration,
    /// See there.
    pub processor: Duration,
    /// Open files that got their file system's limit back.
    pub put_back: usize,
    /// The error that ended the journal, if one did.
    pub journal_error: Option<String>,
}

/// See the [module](self).
pub struct Watch {
    rings: Rings,
    pub(crate) file_systems: Vec<Watched>,
    /// One for each bdi.
    pub(crate) limits: Vec<Limit>,
    pub(crate) steering: Steering<Domain>,
    pub(crate) descriptors: Descriptors,
    pub(crate) guardian: Option<Guardian>,
    pub(crate) excludes: Excludes,
    pub(crate) is_dry: bool,
    pub(crate) counts: Counts,
    pub(crate) causes: Causes,
    seeing: Seeing,
    pub(crate) bios: Bios,
    pub(crate) small: Small,
    /// Readers that were looked for in /proc since the last tick.
    finds: u32,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) journal: Option<PathBuf>,
    /// The first error of it.
    pub(crate) journal_error: Option<String>,
    pub(crate) signals: Signals,
    asked: Receiver<Asked>,
    _control: Option<Control>,
    _metrics: Option<Metrics>,
    blind: u32,
}

impl Watch {
    /// Checks everything that is needed, and begins to watch.
    ///
    /// # Errors
    /// A path that cannot be watched, or a right or a part of the kernel that is missing, each by its name.
    pub fn start(wanted: Wanted) -> Result<Self, Failure> {
        let settings = windows::settings(wanted.settings.clone())?;
        // While it waits for a processor in the middle of a setting a limit stands raised. Without the right it goes without.
        let _ = rustix::process::setpriority_process(None, FIRST);
        // The filler alone opens hundreds of files.
        raise_descriptor_limit();
        let found = mounts::of_all(&wanted.paths)?;
        check_yama()?;
        descriptors::check()?;
        let tracefs = tracefs()?;
        let (seeing, points) = Tracepoint::all(tracefs, wanted.seeing)?;
        let numbers = |of: fn(&FileSystem) -> Vec<u32>| {
            let mut numbers: Vec<u32> = found.iter().flat_map(|(at, _)| of(at)).collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers
        };
        let devices = numbers(|at| vec![at.device]);
        let queues = numbers(|at| at.queues.clone());
        let disks = numbers(|at| at.disks.iter().map(|(disk, _)| *disk).collect());
        let rings = Rings::open((seeing, &points), [&devices, &queues, &disks])?;
        if !wanted.is_dry {
            scheduler::put_back_left(&wanted.folder);
        }
        let folder = (!wanted.is_dry).then_some(&*wanted.folder);
        let (limits, places) = limit::of_all(folder, found.iter().map(|(at, _)| at))?;
        let mut file_systems = Vec::new();
        for ((at, below), limit) in found.into_iter().zip(places) {
            let schedulers = match wanted.schedules && !wanted.is_dry {
                true => schedulers(&wanted.folder, &at.disks),
                false => Vec::new(),
            };
            file_systems.push(Watched {
                at,
                below,
                limit,
                schedulers,
            });
        }
        let disks = file_systems.iter();
        let disks: Vec<_> = disks.map(|of| (&*of.at.disks, of.at.spread)).collect();
        let mut steering = Steering::new(settings, monotonic(), &disks);
        let crowds = file_systems.iter().enumerate();
        let crowds = crowds.filter(|(_, of)| !of.schedulers.is_empty());
        crowds.for_each(|(at, _)| steering.look_for_crowds(at));
        let signals = Signals::new()?;
        let wake = signals.wake.try_clone();
        let wake = wake.map_err(|error| Failure::Run(format!("signals: {error}")))?;
        let (asks, asked) = asked::pair(wake);
        let (control, metrics) = seen(asks, &wanted)?;
        let small = Small::start(seeing, &signals)?;
        // The last that may fail: a guardian waits for records that go before it.
        let schedulers = file_systems.iter().flat_map(|of| &of.schedulers);
        let records = limits.iter().filter_map(Limit::record);
        let records = records.chain(schedulers.map(Scheduler::record));
        let records = records.map(|path| match path.to_str() {
            Some(name) => Ok(name.to_owned()),
            None => Err(Failure::unusable(path, "its name must be UTF-8")),
        });
        let words = wanted.guardian.iter().cloned().map(Ok).chain(records);
        let words = words.collect::<Result<Vec<String>, Failure>>()?;
        let guardian = match wanted.is_dry {
            true => None,
            false => Some(Guardian::start(words)?),
        };
        Ok(Self {
            rings,
            file_systems,
            limits,
            steering,
            descriptors: Descriptors::default(),
            guardian,
            excludes: Excludes::new(wanted.excludes),
            is_dry: wanted.is_dry,
            counts: Counts::default(),
            causes: Causes::default(),
            seeing,
            bios: Bios::default(),
            small,
            finds: 0,
            paths: wanted.paths.into_iter().map(canonical).collect(),
            journal: wanted.journal,
            journal_error: None,
            signals,
            asked,
            _control: control,
            _metrics: metrics,
            blind: 0,
        })
    }

    /// The file systems that are watched.
    #[must_use]
    pub fn accounts(&self) -> Vec<Account> {
        let account = |(of, disks): (&Watched, &Disks)| Account {
            file_system: of.at.clone(),
            limit_kib: self
                .own_limit(of)
                .map(|pages| pages * crate::limit::PAGE_KIB),
            profile: disks.profile(),
            samples: disks.samples(),
        };
        let each = self.file_systems.iter().zip(&self.steering.disks);
        each.map(account).collect()
    }

    /// The events that tell of reads.
    #[must_use]
    pub fn seeing(&self) -> &'static str {
        self.seeing.name()
    }

    /// Lets it end with standard input, too.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn end_with_input(&self) -> Result<(), Failure> {
        self.signals.end_with_input()
    }

    /// Watches until SIGTERM, SIGINT or SIGHUP.
    ///
    /// # Errors
    /// Waiting failed.
    pub fn run(mut self) -> Result<Report, Failure> {
        let mut records = Vec::new();
        let mut next = self.now().0 + TICK;
        loop {
            self.wait(next.saturating_sub(self.now().0))?;
            // Before the events: of reads that began after a pause none is steered.
            if self.signals.take() {
                break;
            }
            self.answer();
            self.take_done();
            self.rings.take(&mut records);
            let lost = self.counts.lost;
            for record in &records {
                match record {
                    Record::Ahead(event) => self.ahead(event),
                    Record::Bio(process, thread, bio) => self.bio(bio, (*process, *thread)),
                    Record::Request(request) => self.steering.request(request),
                    Record::Lost(count) => self.counts.lost += count,
                }
            }
            // The record of a loss is sorted before all others, and requests of these may have been sent before the loss.
            if self.counts.lost > lost {
                self.steering.lost();
            }
            if self.now().0 >= next {
                next = self.now().0 + TICK;
                self.tick();
            }
        }
        Ok(self.end())
    }

    /// A bio of a thread, which becomes an event of the page cache.
    fn bio(&mut self, bio: &Request, of: (u32, u32)) {
        if [Some(std::process::id()), self.guardian_process()].contains(&Some(of.0)) {
            return;
        }
        let own = self.file_systems.iter();
        let own = own.map(|own| (own.at.device, self.own_limit(own)));
        let own: Vec<(u32, Option<u32>)> = own.collect();
        let descriptors = &mut self.descriptors;
        let limit = |device| own.iter().find(|(own, _)| *own == device)?.1;
        let finds = &mut self.finds;
        let is_elsewhere = of.0 == 0;
        let find = |known| {
            if is_elsewhere {
                return None;
            }
            *finds += 1;
            let is_spared = *finds > FINDS_MAX;
            (!is_spared)
                .then(|| whereabouts::of(descriptors, of, known, limit))
                .flatten()
        };
        match self.bios.saw(bio, of, find) {
            Seen::Nothing => {}
            Seen::Ahead(event) => self.ahead(&event),
            Seen::Unknown(pages) => {
                self.counts.unknown_bytes += pages * PAGE_BYTES;
                let cause = match is_elsewhere {
                    true => Cause::OtherNamespace,
                    false => Cause::NoDescriptor,
                };
                self.causes.add(cause, of.0, pages * PAGE_BYTES);
            }
        }
    }

    /// Answers the questions that came.
    fn answer(&mut self) {
        while let Ok(asked) = self.asked.try_recv() {
            let Some((wish, answer)) = asked.take() else {
                continue;
            };
            if let Wish::Pause(is_paused) = wish {
                self.signals.is_paused = is_paused;
            }
            // One whose client has ended is gone.
            let _ = answer.try_send(self.told());
        }
    }

    /// Waits for events, a signal or the time to pass.
    fn wait(&self, nanos: u64) -> Result<(), Failure> {
        let mut waited: Vec<PollFd<'_>> = self
            .rings
            .readable()
            .chain([self.signals.pipe.as_fd()])
            .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
            .collect();
        let time = Timespec {
            tv_sec: (nanos / TICK) as i64,
            tv_nsec: (nanos % TICK) as i64,
        };
        match poll(&mut waited, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(Failure::Run(format!("waiting for events: {error}"))),
        }
    }

    /// Once a second.
    fn tick(&mut self) {
        self.finds = 0;
        self.causes.tick();
        let now = self.now();
        self.bios.forget(Nanos(now.0.saturating_sub(FORGET)));
        let (steering, mut running) = self.parts();
        steering.tick(now, &mut running);
        self.look_at_disks();
        self.forget_idle_folders();
        self.flush();
    }

    /// Writes the lines of journals that are not written yet.
    fn flush(&mut self) {
        self.steering.flush();
        if let Some(error) = self.steering.journal_error() {
            note_once(&mut self.journal_error, error);
        }
    }

    /// After the steering was told of the second that passed.
    fn look_at_disks(&mut self) {
        let disks = &mut self.steering.disks;
        let seen: u64 = disks.iter_mut().map(Disks::take_seen).sum();
        match self.blind {
            0 if seen > 2 * REQUESTS_MAX => {
                self.blind = BLIND_TICKS;
                self.rings.watch_disks(false);
                disks.iter_mut().for_each(Disks::unseen);
            }
            0 => {}
            1 => {
                self.blind = 0;
                self.rings.watch_disks(true);
            }
            _ => {
                self.blind -= 1;
                disks.iter_mut().for_each(Disks::unseen);
            }
        }
    }

    fn end(mut self) -> Report {
        let put_back = self.put_all_back();
        let accounts = self.accounts();
        self.flush();
        // Before the guardian reads the end of its input: without a record it has nothing to do.
        self.file_systems.clear();
        self.limits.clear();
        self.guardian = None;
        let processor = clock_gettime(ClockId::ProcessCPUTime);
        Report {
            counts: self.counts,
            streams: self.steering.counts,
            small: self.small.counts,
            causes: self.causes.clone(),
            accounts,
            ran: Duration::from_nanos(self.since_start(monotonic()).0),
            processor: Duration::new(processor.tv_sec as u64, processor.tv_nsec as u32),
            put_back,
            journal_error: self.journal_error,
        }
    }

    pub(crate) fn file_system(&self, device: u32) -> Option<usize> {
        self.file_systems
            .iter()
            .position(|of| of.at.device == device)
    }

    /// The limit of a file system, in pages; none if its device is gone.
    pub(crate) fn own_limit(&self, of: &Watched) -> Option<u32> {
        self.limits[of.limit].pages().ok()
    }

    pub(crate) fn guardian_process(&self) -> Option<u32> {
        self.guardian.as_ref().and_then(Guardian::process)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.signals.is_paused
    }

    pub(crate) fn now(&self) -> Nanos {
        monotonic()
    }

    /// The engine's clock begins with the watch.
    pub(crate) fn since_start(&self, time: Nanos) -> Nanos {
        self.steering.since_start(time)
    }
}

/// The control socket and the metrics of a watch that is about to run.
fn seen(asks: Asks, wanted: &Wanted) -> Result<(Option<Control>, Option<Metrics>), Failure> {
    let again = |asks: &Asks| {
        let asks = asks.try_clone();
        asks.map_err(|error| Failure::Run(format!("signals: {error}")))
    };
    let of_metrics = again(&asks)?;
    let page = move || {
        let told = of_metrics.ask(Wish::Told);
        told.as_ref().map(told::metrics)
    };
    let metrics = wanted
        .metrics
        .map(|address| Metrics::start(address, page))
        .transpose()?;
    let control = match (&wanted.control, &wanted.usual_control) {
        (Some(path), _) => Some(Control::start(path, asks)?),
        (None, Some(path)) => Control::start(path, asks)
            .inspect_err(|e| tracing::warn!("`forerun top` will not find this watch: {e}"))
            .ok(),
        (None, None) => None,
    };
    Ok((control, metrics))
}

/// A path by which users name a watch.
fn canonical(path: PathBuf) -> PathBuf {
    std::fs::canonicalize(&path).unwrap_or(path)
}

/// Yama in its strictest mode lets no process take a descriptor of another process, until the next boot.
fn check_yama() -> Result<(), Failure> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    match scope.is_ok_and(|scope| scope.trim() == "3") {
        true => Err(Failure::Usage(
            "kernel.yama.ptrace_scope is 3: no process may take descriptors of another; \
             at most 2 is needed, and it can be lowered at boot alone"
                .into(),
        )),
        false => Ok(()),
    }
}

pub(crate) fn monotonic() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * TICK + now.tv_nsec as u64)
}
