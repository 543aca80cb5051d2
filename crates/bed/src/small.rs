//! `small`: times of programs over many small files, by one command.
//!
//! Called by `main`. For each number of files it makes the bed, measures, and undoes the bed, also
//! after a failure. Files of 1 MiB and more are read in [parts](part). All candidates run in turns, so that a slow minute of the machine falls on all
//! of them, and each run begins with another:
//!
//! ```text
//! for each run: for each program: for each candidate:
//!     unmount and mount the file system; start the candidate on it
//!     run the program                                               cold
//!     wait until attributes have expired; run it again              warm
//! ```
//!
//! Candidates: the file system itself, [`passthrough`](crate::passthrough) on it, `forerun mount`,
//! and that with `--unchanging`; or the file system itself beside `forerun watch` (`--watch`). On an emulated disk the passes are cold only, and the programs
//! those whose order of reading differs: a pass takes minutes there. The table shows the median
//! over the runs; ratios are of medians, to the source and to the passthrough. Of an emulated disk
//! the bytes and switches of each run are counted, too.
//!
//! It judges nothing; the limits stand where they are asked for.

mod part;
mod print;
mod program;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use crate::bed::Bed;
use crate::clock::Priority;
use crate::compare::rival::check_mount;
use crate::compare::{check_rival, median};
use crate::failure::{At, Failure};
use crate::mounted::{End, Mounted};
use crate::plan::BedPaths;
use crate::state::{self, State};
use crate::status::{self, DiskWork};
use crate::watched::Watched;
use crate::{clock, cold, down, needs, profile, tool, up};
use program::Program;

/// Attributes and names are good for a second, on all candidates that are mounted.
const EXPIRED: Duration = Duration::from_millis(1_200);

/// A comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Numbers of files; none: the bed's.
    pub files: Vec<u64>,
    /// The binary, if it is compared.
    pub forerun: Option<PathBuf>,
    /// Whether it watches the file system, in place of mounts.
    pub watches: bool,
    /// Its memory.
    pub memory_bytes: u64,
    /// Runs of each.
    pub runs: u16,
}

/// Which file system the programs read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The bed's own.
    Source,
    /// `forerun-bed passthrough` on it.
    Passthrough,
    /// `forerun mount` on it.
    Forerun,
    /// The same with `--unchanging`.
    Unchanging,
    /// The bed's own, beside `forerun watch`.
    Watch,
}

/// Which pass over the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// The first, with nothing cached.
    Cold,
    /// One after another, with expired attributes.
    Warm,
}

/// One program on one candidate.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Number of files.
    pub files: u64,
    /// Which program.
    pub program: Program,
    /// Which pass.
    pub pass: Pass,
    /// Which candidate.
    pub side: Side,
    /// The median of the runs; of `open`, of one file.
    pub seconds: f64,
    /// Each run, in order.
    pub runs_seconds: Vec<f64>,
    /// To the source.
    pub to_source: f64,
    /// To the passthrough.
    pub to_passthrough: f64,
    /// Medians of the runs; none on a local disk.
    pub disk: Option<DiskWork>,
}

/// The comparison, done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SmallTable {
    /// The measured bed; the numbers of files are those of the rows.
    pub bed: Bed,
    /// The memory of `forerun mount`.
    pub memory_bytes: u64,
    /// By files, program and pass, then by candidate.
    pub rows: Vec<Row>,
}

/// Makes the beds, measures, undoes the beds. Names each step on `progress`.
///
/// # Errors
/// A bed's, a candidate's; nothing is shown then, and the bed is undone.
pub fn run(
    bed: &Bed,
    folder: &Path,
    comparison: &Comparison,
    progress: &mut dyn Write,
) -> Result<SmallTable, Failure> {
    check_rival(comparison.forerun.as_deref())?;
    if comparison.forerun.is_some() && !comparison.watches {
        check_mount(comparison.memory_bytes)?;
    }
    let counts = match comparison.files.as_slice() {
        [] => vec![bed.files.count],
        counts => counts.to_vec(),
    };
    let beds: Vec<Bed> = counts
        .iter()
        .map(|count| bed.with_files(*count))
        .collect::<Result<_, _>>()?;
    needs::check_small(bed)?;
    let mut rows = Vec::new();
    for bed in &beds {
        let state = up::run(bed, folder, progress)?;
        // As `table` does: an emulated disk is punctual, and its readers must be too. Those of a
        // local disk wait for the kernel's own threads, which have ordinary priority.
        if !bed.disks.is_local() {
            clock::be_punctual(Priority::Measured);
        }
        let mut bench = Bench {
            bed,
            place: BedPaths::of(state.folder(), &bed.disks)?,
            state,
            comparison,
            measured: Vec::new(),
        };
        let measured = bench.measure(progress);
        let undone = down::undo(bench.state);
        measured?;
        undone?;
        rows.extend(of_one_bed(bed.files.count, &bench.measured));
    }
    Ok(SmallTable {
        bed: bed.clone(),
        memory_bytes: comparison.memory_bytes,
        rows,
    })
}

/// Which time this is: medians are over equal ones.
type Key = (Program, Pass, Side);

/// The seconds of a run, and the work of emulated disks.
type Measured = (f64, Option<DiskWork>);

struct Bench<'a> {
    bed: &'a Bed,
    place: BedPaths,
    state: State,
    comparison: &'a Comparison,
    measured: Vec<(Key, Measured)>,
}

impl Bench<'_> {
    fn measure(&mut self, progress: &mut dyn Write) -> Result<(), Failure> {
        let mut sides = match (self.comparison.watches, &self.comparison.forerun) {
            (true, _) => vec![Side::Source, Side::Watch],
            (_, None) => vec![Side::Source, Side::Passthrough],
            _ => vec![
                Side::Source,
                Side::Passthrough,
                Side::Forerun,
                Side::Unchanging,
            ],
        };
        let programs: &[Program] = match self.bed.disks.is_local() {
            _ if self.bed.files.file_bytes >= part::FROM_BYTES => Program::PARTS,
            true => &[Program::Tar, Program::Grep, Program::Find, Program::Random],
            false if self.comparison.watches => &[Program::Tar, Program::Grep, Program::Random],
            false => &[Program::Tar, Program::Random],
        };
        for run in 1..=self.comparison.runs {
            for program in programs {
                for side in &sides {
                    let from = self.measured.len();
                    self.run_one(*program, *side)?;
                    for ((program, pass, side), (seconds, _)) in &self.measured[from..] {
                        let text = format!("run {run}: {program} {pass} {side}: {seconds:.6} s");
                        writeln!(progress, "{text}").at(&self.place.files)?;
                    }
                }
            }
            sides.rotate_left(1);
        }
        Ok(())
    }

    /// One program on one candidate, cold and, on a local disk, warm.
    fn run_one(&mut self, program: Program, side: Side) -> Result<(), Failure> {
        cold::again(self.bed, &self.place, &self.bed.queue)?;
        let running = self.start(side)?;
        let folder = match side {
            Side::Source | Side::Watch => self.place.files.clone(),
            _ => self.place.rival.clone(),
        };
        let passed = self.passes(program, side, &folder);
        let stopped = running.map_or(Ok(()), Running::stop);
        passed?;
        stopped
    }

    fn passes(&mut self, program: Program, side: Side, folder: &Path) -> Result<(), Failure> {
        let files = &self.bed.files;
        let (seconds, work) = status::counted(&self.place, || program.run(folder, files))?;
        let cold = (program, Pass::Cold, side);
        self.measured.push((cold, (seconds, work)));
        if !self.bed.disks.is_local() {
            return Ok(());
        }
        std::thread::sleep(EXPIRED);
        let seconds = program.run(folder, files)?;
        let warm = (program, Pass::Warm, side);
        self.measured.push((warm, (seconds, None)));
        if program == Program::Random {
            let open = Program::Open;
            let seconds = open.run(folder, files)?;
            let warm = (open, Pass::Warm, side);
            self.measured.push((warm, (seconds, None)));
        }
        Ok(())
    }

    /// Starts the program of a candidate, if it has one.
    fn start(&mut self, side: Side) -> Result<Option<Running>, Failure> {
        let (source, path) = (&self.place.files, &self.place.rival);
        let (name, command) = match (side, &self.comparison.forerun) {
            (Side::Passthrough, _) => {
                let program = std::env::current_exe().at(path)?;
                let mut command = tool::at_ordinary_io_priority(&program);
                command.arg("passthrough").args([source, path]);
                (("forerun-bed passthrough", End::Unmount), command)
            }
            (Side::Forerun | Side::Unchanging, Some(program)) => {
                let mut command = self.forerun(program)?;
                if side == Side::Unchanging {
                    command.arg("--unchanging");
                }
                (("forerun mount", End::Signal), command)
            }
            (Side::Watch, Some(program)) => {
                let watched = Watched::start(program, &[], source, None)?;
                return Ok(Some(Running::Watch(watched)));
            }
            _ => return Ok(None),
        };
        let mounted = Mounted::start(&mut self.state, path, name, command, None)?;
        Ok(Some(Running::Mounted(mounted)))
    }

    fn forerun(&self, program: &Path) -> Result<Command, Failure> {
        let mut command = tool::at_ordinary_io_priority(program);
        command
            .arg("mount")
            .args([&self.place.files, &self.place.rival])
            .args(["--memory", &self.comparison.memory_bytes.to_string()])
            .arg("--foreground");
        if let Some(text) = profile::text(self.bed)? {
            let path = self.state.folder().join(state::PROFILE);
            fs::write(&path, text).at(&path)?;
            command.arg("--profile").arg(&path);
        }
        Ok(command)
    }
}

/// The program of a candidate.
enum Running {
    Mounted(Mounted),
    Watch(Watched),
}

impl Running {
    fn stop(self) -> Result<(), Failure> {
        match self {
            Self::Mounted(mounted) => mounted.stop(),
            Self::Watch(watched) => watched.stop(),
        }
    }
}

fn median_work(runs: &[DiskWork]) -> Option<DiskWork> {
    let of = |part: fn(&DiskWork) -> f64| median(runs.iter().map(part));
    (!runs.is_empty()).then(|| DiskWork {
        requests: of(|run| run.requests),
        switches: of(|run| run.switches),
        bytes: of(|run| run.bytes),
        busy_seconds: of(|run| run.busy_seconds),
        late_ns: of(|run| run.late_ns),
    })
}

/// The rows of one number of files; `measured` in the order of the runs.
fn of_one_bed(files: u64, measured: &[(Key, Measured)]) -> Vec<Row> {
    let measured_of = |wanted: Key| {
        let runs = measured.iter().filter(move |(key, _)| *key == wanted);
        runs.map(|(_, measured)| *measured)
    };
    let of = |wanted: Key| measured_of(wanted).map(|(seconds, _)| seconds);
    let sides = [
        Side::Source,
        Side::Passthrough,
        Side::Forerun,
        Side::Unchanging,
        Side::Watch,
    ];
    let passes = Program::ALL
        .iter()
        .flat_map(|program| [(*program, Pass::Cold), (*program, Pass::Warm)]);
    let keys = passes.flat_map(|(program, pass)| sides.map(|side| (program, pass, side)));
    let row = |(program, pass, side): Key| {
        let runs: Vec<f64> = of((program, pass, side)).collect();
        let seconds = median(runs.iter().copied());
        (!runs.is_empty()).then(|| Row {
            files,
            program,
            pass,
            side,
            seconds,
            runs_seconds: runs,
            to_source: seconds / median(of((program, pass, Side::Source))),
            to_passthrough: seconds / median(of((program, pass, Side::Passthrough))),
            disk: {
                let runs = measured_of((program, pass, side));
                median_work(&runs.filter_map(|(_, work)| work).collect::<Vec<_>>())
            },
        })
    };
    keys.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_medians_over_the_runs_of_the_same_pass() {
        let of = |pass, side, seconds, switches: Option<f64>| {
            let work = switches.map(|switches| DiskWork {
                requests: 2.0 * switches,
                switches,
                bytes: 1e6,
                busy_seconds: 1.0,
                late_ns: 0.0,
            });
            ((Program::Tar, pass, side), (seconds, work))
        };
        let measured = [
            of(Pass::Cold, Side::Source, 2.0, None),
            of(Pass::Cold, Side::Passthrough, 8.0, None),
            of(Pass::Cold, Side::Forerun, 3.0, Some(5.0)),
            of(Pass::Warm, Side::Forerun, 9.0, None),
            of(Pass::Cold, Side::Source, 1.0, None),
            of(Pass::Cold, Side::Passthrough, 4.0, None),
            of(Pass::Cold, Side::Forerun, 99.0, Some(9.0)),
            of(Pass::Cold, Side::Source, 90.0, None),
            of(Pass::Cold, Side::Passthrough, 4.0, None),
            of(Pass::Cold, Side::Forerun, 1.0, Some(7.0)),
        ];
        let rows = of_one_bed(7, &measured);
        assert_eq!(rows.len(), 4);
        let forerun = rows.iter().find(|row| row.side == Side::Forerun).unwrap();
        assert_eq!((forerun.seconds, forerun.files), (3.0, 7));
        assert_eq!((forerun.to_source, forerun.to_passthrough), (1.5, 0.75));
        assert_eq!(forerun.runs_seconds, [3.0, 99.0, 1.0]);
        let disk = forerun.disk.unwrap();
        assert_eq!((disk.switches, disk.requests), (7.0, 14.0));
        assert_eq!((rows[3].pass, rows[3].disk), (Pass::Warm, None));
    }
}
