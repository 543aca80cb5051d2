//! The sum of the last 100 of a series of durations.
//!
//! Forestall estimates the ratio of disk access time to compute time from the most recent 100 of
//! each (Kimbrel et al. 1996, section 5).

use alloc::collections::VecDeque;

use crate::units::Nanos;

/// How many are remembered.
const MOST: usize = 100;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    last: VecDeque<u64>,
    sum: u128,
}

impl Recent {
    pub(crate) fn push(&mut self, value: Nanos) {
        if self.last.len() == MOST {
            self.sum -= u128::from(self.last.pop_front().unwrap_or(0));
        }
        self.last.push_back(value.0);
        self.sum += u128::from(value.0);
    }

    pub(crate) fn sum(&self) -> u128 {
        self.sum
    }

    pub(crate) fn count(&self) -> u128 {
        self.last.len() as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_count() {
        let mut recent = Recent::default();
        for value in 1..=102 {
            recent.push(Nanos(value));
        }
        assert_eq!((recent.sum(), recent.count()), (100 * (3 + 102) / 2, 100));
    }
}
