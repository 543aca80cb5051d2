//! Figures of a run as they are printed.

use forerun_core::Nanos;

pub(super) use super::super::numbers::{answer, judged, rounded};
use forerun_sim::hinted::host::HostReport;

/// Seconds, to the millisecond.
pub(super) fn seconds(time: Nanos) -> f64 {
    rounded(time.0 as f64 / 1e9, 3)
}

/// Seconds as the paper prints them.
pub(super) fn elapsed_s(run: &HostReport) -> f64 {
    rounded(seconds(run.elapsed), 1)
}

/// Mean time a disk works on a request, in milliseconds.
pub(super) fn service_ms(run: &HostReport) -> f64 {
    let busy: u64 = run.busy.iter().map(|busy| busy.0).sum();
    rounded(busy as f64 / run.completed.max(1) as f64 / 1e6, 2)
}

/// Share of the elapsed time that the disks worked, on average.
pub(super) fn utilisation(run: &HostReport) -> f64 {
    run.utilisation_ppm() as f64 / 1e6
}

/// By how much per cent `run` takes longer than `other`.
pub(super) fn slower_percent(run: &HostReport, other: &HostReport) -> f64 {
    (run.elapsed.0 as f64 / other.elapsed.0.max(1) as f64 - 1.0) * 100.0
}
