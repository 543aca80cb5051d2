//! The harness of a comparison: candidates on one bed, measured in turn.
//!
//! Called by [`table`](crate::table) and [`servers`](crate::servers), which bring the [`Load`]. Makes the bed, runs every
//! candidate for every number of readers or clients, alternately, so that a slow minute of the machine falls on all of
//! them, and undoes the bed, also after a failure:
//!
//! ```text
//! for each run: for each number: for each candidate:
//!     unmount and mount the file system, set it     (cold)
//!     in a new memory group: [start forerun mount or watch on it], the load
//! ```
//!
//! A candidate is the kernel with one scheduler and readahead, that with `forerun watch` beside it, or `forerun mount`
//! with one preset. All have the same memory and the same real-time priority. Figures are medians over the runs; ratios
//! are of medians: to the first kernel setting listed, and to the kernel's best.
//!
//! A bed takes half a minute, and a table is shown as a whole: [`check`] refuses bad input before.

pub(crate) mod print;
pub(crate) mod rival;
pub(crate) mod side;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::bed::Bed;
use crate::clock::{self, Priority};
use crate::failure::{At, Failure};
use crate::memory_group::{self, Controller};
use crate::plan::BedPaths;
use crate::state::State;
use crate::status::DiskWork;
use crate::thing::Thing;
use crate::{cold, down, up};
use rival::Rival;
use side::Side;

/// The numbers of a comparison, and the means that all candidates have alike.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Numbers of readers, or of clients.
    pub numbers: Vec<usize>,
    /// The binary of forerun, if it is compared.
    pub forerun: Option<PathBuf>,
    /// Memory of each candidate.
    pub memory_bytes: u64,
    /// Time of one run.
    pub time: Duration,
    /// Runs of each.
    pub runs: u16,
}

/// The load that candidates are put under: readers, or a server with its clients.
pub(crate) trait Load {
    /// The outcome of one run.
    type Answer;

    /// Readers or clients.
    const MANY: &'static str;

    /// Memory of one of them beside the page cache.
    fn bytes_of_each(&self) -> usize;

    /// Brings its files onto a bed that is up; those of the bed are there.
    fn prepare(&mut self, _: &Bench<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// One run on this folder, in a memory group, and the work of the disks meanwhile.
    fn run(
        &self,
        bench: &Bench<'_>,
        group: Option<&Path>,
        folder: &Path,
        number: usize,
    ) -> Result<(Self::Answer, Option<DiskWork>), Failure>;

    /// The rate by which candidates are compared.
    fn rate(answer: &Self::Answer) -> f64;

    /// An outcome in words.
    fn words(answer: &Self::Answer) -> String;
}

/// A bed that is up, and the comparison on it.
pub(crate) struct Bench<'a> {
    pub(crate) bed: &'a Bed,
    pub(crate) place: &'a BedPaths,
    pub(crate) state: &'a mut State,
    pub(crate) compared: &'a Compared,
    /// None where this machine has no memory groups.
    controller: Option<Controller>,
}

/// The figures of one run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Measured<Answer> {
    answer: Answer,
    disk: Option<DiskWork>,
    resident_max_bytes: Option<u64>,
    processor_seconds: Option<f64>,
}

/// One candidate at one number of readers or clients.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Candidate<Answer> {
    pub(crate) number: usize,
    pub(crate) rates: Vec<f64>,
    side: String,
    to_default: f64,
    to_best: f64,
    runs: Vec<Measured<Answer>>,
}

/// The figures that rows of every comparison have.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// `kernel none 128` or `forerun mount`.
    pub side: String,
    /// The slowest over the mean, median of the runs.
    pub slowest_per_mean: f64,
    /// To the first kernel setting.
    pub to_default: f64,
    /// To the kernel's best at this number.
    pub to_best: f64,
    /// Share of the disks' requests that did not continue the one before; none of local disks, which count nothing.
    pub switches_per_request: Option<f64>,
    /// Mean size of the disks' requests.
    pub request_bytes: Option<f64>,
    /// How late the disks were on average: the error of the measurement.
    pub late_ns: Option<f64>,
    /// Resident memory of forerun at its highest, over all runs; none for the kernel.
    pub resident_max_bytes: Option<u64>,
}

/// Refuses a program that is not there.
pub(crate) fn check_rival(program: Option<&Path>) -> Result<(), Failure> {
    match program {
        Some(path) if !path.is_file() => {
            let text = format!("--forerun {}: no such program", path.display());
            Err(Failure::Usage(text))
        }
        _ => Ok(()),
    }
}

/// Refuses candidates that would fail on the bed, by the schedulers of this kernel; none where it does not tell them.
pub(crate) fn check(
    bed: &Bed,
    compared: &Compared,
    sides: &[Side],
    bytes_of_each: usize,
    offered: &[String],
) -> Result<(), Failure> {
    check_rival(compared.forerun.as_deref())?;
    let list = offered.join(", ");
    let queues = sides.iter().map(|side| side.queue(bed));
    let absent = |name: &String| !offered.is_empty() && !offered.contains(name);
    if let Some(name) = queues.map(|queue| queue.scheduler).find(absent) {
        let text = format!("scheduler `{name}`: this kernel has {list}");
        return Err(Failure::Usage(text));
    }
    if !sides.iter().any(|side| matches!(side, Side::Kernel { .. })) {
        let text = format!("--schedulers: give one that this kernel has: {list}");
        return Err(Failure::Usage(text));
    }
    let most = compared.numbers.iter().copied().max().unwrap_or(0);
    let presets = sides.iter().filter_map(|side| match side {
        Side::Forerun { preset, .. } => Some(preset),
        _ => None,
    });
    for preset in presets {
        rival::check_memory(compared.memory_bytes, bytes_of_each, most)?;
        rival::check_preset(compared.forerun.as_deref(), preset)?;
    }
    Ok(())
}

/// Makes the bed, measures, undoes the bed. Names each step on `progress`.
pub(crate) fn run<L: Load>(
    bed: &Bed,
    folder: &Path,
    compared: &Compared,
    sides: &[Side],
    load: &mut L,
    progress: &mut dyn Write,
) -> Result<Vec<Candidate<L::Answer>>, Failure> {
    let mut state = up::run(bed, folder, progress)?;
    let measured = BedPaths::of(state.folder(), &bed.disks).and_then(|place| {
        let mut bench = Bench {
            bed,
            place: &place,
            state: &mut state,
            compared,
            controller: memory_group::controller(),
        };
        bench.measure(sides, load, progress)
    });
    let undone = down::undo(state);
    let measured = measured?;
    undone?;
    Ok(candidates(&compared.numbers, sides, measured, L::rate))
}

impl Bench<'_> {
    /// The runs of each candidate, by numbers.
    fn measure<L: Load>(
        &mut self,
        sides: &[Side],
        load: &mut L,
        progress: &mut dyn Write,
    ) -> Result<Vec<Vec<Measured<L::Answer>>>, Failure> {
        load.prepare(self)?;
        // Programs started from now on inherit it. Without it, ten readers at 128 KiB varied from
        // 16.7 to 21 MB/s with fourteen compilers beside them; with it, three runs gave 23.0.
        if !clock::be_punctual(Priority::Measured) {
            let text = "no real-time priority: other programs disturb the runs";
            writeln!(progress, "{text}").at(&self.place.files)?;
        }
        let numbers = self.compared.numbers.iter();
        let each: Vec<_> = numbers
            .flat_map(|number| sides.iter().map(move |side| (*number, side)))
            .collect();
        let mut measured: Vec<_> = each.iter().map(|_| Vec::new()).collect();
        for run in 1..=self.compared.runs {
            for ((number, side), results) in each.iter().zip(&mut measured) {
                let one = self.run(side, load, *number)?;
                let words = L::words(&one.answer);
                let text = format!("run {run}: {number} {}, {side}: {words}", L::MANY);
                writeln!(progress, "{text}").at(&self.place.files)?;
                results.push(one);
            }
        }
        Ok(measured)
    }

    /// One run on cold disks, in a memory group of its own, which is gone after it, whatever the run came to.
    fn run<L: Load>(
        &mut self,
        side: &Side,
        load: &L,
        number: usize,
    ) -> Result<Measured<L::Answer>, Failure> {
        cold::again(self.bed, self.place, &side.queue(self.bed))?;
        let group = self.make_group()?;
        let measured = self.run_in(group.as_deref(), side, load, number);
        let undone = group.map_or(Ok(()), |path| Thing::Group { path }.undo());
        let measured = measured?;
        undone.map(|()| measured)
    }

    fn make_group(&mut self) -> Result<Option<PathBuf>, Failure> {
        let Some(controller) = &self.controller else {
            return Ok(None);
        };
        let path = controller.path(self.state.folder());
        self.state.record(Thing::Group { path: path.clone() })?;
        controller.make(&path, self.compared.memory_bytes)?;
        Ok(Some(path))
    }

    fn run_in<L: Load>(
        &mut self,
        group: Option<&Path>,
        side: &Side,
        load: &L,
        number: usize,
    ) -> Result<Measured<L::Answer>, Failure> {
        let memory = rival::share(self.compared.memory_bytes, load.bytes_of_each(), number);
        let rival = Rival::start(self, side, memory, group)?;
        let folder = Rival::folder(rival.as_ref(), self.place);
        let answered = load.run(self, group, folder, number);
        let resident_max_bytes = rival.as_ref().and_then(Rival::resident_max_bytes);
        let processor_seconds = rival.as_ref().and_then(Rival::processor_seconds);
        let stopped = rival.map_or(Ok(()), Rival::stop);
        let (answer, disk) = answered?;
        stopped?;
        Ok(Measured {
            answer,
            disk,
            resident_max_bytes,
            processor_seconds,
        })
    }
}

/// The candidates at each number; `measured` are the runs of each.
fn candidates<Answer>(
    numbers: &[usize],
    sides: &[Side],
    measured: Vec<Vec<Measured<Answer>>>,
    rate: fn(&Answer) -> f64,
) -> Vec<Candidate<Answer>> {
    let mut candidates = Vec::new();
    let mut measured = measured.into_iter();
    for number in numbers {
        let of_side = |(side, runs): (&Side, Vec<Measured<Answer>>)| Candidate {
            number: *number,
            side: side.to_string(),
            rates: runs.iter().map(|run| rate(&run.answer)).collect(),
            to_default: f64::NAN,
            to_best: f64::NAN,
            runs,
        };
        let begin = candidates.len();
        candidates.extend(sides.iter().zip(measured.by_ref()).map(of_side));
        let here = &mut candidates[begin..];
        let is_kernel = |side: &Side| matches!(side, Side::Kernel { .. });
        let kernel = sides.iter().zip(&*here).filter(|(side, _)| is_kernel(side));
        let kernel: Vec<f64> = kernel.map(|(_, candidate)| candidate.rate()).collect();
        let first = kernel.first().copied().unwrap_or(f64::NAN);
        let best = kernel.into_iter().fold(first, f64::max);
        for candidate in here {
            candidate.to_default = candidate.rate() / first;
            candidate.to_best = candidate.rate() / best;
        }
    }
    candidates
}

impl<Answer> Candidate<Answer> {
    /// The median of the runs.
    pub(crate) fn rate(&self) -> f64 {
        median(self.rates.iter().copied())
    }

    /// The median of a figure over the runs.
    pub(crate) fn median(&self, of: impl Fn(&Answer) -> f64) -> f64 {
        median(self.runs.iter().map(|run| of(&run.answer)))
    }

    /// That of a figure of the disks; none where they had no request.
    pub(crate) fn of_disk(&self, of: impl Fn(&DiskWork, &Answer) -> f64) -> Option<f64> {
        let of = |run: &Measured<_>| {
            let disk = run.disk.filter(|disk| disk.requests > 0.0)?;
            Some(of(&disk, &run.answer))
        };
        some_median(self.runs.iter().filter_map(of))
    }

    /// The share of a processor that forerun took in runs of so many seconds.
    pub(crate) fn processor(&self, seconds: fn(&Answer) -> f64) -> Option<f64> {
        let of = |run: &Measured<_>| Some(run.processor_seconds? / seconds(&run.answer));
        some_median(self.runs.iter().filter_map(of))
    }

    pub(crate) fn figures(&self, slowest_per_mean: fn(&Answer) -> f64) -> Figures {
        let resident = self.runs.iter().filter_map(|run| run.resident_max_bytes);
        Figures {
            side: self.side.clone(),
            slowest_per_mean: self.median(slowest_per_mean),
            to_default: self.to_default,
            to_best: self.to_best,
            switches_per_request: self.of_disk(|disk, _| disk.switches / disk.requests),
            request_bytes: self.of_disk(|disk, _| disk.bytes / disk.requests),
            late_ns: self.of_disk(|disk, _| disk.late_ns / disk.requests),
            resident_max_bytes: resident.max(),
        }
    }
}

/// The middle one; of an even number, the mean of the two.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    some_median(values).unwrap_or(f64::NAN)
}

fn some_median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let low = values.get(values.len().saturating_sub(1) / 2)?;
    let high = values.get(values.len() / 2)?;
    Some(f64::midpoint(*low, *high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;

    fn kernel(scheduler: &str, read_ahead_kib: u64) -> Side {
        Side::Kernel {
            scheduler: scheduler.into(),
            read_ahead_kib,
        }
    }

    fn mount(preset: &str) -> Side {
        Side::Forerun {
            preset: preset.into(),
            is_told: true,
        }
    }

    fn measured(rates: [f64; 3]) -> Vec<Measured<f64>> {
        let measured = |answer| Measured {
            answer,
            disk: None,
            resident_max_bytes: None,
            processor_seconds: None,
        };
        rates.map(measured).to_vec()
    }

    #[test]
    fn ratios_are_of_medians_to_the_first_and_to_the_best_kernel() {
        let sides = [kernel("none", 128), kernel("none", 1024), mount("mount")];
        let rates = [
            [20.0, 90.0, 21.0],
            [42.0, 42.0, 1.0],
            [63.0, 63.0, 63.0],
            [8.0, 8.0, 8.0],
            [4.0, 4.0, 4.0],
            [2.0, 2.0, 2.0],
        ];
        let all = candidates(&[1, 64], &sides, rates.map(measured).to_vec(), |rate| *rate);
        let shown = all
            .iter()
            .map(|one| (one.number, one.rate(), one.to_default, one.to_best));
        let expected = [
            (1, 21.0, 1.0, 0.5),
            (1, 42.0, 2.0, 1.0),
            (1, 63.0, 3.0, 1.5),
            (64, 8.0, 1.0, 1.0),
            (64, 4.0, 0.5, 0.5),
            (64, 2.0, 0.25, 0.25),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        assert_eq!(all[1].rates, [42.0, 42.0, 1.0]);
        assert_eq!(all[5].side, "forerun mount");
        assert_eq!(median([1.0, 4.0, 2.0, 3.0].into_iter()), 2.5);
    }

    #[test]
    fn disks_that_count_nothing_have_no_figures_and_others_the_medians_of_theirs() {
        let sides = [kernel("none", 128)];
        let mut runs = measured([1.0, 2.0, 3.0]);
        let figures = |runs: &Vec<Measured<f64>>| {
            let all = candidates(&[1], &sides, vec![runs.clone()], |rate| *rate);
            all[0].figures(|_| 1.0)
        };
        let none = figures(&runs);
        assert_eq!(
            (none.switches_per_request, none.request_bytes, none.late_ns),
            (None, None, None)
        );
        for (run, requests) in runs.iter_mut().zip([0.0, 4.0, 8.0]) {
            run.disk = Some(DiskWork {
                requests,
                switches: 2.0,
                bytes: 4_000.0,
                busy_seconds: 1.0,
                late_ns: 80.0,
            });
        }
        let some = figures(&runs);
        assert_eq!(some.switches_per_request, Some(0.375));
        assert_eq!(
            (some.request_bytes, some.late_ns),
            (Some(750.0), Some(15.0))
        );
    }

    #[test]
    fn candidates_that_would_fail_on_the_bed_are_refused_by_name() {
        let bed = bed::parse(include_str!("../beds/disk.toml")).unwrap();
        let compared = |forerun: Option<&str>, most: usize| Compared {
            numbers: vec![1, most, 2],
            forerun: forerun.map(PathBuf::from),
            memory_bytes: 256 << 20,
            time: Duration::from_secs(1),
            runs: 1,
        };
        let offered = ["none".to_owned(), "bfq".to_owned()];
        let said = |compared: &Compared, sides: &[Side]| {
            let checked = check(&bed, compared, sides, 128 << 10, &offered);
            checked.map_or_else(|failure| failure.to_string(), |()| String::new())
        };
        let here = "/bin/true";
        let both = [kernel("bfq", 128), mount("mount")];
        assert_eq!(said(&compared(Some(here), 300), &both), "");
        assert_eq!(said(&compared(None, 1000), &both[..1]), "");
        for (forerun, most, sides, expected) in [
            (
                "/nowhere/forerun",
                1,
                &both[..1],
                "--forerun /nowhere/forerun",
            ),
            (
                here,
                1,
                &[kernel("cfq", 128)][..],
                "scheduler `cfq`: this kernel has none, bfq",
            ),
            (
                here,
                1,
                &both[1..],
                "--schedulers: give one that this kernel has: none, bfq",
            ),
            (here, 391, &both[..], "--memory 256MiB: 391 "),
            ("/bin/false", 1, &both[..], "preset `mount`"),
        ] {
            let text = said(&compared(Some(forerun), most), sides);
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}
