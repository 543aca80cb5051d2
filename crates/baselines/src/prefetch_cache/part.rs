//! The part of the memory that blocks fetched ahead may keep: it stays, or follows the misses.
//!
//! Too small a part loses blocks before their readers come, too large a one loses blocks that are read
//! again. Li and Shen 2005, section 3.2, count both as misses on blocks that were in memory not long ago,
//! and search the part where their sum is least by gradient descent. Time is cut into epochs. At the end
//! of each one the part moves by one step, in the direction of the last move; if the combined rate of
//! misses rose by a margin since the epoch before, in the other direction.
//!
//! ```text
//! rate     40   36   35   35   41 (more than 10 % up)   36
//! part     25 > 26 > 27 > 28 > 29                     > 28 > 27 ..
//! ```
//!
//! With steps of 0 it stays, and no misses are counted. The paper gives no step, margin or length; the
//! defaults here are choices. It draws the first direction by lot; here it is up, because a core draws no
//! lots. Three more rules, none in the paper: without a miss in an epoch there is nothing to gain, and the
//! part stays; at an end of its range the part turns back; an epoch that ends late, because no frame was
//! needed for long, is not judged.
//!
//! Rules that differ from the paper: `docs/DIFFERENCES.md`.

use forerun_core::Nanos;
use forerun_core::spec::{Param, Values};

/// Where it begins.
pub(super) const PERCENT: Param = Param {
    name: "part_percent",
    summary: "part of the memory that blocks fetched ahead may keep when a frame is needed, in the beginning; 25 is \
              where Li and Shen begin",
    default: 25,
    min: 1,
    max: 99,
};

/// How far it moves.
pub(super) const STEP: Param = Param {
    name: "step_percent",
    summary: "how far the part moves each epoch, after the misses (Li and Shen 2005); 0: it stays. 2 is seen in the \
              miss rate of most loads, and crosses half the memory in 25 epochs",
    default: 0,
    min: 0,
    max: 25,
};

/// When it turns.
pub(super) const MARGIN: Param = Param {
    name: "margin_percent",
    summary: "how much the miss rate must rise for the part to turn back; 10 is above its noise at some hundred misses",
    default: 10,
    min: 0,
    max: 1000,
};

/// When it moves.
pub(super) const EPOCH: Param = Param {
    name: "epoch_ms",
    summary: "length of an epoch; a second holds some hundred requests of a disk",
    default: 1000,
    min: 1,
    max: 3_600_000,
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    percent: u8,
    step: u8,
    margin: u64,
    epoch: u64,
    /// The direction of the last move.
    rises: bool,
    /// When this epoch began.
    began: Nanos,
    /// Misses in it.
    pub(super) misses: u64,
    /// The rate of the epoch before, in misses in 1,000 s.
    before: Option<u64>,
}

impl Part {
    /// By its parameters.
    pub(super) fn of(values: &Values<'_>) -> Self {
        Self {
            percent: values.get(PERCENT.name) as u8,
            step: values.get(STEP.name) as u8,
            margin: values.get(MARGIN.name),
            epoch: values.get(EPOCH.name) * 1_000_000,
            rises: true,
            began: Nanos(0),
            misses: 0,
            before: None,
        }
    }

    /// Whether misses move it.
    pub(super) fn follows_misses(&self) -> bool {
        self.step > 0
    }

    /// A block is missing that was given up not long ago.
    pub(super) fn missed(&mut self) {
        self.misses = self.misses.saturating_add(1);
    }

    /// A frame is needed: the part in per cent, now. It moves here alone, so it stands still while memory
    /// suffices.
    pub(super) fn percent(&mut self, now: Nanos) -> u8 {
        let length = now.since(self.began).0;
        if self.follows_misses() && length >= self.epoch {
            if length < self.epoch.saturating_mul(2) {
                self.end_epoch(length);
            }
            (self.began, self.misses) = (now, 0);
        }
        self.percent
    }

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
        let (low, high) = (self.step, 100 - self.step);
        let next = match self.rises {
            true => self.percent.saturating_add(self.step),
            false => self.percent.saturating_sub(self.step),
        };
        if next <= low || next >= high {
            self.rises = next <= low;
        }
        self.percent = next.clamp(low, high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &[Param] = &[PERCENT, STEP, MARGIN, EPOCH];
    const SECOND: u64 = 1_000_000_000;

    /// A quarter that moves by 2 %.
    fn moving() -> Part {
        Part::of(&Values::new(PARAMS, &[25, 2]))
    }

    /// The part after each epoch of a load whose misses in an epoch depend on the part.
    fn parts(epochs: u64, misses: impl Fn(u8) -> u64) -> std::vec::Vec<u8> {
        let mut moving = moving();
        let mut part = moving.percent(Nanos(0));
        let epochs = (1..=epochs).map(|epoch| {
            for _ in 0..misses(part) {
                moving.missed();
            }
            part = moving.percent(Nanos(epoch * SECOND));
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
        let mut part = moving();
        part.percent(Nanos(0));
        let misses = [100, 110, 122, 100, 111];
        let parts = [1, 2, 3, 4, 5].map(|epoch| {
            for _ in 0..misses[epoch as usize - 1] {
                part.missed();
            }
            part.percent(Nanos(epoch * SECOND))
        });
        assert_eq!(parts, [27, 29, 27, 25, 27]);
    }

    #[test]
    fn an_epoch_in_which_no_frame_was_needed_is_not_judged() {
        let mut part = moving();
        part.percent(Nanos(0));
        part.missed();
        assert_eq!(part.percent(Nanos(2 * SECOND)), 25);
        part.missed();
        assert_eq!(part.percent(Nanos(3 * SECOND)), 27);
        assert_eq!(part.percent(Nanos(SECOND)), 27, "time that runs backward");
    }
}
