//! The runs of a paper on all processors.
//!
//! Jobs depend on nothing but themselves, so each thread takes the next free one. The result does
//! not depend on the assignment.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Broken;
use crate::lab::{Done, Job, Traces};

/// Does the jobs; calls `did` after each, and leaves the others undone once it is false.
///
/// # Errors
/// The first that could not be done.
pub fn perform(
    traces: &Traces,
    jobs: &[Job],
    did: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<(Job, Done)>, Broken> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((job.clone(), job.perform(traces)?));
            if !did() {
                break;
            }
        }
        Ok::<_, Broken>(done)
    };
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::with_capacity(jobs.len());
        for thread in threads {
            match thread.join() {
                Ok(done) => all.extend(done?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(all)
    })
}
