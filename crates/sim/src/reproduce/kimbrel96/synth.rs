//! The methods as they are run on `synth`: with which parameters, on which arrays.

use forerun_core::Nanos;

use super::super::lab::Lab;
use super::super::{Bar, Broken};
use crate::hinted::host::HostReport;

/// The arrays of the paper (section 3).
pub(super) const ARRAYS: [u16; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16];

/// Batches of aggressive on 1, 2, 3 and 4 disks, found by search: about the fastest of each.
pub(super) const BATCHES: [u32; 4] = [40, 8, 4, 4];

/// F in percent and the batch backwards, of reverse aggressive on 1, 2 and 3 disks, found by
/// search: they make the published counts. Forwards the batch is 40.
const REVERSE: [(u32, u32); 3] = [(400, 40), (800, 40), (4000, 4)];

/// What is tabled for so many disks; beyond the table its last entry.
fn of<T: Copy>(table: &[T], disks: u16, none: T) -> T {
    let row = usize::from(disks).saturating_sub(1);
    let last = table.len().saturating_sub(1);
    table.get(row.min(last)).copied().unwrap_or(none)
}

/// Aggressive in the searched batches.
pub(super) fn aggressive(disks: u16) -> String {
    format!("aggressive(batch_blocks={})", of(&BATCHES, disks, 4))
}

/// Reverse aggressive with the searched parameters.
pub(super) fn reverse(disks: u16) -> String {
    let (percent, batch) = of(&REVERSE, disks, (400, 40));
    format!(
        "reverse-aggressive(fetch_percent={percent},batch_blocks=40,reverse_batch_blocks={batch})"
    )
}

/// All methods on so many disks: the name for the legend, and with parameters.
pub(super) fn methods(disks: u16) -> [(&'static str, String); 5] {
    [
        ("demand-opt", "demand-opt".to_owned()),
        ("fixed-horizon", "fixed-horizon".to_owned()),
        ("aggressive", aggressive(disks)),
        ("reverse-aggressive", reverse(disks)),
        // Section 5 says that forestall was run with Table 6's batches.
        ("forestall", "forestall".to_owned()),
    ]
}

/// A bar for every method and array.
pub(super) fn bars(lab: &mut Lab) -> Result<Vec<Bar>, Broken> {
    let mut bars = Vec::new();
    for disks in ARRAYS {
        for (method, policy) in methods(disks) {
            let run = lab.synth(&policy, disks)?;
            bars.push(Bar {
                method,
                disks,
                compute: run.compute,
                driver: run.driver,
                stall: run.stall,
            });
        }
    }
    Ok(bars)
}

/// Seconds, to the millisecond.
pub(super) fn seconds(time: Nanos) -> f64 {
    rounded(time.0 as f64 / 1e9, 3)
}

/// A number with so many places behind the point.
pub(super) fn rounded(value: f64, places: i32) -> f64 {
    let unit = 10f64.powi(places);
    (value * unit).round() / unit
}

/// Mean time a disk works on a request, in milliseconds.
pub(super) fn service_ms(run: &HostReport) -> f64 {
    let busy: u64 = run.busy.iter().map(|busy| busy.0).sum();
    rounded(busy as f64 / run.completed.max(1) as f64 / 1e6, 2)
}
