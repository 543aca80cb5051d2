//! `changes`: readers of a mount beside writers of its source, every read checked.
//!
//! Called by `main`. Writers change files below SOURCE while readers open and read them whole below
//! MOUNTPOINT. A [`history`] holds the versions a file may have had between two moments; a read
//! is right if all its bytes, and its end, are those of one version from between its open
//! and its end. SOURCE itself, read without a mount, passes:
//!
//! ```text
//! writer   [ history: version 7 begins ]  pwrite  [ history: it is done, version 6 has ended ]
//! reader   time a -> open -> time b -> read -> time c   [ history: versions from a to c ]
//! ```
//!
//! A change in place that overlaps a read call may tear it, on any file system: such a call is held
//! to bytes of the versions there were, and counted apart (`reads_overlapping`). Half of the
//! readers are another user: an open that succeeds though the file was closed to them throughout is
//! a violation, and so is one that is refused though it was open to them for seconds, and a call
//! that does not return within a minute of the end.
//!
//! The files are in a folder of their own below SOURCE, which is removed at the end.

mod history;
mod judge;
mod reader;
mod writer;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use serde::Serialize;

use crate::failure::{At, Failure};
use crate::joined::joined;
use history::{Clock, History};

/// The folder below SOURCE and MOUNTPOINT.
const FOLDER: &str = "forerun-bed-changes";
/// Each file has one writer, so changes of one file do not overlap.
const WRITERS: u64 = 4;
/// Some of a writer's files change every few milliseconds; the others every tenth of a second, so
/// that their cached bytes are used.
const FILES_PER_WRITER: u64 = 12;
/// Examples of each kind of violation.
const EXAMPLES_MAX: usize = 3;
/// Time limit of a read after the end: a machine that stands still takes less.
const HANGS: Duration = Duration::from_secs(60);
/// Interval of the checks for readers that hang.
const LOOK: Duration = Duration::from_millis(10);
/// The user ID `nobody`, which owns nothing here.
const OTHER_USER: u32 = 65_534;

/// A run: its folders, time, readers and seed.
#[derive(Clone, Debug)]
pub struct Changing {
    /// Folder in which files are changed.
    pub source: PathBuf,
    /// Folder in which they are read.
    pub mountpoint: PathBuf,
    /// Duration.
    pub time: Duration,
    /// Number of readers.
    pub readers: usize,
    /// Decides the changes and the files read; the threads decide the order.
    pub seed: u64,
}

/// Counts over all readers.
#[derive(Clone, Default, Debug, Serialize)]
pub struct Counts {
    /// Files opened.
    pub opens: u64,
    /// Opens refused to the other user, rightly.
    pub opens_refused: u64,
    /// Opens of a file that was away just then.
    pub opens_absent: u64,
    /// Calls of read that succeeded.
    pub reads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Calls during which the file was changed in place: each byte of some version.
    pub reads_overlapping: u64,
    /// Opens and reads so slow that the versions of their time were forgotten.
    pub unchecked: u64,
    /// Errors by kind, with the expected ones.
    pub errors: BTreeMap<String, u64>,
    /// Violations by kind.
    pub violations: BTreeMap<String, u64>,
    /// Some violations of each kind in words.
    pub examples: BTreeMap<String, Vec<String>>,
    #[serde(skip)]
    seen: HashSet<(u64, u32)>,
}

/// A run, done.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The argument.
    pub seed: u64,
    /// The argument.
    pub seconds: f64,
    /// The argument; half are another user.
    pub readers: usize,
    /// Files that changed.
    pub files: u64,
    /// Changes by kind.
    pub changes: BTreeMap<String, u64>,
    /// Contents written.
    pub contents_written: u64,
    /// Contents of which a read was seen.
    pub contents_seen: u64,
    /// All readers together.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Report {
    /// Number of violations.
    #[must_use]
    pub fn violations(&self) -> u64 {
        self.counts.violations.values().sum()
    }
}

/// SharedCheck by all threads.
struct SharedCheck {
    changing: Changing,
    histories: Vec<History>,
    clock: Clock,
    is_over: AtomicBool,
}

impl SharedCheck {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed) && self.clock.elapsed() < self.changing.time
    }

    fn source(&self, file: u64) -> PathBuf {
        path(&self.changing.source, file)
    }

    fn mounted(&self, file: u64) -> PathBuf {
        path(&self.changing.mountpoint, file)
    }
}

fn path(root: &Path, file: u64) -> PathBuf {
    root.join(FOLDER).join(format!("{file:02}"))
}

/// Runs writers and readers, and counts.
///
/// # Errors
/// SOURCE cannot be written, MOUNTPOINT is not a mount of it or closed to other users. Violations
/// are no error here.
pub fn run(changing: &Changing) -> Result<Report, Failure> {
    if !rustix::process::geteuid().is_root() {
        let why = "not root: readers of another user need it";
        return Err(Failure::Missing(vec![why.into()]));
    }
    // A new file has the rights it is created with.
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let folder = changing.source.join(FOLDER);
    fs::create_dir(&folder).at(&folder)?;
    let report = run_in(changing, &folder);
    let removed = fs::remove_dir_all(&folder).at(&folder);
    let report = report?;
    removed.map(|()| report)
}

fn run_in(changing: &Changing, folder: &Path) -> Result<Report, Failure> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).at(folder)?;
    let files = WRITERS * FILES_PER_WRITER;
    let mut shared = SharedCheck {
        changing: changing.clone(),
        histories: Vec::new(),
        clock: Clock::start(),
        is_over: AtomicBool::new(false),
    };
    for file in 0..files {
        let path = shared.source(file);
        let history = writer::create(&shared.clock, changing.seed, file, &path).at(&path)?;
        shared.histories.push(history);
    }
    check_mount(&shared)?;
    shared.clock = shared.clock.again();
    let shared = Arc::new(shared);
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| start(&shared, move |shared| writer::run(shared, number)))
        .collect();
    let readers: Vec<_> = (0..changing.readers)
        .map(|number| start(&shared, move |shared| reader::run(shared, number)))
        .collect();
    let mut changes = BTreeMap::new();
    for thread in writers {
        add(&mut changes, joined(thread.join())?);
    }
    let mut counts = Counts::default();
    let ended = Instant::now();
    for (number, thread) in readers.into_iter().enumerate() {
        // A call that never returns is found, not waited for: the process ends without it.
        while !thread.is_finished() && ended.elapsed() < HANGS {
            thread::sleep(LOOK);
        }
        match thread.is_finished() {
            true => counts.add(joined(thread.join())?),
            false => counts.violation("hung", format!("reader {number} is still in a call")),
        }
    }
    Ok(Report {
        seed: changing.seed,
        seconds: changing.time.as_secs_f64(),
        readers: changing.readers,
        files,
        changes,
        contents_written: shared.histories.iter().map(History::contents).sum(),
        contents_seen: counts.seen.len() as u64,
        counts,
    })
}

fn start<T: Send + 'static>(
    shared: &Arc<SharedCheck>,
    run: impl FnOnce(&SharedCheck) -> Result<T, Failure> + Send + 'static,
) -> JoinHandle<Result<T, Failure>> {
    let shared = shared.clone();
    thread::spawn(move || {
        let result = run(&shared);
        // A thread that fails ends all of them.
        if result.is_err() {
            shared.is_over.store(true, Ordering::Relaxed);
        }
        result
    })
}

/// Whether the mount shows the files, to the other user too.
fn check_mount(shared: &SharedCheck) -> Result<(), Failure> {
    let path = shared.mounted(0);
    if let Err(error) = File::open(&path) {
        let text = format!(
            "{}: MOUNTPOINT does not show SOURCE: {error}",
            path.display()
        );
        return Err(Failure::Usage(text));
    }
    let other = path.clone();
    let opened = thread::spawn(move || {
        reader::become_other_user()?;
        let unusable = |error| {
            let why = "closed to other users (mount with --allow-other)";
            Failure::Usage(format!("{}: {why}: {error}", other.display()))
        };
        File::open(&other).map(|_| ()).map_err(unusable)
    });
    joined(opened.join())
}

fn add(sum: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
    for (kind, count) in more {
        *sum.entry(kind).or_default() += count;
    }
}

impl Counts {
    fn violation(&mut self, kind: &str, example: String) {
        *self.violations.entry(kind.into()).or_default() += 1;
        let examples = self.examples.entry(kind.into()).or_default();
        examples.push(example);
        examples.truncate(EXAMPLES_MAX);
    }

    fn add(&mut self, other: Self) {
        self.opens += other.opens;
        self.opens_refused += other.opens_refused;
        self.opens_absent += other.opens_absent;
        self.reads += other.reads;
        self.bytes += other.bytes;
        self.reads_overlapping += other.reads_overlapping;
        self.unchecked += other.unchecked;
        add(&mut self.errors, other.errors);
        add(&mut self.violations, other.violations);
        for (kind, more) in other.examples {
            let examples = self.examples.entry(kind).or_default();
            examples.extend(more);
            examples.truncate(EXAMPLES_MAX);
        }
        self.seen.extend(other.seen);
    }
}
