//! `soak`: readers that come, go, stall and die on a mount, and its memory stays flat.
//!
//! A mount that runs for weeks serves programs that never end well: killed in the middle of a read,
//! stopped with a file open, gone before their bytes arrived. The resources of each must be given
//! back. For `--time`, `--readers` processes read files of a mount with an emulated disk; each
//! [`life`] ends in its own way and another begins:
//!
//! ```text
//! make files below FOLDER, mount them
//! each 50 ms: reap readers, kill those whose time has come, start others      crowd
//! each second: resident memory, threads, the engine's ledger                  sample
//! kill all; wait until the ledger is at rest; unmount                         then the verdict
//! ```
//!
//! It fails if memory grew ([`flat`]) or passed its bound, if a reader got an error or a wrong
//! byte, or if the ledger does not come to rest. No bed, no privileges beyond those of a FUSE
//! mount. Called by the command line.

pub mod command;
mod crowd;
mod flat;
pub(crate) mod life;
pub mod plot;
mod sample;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::bed::Files;
use crate::compare::check_rival;
use crate::compare::rival::check_mount;
use crate::failure::{At, Failure};
use crate::fill;
use crate::kernel;
use crate::mounted::{End, Mounted};
use crate::tool;
pub use crowd::Counts;
use crowd::Crowd;
pub use sample::{Ledger, Sample};

/// The folder below FOLDER.
const PLACE: &str = "forerun-bed-soak";
/// A look at a thousand processes costs milliseconds.
const TICK: Duration = Duration::from_millis(50);
const SAMPLE: Duration = Duration::from_secs(1);
/// For so long the ledger may take to come to rest: fetches in flight arrive, the kernel releases
/// files.
const REST_MAX: Duration = Duration::from_secs(30);

/// A soak.
#[derive(Clone, Debug)]
pub struct Soaking {
    /// Folder of its files.
    pub folder: PathBuf,
    /// The binary.
    pub forerun: PathBuf,
    /// Readers at a time.
    pub readers: usize,
    /// Duration.
    pub time: Duration,
    /// Memory limit of the mount.
    pub memory_bytes: u64,
    /// The disk it emulates.
    pub emulate: String,
    /// Number of files.
    pub files: u64,
    /// Size of each.
    pub file_bytes: u64,
    /// Seed of content and lives.
    pub seed: u64,
}

/// A soak, done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Readers at a time.
    pub readers: usize,
    /// Memory limit of the mount.
    pub memory_bytes: u64,
    /// The disk it emulated.
    pub emulate: String,
    /// Seed of content and lives.
    pub seed: u64,
    /// How the readers ended.
    pub counts: Counts,
    /// Growth of resident memory, by the slope of its line.
    pub growth_bytes: i64,
    /// Resident memory at its highest.
    pub resident_max_bytes: u64,
    /// From the last kill until the ledger was at rest.
    pub rest_seconds: f64,
    /// The ledger then.
    pub at_rest: Ledger,
    /// Faults found; none, if it passed.
    pub violations: Vec<String>,
    /// One a second.
    pub samples: Vec<Sample>,
}

/// The folder of the soak; removed when dropped.
struct SoakFolder(PathBuf);

impl SoakFolder {
    fn make(folder: &Path, files: &Files) -> Result<Self, Failure> {
        // Mounts are found by the path that the kernel has of them.
        let path = fs::canonicalize(folder).at(folder)?.join(PLACE);
        kernel::make_place(&path)?;
        let place = Self(path);
        for path in [place.source(), place.point()] {
            fs::create_dir(&path).at(&path)?;
        }
        fill::run(&place.source(), files)?;
        Ok(place)
    }

    fn source(&self) -> PathBuf {
        self.0.join("source")
    }

    fn point(&self) -> PathBuf {
        self.0.join("point")
    }

    fn log(&self) -> PathBuf {
        self.0.join("mount.log")
    }

    fn readers_log(&self) -> PathBuf {
        self.0.join("readers.log")
    }
}

impl Drop for SoakFolder {
    fn drop(&mut self) {
        // A mount that could not be taken off must not be emptied: its folder is removed by name,
        // or stays.
        let _ = fs::remove_dir(self.point());
        let _ = fs::remove_dir_all(self.source());
        let _ = fs::remove_file(self.log());
        let _ = fs::remove_file(self.readers_log());
        let _ = fs::remove_dir(&self.0);
    }
}

/// Soaks. Says on `progress` how it goes, every half minute.
///
/// # Errors
/// The files cannot be made, or the mount does not answer. Violations are in the report.
pub fn run(soaking: &Soaking, progress: &mut dyn Write) -> Result<Report, Failure> {
    check_rival(Some(&soaking.forerun))?;
    check_mount(soaking.memory_bytes)?;
    let files = Files::flat(soaking.files, soaking.file_bytes, soaking.seed);
    let place = SoakFolder::make(&soaking.folder, &files)?;
    let mount = start(soaking, &place)?;
    let soaked = soak(soaking, &place, &files, &mount, progress);
    let stopped = mount.stop();
    let mut report = soaked?;
    if let Err(failure) = stopped {
        report.violations.push(failure.to_string());
    }
    Ok(report)
}

fn start(soaking: &Soaking, place: &SoakFolder) -> Result<Mounted, Failure> {
    let mut command = tool::at_ordinary_io_priority(&soaking.forerun);
    command
        .arg("mount")
        .args([place.source(), place.point()])
        .args(["--memory", &soaking.memory_bytes.to_string()])
        .args(["--emulate", &soaking.emulate])
        .args(["--passthrough", "never", "--foreground"]);
    let name = ("forerun mount", End::Signal);
    Mounted::start_unrecorded(&place.point(), name, command, None, &place.log())
}

fn soak(
    soaking: &Soaking,
    place: &SoakFolder,
    files: &Files,
    mount: &Mounted,
    progress: &mut dyn Write,
) -> Result<Report, Failure> {
    let point = place.point();
    let mut crowd = Crowd::new(&point, files, place.readers_log(), soaking.readers);
    let begun = Instant::now();
    let look = || {
        let seconds = begun.elapsed().as_secs_f64();
        sample::take(&soaking.forerun, &point, mount.process(), seconds)
    };
    let mut samples = Vec::new();
    let mut next_sample = begun;
    while begun.elapsed() < soaking.time {
        let now = Instant::now();
        crowd.tick(now)?;
        if now >= next_sample {
            let sample = look()?;
            if samples.len() % 30 == 0 {
                writeln!(progress, "{}", line(&sample, &crowd.counts)).at(&point)?;
            }
            samples.push(sample);
            next_sample += SAMPLE;
        }
        thread::sleep(TICK);
    }
    crowd.end();
    let (ended, mut last) = (Instant::now(), look()?);
    while !last.ledger.is_at_rest() && ended.elapsed() < REST_MAX {
        thread::sleep(TICK);
        last = look()?;
    }
    let mut violations = flat::violations(&samples, soaking.memory_bytes);
    violations.extend(wrong_end(&crowd, &last.ledger));
    Ok(Report {
        readers: soaking.readers,
        memory_bytes: soaking.memory_bytes,
        emulate: soaking.emulate.clone(),
        seed: soaking.seed,
        counts: crowd.counts.clone(),
        growth_bytes: flat::growth_bytes(&samples),
        resident_max_bytes: samples.iter().map(|s| s.resident_bytes).max().unwrap_or(0),
        rest_seconds: ended.elapsed().as_secs_f64(),
        at_rest: last.ledger,
        violations,
        samples,
    })
}

fn line(sample: &Sample, counts: &Counts) -> String {
    format!(
        "{:.0} s: {} MiB resident, {} files open; readers: {} exited, {} killed, {} failed",
        sample.seconds,
        sample.resident_bytes >> 20,
        sample.ledger.open_files,
        counts.exited,
        counts.killed,
        counts.failed
    )
}

fn wrong_end(crowd: &Crowd<'_>, ledger: &Ledger) -> Vec<String> {
    let (mut wrong, counts) = (Vec::new(), &crowd.counts);
    if counts.failed > 0 {
        let complaints = crowd.complaints().join("; ");
        wrong.push(format!("{} readers failed: {complaints}", counts.failed));
    }
    if counts.exited == 0 {
        wrong.push("no reader came to its end".into());
    }
    if !ledger.is_at_rest() {
        wrong.push(format!("the ledger is not at rest: {ledger:?}"));
    }
    wrong
}
