//! `table`: the whole comparison of readers on a bed, by one command.
//!
//! Called by the command line. The candidates of a [comparison](crate::compare) are the kernel with each scheduler and
//! readahead, that with `forerun watch` beside it, and `forerun mount` with each preset. All read with the same program:
//! this binary again, as a process, because a memory group holds processes. Its prefetcher is in the group too: the
//! kernel's pages are charged to the reader, and `forerun` is a member. The disks' own counters before and after give
//! the requests that reached them.
//!
//! It judges nothing; the limits stand where they are asked for.

mod print;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::bed::Bed;
use crate::compare::side::{How, Side};
use crate::compare::{self, Bench, Candidate, Compared, Figures, Load};
use crate::failure::{At, Failure};
use crate::read::Readings;
use crate::status::{self, DiskWork};
use crate::{kernel, memory_group, needs, tool};

/// A comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Numbers of readers, memory and time.
    pub compared: Compared,
    /// The kernel's readahead.
    pub read_ahead_kib: Vec<u64>,
    /// The kernel's schedulers.
    pub schedulers: Vec<String>,
    /// Presets of forerun.
    pub presets: Vec<String>,
    /// Whether each is a candidate without the profile of the disks, too.
    pub without_profile: bool,
    /// Ways of `forerun watch`, each a candidate.
    pub watch: Vec<How>,
    /// Size of one read.
    pub read_bytes: usize,
}

/// One candidate at one number of readers; medians of the runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Number of readers.
    pub readers: usize,
    /// Of all together.
    pub mb_per_second: f64,
    /// Each run, in order.
    pub runs_mb_per_second: Vec<f64>,
    /// The figures of every comparison.
    #[serde(flatten)]
    pub figures: Figures,
    /// Share of a processor that `forerun` took; none for the kernel.
    pub processor: Option<f64>,
}

/// The comparison, done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// The measured bed.
    pub bed: Bed,
    /// Memory of either candidate.
    pub memory_bytes: u64,
    /// Whether a memory group held both candidates to it.
    pub is_memory_limited: bool,
    /// Size of one read.
    pub read_bytes: usize,
    /// Time of one run.
    pub run_seconds: f64,
    /// By readers, then by candidate.
    pub rows: Vec<Row>,
}

/// Makes the bed, measures, undoes the bed. Names each step on `progress`.
///
/// # Errors
/// Candidates that the bed or this machine has nothing for; the bed's, a candidate's: nothing is shown then, and the
/// bed is undone.
pub fn run(
    bed: &Bed,
    folder: &Path,
    comparison: &Comparison,
    progress: &mut dyn Write,
) -> Result<Table, Failure> {
    let (compared, sides) = (&comparison.compared, sides(comparison));
    check_files(bed, &compared.numbers)?;
    needs::check(bed)?;
    let mut load = Reading(comparison);
    let (each, offered) = (load.bytes_of_each(), kernel::all_schedulers());
    compare::check(bed, compared, &sides, each, &offered)?;
    let candidates = compare::run(bed, folder, compared, &sides, &mut load, progress)?;
    Ok(Table {
        bed: bed.clone(),
        memory_bytes: compared.memory_bytes,
        is_memory_limited: memory_group::controller().is_some(),
        read_bytes: comparison.read_bytes,
        run_seconds: compared.time.as_secs_f64(),
        rows: candidates.iter().map(row).collect(),
    })
}

/// Each reader reads a file of its own, in the root.
fn check_files(bed: &Bed, readers: &[usize]) -> Result<(), Failure> {
    let most = readers.iter().copied().max().unwrap_or(0);
    let (count, folders) = (bed.files.count, bed.files.folders);
    let refused = if most as u64 > count {
        format!("--readers {most}: the bed has a file each for 1 to {count} readers")
    } else if folders > 0 {
        format!("files.folders {folders}: readers want their files in the root, with folders = 0")
    } else {
        return Ok(());
    };
    Err(Failure::Usage(refused))
}

/// The kernel at each setting, then beside a watch, then mounts with each preset.
fn sides(comparison: &Comparison) -> Vec<Side> {
    let kernel = comparison.schedulers.iter().flat_map(|scheduler| {
        let kernel = |kib: &u64| Side::Kernel {
            scheduler: scheduler.clone(),
            read_ahead_kib: *kib,
        };
        comparison.read_ahead_kib.iter().map(kernel)
    });
    let forerun = comparison.compared.forerun.iter();
    let presets = forerun.flat_map(|_| &comparison.presets);
    let told = [true, false]
        .into_iter()
        .take(1 + usize::from(comparison.without_profile));
    let forerun = presets.flat_map(|preset| {
        told.clone().map(|is_told| Side::Forerun {
            preset: preset.clone(),
            is_told,
        })
    });
    let watch = comparison.watch.iter().map(|how| Side::Watch(*how));
    kernel.chain(watch).chain(forerun).collect()
}

fn row(candidate: &Candidate<Readings>) -> Row {
    Row {
        readers: candidate.number,
        mb_per_second: candidate.rate(),
        runs_mb_per_second: candidate.rates.clone(),
        figures: candidate.figures(|readings| readings.slowest_per_mean),
        processor: candidate.processor(|readings| readings.seconds),
    }
}

/// The reading program.
struct Reading<'a>(&'a Comparison);

impl Load for Reading<'_> {
    type Answer = Readings;

    const MANY: &'static str = "readers";

    fn bytes_of_each(&self) -> usize {
        self.0.read_bytes
    }

    fn run(
        &self,
        bench: &Bench<'_>,
        group: Option<&Path>,
        folder: &Path,
        readers: usize,
    ) -> Result<(Readings, Option<DiskWork>), Failure> {
        let program = std::env::current_exe().at(folder)?;
        let mut command = tool::at_ordinary_io_priority(&program);
        command
            .arg("read")
            .arg(folder)
            .args(["--readers", &readers.to_string()])
            .args(["--read-bytes", &format!("{}B", self.0.read_bytes)])
            .args(["--time", &format!("{}ns", bench.compared.time.as_nanos())])
            .args(["--seed", &bench.bed.files.seed.to_string()])
            .stdin(Stdio::null());
        if let Some(group) = group {
            command.arg("--memory-group").arg(group);
        }
        status::counted(bench.place, || readings(command))
    }

    fn rate(readings: &Readings) -> f64 {
        readings.mb_per_second
    }

    fn words(readings: &Readings) -> String {
        format!("{:.1} MB/s", readings.mb_per_second)
    }
}

fn readings(mut command: Command) -> Result<Readings, Failure> {
    let output = command.output();
    let output = output.map_err(|e| Failure::Run(format!("the reading program: {e}")))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let status = output.status;
        let text = format!("the reading program: {status}: {}", complaint.trim_end());
        return Err(Failure::Run(text));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|e| Failure::Run(format!("the reading program said something else: {e}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bed;

    fn comparison() -> Comparison {
        Comparison {
            compared: Compared {
                numbers: vec![10],
                forerun: Some("forerun".into()),
                memory_bytes: 1,
                time: Duration::from_secs(1),
                runs: 3,
            },
            read_ahead_kib: vec![128, 1024],
            schedulers: vec!["none".into(), "bfq".into()],
            presets: vec!["forerun".into()],
            without_profile: false,
            watch: Vec::new(),
            read_bytes: 1,
        }
    }

    #[test]
    fn every_setting_is_a_side_and_forerun_only_if_given() {
        let mut comparison = comparison();
        let names = |comparison: &Comparison| -> Vec<String> {
            sides(comparison).iter().map(Side::to_string).collect()
        };
        let kernel = [
            "kernel none 128",
            "kernel none 1024",
            "kernel bfq 128",
            "kernel bfq 1024",
        ];
        assert_eq!(names(&comparison)[..4], kernel);
        assert_eq!(names(&comparison)[4..], ["forerun forerun"]);
        comparison.without_profile = true;
        let both = ["forerun forerun", "forerun forerun, not told"];
        assert_eq!(names(&comparison)[4..], both);
        comparison.without_profile = false;
        comparison.watch = vec![How::Readahead, How::Auto];
        let with_watch = ["watch readahead", "watch auto", "forerun forerun"];
        assert_eq!(names(&comparison)[4..], with_watch);
        comparison.watch = Vec::new();
        comparison.compared.forerun = None;
        assert_eq!(names(&comparison), kernel);
    }

    #[test]
    fn more_readers_than_files_and_files_in_folders_are_refused() {
        let mut bed = bed::parse(include_str!("../beds/disk.toml")).unwrap();
        assert!(check_files(&bed, &[1, 64, 2]).is_ok());
        let said = check_files(&bed, &[1, 65, 2]).unwrap_err().to_string();
        assert!(
            said.contains("--readers 65") && said.contains("1 to 64"),
            "{said}"
        );
        bed.files.folders = 3;
        let said = check_files(&bed, &[1]).unwrap_err().to_string();
        assert!(
            said.contains("files.folders 3") && said.contains("folders = 0"),
            "{said}"
        );
    }
}
