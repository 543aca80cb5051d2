//! The growth of memory: the slope of a least-squares line, not of two samples.
//!
//! A leak of a few hundred bytes for each reader hides in the noise of single samples and shows in
//! the slope: 50,000 readers that leave 400 bytes each are 20 MB in ten minutes. The first half of
//! the time does not count, as the engine's memory fills then.

use super::sample::Sample;

/// Growth that passes, over the whole time: pages of the allocator come and go by hundreds of
/// kilobytes.
const GROWTH_MAX_BYTES: u64 = 2 << 20;

/// The growth of resident memory over the time that counts, by the slope of the line through its
/// samples.
#[must_use]
pub(super) fn growth_bytes(samples: &[Sample]) -> i64 {
    let counted = counted(samples);
    let (Some(first), Some(last)) = (counted.first(), counted.last()) else {
        return 0;
    };
    let count = counted.len() as f64;
    let mean = |of: fn(&Sample) -> f64| counted.iter().map(of).sum::<f64>() / count;
    let (x_mean, y_mean) = (mean(|s| s.seconds), mean(|s| s.resident_bytes as f64));
    let (mut covariance, mut variance) = (0.0, 0.0);
    for sample in counted {
        let x = sample.seconds - x_mean;
        covariance += x * (sample.resident_bytes as f64 - y_mean);
        variance += x * x;
    }
    match variance > 0.0 {
        true => (covariance / variance * (last.seconds - first.seconds)) as i64,
        false => 0,
    }
}

fn counted(samples: &[Sample]) -> &[Sample] {
    let last = samples.last().map_or(0.0, |sample| sample.seconds);
    let begin = samples.partition_point(|sample| sample.seconds < last / 2.0);
    &samples[begin..]
}

/// Faults of the memory of a mount of this limit; none, if it is flat and within it.
#[must_use]
pub(super) fn violations(samples: &[Sample], limit_bytes: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    let growth = growth_bytes(samples);
    if growth > GROWTH_MAX_BYTES as i64 {
        wrong.push(format!("resident memory grew by {growth} bytes"));
    }
    // Code, stacks and the kernel's names: docs/MOUNT.md allows 32 MiB.
    let bound = limit_bytes + (32 << 20);
    let most = samples.iter().map(|s| s.resident_bytes).max().unwrap_or(0);
    if most > bound {
        wrong.push(format!("{most} bytes resident, of a bound of {bound}"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::super::sample::Ledger;
    use super::*;

    fn samples(resident: impl Fn(u64) -> u64) -> Vec<Sample> {
        let sample = |second| Sample {
            seconds: second as f64,
            resident_bytes: resident(second),
            threads: 1,
            ledger: Ledger {
                in_flight_bytes: 0,
                resident_unused_bytes: 0,
                open_files: 0,
                streams: 0,
                reads_waiting: 0,
                requests: 0,
                unexplained: 0,
            },
        };
        (0..=600).map(sample).collect()
    }

    #[test]
    fn memory_that_fills_at_first_and_then_wavers_is_flat() {
        let wavering = |second: u64| (60 << 20) * second.min(100) / 100 + second % 7 * 300_000;
        assert_eq!(violations(&samples(wavering), 64 << 20), [""; 0]);
    }

    #[test]
    fn a_small_leak_is_found_under_larger_noise() {
        let leaking = |second: u64| (50 << 20) + second * 10_000 + second % 7 * 300_000;
        let samples = samples(leaking);
        let growth = growth_bytes(&samples);
        assert!((2_700_000..3_200_000).contains(&growth), "{growth}");
        assert!(violations(&samples, 64 << 20)[0].contains("grew by"));
    }

    #[test]
    fn memory_beyond_its_bound_and_no_samples_are_told_apart() {
        let wrong = violations(&samples(|_| 97 << 20), 64 << 20);
        assert!(wrong.len() == 1 && wrong[0].contains("of a bound"));
        assert_eq!(growth_bytes(&[]), 0);
    }
}
