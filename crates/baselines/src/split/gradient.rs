//! Gradient descent on the combined miss rate.
//!
//! Li and Shen 2005, section 3.2. Time is cut into epochs. At the end of each one the part moves by
//! one unit, in the direction of the last move; if the combined rate of prefetch misses and cache
//! misses rose by a margin since the epoch before, in the other direction.
//!
//! ```text
//! rate     40   36   35   35   41 (more than 10 % up)   36
//! part     25 > 26 > 27 > 28 > 29                     > 28 > 27 ..
//! ```
//!
//! The paper gives no unit, margin or length; the defaults here are choices. It draws the first
//! direction by lot; here it is up, because a core draws no lots. Three more rules, none in the
//! paper: without a miss in an epoch there is nothing to gain, and the part stays; at an end of its
//! range the part turns back; an epoch that ends late, because no frame was needed for long, is not
//! judged.
//!
//! Rules that differ from the paper: `docs/DIFFERENCES.md`.

use alloc::boxed::Box;

use forerun_core::Nanos;
use forerun_core::spec::{Knows, Method, Param, Spec};
use forerun_core::split::{Miss, Split};

use super::PERCENT;

pub(super) const METHOD: Method<Box<dyn Split>> = Method {
    spec: Spec {
        name: "gradient",
        summary: "a part that follows the combined miss rate downhill, by one unit each epoch",
        source: "Li and Shen 2005 sections 3.2 and 3.3",
        unfit: "loads that change faster than some epochs",
        knows: Knows::Online,
        params: &[
            PERCENT,
            Param {
                name: "unit_percent",
                summary: "how far the part moves each epoch; 2 is seen in the miss rate of most loads, and \
                          crosses half the memory in 25 epochs",
                default: 2,
                min: 1,
                max: 25,
            },
            Param {
                name: "margin_percent",
                summary: "how much the rate must rise to count; 10 is above its noise at some hundred misses",
                default: 10,
                min: 0,
                max: 1000,
            },
            Param {
                name: "epoch_ms",
                summary: "length of an epoch; a second holds some hundred requests of a disk",
                default: 1000,
                min: 1,
                max: 3_600_000,
            },
        ],
    },
    build: |values| {
        Box::new(Gradient {
            percent: values.get("percent") as u8,
            unit: values.get("unit_percent") as u8,
            margin: values.get("margin_percent"),
            epoch: values.get("epoch_ms") * 1_000_000,
            rises: true,
            began: Nanos(0),
            misses: 0,
            before: None,
        })
    },
};

#[derive(Debug)]
struct Gradient {
    percent: u8,
    unit: u8,
    margin: u64,
    epoch: u64,
    /// The direction of the last move.
    rises: bool,
    /// When this epoch began.
    began: Nanos,
    /// Misses of both kinds in it.
    misses: u64,
    /// The rate of the epoch before, in misses in 1,000 s.
    before: Option<u64>,
}

impl Gradient {
    fn end_epoch(&mut self, length: u64) {
        let rate = u128::from(self.misses) * 1_000_000_000_000 / u128::from(length.max(1));
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        let before = self.before.replace(rate);
        if rate == 0 {
            return;
        }
        let has_risen = |before| {
            let allowed = u128::from(before) * u128::from(100 + self.margin) / 100;
            u128::from(rate) > allowed
        };
        if before.is_some_and(has_risen) {
            self.rises = !self.rises;
        }
        let (low, high) = (self.unit, 100 - self.unit);
        let next = match self.rises {
            true => self.percent.saturating_add(self.unit),
            false => self.percent.saturating_sub(self.unit),
        };
        if next <= low || next >= high {
            self.rises = next <= low;
        }
        self.percent = next.clamp(low, high);
    }
}

impl Split for Gradient {
    fn learns(&self) -> bool {
        true
    }

    fn missed(&mut self, _miss: Miss) {
        self.misses = self.misses.saturating_add(1);
    }

    fn percent(&mut self, now: Nanos) -> u8 {
        let length = now.since(self.began).0;
        if length >= self.epoch {
            if length < self.epoch.saturating_mul(2) {
                self.end_epoch(length);
            }
            (self.began, self.misses) = (now, 0);
        }
        self.percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// The part after each epoch of a load whose misses in an epoch depend on the part.
    fn parts(epochs: u64, misses: impl Fn(u8) -> u64) -> std::vec::Vec<u8> {
        let values = METHOD.spec.params.iter().map(|param| param.default);
        let mut split = METHOD.of(&values.collect::<std::vec::Vec<_>>());
        let mut part = split.percent(Nanos(0));
        let epochs = (1..=epochs).map(|epoch| {
            for _ in 0..misses(part) {
                split.missed(Miss::Cache);
            }
            part = split.percent(Nanos(epoch * SECOND));
            part
        });
        epochs.collect()
    }

    #[test]
    fn the_part_finds_the_least_combined_miss_rate_and_stays_near() {
        for least in [15, 40, 70] {
            let misses = |part: u8| 10 + 20 * u64::from(part.abs_diff(least));
            let parts = parts(200, misses);
            let near = parts[100..].iter().all(|part| part.abs_diff(least) <= 6);
            assert!(near, "least at {least}: {:?}", &parts[100..]);
        }
    }

    #[test]
    fn without_a_miss_the_part_stays_and_it_turns_at_the_ends_of_its_range() {
        assert!(parts(20, |_| 0).iter().all(|part| *part == 25));
        let parts = parts(300, |_| 50);
        assert_eq!(parts[0], 27);
        assert_eq!(parts.iter().max(), Some(&98));
        assert_eq!(parts.iter().min(), Some(&2));
    }

    #[test]
    fn a_rise_by_more_than_the_margin_turns_it_and_one_by_the_margin_does_not() {
        let mut split = METHOD.of(&[25, 2, 10, 1000]);
        split.percent(Nanos(0));
        let misses = [100, 110, 122, 100, 111];
        let parts = [1, 2, 3, 4, 5].map(|epoch| {
            for _ in 0..misses[epoch as usize - 1] {
                split.missed(Miss::Cache);
            }
            split.percent(Nanos(epoch * SECOND))
        });
        assert_eq!(parts, [27, 29, 27, 25, 27]);
    }

    #[test]
    fn an_epoch_in_which_no_frame_was_needed_is_not_judged() {
        let mut split = METHOD.of(&[25, 2, 10, 1000]);
        split.percent(Nanos(0));
        split.missed(Miss::Prefetch);
        assert_eq!(split.percent(Nanos(2 * SECOND)), 25);
        split.missed(Miss::Prefetch);
        assert_eq!(split.percent(Nanos(3 * SECOND)), 27);
        assert_eq!(split.percent(Nanos(SECOND)), 27, "time that runs backward");
    }
}
