//! A whole workload of the simulator in real time: the processes of a server over many files.
//!
//! A pattern is what one reader does with its file. A workload such as `index-search` says itself which
//! files there are, which processes read them, and how many run at once. Each process is a thread: it
//! opens its files, makes its steps, and closes them; when one ends the next begins.
//!
//! ```text
//! processes 0 1 2 3 4 5 ..   at once 2      thread A: 0 ------ 2 --- 3 --------
//!                                           thread B: 1 --- .. 4 ---------- 5 -
//! ```
//!
//! Not supported: workloads of one process over all readers (those are patterns), walks through folders,
//! and announced reads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use forerun_core::Nanos;
use forerun_sim::workload::Workload;
use indicatif::ProgressBar;

use super::plan::Plan;
use super::readers::{Race, Source, Times, Turn, check_room, maps_max, nanos};
use crate::failure::Failure;

/// Why a workload cannot be run like this; none if it can.
#[must_use]
pub fn refusal(workload: &dyn Workload) -> Option<&'static str> {
    if workload.walk().is_some() {
        return Some("walks folders, which are files of a mount: read them there");
    }
    if workload.turns().is_some() {
        return Some("is one process over all files: give it to --pattern");
    }
    let announces = workload.hints().next().is_some() || workload.hints_at_open(0).next().is_some();
    announces.then_some("announces its reads, which is not supported here: leave that out")
}

/// The readers of each process, the one that its steps belong to first.
fn processes(workload: &dyn Workload) -> Vec<Vec<usize>> {
    let mut processes: Vec<Vec<usize>> = Vec::new();
    for reader in 0..workload.readers().len() {
        match workload.owner(reader) {
            owner if owner == reader => processes.push(vec![reader]),
            _ => processes
                .last_mut()
                .into_iter()
                .for_each(|one| one.push(reader)),
        }
    }
    processes
}

/// Runs all processes, each on files that `open` opens by number.
///
/// # Errors
/// The first failure of any process, or a thread that cannot be started.
pub fn run<S: Source>(
    plan: &Plan,
    bar: &ProgressBar,
    open: &(dyn Fn(usize) -> Result<S, Failure> + Sync),
) -> Result<Times, Failure> {
    let workload = plan.workload()?;
    let processes = processes(&*workload);
    let at_once = workload.at_once().min(processes.len());
    check_room(at_once, maps_max())?;
    let (race, next, begun) = (Race::new(plan, bar), AtomicUsize::new(0), Instant::now());
    let work = || -> Result<Vec<(Nanos, u64)>, Failure> {
        let workload = plan.workload()?;
        let mut ends = Vec::new();
        while let Some(process) = processes.get(next.fetch_add(1, Ordering::Relaxed)) {
            if race.is_stopped() {
                break;
            }
            let end = process_on(&race, &*workload, process, open, begun);
            ends.push(end.inspect_err(|_| race.stop())?);
        }
        Ok(ends)
    };
    let ends = thread::scope(|scope| {
        let start = |number| {
            let started = thread::Builder::new().spawn_scoped(scope, work);
            started.map_err(|e| {
                race.stop();
                Failure::Run(format!("cannot start process {number}: {e}"))
            })
        };
        let threads: Vec<_> = (0..at_once).map(start).collect();
        let panicked = |_| Failure::Run("a process's thread panicked".to_owned());
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().map_err(panicked)?;
        let ends: Vec<_> = threads.into_iter().map(|thread| join(thread?)).collect();
        ends.into_iter().collect::<Result<Vec<_>, Failure>>()
    })?;
    let ends = ends.concat();
    Ok(Times {
        elapsed: nanos(begun.elapsed()),
        readers: ends.iter().map(|(time, _)| *time).collect(),
        bytes: ends.iter().map(|(_, bytes)| bytes).sum(),
        responses: race.responses(),
    })
}

/// One process from its open to its close: its time and its bytes.
fn process_on<S: Source>(
    race: &Race<'_>,
    workload: &dyn Workload,
    process: &[usize],
    open: &dyn Fn(usize) -> Result<S, Failure>,
    begun: Instant,
) -> Result<(Nanos, u64), Failure> {
    let files = workload.readers();
    let opened = process.iter().map(|reader| open(files[*reader]));
    let mut sources = opened.collect::<Result<Vec<S>, Failure>>()?;
    let (started, mut bytes, mut buffer) = (Instant::now(), 0, Vec::new());
    for step in workload.steps(process[0]) {
        if race.is_stopped() {
            break;
        }
        let due = Duration::from_nanos(step.not_before.unwrap_or_default().0);
        let due = due.saturating_sub(begun.elapsed());
        thread::sleep(due.max(Duration::from_nanos(step.pause.0)));
        let on = process.iter().position(|reader| step.on == Some(*reader));
        let on = on.unwrap_or(0);
        let turn = Turn {
            reader: process[0],
            file: files[process[on]],
            begun,
            step: &step,
        };
        race.step(&turn, &mut sources[on], &mut buffer)?;
        bytes += step.take.0;
    }
    Ok((nanos(started.elapsed()), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_sim::workload::parse;

    #[test]
    fn readers_beside_another_one_are_of_its_process() {
        let one = parse("one-rand(files=8,requests=5)").unwrap();
        assert_eq!(processes(&*one), [[0], [1], [2], [3], [4]]);
        let two = parse("two-rand(files=8,requests=3)").unwrap();
        assert_eq!(processes(&*two), [[0, 1], [2, 3], [4, 5]]);
    }

    #[test]
    fn workloads_that_are_no_servers_are_refused_with_a_reason() {
        for (text, reason) in [("folders", "folders"), ("shuffled", "--pattern")] {
            let refused = refusal(&*parse(text).unwrap());
            assert!(
                refused.is_some_and(|why| why.contains(reason)),
                "{text}: {refused:?}"
            );
        }
        assert_eq!(refusal(&*parse("index-search").unwrap()), None);
    }
}
