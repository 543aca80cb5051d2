//! A distribution of times, from which percentiles are read.
//!
//! Counters of intervals that are at most 1/128 of their times wide, as in HDR histograms: any number
//! of times takes at most 60 KB, and a percentile is at most 0.8 % too long. The longest is exact.
//!
//! ```text
//! time, ns    0 1 2 .. 255 | 256-257 .. 510-511 | 512-515 .. 1020-1023 | ..    128 intervals a power of two
//! ```

use forerun_core::Nanos;

/// Times below this have a counter each.
const EXACT: u64 = 256;
/// Intervals of each power of two above.
const INTERVALS: u64 = 128;

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Times {
    counts: Vec<u64>,
    count: u64,
    longest: Nanos,
    sum: u128,
}

impl Times {
    /// One more.
    pub fn add(&mut self, time: Nanos) {
        let at = interval(time.0);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.count += 1;
        self.sum += u128::from(time.0);
        self.longest = self.longest.max(time);
    }

    /// Adds all times of another distribution.
    pub fn join(&mut self, other: &Self) {
        let most = self.counts.len().max(other.counts.len());
        self.counts.resize(most, 0);
        for (own, count) in self.counts.iter_mut().zip(&other.counts) {
            *own += count;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }

    /// Half, 90 %, 99 % and 99.9 % of all times do not exceed these; and the longest. None of none.
    #[must_use]
    pub fn tail(&self) -> Option<[Nanos; 5]> {
        let [p50, p90, p99, p99_9] = [500, 900, 990, 999].map(|at| self.at(at));
        (self.count > 0).then_some([p50, p90, p99, p99_9, self.longest])
    }

    /// Number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest; zero of none.
    #[must_use]
    pub fn longest(&self) -> Nanos {
        self.longest
    }

    /// The mean; zero of none.
    #[must_use]
    pub fn mean(&self) -> Nanos {
        let mean = self.sum.checked_div(self.count.into()).unwrap_or(0);
        Nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The shortest time that at least this part of a thousand do not exceed; zero of none.
    #[must_use]
    pub fn at(&self, per_mille: u32) -> Nanos {
        let rank = u128::from(self.count) * u128::from(per_mille.min(1000));
        let rank = rank.div_ceil(1000).max(1);
        let mut below = 0_u128;
        for (at, count) in self.counts.iter().enumerate() {
            below += u128::from(*count);
            if below >= rank {
                return Nanos(last_of(at)).min(self.longest);
            }
        }
        self.longest
    }
}

/// The interval of a time.
fn interval(time: u64) -> usize {
    if time < EXACT {
        return time as usize;
    }
    let power = u64::from(time.ilog2() - EXACT.ilog2());
    let within = (time >> (power + 1)) - INTERVALS;
    (EXACT + power * INTERVALS + within) as usize
}

/// The longest time of an interval.
fn last_of(interval: usize) -> u64 {
    let at = interval as u64;
    if at < EXACT {
        return at;
    }
    let (power, within) = ((at - EXACT) / INTERVALS, (at - EXACT) % INTERVALS);
    let first = u128::from(INTERVALS + within) << (power + 1);
    u64::try_from(first + (1 << (power + 1)) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn intervals_follow_each_other_without_gaps() {
        for at in 0..7400 {
            let last = last_of(at);
            assert_eq!(interval(last), at);
            if last < u64::MAX {
                assert_eq!(interval(last + 1), at + 1);
            }
        }
        assert_eq!(last_of(interval(u64::MAX)), u64::MAX);
    }

    #[test]
    fn percentiles_are_those_of_a_sorted_list_within_an_interval() {
        let mut random = Random::new(5);
        for count in [1, 2, 10, 999, 5000] {
            let mut list: Vec<u64> = (0..count).map(|_| random.magnitude(40)).collect();
            let mut times = Times::default();
            list.iter().for_each(|time| times.add(Nanos(*time)));
            list.sort_unstable();
            for per_mille in [1_u32, 500, 900, 990, 999, 1000] {
                let rank = (list.len() * per_mille as usize).div_ceil(1000).max(1);
                let (exact, found) = (list[rank - 1], times.at(per_mille).0);
                assert!(found >= exact, "{per_mille}: {found} {exact}");
                assert!(found - exact <= exact / 128, "{per_mille}: {found} {exact}");
            }
            assert_eq!(times.longest().0, list[list.len() - 1]);
        }
        assert_eq!(Times::default().at(500), Nanos(0));
        assert_eq!(Times::default().tail(), None);
    }

    #[test]
    fn parts_that_are_joined_are_the_whole() {
        let mut random = Random::new(6);
        let (mut whole, mut parts) = (Times::default(), [Times::default(), Times::default()]);
        for at in 0..1000 {
            let time = Nanos(random.magnitude(40));
            whole.add(time);
            parts[at % 2].add(time);
        }
        let [mut one, other] = parts;
        one.join(&other);
        assert_eq!(one, whole);
        let tail = whole.tail().unwrap();
        assert_eq!(tail[2..], [whole.at(990), whole.at(999), whole.longest()]);
    }
}
